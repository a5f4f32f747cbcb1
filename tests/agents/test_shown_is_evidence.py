"""Whatever a prompt or a result shows of the graph is evidence for an answer.

The model here reads every name, date and number of the graph in what it is shown, and answers with all of them, citing
nothing.
"""

import json
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Final

import pyoxigraph as ox
import pytest
from benchmarks.world.graph import World

from embedders import LEXICAL
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_agents.llm import Completion, FunctionCall, LlmRequest, Usage
from kg_agents.papers.graph_counselor import CounselorSettings
from kg_agents.papers.oda import OdaSettings
from kg_agents.parameters import ToolsSettings
from kg_agents.running import Question, run_question
from kg_agents.tools.client import Toolbox, connect_tools
from kg_agents.trace import Trace
from kg_server.app import build_server
from kg_server.settings import Settings

QUESTION: Final = "What is known of it, in all its detail?"
_DATA: Final = re.compile(r"<data>\n(.*?)\n</data>", re.DOTALL)
_VALUES: Final = re.compile(r"\b\d{4}-\d\d-\d\d\b|(?<![\w.])\d{1,3}(?:,\d{3})+(?:\.\d+)?\b|(?<![\w.])\d+\.\d+\b")
_NO_FACTS: Final = re.compile(
    r"\"[^\"\n]*\"@\w+|^\[\d+\] [^\n]*\b(?:facts examined|neighbouring facts)\b[^\n]*|Hubs left out: [^\n]*"
    r"|\b[Oo]f [\d,]+ .+? have one[^\n]*",
    re.MULTILINE,
)
"""Texts that mention things, and what sums a result up: it counts kinds of facts rather than states any."""
_LONGEST: Final = 1_800


class Echo:
    """Makes its calls, then answers with everything that it was shown."""

    name = "echo"

    def __init__(self, names: re.Pattern[str], replies: Sequence[str | FunctionCall]) -> None:
        self._names = names
        self._replies = [*replies]
        self.shown: dict[str, None] = {}

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`."""
        self._read(request)
        reply = self._replies.pop(0) if self._replies else self._ending(request.purpose)
        if isinstance(reply, FunctionCall):
            return Completion("", Usage(), "tool_calls", (reply,))
        return Completion(reply, Usage())

    def _read(self, request: LlmRequest) -> None:
        for message in request.messages:
            texts = [message.content] if message.role == "tool" else _DATA.findall(message.content)
            facts = _NO_FACTS.sub("", "\n".join(each for each in texts if not each.startswith((QUESTION, "Graph '"))))
            self.shown.update(dict.fromkeys((*self._names.findall(facts), *_VALUES.findall(facts))))

    def _ending(self, purpose: str) -> str | FunctionCall:
        said = [*self.shown]
        match purpose:
            case "tools":
                return FunctionCall("end", "answer", json.dumps({"answers": said}))
            case "turn" | "answer":
                return "\n".join(("Keep: none", "Action: Answer", "Answer:", *said))
            case "action" if self._in_oda:
                return "Thought: enough.\nAction: Answer"
            case "judge":
                return "[yes]"
            case _:
                quoted = [f'"{text}"' for text in said if '"' not in text]
                while sum(map(len, quoted)) + 2 * len(quoted) > _LONGEST:
                    quoted.pop(0)
                return f"Action: Finish[{', '.join(quoted)}]"

    @property
    def _in_oda(self) -> bool:
        return self.agent == "oda"

    agent = ""


@pytest.fixture(scope="module")
def names() -> re.Pattern[str]:
    """Return what finds the names of all things of the world, the longest first."""
    world = World()
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    things = "strstarts(str(?e), 'http://world.example/E')"
    rows = world.solutions(f"SELECT ?l {{ ?e {label} ?l FILTER(lang(?l) = 'en' && {things}) }}")
    found = {end.value for row in rows if isinstance(end := row["l"], ox.Literal)}
    # Names of roles and kinds stand in the names of relations too.
    labels = sorted((name for name in found if name != name.lower()), key=lambda name: -len(name))
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, labels))})(?![\w-])")


@pytest.fixture
async def tools(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Toolbox]:
    cache = tmp_path_factory.getbasetemp() / "world"
    settings = Settings(cache_folder=cache, data_folder=cache / "data", embedding=LEXICAL)
    async with (
        aclosing(LocalAdapter(open_sample(cache, "sample:world"))) as graph,
        connect_tools(build_server(graph, settings)) as connected,
    ):
        yield connected


def call(tool: str, **arguments: object) -> FunctionCall:
    return FunctionCall("a", tool, json.dumps(arguments))


PERSON, TOWN, REGION, BREWERY = "w:E3684", "w:E1424", "w:E2733", "w:E3199"
PAPER_ODA = OdaSettings(manner="paper", ablation="random-reflection", iterations=2)
PAPER_COUNSELOR = CounselorSettings(manner="paper")
ALL_TOOLS = ToolsSettings(only="all")
CASES: dict[str, tuple[Question, list[str | FunctionCall]]] = {
    **{
        f"tools, {each.name} {number}": (Question(QUESTION, (), ALL_TOOLS), [each])
        for number, each in enumerate(
            [
                call("observe", question="Which career did he have?", entities=[PERSON]),
                call("GetNeighbor", entity=PERSON, direction="both"),
                call("GetNeighbor", entity=BREWERY, direction="both", limit=20),
                call("GetPath", source=PERSON, target=TOWN, max_hops=4),
                call("Retrieve", text="Čautan Lanaru"),
                call("Retrieve", text="Polwaminster"),
                call("Feature", entity=TOWN),
                call("Compose", expression=f"Neighbor[{PERSON}, career entry]"),
                call("Compose", expression=f"Top[Neighbor[{REGION}, -located in region], population, 5]"),
                call("Compose", expression=f"Table[Neighbor[{REGION}, -located in region], population, country]"),
                call("Compose", expression=f"Feature[{TOWN}, altitude (m)], Count[Neighbor[{TOWN}, -place of birth]]"),
                call("Compose", expression=f"Group[Neighbor[{REGION}, -located in region], country]"),
                call("Sparql", query=f"SELECT ?p ?o {{ {TOWN} ?p ?o }}"),
                call("Sparql", query=f'SELECT ?e {{ {PERSON} @"career entry" ?e }}'),
            ]
        )
    },
    "oda, first turn": (Question(QUESTION, (PERSON, TOWN)), []),
    "oda, neighbours": (Question(QUESTION, (BREWERY,)), ["Keep: 1\nAction: GetNeighbor[c1, at organisation]"]),
    "oda, paths": (Question(QUESTION, (PERSON, TOWN)), ["Keep: none\nAction: GetPath[c1, c2]"]),
    "oda, a look": (Question(QUESTION, (REGION,)), ["Keep: 1-4\nAction: Look[population]"]),
    "oda, a search": (Question(QUESTION, (REGION,)), ["Keep: none\nAction: Search[Polwaminster]"]),
    "oda as in the paper": (
        Question(QUESTION, (PERSON,), PAPER_ODA),
        [f"Thought: look.\nAction: GetNeighbor\nEntity_id: {PERSON}"],
    ),
    "graph-counselor, first step": (Question(QUESTION, (PERSON, TOWN), CounselorSettings()), []),
    "graph-counselor, a step": (
        Question(QUESTION, (REGION,), CounselorSettings()),
        [f"Action: Table[Neighbor[{BREWERY}, -at organisation], from, end date]"],
    ),
    "graph-counselor as in the paper": (
        Question(QUESTION, (PERSON,), PAPER_COUNSELOR),
        ["plan", "thought", f"Neighbour[{PERSON}, career entry]", "plan", "thought"],
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_all_that_is_shown_of_the_graph_is_evidence(
    case: str, tools: Toolbox, names: re.Pattern[str], tmp_path: Path
) -> None:
    asked, replies = CASES[case]
    llm = Echo(names, replies)
    llm.agent = asked.settings.agent
    with Trace(tmp_path / "record.jsonl") as trace:
        found = await run_question(replace(asked), tools, llm, trace)
    assert llm.shown
    assert found.model_answer == ()
    assert [each.text for each in found.answers if each.source == "model"] == []
