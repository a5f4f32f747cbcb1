"""The model calls the tools itself, and each answer comes with what the results that it cites state."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kg_agents.evidence.answers import AgentAnswer, GivenAnswer
from kg_agents.llm import (
    Completion,
    Function,
    FunctionCall,
    LlmError,
    Message,
    PromptTooLong,
    Scripted,
    ScriptedLlm,
    ToolsUnsupported,
    Usage,
    estimated_tokens,
)
from kg_agents.llm.dialogue import Limits
from kg_agents.parameters import ToolsSettings
from kg_agents.running import Question, replay_question, run_question
from kg_agents.tools.client import Toolbox, ToolCall, ToolError, ToolOffer
from kg_agents.tools.functions import FinalAnswer, instructed, offered, read_final
from kg_agents.trace import ToolLine, Trace, Watcher, read_trace
from oda_runs import Called, ChangedTools, answer, calls, serving_store, story_store
from small_graphs import TOKYO
from tool_schemas import faults_of

QUESTION = "What is the capital of Tokyo?"
LOOK = ("GetNeighbor", {"entity": "Tokyo"})
CAPITAL = ("Compose", {"expression": "Neighbor[Tokyo, capital]"})
COUNT = ("Compose", {"expression": "Count[Neighbor[Tokyo]]"})
FACT = ("Q1490", "P36", "Q179645")


@pytest.fixture(scope="module")
def store() -> Path:
    return story_store(TOKYO)


@pytest.fixture
async def tools(store: Path, tmp_path: Path) -> AsyncIterator[Toolbox]:
    async with serving_store(store, tmp_path) as connected:
        yield connected


class Asking:
    """Asks the question, keeps the record, and checks that it gives the same answer again."""

    def __init__(self, tools: Toolbox, folder: Path) -> None:
        self._tools = tools
        self._path = folder / "run.jsonl"
        self.llm = ScriptedLlm()

    async def __call__(
        self, *replies: Scripted, settings: ToolsSettings | None = None, entities: Sequence[str] = ()
    ) -> AgentAnswer:
        self.llm = ScriptedLlm(replies)
        asked = Question(QUESTION, tuple(entities), settings or ToolsSettings())
        with Trace(self._path) as trace:
            found = await run_question(asked, self._tools, self.llm, trace)
        again, same = await replay_question(self._path)
        assert (same, replace(again, seconds=0.0)) == (True, replace(found, seconds=0.0))
        return found

    @property
    def called(self) -> list[str]:
        """The tools that were called, in the order of the record."""
        return [line.tool for line in read_trace(self._path) if isinstance(line, ToolLine)]

    def results(self) -> list[str]:
        """What the model was told last: the results of the calls of its last reply but one."""
        last = self.llm.asked[-1].messages
        begin = max(place for place, each in enumerate(last) if each.role == "assistant")
        return [each.content for each in last[begin + 1 :]]


@pytest.fixture
def ask(tools: Toolbox, tmp_path: Path) -> Asking:
    return Asking(tools, tmp_path)


async def test_an_answer_rests_on_the_results_that_it_cites_and_on_nothing_else(ask: Asking) -> None:
    found = await ask(calls(LOOK, CAPITAL), answer("Shinjuku", cites=(2,)))
    assert (found.answers, found.status) == ((GivenAnswer("Shinjuku", "graph", (FACT,)),), "answered")
    assert [step.action for step in found.steps] == ["GetNeighbor(entity=Tokyo)", "Neighbor[Tokyo, capital]"]
    assert (found.usage.calls, found.usage.tokens) == (2, 220)
    assert ask.called == ["GetNeighbor", "Compose", "memory-append"]


async def test_the_model_is_offered_the_tools_as_the_server_gives_them(ask: Asking, tools: Toolbox) -> None:
    await ask(calls(LOOK), answer("Shinjuku"), settings=ToolsSettings(only="all"))
    offer, asked = await tools.offer(), ask.llm.asked[0]
    assert asked.tools[:-1] == offered(offer.tools, "all")
    names = [(each.name, each.description, each.parameters.get("required")) for each in offer.tools]
    assert [(each.name, each.description, each.parameters.get("required")) for each in asked.tools[:-1]] == names
    assert (asked.tools[-1].name, asked.messages[0].role) == ("answer", "system")
    assert offer.instructions in asked.messages[0].content
    assert QUESTION in asked.prompt
    chosen = ToolsSettings(only="Compose, Schema")
    await ask(calls(CAPITAL), answer("Shinjuku"), settings=chosen)
    assert [each.name for each in ask.llm.asked[0].tools] == ["Schema", "Compose", "answer"]


async def test_by_default_the_model_is_offered_the_fewest_tools_that_play_as_well(ask: Asking, tools: Toolbox) -> None:
    await ask(calls(LOOK), answer("Shinjuku"))
    (offer, (fewer, *_)) = await tools.offer(), ask.llm.asked
    await ask(calls(LOOK), answer("Shinjuku"), settings=ToolsSettings(only="all"))
    assert {each.name for each in fewer.tools} == {*ToolsSettings().only.split(","), "answer"} - {"Recall"}
    assert estimated_tokens(fewer) < estimated_tokens(ask.llm.asked[0]) - 300
    # What a model is told of the tools fits to those that it has.
    told = instructed(offer.instructions, offer.tools, fewer.tools)
    assert {each.name for each in offer.tools if each.name in told} == {each.name for each in fewer.tools} - {"answer"}
    assert "what the graph knows, Schema." in told
    assert instructed(offer.instructions, offer.tools, offer.tools) == offer.instructions
    # Another server may have none of them.
    others = (Function("look", "", {}), Function("see", "", {}))
    assert offered(others, ToolsSettings().only) == others


async def test_what_compose_works_out_is_said_to_be_computed(ask: Asking) -> None:
    (found,) = (await ask(calls(COUNT), answer("3"))).answers
    assert (found.text, found.source, found.computed) == ("3", "computed", ("Count[Neighbor[Tokyo]] = 3",))
    (found,) = (await ask(calls(("Compose", {"expression": "Degree[Tokyo, capital]"})), answer("1"))).answers
    assert (found.source, found.computed) == ("computed", ("Degree[Tokyo, capital] = 1",))


async def test_what_no_result_shows_and_no_result_is_cited_for_is_the_models_own(ask: Asking) -> None:
    found = await ask(calls(LOOK), answer("Osaka", own_knowledge=["Kyoto"], cites=()))
    assert (found.answers, found.model_answer, found.status) == ((), ("Osaka", "Kyoto"), "partly")
    allowed = await ask(calls(LOOK), answer("Osaka", cites=()), settings=ToolsSettings(closed_book="allowed"))
    assert (allowed.answers, allowed.status) == ((GivenAnswer("Osaka", "model"),), "answered")
    never = await ask(calls(LOOK), answer("Osaka", cites=()), settings=ToolsSettings(closed_book="never"))
    assert (never.answers, never.model_answer) == ((), ())
    partly = await ask(calls(LOOK), answer("Shinjuku", "Osaka", cites=()))
    assert (partly.texts, partly.model_answer, partly.status) == (("Shinjuku",), ("Osaka",), "partly")


async def test_a_name_that_no_result_shows_is_never_confirmed_however_it_is_cited(ask: Asking) -> None:
    found = await ask(calls(LOOK), answer("Shinjuku", "Osaka"))
    assert [(each.text, each.source) for each in found.answers] == [("Shinjuku", "graph"), ("Osaka", "computed")]
    assert (found.status, found.explanation) == ("partly", "Nothing that was shown states 'Osaka'.")


async def test_an_answer_that_cites_the_wrong_result_is_still_found_in_another(ask: Asking) -> None:
    found = await ask(calls(LOOK, COUNT), answer("Shinjuku", cites=(2, 99)))
    assert found.answers == (GivenAnswer("Shinjuku", "graph", (FACT,)),)


async def test_a_yes_follows_from_cited_facts_and_from_no_others(ask: Asking) -> None:
    found = await ask(calls(CAPITAL), answer("yes"))
    assert (found.answers[0].source, found.answers[0].facts) == ("computed", (FACT,))
    assert (await ask(calls(CAPITAL), answer("yes", cites=()))).model_answer == ("yes",)


async def test_a_long_list_is_named_by_the_number_of_its_result(ask: Asking) -> None:
    found = await ask(calls(("Compose", {"expression": "Neighbor[Tokyo]"})), calls(("answer", {"all_of": 1})))
    assert {each.text: each.source for each in found.answers} == {
        "Japan": "graph",
        "Shinjuku": "graph",
        "prefecture of Japan": "graph",
    }
    cut = ("GetNeighbor", {"entity": "Tokyo", "limit": 1})
    found = await ask(calls(cut), calls(("answer", {"all_of": 1})))
    assert (found.status, found.stop_reason, len(found.answers)) == ("partly", "cut", 1)


@pytest.mark.parametrize(("outcome", "stop_reason"), [("not_in_graph", "not_in_graph"), ("unknown_entity", "entities")])
async def test_that_the_graph_holds_no_answer_is_an_answer(ask: Asking, outcome: str, stop_reason: str) -> None:
    found = await ask(calls(LOOK), calls(("answer", {"outcome": outcome, "reason": "It names no mayor."})))
    assert (found.status, found.stop_reason, found.explanation) == (
        "unknown_entity" if outcome == "unknown_entity" else "not_in_graph",
        stop_reason,
        "It names no mayor.",
    )


async def test_nobody_is_told_what_the_graph_lacks_before_it_was_asked(ask: Asking) -> None:
    lacks = calls(("answer", {"outcome": "not_in_graph", "reason": "No mayor."}))
    await ask(lacks, lacks)
    assert "no function was called yet" in ask.results()[0]


@pytest.mark.parametrize(
    ("looked_up", "status", "stop_reason"),
    [
        (("Retrieve", {"text": "Zylinderkopf"}), "unknown_entity", "entities"),
        (("GetNeighbor", {"entity": "Zylinderkopf"}), "stopped", "unasked"),
        (("Compose", {"expression": "Neighbor[Tokyo, no such relation]"}), "stopped", "unasked"),
        (("GetNeighbor", {"entity": "Tokyo", "limit": 1}), "stopped", "cut"),
        (("Schema", {"about": "mayor"}), "stopped", "unasked"),
        (None, "stopped", "unasked"),
    ],
)
async def test_a_failed_search_a_refusal_and_a_part_of_a_list_deny_nothing(
    ask: Asking, looked_up: tuple[str, Mapping[str, object]] | None, status: str, stop_reason: str
) -> None:
    lacks = calls(("answer", {"outcome": "not_in_graph", "reason": "It names no mayor."}))
    found = await ask(*([calls(looked_up)] if looked_up else ()), lacks, lacks)
    assert "The answer is not taken" in ask.results()[0]
    assert (found.status, found.stop_reason) == (status, stop_reason)


async def test_a_lookup_that_finds_nothing_about_what_the_graph_has_is_a_denial(ask: Asking) -> None:
    lacks = calls(("answer", {"outcome": "not_in_graph", "reason": "It has no mayor."}))
    found = await ask(calls(("Retrieve", {"text": "Zylinderkopf"})), lacks, calls(LOOK), lacks)
    assert (found.status, found.explanation) == ("not_in_graph", "It has no mayor.")


async def test_an_answer_beside_calls_waits_for_their_results(ask: Asking) -> None:
    guess = ("answer", {"answers": [{"text": "Osaka", "results": [1]}]})
    found = await ask(calls(CAPITAL, guess), answer("Shinjuku"))
    assert "the results beside it were not there yet" in ask.results()[1]
    assert found.texts == ("Shinjuku",)


async def test_entities_that_are_given_are_linked_and_told(ask: Asking) -> None:
    await ask(calls(LOOK), answer("Shinjuku"), entities=["Tokyo", "Q404"])
    assert "It is about Q1490." in ask.llm.asked[0].prompt
    found = await ask(entities=["Q404"])
    assert (found.status, ask.llm.asked) == ("unknown_entity", [])


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (("GetNeighbour", "{}"), "There is no function 'GetNeighbour'. Did you mean GetNeighbor?"),
        (("rm -rf /", "{}"), "There is no function 'unknown'. There are Retrieve, "),
        (("GetNeighbor", '{"entity": '), 'The arguments are not a JSON object: {"entity": '),
        (("GetNeighbor", "[1]"), "The arguments are not a JSON object: [1]"),
        (("GetNeighbor", "{}"), "[1] "),
        (("GetNeighbor", {"entity": "Tokyo", "depth": 3}), "[1] "),
    ],
)
async def test_a_call_that_cannot_be_made_is_told_and_the_run_goes_on(ask: Asking, made: Called, told: str) -> None:
    found = await ask(calls(made), calls(LOOK), answer("Shinjuku", cites=()))
    assert found.texts == ("Shinjuku",)
    first = next(each for each in ask.llm.asked[-1].messages if each.role == "tool")
    assert first.content.startswith(told)


async def test_what_stands_in_the_conversation_is_what_any_service_takes_back(ask: Asking) -> None:
    odd = Completion(
        "",
        Usage(calls=1),
        "tool_calls",
        (FunctionCall("c1", "ä b", "{"), FunctionCall("c1", "Schema", "```json\n{}\n```")),
    )
    await ask(odd, calls(LOOK), answer("Shinjuku", cites=()))
    sent = [call for each in ask.llm.asked[-1].messages for call in each.calls]
    assert sent[:2] == [FunctionCall("c1", "unknown", "{}"), FunctionCall("call00002", "Schema", "{}")]
    answered = [each.call_id for each in ask.llm.asked[-1].messages if each.role == "tool"]
    assert answered == [call.id for call in sent]


async def test_the_same_call_is_not_made_twice(ask: Asking) -> None:
    await ask(calls(LOOK, LOOK), calls(LOOK), answer("Shinjuku"))
    assert ask.called == ["GetNeighbor", "memory-append"]
    assert ask.results() == ["This is call 1 again; its result stands there."]


async def test_calls_have_a_limit_and_then_only_an_answer_is_taken(ask: Asking) -> None:
    many = calls(*(("GetNeighbor", {"entity": "Tokyo", "limit": limit}) for limit in range(1, 101)))
    found = await ask(many, answer("Shinjuku", cites=()), settings=ToolsSettings(calls=5))
    assert ask.called == ["GetNeighbor"] * 5 + ["memory-append"]
    assert [each.name for each in ask.llm.asked[1].tools] == ["answer"]
    assert (found.texts, found.status, found.stop_reason) == (("Shinjuku",), "partly", "calls")


async def test_replies_have_a_limit_and_the_last_one_can_only_answer(ask: Asking) -> None:
    settings = ToolsSettings(turns=3)
    looks = [calls(("GetNeighbor", {"entity": "Tokyo", "limit": limit})) for limit in (30, 20, 10)]
    found = await ask(*looks, settings=settings)
    assert (found.status, found.stop_reason, len(ask.called)) == ("stopped", "turns", 2)
    assert found.explanation == "No answer was given within the replies."
    found = await ask(*looks[:2], answer("Shinjuku", cites=()), settings=settings)
    assert (found.texts, found.status) == (("Shinjuku",), "partly")


async def test_tokens_have_a_limit(ask: Asking) -> None:
    found = await ask(calls(LOOK), calls(CAPITAL), settings=ToolsSettings(limits=Limits(tokens=200)))
    assert (found.status, found.stop_reason, found.explanation) == (
        "stopped",
        "tokens",
        "The limit of 200 tokens is reached.",
    )


async def test_the_oldest_results_are_left_out_where_there_is_no_room(tools: Toolbox, tmp_path: Path) -> None:
    def wordy(call: ToolCall) -> ToolCall:
        return replace(call, text=f"{call.text}\n{'word ' * 2_000}") if call.tool == "Schema" else call

    ask = Asking(ChangedTools(tools, wordy), tmp_path)
    found = await ask(calls(("Schema", {})), PromptTooLong("Too long."), calls(LOOK), answer("Shinjuku", cites=(2,)))
    assert found.texts == ("Shinjuku",)
    lengths = [len(next(each for each in asked.messages if each.role == "tool").content) for asked in ask.llm.asked[1:]]
    assert (lengths[0] > 10_000, max(lengths[1:]) < 200) == (True, True)
    result = next(each for each in ask.llm.asked[2].messages if each.role == "tool").content
    assert result.endswith("(left out here to save room; call again if it is needed)")
    short = await ask(calls(("Schema", {})), answer("x"), settings=ToolsSettings(result_tokens=100))
    assert "characters left out]" in ask.results()[0]
    assert short.model_answer == ("x",)


async def test_a_prompt_that_can_be_no_shorter_ends_the_run(ask: Asking) -> None:
    found = await ask(calls(LOOK), settings=ToolsSettings(limits=Limits(prompt_tokens=700)))
    assert (found.stop_reason, ask.llm.asked) == ("model", [])
    assert found.explanation.startswith("A prompt of 700 tokens does not hold the question, the tools")


WRITTEN = [
    '{"answers": [{"text": "Shinjuku", "results": [1]}]}',
    '```json\n{"answers": ["Shinjuku"]}\n```',
    'Here it is: {"answers": "Shinjuku"} Done.',
]


@pytest.mark.parametrize("written", WRITTEN)
async def test_an_answer_that_is_written_in_the_form_of_a_call_counts(ask: Asking, written: str) -> None:
    assert (await ask(calls(LOOK), written)).answers == (GivenAnswer("Shinjuku", "graph", (FACT,)),)


async def test_an_answer_in_prose_goes_back_once_and_then_counts(ask: Asking) -> None:
    found = await ask(calls(LOOK), "It is Shinjuku.", "Answer: Shinjuku [1]")
    assert "Call answer to answer." in ask.llm.asked[-1].prompt
    assert found.answers == (GivenAnswer("Shinjuku", "graph", (FACT,)),)
    missing = await ask(calls(LOOK), "I see no mayor.", "Not in the graph: it names no mayor.")
    assert (missing.status, missing.explanation) == ("not_in_graph", "it names no mayor.")


async def test_an_answer_that_cannot_be_read_goes_back_once(ask: Asking) -> None:
    wrong, empty = calls(("answer", '{"answers": [{"txt": 1}]}')), calls(("answer", "{}"))
    assert (await ask(calls(LOOK), wrong, answer("Shinjuku"))).texts == ("Shinjuku",)
    assert ask.results() == ["The answer is not taken: answers.0.text: Field required."]
    found = await ask(calls(LOOK), wrong, empty)
    assert (found.status, found.stop_reason) == ("stopped", "unreadable")


async def test_a_model_that_cannot_call_functions_ends_the_run_in_a_sentence(ask: Asking) -> None:
    found = await ask(ToolsUnsupported("The model m cannot call functions: no."))
    assert (found.status, found.stop_reason) == ("stopped", "functions")
    assert found.explanation == (
        "The model m cannot call functions: no. Choose another model, or an agent that needs none: oda or "
        "graph-counselor."
    )
    assert (await ask("Shinjuku", "Answer: Shinjuku")).explanation.startswith("The model calls none of the functions")
    assert (await ask(LlmError("away"))).stop_reason == "model"


class Losing:
    """A server that is lost after some calls."""

    def __init__(self, tools: Toolbox, after: int) -> None:
        self._tools = tools
        self._left = after

    async def offer(self) -> ToolOffer:
        if self._left < 0:
            raise ToolError("tools/list: The server was lost.")
        return await self._tools.offer()

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        self._left -= 1
        if self._left < 0:
            raise ToolError(f"{tool}: The server was lost.")
        return await self._tools.call(tool, arguments)


async def test_a_server_that_is_lost_on_the_way_leaves_what_was_found(tools: Toolbox, tmp_path: Path) -> None:
    ask = Asking(Losing(tools, 1), tmp_path)
    found = await ask(calls(LOOK), calls(CAPITAL, COUNT), calls(("Schema", {})), answer("Shinjuku"))
    assert (found.texts, found.status, found.stop_reason) == (("Shinjuku",), "partly", "graph")
    assert "The evidence could not be compared with the graph: memory-append: The server was lost." in found.explanation
    nothing = await Asking(Losing(tools, -1), tmp_path)()
    assert nothing.explanation == "The tools cannot be listed: tools/list: The server was lost."


async def test_evidence_that_the_graph_does_not_hold_is_not_shown(tools: Toolbox, tmp_path: Path) -> None:
    def lying(call: ToolCall) -> ToolCall:
        data = {"triples": [["Q1490", "P36", "Q17"]], "labels": {"Q17": "Japan"}, "relations": {}}
        return replace(call, text="1 triple", data=data) if call.tool == "GetNeighbor" else call

    found = await Asking(ChangedTools(tools, lying), tmp_path)(calls(LOOK), answer("Japan"))
    assert (found.answers, found.model_answer) == ((), ("Japan",))


async def test_who_watches_sees_every_call(tools: Toolbox, tmp_path: Path) -> None:
    seen: list[str] = []
    watcher = Watcher(on_begin=seen.append, on_step=lambda step: seen.append(f"{step.number}. {step.action}"))
    with Trace(tmp_path / "run.jsonl") as trace:
        llm = ScriptedLlm([calls(LOOK, CAPITAL), answer("Shinjuku")])
        await run_question(Question(QUESTION, settings=ToolsSettings()), tools, llm, trace, watcher=watcher)
    assert seen == [
        *("tools", "GetNeighbor", "Compose", "1. GetNeighbor(entity=Tokyo)", "2. Neighbor[Tokyo, capital]"),
        *("tools", "memory-append"),
    ]


async def test_thoughts_beside_calls_are_shown_and_kept(ask: Asking) -> None:
    thinking = replace(calls(LOOK), text="<think>hm</think>I look around.")
    found = await ask(thinking, answer("Shinjuku"))
    assert found.steps[0].thought == "I look around."
    assert ask.llm.asked[1].messages[2] == Message("assistant", "I look around.", ask.llm.asked[1].messages[2].calls)


def test_the_functions_that_a_model_is_offered_say_nothing_twice_and_leave_bounds_to_the_server() -> None:
    entity = {"type": "string", "description": "Id or name", "maxLength": 2_000}
    several = {"anyOf": [{"type": "array", "items": entity}, {"type": "null"}], "default": None, "title": "Others"}
    given: dict[str, object] = {
        "type": "object",
        "properties": {"entity": entity, "others": several, "limit": {"type": "integer", "maximum": 9, "default": 5}},
        "required": ["entity"],
        "additionalProperties": False,
    }
    strange: dict[str, object] = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
    tools = (Function("look", "Look.", given), Function("see", "See.", given), Function("odd", "", strange))
    look, see, odd = offered((*tools, Function("lost", "", {"$ref": "#/$defs/B"})), "look,see, odd")
    text, texts = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
    properties = {"entity": text, "others": texts, "limit": {"type": "integer"}}
    assert see == Function("see", "See.", {"type": "object", "properties": properties, "required": ["entity"]})
    said = {**properties, "entity": {"type": "string", "description": "Id or name"}}
    assert look == Function("look", "Look.", {"type": "object", "properties": said, "required": ["entity"]})
    assert odd == tools[2]
    assert [each.name for each in offered((Function("lost", "", {"$ref": "#/$defs/B"}),), "")] == ["lost"]


def test_numbers_of_results_may_stand_in_a_range() -> None:
    final = read_final('{"answers": [{"text": "a", "results": "1, 3-5"}], "all_of": "2-3", "results": 4}')
    assert isinstance(final, FinalAnswer)
    assert (final.answers[0].results, final.all_of, final.results) == ([1, 3, 4, 5], [2, 3], [4])


async def test_what_the_graph_does_not_hold_cites_the_results_that_show_it(ask: Asking) -> None:
    absent = calls(("answer", {"outcome": "not_in_graph", "reason": "It has no mayor.", "results": [1]}))
    found = await ask(calls(LOOK), absent)
    assert found.status == "not_in_graph"
    assert found.explanation.startswith("It has no mayor. Shown by ")


def test_a_schema_of_another_server_is_sent_in_a_form_that_every_service_takes() -> None:
    properties = {
        "either": {"type": ["string", "array", "null"], "items": {"type": "integer"}, "description": "Some"},
        "bare": {"type": "array"},
        "chosen": {"enum": ["a", "b", None]},
        "rated": {"enum": [1, 2]},
        "maybe": {"oneOf": [{"type": "null"}, {"type": "object", "properties": {"x": {"type": ["number", "null"]}}}]},
    }
    (sent,) = offered((Function("f", "", {"type": "object", "properties": properties}),), "all")
    assert list(faults_of(dict(sent.parameters))) == []
    assert sent.parameters["properties"] == {
        "either": {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}],
            "description": "Some",
        },
        "bare": {"type": "array", "items": {"type": "string"}},
        "chosen": {"type": "string", "enum": ["a", "b"]},
        "rated": {"type": "number", "enum": [1, 2]},
        "maybe": {"type": "object", "properties": {"x": {"type": "number"}}},
    }
