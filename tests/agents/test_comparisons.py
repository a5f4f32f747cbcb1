"""The evidence of which of two is more holds what is known of both, whichever of them a model cites."""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest

from kg_adapters.index.build.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_agents.evidence.values import plain_value
from kg_agents.llm import Scripted, ScriptedLlm
from kg_agents.parameters import ToolsSettings
from kg_agents.running import AgentName, Question, run_question
from kg_agents.tools.client import Toolbox, connect_tools
from kg_agents.trace import Trace
from kg_server.app import build_server
from kg_server.settings import Settings
from story_graphs import write_story
from tool_runs import answer, calls

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
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("towns")
    return build_store([write_story(folder, TOWNS)], folder / "store", ImportOptions(name="story", sparql=False)).folder


@pytest.fixture
async def towns(store: Path, tmp_path: Path) -> AsyncGenerator[Toolbox]:
    settings = Settings(cache_folder=tmp_path, data_folder=tmp_path, embedder="lexical")
    async with (
        aclosing(LocalAdapter(open_store(store))) as graph,
        connect_tools(build_server(graph, settings)) as tools,
    ):
        yield tools


def feature(*names: str) -> Scripted:
    return calls(*(("Feature", {"entity": name, "feature": "height"}) for name in names))


def citing_one(text: str) -> Scripted:
    """Answer with the number of one fact: the height of Upper Aa."""

    def reply(prompt: str) -> str:
        (number,) = re.findall(r"\[(\d+)\] Upper Aa \| height", prompt)
        return f"Thought: it is.\nKeep: none\nAction: Answer\nAnswer:\n{text} [{number}]"

    return reply


CONVERSATIONS: dict[str, tuple[AgentName, list[Scripted]]] = {
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
    with Trace(tmp_path / "record.jsonl") as trace:
        found = await run_question(
            Question(QUESTION, entities, agent, tools=ToolsSettings(only="all")), towns, ScriptedLlm(script), trace
        )
    (only,) = found.answers
    assert (found.status, only.source in {"graph", "computed"}) == ("answered", True)
    facts = {(head, relation, plain_value(tail)) for head, relation, tail in only.facts}
    assert facts == {("e:aa", "e:height", "910"), ("e:bb", "e:height", "420")}


async def test_an_answer_that_the_question_does_not_name_is_compared_with_nothing(
    towns: Toolbox, tmp_path: Path
) -> None:
    script: list[Scripted] = [feature("Upper Aa", "Middle Cc"), answer("600", cites=(2,))]
    asked = Question("How high is Middle Cc, near Upper Aa?", (), "tools", tools=ToolsSettings(only="all"))
    with Trace(tmp_path / "record.jsonl") as trace:
        (only,) = (await run_question(asked, towns, ScriptedLlm(script), trace)).answers
    assert [(head, plain_value(tail)) for head, _, tail in only.facts] == [("e:cc", "600")]
