"""What agents conclude: questions that no graph answers, comparisons, and answers of a forced last step."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from benchmarks.world.questions import ABSENT, NO_SUCH_ENTITY, read_questions

from calls import unhurried
from embedders import LEXICAL
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_agents.checking import UNCHECKED, checked
from kg_agents.evidence.answers import BY_MODEL, AgentAnswer, ClosedBook, GivenAnswer
from kg_agents.evidence.ledger import Cited, Ledger
from kg_agents.evidence.values import EntityMatch, IdLabels, NameMatch, Triple, plain_value
from kg_agents.linking import link_by_names
from kg_agents.llm import Scripted, Usage
from kg_agents.llm.dialogue import Unreadable
from kg_agents.papers.oda import OdaWithoutModel
from kg_agents.parameters import AGENTS, ToolsSettings
from kg_agents.replies import Conclusion, read_conclusion
from kg_agents.running import Question
from kg_agents.tools.client import Toolbox, ToolCall, ToolError
from kg_agents.tools.knowledge import KnowledgeGraph, connect
from kg_server.app import build_server
from oda_runs import (
    JAPAN,
    answer,
    answered,
    calls,
    counselled,
    refusing,
    serving_store,
    step,
    story,
    story_store,
    story_tools,
)
from small_graphs import PREFIXES, TOKYO


def ended(stop_reason: str) -> AgentAnswer:
    """Return a run that has ended, without answers yet."""
    return AgentAnswer("?", (), "stopped", IdLabels(), stop_reason, "", (), Usage(), 0.0)


FACTS: Final[tuple[Triple, ...]] = (
    ("Q1", "P569", '"1749-08-28"^^xsd:date'),
    ("Q2", "P569", '"1759-11-10"^^xsd:date'),
    ("Q1", "P451", "Q3"),
    ("Q3", "P19", "Q4"),
)
LABELS: Final = IdLabels({"Q1": "Goethe", "Q2": "Schiller", "Q3": "Lili", "Q4": "Offenbach"})


@pytest.mark.parametrize(
    ("reply", "conclusion"),
    [
        ("Answer:\nShinjuku [1]", Conclusion((Cited("Shinjuku", (1,)),))),
        ("Answer: Shinjuku [1, 3]", Conclusion((Cited("Shinjuku", (1, 3)),))),
        ("Answer:\n- a (facts 2)\n- b [4,4]", Conclusion((Cited("a", (2,)), Cited("b", (4,))))),
        ("Answer [Canada,Yukon]", Conclusion((Cited("Canada"), Cited("Yukon")))),
        ("1999", Conclusion((Cited("1999"),))),
        ("Not in the graph: no mayors", Conclusion(missing="no mayors")),
        ("Answer: Not in graph.", Conclusion(missing="")),
        ("**Not in the memory** - no mayor\nOwn knowledge: Koike", Conclusion((), ("Koike",), "no mayor")),
        ("Answer:\na [1]\nOwn knowledge:\nb\nc", Conclusion((Cited("a", (1,)),), ("b", "c"))),
        ("Own knowledge:\nb", Conclusion((), ("b",), "")),
        ("Own knowledge:\n", Unreadable),
        ("", Unreadable),
    ],
)
def test_answers_come_with_the_facts_that_they_rest_on(reply: str, conclusion: Conclusion | type[Unreadable]) -> None:
    read = read_conclusion(reply)
    assert type(read) is Unreadable if conclusion is Unreadable else read == conclusion


async def only_weimar(texts: Sequence[str]) -> Sequence[NameMatch]:
    """Know one name."""
    weimar = EntityMatch("Q9", "Weimar", "", 1.0, "label")
    return [NameMatch(text, "exact", (weimar,)) for text in texts if text == "Weimar"]


@pytest.mark.parametrize(
    ("cited", "answer"),
    [
        (Cited("Goethe", (1, 2)), GivenAnswer("Goethe", "graph", FACTS[:2])),
        (Cited("Goethe", (1,)), GivenAnswer("Goethe", "graph", FACTS[:2])),
        (Cited("true", (1,)), GivenAnswer("true", "computed", FACTS[:2], (f"true: {BY_MODEL}",))),
        (Cited("Q4", (4,)), GivenAnswer("Offenbach", "graph", FACTS[3:])),
        (Cited("Offenbach"), GivenAnswer("Offenbach", "graph", FACTS[2:])),
        (Cited("Offenbach", (1,)), GivenAnswer("Offenbach", "graph", FACTS[2:])),
        (Cited("1749", (1,)), GivenAnswer("1749", "graph", FACTS[:1])),
        (Cited("true", (1, 2)), GivenAnswer("true", "computed", FACTS[:2], (f"true: {BY_MODEL}",))),
        (Cited("2", (1, 2)), GivenAnswer("2", "computed", FACTS[:2], (f"2: {BY_MODEL}",))),
        (Cited("true"), GivenAnswer("true", "model")),
        (Cited("true", (99,)), GivenAnswer("true", "model")),
        (Cited("Weimar", (1, 2)), GivenAnswer("Weimar", "model")),
    ],
)
async def test_an_answer_says_where_it_comes_from(cited: Cited, answer: GivenAnswer) -> None:
    ledger = Ledger()
    ledger.learn(LABELS)
    for fact in FACTS:
        ledger.number(fact)
    (found,) = await ledger.answers([cited], "?", ("Q1", "Q2"), only_weimar)
    assert replace(found, entities=()) == answer


@pytest.mark.parametrize(
    ("closed_book", "texts", "own", "status"),
    [
        ("never", ("a",), (), "partly"),
        ("apart", ("a",), ("b",), "partly"),
        ("allowed", ("a", "b"), (), "answered"),
    ],
)
def test_what_becomes_of_what_the_model_knows_is_a_setting(
    closed_book: ClosedBook, texts: tuple[str, ...], own: tuple[str, ...], status: str
) -> None:
    given = (GivenAnswer("a", "graph", FACTS[:1]), GivenAnswer("b", "model"))
    found = ended("answered").answering(given, (), closed_book)
    assert (tuple(each.text for each in found.answers), found.model_answer, found.status) == (texts, own, status)


@pytest.mark.parametrize(("closed_book", "own"), [("never", ()), ("apart", ("b",)), ("allowed", ())])
def test_what_a_model_says_beside_its_answers_makes_them_no_less_whole(
    closed_book: ClosedBook, own: tuple[str, ...]
) -> None:
    found = ended("answered").answering([GivenAnswer("a", "graph", FACTS[:1])], ("b", "a"), closed_book)
    assert (found.model_answer, found.status, found.explanation) == (own, "answered", "")


@pytest.mark.parametrize(
    ("stop_reason", "status"),
    [
        ("answered", "partly"),
        ("not_in_graph", "not_in_graph"),
        ("entities", "unknown_entity"),
        ("no_model", "no_model"),
        ("iterations", "stopped"),
        ("tokens", "stopped"),
    ],
)
def test_without_an_answer_the_status_says_why(stop_reason: str, status: str) -> None:
    assert ended(stop_reason).answering([GivenAnswer("b", "model")], (), "apart").status == status
    assert ended(stop_reason).answering([GivenAnswer("a", "graph")], (), "apart").status in {"answered", "partly"}


CAPITAL, MADE_UP = ("Q1490", "P36", "Q179645"), ("Q1490", "P36", "Q17")


def answering(*answers: GivenAnswer) -> AgentAnswer:
    return ended("answered").answering(answers, (), "apart")


async def test_an_answer_whose_evidence_the_graph_does_not_hold_counts_as_the_models_own(tmp_path: Path) -> None:
    right, wrong = GivenAnswer("Shinjuku", "graph", (CAPITAL,)), GivenAnswer("Japan", "graph", (CAPITAL, MADE_UP))
    async with story(tmp_path, TOKYO) as graph:
        assert await checked(answering(right), graph, "apart") == answering(right)
        both = await checked(answering(right, wrong), graph, "apart")
        alone = await checked(answering(GivenAnswer("Japan", "graph", (MADE_UP,))), graph, "never")
        many = await checked(answering(GivenAnswer("?", "graph", (*([CAPITAL] * 20), MADE_UP))), graph, "apart")
    assert (both.answers, both.model_answer, both.status) == ((right,), ("Japan",), "partly")
    assert (alone.answers, alone.model_answer, alone.status) == ((), (), "partly")
    assert alone.explanation == "The graph does not hold all that was read."
    assert many.model_answer == ("?",)


async def test_evidence_that_nobody_can_check_says_so() -> None:
    class Away:
        async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
            raise ToolError(f"{tool}: {len(arguments)} arguments")

    right = answering(GivenAnswer("Shinjuku", "graph", (CAPITAL,)))
    found = await checked(right, KnowledgeGraph(Away()), "apart")
    assert (found.answers, found.explanation) == (right.answers, f"{UNCHECKED}: memory-append: 2 arguments")


async def test_a_memory_that_takes_nothing_refutes_nothing(tmp_path: Path) -> None:
    members = "\n".join(f"wd:Q1490 wdt:P527 wd:Q{number} ." for number in range(1_000, 1_300))
    known, made_up = (answering(GivenAnswer("x", "graph", (fact,))) for fact in (CAPITAL, MADE_UP))
    last = answering(GivenAnswer("x", "graph", (("Q1490", "P527", "Q1299"),)))
    absent = answering(GivenAnswer("x", "graph", (("Q1490", "P527", "Q17"),)))
    async with story_tools(tmp_path, f"{TOKYO}{members}") as tools:
        hasty = KnowledgeGraph(refusing(tools, "memory-append", "You have begun 600 memories."))
        graph = KnowledgeGraph(tools)
        assert await checked(known, hasty, "apart") == known
        assert (await checked(made_up, hasty, "apart")).model_answer == ("x",)
        untold = await checked(last, hasty, "apart")
        assert (await checked(last, graph, "apart"), await checked(absent, graph, "never")) == (
            last,
            replace(absent, answers=(), status="partly", explanation="The graph does not hold all that was read."),
        )
    said = f"{UNCHECKED}: this is so for 1 of 1 facts. You have begun 600 memories."
    assert (untold.answers, untold.status, untold.explanation) == (last.answers, "answered", said)


async def test_a_fact_that_is_stored_the_other_way_round_holds(tmp_path: Path) -> None:
    family = f"""{PREFIXES}
    @prefix owl: <http://www.w3.org/2002/07/owl#> .
    wd:Q1 rdfs:label "Anna"@en ; wdt:P40 wd:Q2 .
    wd:Q2 rdfs:label "Ben"@en ; wdt:P26 wd:Q3 . wd:Q3 rdfs:label "Cleo"@en ; wdt:P22 wd:Q4 .
    wdt:P40 rdfs:label "child"@en ; owl:inverseOf wdt:P22 . wdt:P22 rdfs:label "parent"@en .
    wdt:P26 rdfs:label "spouse"@en ; a owl:SymmetricProperty .
    """
    backwards, turned = ("Q2", "P22", "Q1"), ("Q3", "P26", "Q2")
    for fact in (backwards, turned):
        found = answering(GivenAnswer("Anna", "graph", (fact,)))
        async with story(tmp_path, family) as graph:
            assert await checked(found, graph, "apart") == found, fact
    wrong = answering(GivenAnswer("Ben", "graph", (("Q1", "P22", "Q2"),)))
    async with story(tmp_path, family) as graph:
        assert not (await checked(wrong, graph, "apart")).answers


NAMESAKES: Final = "homonym"


async def test_without_a_model_no_question_of_a_world_is_answered_and_no_wrong_entity_is_named(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    asked = read_questions()
    cache = tmp_path_factory.getbasetemp() / "world"
    settings = unhurried(cache_folder=cache, data_folder=cache / "data", embedding=LEXICAL)
    wrong: list[str] = []
    async with (
        aclosing(LocalAdapter(open_sample(cache, "sample:world"))) as world,
        connect(build_server(world, settings)) as graph,
    ):
        for each in asked:
            linking = await link_by_names(graph, each.question)
            named = [linked for linked in linking.linked if linked.entity.label.lower() != linked.entity.label]
            if each.kind == NO_SUCH_ENTITY:
                assert (linking.linked, len(linking.passed_over)) == ((), 1), each.question
            elif each.kind != NAMESAKES and each.kind not in ABSENT:
                meant = re.findall(r"w:E\d+", each.sparql)
                strange = (linked for linked in named if linked.entity.label not in each.question)
                wrong += [str(linked) for linked in strange if linked.entity.id not in meant]
        for each in asked[:8]:
            entities = [linked.entity.id for linked in (await link_by_names(graph, each.question)).linked]
            answer = await OdaWithoutModel(graph).answer(each.question, entities)
            assert (answer.answers, answer.status) == ((), "no_model"), each.question
    assert wrong == []


NOT_HERE = "Finish[Not in the graph: it holds no mayors]"


async def test_an_attempt_can_say_that_the_graph_does_not_hold_the_answer_and_that_ends_the_run() -> None:
    told = await counselled([*step(JAPAN), *step(NOT_HERE), "It looked.\n[yes]"])
    assert (told.answer.status, told.answer.stop_reason, told.said) == ("not_in_graph", "not_in_graph", ())
    assert told.answer.explanation == "it holds no mayors"
    assert "Final answer:\n<data>\nNot in the graph: it holds no mayors\n</data>" in told.prompts("judge")[0]
    assert "reflection" not in told.purposes


async def test_a_judge_can_say_it_too_and_in_the_papers_manner_what_was_answered_stands() -> None:
    told = await counselled([*step("Finish[Koike]"), "The steps show no mayors.\n[not in the graph]"])
    assert (told.answer.status, told.answer.answers) == ("partly", (GivenAnswer("Koike", "model"),))
    assert told.answer.explanation == "The steps show no mayors."
    assert "reflection" not in told.purposes


async def test_a_judge_who_denies_it_has_another_attempt_made() -> None:
    told = await counselled([*step(NOT_HERE), "It did not look.\n[no]", "LOOK", *step("Finish[Kyoto]"), "[yes]"])
    assert told.purposes.count("reflection") == 1
    assert "The answer 'Not in the graph: it holds no mayors' was not judged" in told.prompts("reflection")[0]
    assert [attempt.missing for attempt in told.answer.attempts] == ["it holds no mayors", None]


@pytest.mark.parametrize(
    "verdict", ["[not in the graph] [yes]", "It is not [not in the graph]", "not in the graph or no"]
)
async def test_a_third_verdict_beside_another_cannot_be_read(verdict: str) -> None:
    told = await counselled([*step("Finish[Kyoto]"), verdict, "[not in graph]"])
    assert (told.answer.stop_reason, told.answer.answers) == ("not_in_graph", (GivenAnswer("Kyoto", "model"),))
    assert told.purposes.count("judge") == 2


TOWNS = """
@prefix e: <http://e.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
e:aa rdfs:label "Upper Aa" ; e:height 910 ; e:people 70 .
e:bb rdfs:label "Lower Bb" ; e:height 420 ; e:people 9000 .
e:cc rdfs:label "Middle Cc" ; e:height 600 .
e:height rdfs:label "height" . e:people rdfs:label "people" .
"""
QUESTION = "Which lies higher, Upper Aa or Lower Bb?"
TOP = "Top[Union[Upper Aa, Lower Bb], height, 1]"


@pytest.fixture(scope="module")
def store() -> Path:
    return story_store(TOWNS)


@pytest.fixture
async def towns(store: Path, tmp_path: Path) -> AsyncGenerator[Toolbox]:
    async with serving_store(store, tmp_path) as tools:
        yield tools


def feature(*names: str) -> Scripted:
    return calls(*(("Feature", {"entity": name, "feature": "height"}) for name in names))


def citing_one(text: str) -> Scripted:
    """Answer with the number of one fact: the height of Upper Aa."""

    def reply(prompt: str) -> str:
        (number,) = re.findall(r"\[(\d+)\] Upper Aa \| height", prompt)
        return f"Thought: it is.\nKeep: none\nAction: Answer\nAnswer:\n{text} [{number}]"

    return reply


CONVERSATIONS: dict[str, tuple[str, list[Scripted]]] = {
    "tools, by Compose": ("tools", [calls(("Compose", {"expression": TOP})), answer("Upper Aa")]),
    "tools, of two results one": ("tools", [feature("Upper Aa", "Lower Bb"), answer("Upper Aa")]),
    "tools, of two results the other": ("tools", [feature("Lower Bb", "Upper Aa"), answer("Upper Aa", cites=(2,))]),
    "oda, of two facts one": ("oda", [citing_one("Upper Aa")]),
    "oda, a yes from one": ("oda", [citing_one("yes")]),
    "graph-counselor, by Top": ("graph-counselor", [f"Action: {TOP}", "Action: Finish[Upper Aa]", "[yes]"]),
    "graph-counselor, by two steps": (
        "graph-counselor",
        [
            "Action: Feature[Lower Bb, height]",
            "Action: Feature[Upper Aa, height]",
            "Action: Finish[Upper Aa]",
            "[yes]",
        ],
    ),
}


@pytest.mark.parametrize("name", CONVERSATIONS)
async def test_both_sides_of_a_comparison_are_its_evidence(name: str, towns: Toolbox, tmp_path: Path) -> None:
    agent, script = CONVERSATIONS[name]
    entities = () if agent == "tools" else ("e:aa", "e:bb")
    settings = ToolsSettings(only="all") if agent == "tools" else AGENTS[agent]()
    found = await answered(Question(QUESTION, entities, settings), towns, tmp_path, *script)
    (only,) = found.answers
    assert (found.status, only.source in {"graph", "computed"}) == ("answered", True)
    facts = {(head, relation, plain_value(tail)) for head, relation, tail in only.facts}
    assert facts == {("e:aa", "e:height", "910"), ("e:bb", "e:height", "420")}


async def test_an_answer_that_the_question_does_not_name_is_compared_with_nothing(
    towns: Toolbox, tmp_path: Path
) -> None:
    script: list[Scripted] = [feature("Upper Aa", "Middle Cc"), answer("600", cites=(2,))]
    asked = Question("How high is Middle Cc, near Upper Aa?", (), ToolsSettings(only="all"))
    (only,) = (await answered(asked, towns, tmp_path, *script)).answers
    assert [(head, plain_value(tail)) for head, _, tail in only.facts] == [("e:cc", "600")]
