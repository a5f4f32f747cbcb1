"""How names in questions become entities, and how replies and parameters of a model are read."""

import json
from pathlib import Path

import pytest

from kg_agents.linking import link_by_model, link_by_names, link_given
from kg_agents.llm import LlmError, Scripted, ScriptedLlm
from kg_agents.llm.dialogue import Dialogue, Limits, RunEnded
from kg_agents.papers.graph_counselor import CounselorSettings
from kg_agents.papers.oda import ODA, OdaSettings
from kg_agents.parameters import InvalidParameter, read_parameters
from oda_runs import CAPITAL, JAPAN, NEIGHBORS, counselled, story
from small_graphs import PREFIXES, TOKYO

WORLD = f"""{PREFIXES}
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
wd:Q1 rdfs:label "The Call of the Wild"@en ; wdt:P1 wd:Q2 .
wd:Q2 rdfs:label "Jack London"@en ; skos:altLabel "London"@en ; wdt:P1 wd:Q4 .
wd:Q3 rdfs:label "The Who"@en ; wdt:P1 wd:Q4 .
wd:Q4 rdfs:label "author"@en .
wd:Q5 rdfs:label "AT&T Inc."@en ; wdt:P1 wd:Q4 .
wd:Q6 rdfs:label "Nobody's Friend"@en .
wd:Q7 wdt:P2 "7" .
"""

AUTHOR = "<http://www.wikidata.org/entity/Q4>"


async def linked(folder: Path, question: str) -> list[tuple[str, str]]:
    async with story(folder, WORLD) as graph:
        return [(each.mention, each.entity.id) for each in (await link_by_names(graph, question)).linked]


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("Where is The Call of the Wild by Jack London set?", [("The Call of the Wild", "Q1"), ("Jack London", "Q2")]),
        ("who wrote the call of the wild", [("the call of the wild", "Q1")]),
        ("Which songs are by The Who?", [("The Who", "Q3")]),
        ("Who is an author?", [("author", "Q4")]),
        ("Was London an author?", [("London", "Q2")]),
        ("Who wrote The Call of the Wlid?", [("The Call of the Wlid", "Q1")]),
        ("Who wrote The Call of the North?", []),
        ("Was Jack London Square an author?", []),
        ("Who wrote “The Call of Jack London”?", []),
        ("The Call of Jack London is a book by which author?", []),
        ("Is Jack London's wife an author?", [("Jack London", "Q2")]),
        ("Is Jack London (London) an author?", [("Jack London", "Q2"), ("London", "Q2")]),
        ("What is what?", []),
        ("", []),
        ("word " * 5_000, []),
    ],
)
async def test_the_longest_names_are_taken_first_and_proper_ones_before_others(
    tmp_path: Path, question: str, found: list[tuple[str, str]]
) -> None:
    assert await linked(tmp_path, question) == found


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["Q2"], ["'Q2' is Jack London (Q2)"]),
        (["wd:Q2", "Q2", "jack london", "London"], ["'wd:Q2' is Jack London (Q2)"]),
        ([AUTHOR, "AT&T Inc."], [f"{AUTHOR!r} is author (Q4)", "'AT&T Inc.' is AT&T Inc. (Q5)"]),
        (["wd:Q6"], ["'wd:Q6' is Nobody's Friend (Q6)"]),
        (["wd:Q7"], ["'wd:Q7' is Q7 (Q7)"]),
        (["Jack Londno"], ["'Jack Londno' is Jack London (Q2)"]),
        (["Nobody's Friend"], ["\"Nobody's Friend\" is Nobody's Friend (Q6)"]),
    ],
)
async def test_what_is_given_becomes_the_short_ids_of_the_tools_each_once(
    tmp_path: Path, given: list[str], found: list[str]
) -> None:
    async with story(tmp_path, WORLD) as graph:
        assert [str(each) for each in (await link_given(graph, given)).linked] == found


async def by_model(folder: Path, *replies: Scripted) -> list[str]:
    async with story(folder, WORLD) as graph:
        talk = Dialogue(ScriptedLlm(replies), Limits())
        return [str(each) for each in (await link_by_model(graph, "Did Jack London write it?", talk)).linked]


async def test_a_model_names_them_and_the_graph_finds_them(tmp_path: Path) -> None:
    assert await by_model(tmp_path, '1. Jack Londn\n- "The Call of the Wild"\n* nothing like it at all') == [
        "'Jack Londn' is Jack London (Q2)",
        "'The Call of the Wild' is The Call of the Wild (Q1)",
    ]


@pytest.mark.parametrize("replies", [("", ""), ("Zzzzzz",)])
async def test_where_the_model_is_no_help_names_have_to_do(tmp_path: Path, replies: tuple[str, ...]) -> None:
    assert await by_model(tmp_path, *replies) == ["'Jack London' is Jack London (Q2)"]


async def test_a_model_that_is_away_ends_the_run(tmp_path: Path) -> None:
    async with story(tmp_path, WORLD) as graph:
        with pytest.raises(RunEnded, match="away"):
            await link_by_model(graph, "Who?", Dialogue(ScriptedLlm([LlmError("away")]), Limits()))


NAMESAKES = f"""{PREFIXES}
wd:Q1 rdfs:label "Springfield"@en ; wdt:P17 wd:Q3 ; <http://schema.org/description> "city in Illinois"@en .
wd:Q2 rdfs:label "Springfield"@en ; wdt:P17 wd:Q3 ; <http://schema.org/description> "town in Ohio"@en .
wd:Q3 rdfs:label "Land of Lincoln"@en .
wdt:P17 rdfs:label "country"@en .
"""


async def among_namesakes(folder: Path, *replies: Scripted) -> tuple[list[str], list[str], ScriptedLlm]:
    llm = ScriptedLlm(replies)
    async with story(folder, NAMESAKES) as graph:
        linking = await link_by_model(graph, "How many people live in Springfield, Ohio?", Dialogue(llm, Limits()))
    return [each.entity.id for each in linking.linked], list(linking.passed_over), llm


async def test_of_namesakes_the_model_chooses_with_the_question_by_what_tells_them_apart(tmp_path: Path) -> None:
    linked, _, llm = await among_namesakes(tmp_path, "Springfield", _the_town)
    assert linked == ["Q2"]
    assert [each.purpose for each in llm.asked] == ["mentions", "linking"]
    lines = [line for line in llm.asked[1].prompt.splitlines() if line[:3] in {"1. ", "2. "}]
    assert sorted(line[3:] for line in lines) == [
        "Springfield (Q1): city in Illinois",
        "Springfield (Q2): town in Ohio",
    ]


SCHOLARS = f"""{PREFIXES}
wd:Q1 rdfs:label "Ada Lom"@en ; wdt:P1 wd:Q4 ; wdt:P69 wd:Q5 ; wdt:P569 "1900" .
wd:Q2 rdfs:label "Ada Lom"@en ; wdt:P1 wd:Q4 ; wdt:P69 wd:Q6 ; wdt:P569 "1950" .
wd:Q4 rdfs:label "engineer"@en . wd:Q5 rdfs:label "Upper College"@en . wd:Q6 rdfs:label "Lower College"@en .
wdt:P1 rdfs:label "occupation"@en . wdt:P69 rdfs:label "educated at"@en . wdt:P569 rdfs:label "date of birth"@en .
"""


@pytest.mark.parametrize(
    ("question", "told"),
    [
        (
            "Which Ada Lom was educated at the Lower College?",
            ("educated at: Upper College", "educated at: Lower College"),
        ),
        (
            "Is the occupation of Ada Lom with the birth date 1950 known?",
            ("date of birth: 1900", "date of birth: 1950"),
        ),
    ],
)
async def test_namesakes_are_told_apart_by_what_the_question_names(
    tmp_path: Path, question: str, told: tuple[str, str]
) -> None:
    llm = ScriptedLlm(["Ada Lom", "1"])
    async with story(tmp_path, SCHOLARS) as graph:
        await link_by_model(graph, question, Dialogue(llm, Limits()))
    for number, fact in enumerate(told, start=1):
        assert f"Ada Lom (Q{number}): {fact}" in llm.asked[1].prompt


def _the_town(prompt: str) -> str:
    return next(line for line in prompt.splitlines() if "town in Ohio" in line)[0]


async def test_the_model_may_reject_all_of_them_and_what_was_not_taken_is_said(tmp_path: Path) -> None:
    linked, passed_over, _ = await among_namesakes(tmp_path, "Springfield", "none")
    assert linked == []
    assert passed_over[0].startswith("'Springfield' names several things: ")


async def test_a_choice_that_cannot_be_read_goes_back_once_and_then_all_namesakes_stay(tmp_path: Path) -> None:
    linked, _, llm = await among_namesakes(tmp_path, "Springfield", "7", "I cannot tell")
    assert sorted(linked) == ["Q1", "Q2"]
    assert "there is no candidate 7" in llm.asked[2].prompt


async def test_what_is_only_near_a_name_is_offered_where_nothing_is_sure(tmp_path: Path) -> None:
    linked, _, llm = await among_namesakes(tmp_path, "Land of Lincolnshire Hills", "1")
    assert (linked, llm.asked[-1].purpose) == (["Q3"], "linking")
    linked, passed_over, _ = await among_namesakes(tmp_path, "Land of Lincolnshire Hills", "none")
    assert linked == []
    assert passed_over[0].startswith("Nothing in the graph is named 'Land of Lincolnshire Hills'.")


def test_every_parameter_and_limit_can_be_written_and_the_last_counts() -> None:
    assert read_parameters(OdaSettings, []) == OdaSettings()
    written = ["hops=1", "hops = 2", "top-percent=5.5", "closed_book=never", "ablation=generated-facts", "tokens=50000"]
    assert read_parameters(OdaSettings, written) == OdaSettings(
        hops=2, top_percent=5.5, closed_book="never", ablation="generated-facts", limits=Limits(tokens=50_000)
    )
    counselor = read_parameters(CounselorSettings, ["reflections=0", "seconds=5", "ablation=no-planning"])
    limits = Limits(tokens=600_000, seconds=5.0)
    assert counselor == CounselorSettings(reflections=0, ablation="no-planning", limits=limits)


def test_in_the_manner_of_the_paper_graph_counselor_has_the_time_that_the_user_gives() -> None:
    written = (["manner=paper"], ["manner=paper", "tokens=5"], ["manner=paper", "seconds=7000"], ["tokens=5"])
    assert [read_parameters(CounselorSettings, each).limits.seconds for each in written] == [None, None, 7000.0, 900.0]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("hop=2", r"There is no parameter 'hop'\. Did you mean hops\?"),
        ("limits=2", r"There is no parameter 'limits'\."),
        ("zzz=2", r"There are iterations, temperature, .*, tokens, seconds, prompt_tokens\."),
        ("hops", r"The parameter hops has no value\. Write name=value, as in hops=2\."),
        ("sk-5f3a9c", r"^A parameter has no value\. Write"),
        ("hops=many", r"The parameter hops cannot be used: it must be a whole number"),
        ("tokens=", r"The parameter tokens cannot be used"),
        ("ablation=no-planning", r"The parameter ablation cannot be used: .*'no-observation'"),
    ],
)
def test_what_is_no_parameter_is_refused_with_what_is(written: str, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        read_parameters(OdaSettings, [written])


def test_the_manner_is_a_parameter_and_an_ablation_brings_that_of_the_paper() -> None:
    assert read_parameters(OdaSettings, []).manner == "sextant"
    assert read_parameters(OdaSettings, ["manner=paper"]).manner == "paper"
    assert read_parameters(OdaSettings, ["ablation=no-observation"]).manner == "paper"
    assert read_parameters(CounselorSettings, ["ablation=no-planning"]).manner == "paper"
    assert read_parameters(
        CounselorSettings, ["manner=paper", "functions=all", "learnt=latest", "earlier_answer=false"]
    ) == (CounselorSettings(manner="paper", functions="all", learnt="latest", earlier_answer=False))
    with pytest.raises(InvalidParameter, match=r"manner cannot be used: it must be 'paper' or 'sextant'"):
        read_parameters(OdaSettings, ["manner=papers"])


def test_files_of_ones_own_are_parameters_and_have_to_be_there(tmp_path: Path) -> None:
    definition = tmp_path / "definition.md"
    definition.write_text("people and towns", encoding="utf-8")
    written = [f"definition_file={definition}", f"examples_folder={tmp_path}"]
    chosen = read_parameters(CounselorSettings, written)
    assert (chosen.definition_file, chosen.examples_folder) == (str(definition), str(tmp_path))
    with pytest.raises(InvalidParameter, match=r"definition_file cannot be used: .*there is no such file"):
        read_parameters(CounselorSettings, ["definition_file=nowhere"])
    with pytest.raises(InvalidParameter, match=r"examples_folder cannot be used: .*there is no such folder"):
        read_parameters(OdaSettings, ["examples_folder=nowhere"])


QUESTION = "What is the capital of the prefecture Tokyo?"


def turn(action: str, *answers: str, **more: object) -> str:
    cited = [{"text": each, "facts": [1, 2, 3]} for each in answers]
    return json.dumps({"thought": "so", "keep": [1, 2], "action": action, "answers": cited, **more})


async def test_oda_reads_turns_that_are_json_and_asks_for_them(tmp_path: Path) -> None:
    llm = ScriptedLlm([turn("GetNeighbor[c1, capital]"), turn("Answer", "Shinjuku")])
    async with story(tmp_path, TOKYO) as graph:
        answer = await ODA(llm, graph).answer(QUESTION, ["Q1490"])
    assert [(each.text, each.source) for each in answer.answers] == [("Shinjuku", "graph")]
    assert ("Q1490", "P36", "Q179645") in answer.evidence
    for request in llm.asked:
        assert [each.role for each in request.messages] == ["system", "user"]
        assert request.schema is not None
        assert request.schema["required"] == [
            *("thought", "keep", "action", "answers", "not_in_graph", "own_knowledge"),
        ]


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (turn("Answer", not_in_graph="no such fact"), "not_in_graph"),
        (f"```json\n{turn('Answer', 'Shinjuku')}\n```", "answered"),
        ('{"action": "Answer", "answers": 7}\nAction: Answer\nAnswer:\nShinjuku [1, 2, 3]', "answered"),
        ("Keep: none\nAction: Answer\nAnswer:\nShinjuku [1, 2, 3]", "answered"),
    ],
)
async def test_what_a_service_makes_of_the_form_is_read(reply: str, status: str, tmp_path: Path) -> None:
    async with story(tmp_path, TOKYO) as graph:
        assert (await ODA(ScriptedLlm([reply]), graph).answer(QUESTION, ["Q1490"])).status == status


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (turn("Answer"), "it answers with nothing"),
        (turn("rm[c1]"), "it names no action"),
        (turn("GetNeighbor[c1]", keep=[77]), "there is no fact 77"),
    ],
)
async def test_a_form_that_is_filled_in_wrongly_goes_back_with_the_reason(
    reply: str, said: str, tmp_path: Path
) -> None:
    llm = ScriptedLlm([reply, turn("Answer", "Shinjuku")])
    async with story(tmp_path, TOKYO) as graph:
        assert (await ODA(llm, graph).answer(QUESTION, ["Q1490"])).texts == ("Shinjuku",)
    system, prompt, returned, reason = llm.asked[1].messages
    assert (system.role, prompt.role, returned.content) == ("system", "user", reply)
    assert said in reason.content


async def test_graph_counselor_reads_steps_that_are_json_and_asks_for_them() -> None:
    told = await counselled(
        (
            json.dumps({"plan": "find it", "thought": "first", "expression": JAPAN}),
            json.dumps({"thought": "then", "expression": CAPITAL, "answers": [], "not_in_graph": ""}),
            json.dumps({"plan": "", "thought": "there", "expression": "", "answers": ["Tokyo"]}),
            "It is.\n[yes]",
        ),
        settings=CounselorSettings(),
    )
    assert (told.said, told.answer.status, told.graph.performed) == (("Tokyo",), "answered", [JAPAN, CAPITAL])
    assert told.answer.attempts[0].steps[0].plan == "find it"
    assert [request.schema is not None for request in told.llm.asked] == [True, True, True, False]


async def test_graph_counselor_can_say_in_json_that_the_graph_does_not_hold_it() -> None:
    told = await counselled(
        (json.dumps({"not_in_graph": "no seas"}), "[not in the graph]"), settings=CounselorSettings(reflections=0)
    )
    assert (told.answer.status, told.said) == ("not_in_graph", ())


async def test_the_manner_of_the_paper_and_a_setting_leave_forms_out(tmp_path: Path) -> None:
    ending = "Thought: so\nAction: Answer\nAnswer:\nShinjuku"
    for settings, roles in (
        (OdaSettings(manner="paper"), ["user"]),
        (OdaSettings(structured=False, stop="###", model_seed=7), ["system", "user"]),
    ):
        llm = ScriptedLlm(
            [NEIGHBORS.format("Q1490"), ending, ending, ending] if settings.manner == "paper" else [ending]
        )
        async with story(tmp_path, TOKYO) as graph:
            await ODA(llm, graph, settings=settings).answer(QUESTION, ["Q1490"])
        first = llm.asked[0]
        assert ([each.role for each in first.messages], first.schema) == (roles, None)
    assert (first.stop, first.seed) == (("###",), 7)
