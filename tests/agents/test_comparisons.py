"""The evidence of which of two is more holds what is known of both, whichever of them a model cites."""

import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from kg_agents.evidence.values import plain_value
from kg_agents.llm import Scripted
from kg_agents.parameters import AGENTS, ToolsSettings
from kg_agents.running import Question
from kg_agents.tools.client import Toolbox
from oda_runs import serving_store, story_store
from tool_runs import answer, answered, calls

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
