"""The examples that come with the package are replies that the agents can read."""

import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import pytest

from counselors import DEFINITION, PlayedGraph
from expression_trees import parse
from kg_agents.llm import ScriptedLlm
from kg_agents.papers.graph_counselor import CounselorSettings, GraphCounselor
from kg_agents.papers.graph_counselor.calls import FINISH, FOUR, calls_in
from kg_agents.papers.graph_counselor.replies import Finish, Query, read_action
from kg_agents.papers.oda.replies import Offer, Turn, read_turn
from kg_agents.tools.knowledge import KnowledgeGraph
from kg_prompts import examples_for
from kg_prompts.examples import GRBENCH

SAMPLES = ("sample", "sample:world")
GRAPHS = (*SAMPLES, *sorted(GRBENCH))
REPLY = re.compile(r"^(?:Plan|Thought): .*?(?=\n\n|\nObservation|\Z)", re.MULTILINE | re.DOTALL)
FACT = re.compile(r"^\[[\d, -]+\] (.+) \| .+ \| (.+)$", re.MULTILINE)


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_turns_are_read_and_cite_facts_that_they_show(graph: str) -> None:
    text = examples_for(graph, "oda/turn.md")
    names = {name for ends in FACT.findall(text) for end in ends for name in end.split("; ")}
    numbers = [int(each) for each in re.findall(r"\d+", " ".join(re.findall(r"^\[([\d, -]+)\]", text, re.MULTILINE)))]
    offer = Offer(max(numbers), ("E1",), {name.casefold(): (name,) for name in names}, ())
    turns = [read_turn(found[0], offer) for found in REPLY.finditer(text)]
    kinds = [each.action.name for each in turns if isinstance(each, Turn)]
    assert (len(turns), kinds[-1], set(kinds[:-1]) <= {"GetNeighbor", "Look"}) == (2, "Answer", True)
    last = turns[-1]
    assert isinstance(last, Turn)
    assert last.conclusion is not None
    shown = set(range(1, max(numbers) + 1))
    assert all(set(each.numbers) <= shown and each.numbers for each in last.conclusion.answers)


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_steps_are_read_and_their_expressions_are_sound(graph: str) -> None:
    text = examples_for(graph, "graph_counselor/step.md")
    actions = [read_action(found[0], 1) for found in REPLY.finditer(text)]
    assert [type(each) for each in actions] == [Query, Finish, Query, Finish]
    for each in actions:
        if isinstance(each, Query):
            assert len(parse(each.written)) == 1


@pytest.mark.parametrize("graph", GRAPHS)
def test_there_are_as_many_examples_in_the_papers_manner_as_in_its_released_code(graph: str) -> None:
    for prompt, count in (("task", 6), ("reflection", 2), ("judge", 2)):
        text = examples_for(graph, f"graph_counselor/{prompt}.md")
        attempts = re.split(r"^Question: ", text, flags=re.MULTILINE)[1:]
        assert len(attempts) == count
        for attempt in attempts:
            steps = re.findall(r"^Action (\d+): (.*)$", attempt, re.MULTILINE)
            actions = [read_action(action, int(number), FOUR) for number, action in steps]
            assert [type(each) for each in actions] == [Query] * (len(steps) - 1) + [Finish]
        if prompt == "judge":
            assert [re.findall(r"^\[(yes|no)\]$", each, re.MULTILINE) for each in attempts] == [["yes"], ["no"]]


@pytest.mark.parametrize("graph", GRAPHS)
async def test_every_prompt_of_the_papers_manner_has_its_examples(graph: str) -> None:
    llm = ScriptedLlm(["plan", "think", "Finish[7]", "[no]", "Look.", "plan", "think", "Finish[7]", "[yes]"])
    counselor = GraphCounselor(
        llm, KnowledgeGraph(PlayedGraph()), settings=CounselorSettings(manner="paper"), graph_name=graph
    )
    await counselor.answer("How many?")
    for asked in llm.asked:
        prompt = asked.purpose if asked.purpose in {"judge", "reflection"} else "task"
        assert examples_for(graph, f"graph_counselor/{prompt}.md") in asked.prompt


TEXTS = [
    file
    for folder in ("templates", "examples")
    for each in sorted((files("kg_prompts") / folder).iterdir(), key=str)
    for file in sorted(each.iterdir(), key=str)
    if "graph_counselor" in str(file)
]
CALL = re.compile(r"\b[A-Z][A-Za-z]+\[")


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_every_call_that_a_prompt_names_exists(file: Traversable) -> None:
    text = file.read_text(encoding="utf-8")
    for found in CALL.finditer(text):
        (call, *_) = calls_in(text[found.start() :])
        assert call.text.startswith(found[0]), found[0]
        if call.name != FINISH:
            parse(call.text.replace(", n]", ", 3]"))


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("/data/grbench/amazon.ttl", "amazon"),
        ("stores/Maple-Biology", "maple"),
        ("legal", "legal"),
        ("legal-notes.ttl", ""),
        ("https://example.org/legal", ""),
        ("/data/sample.ttl", ""),
        ("sample-world", ""),
        ("https://example.org/sparql", ""),
        ("", ""),
        ("..", ""),
    ],
)
def test_a_graph_has_the_examples_of_its_name(name: str, of: str) -> None:
    assert examples_for(name, "oda/turn.md") == (examples_for(of, "oda/turn.md") if of else "")


def test_no_example_holds_a_question_of_the_world() -> None:
    asked = (Path(__file__).parents[2] / "benchmarks" / "world" / "questions.json").read_text(encoding="utf-8")
    world = files("kg_prompts") / "examples" / "sample-world"
    shown = " ".join(file.read_text(encoding="utf-8") for file in world.iterdir())
    assert not [each for each in re.findall(r"^Question: (.*)$", shown, re.MULTILINE) if each in asked]
    assert not [each for each in ("Šüwüan Fávstaholt", "A Tower for Sürmeine", "Tichskihaven") if each in asked]


async def test_the_definition_of_a_graph_that_has_one_takes_the_place_of_its_schema_in_the_paper() -> None:
    shipped = examples_for("dblp", "graph_counselor/definition.md")
    for name, expected in (("stores/dblp", shipped), ("stores/mine", DEFINITION)):
        llm = ScriptedLlm(["plan", "think", "Finish[7]", "[yes]"])
        settings = CounselorSettings(manner="paper")
        await GraphCounselor(llm, KnowledgeGraph(PlayedGraph()), settings=settings, graph_name=name).answer("How many?")
        assert expected in llm.asked[0].prompt
