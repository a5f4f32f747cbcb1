"""How tests run Graph Counselor: with models that reply by script, and a graph whose tools answer by script."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kg_agents.llm import Scripted, ScriptedLlm
from kg_agents.llm.dialogue import Dialogue
from kg_agents.papers.graph_counselor import CounselorAnswer, CounselorSettings, GraphCounselor
from kg_agents.tools.client import ToolCall, ToolError, ToolOffer
from kg_agents.tools.knowledge import KnowledgeGraph

QUESTION = "What is the capital of Japan?"
DEFINITION = "Graph 'played': relation | capital (P36)"
PAPER = CounselorSettings(manner="paper")
Row = Sequence[str]


@dataclass
class PlayedGraph:
    """The tools Schema and Compose; an expression without an answer is refused, as a server would refuse it."""

    answers: Mapping[str, ToolCall] = field(default_factory=dict[str, ToolCall])
    missing: frozenset[str] = frozenset()
    performed: list[str] = field(default_factory=list[str])

    async def offer(self) -> ToolOffer:
        return ToolOffer("", ())

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        if tool in self.missing:
            raise ToolError(f"{tool}: Unknown tool") from LookupError(tool)
        if tool == "Schema":
            return ToolCall(tool, arguments, DEFINITION, {}, failed=False)
        if tool == "Retrieve":
            return ToolCall(tool, arguments, "No entity matches.", {"match": "none", "candidates": []}, failed=False)
        expression = str(arguments["expression"])
        self.performed.append(expression)
        refused = ToolCall(tool, arguments, f"Nothing is known of this.\n{expression}\n^", {}, failed=True)
        return replace(self.answers.get(expression, refused), arguments=arguments)


def gives(text: str, *results: Row, evidence: Iterable[Row] = (), labels: Mapping[str, str] | None = None) -> ToolCall:
    """Return what Compose answers: a text, and rows `[part, node, relation, result, kind]`."""
    data: dict[str, object] = {
        "parts": [["1", "the expression", "nodes", "1 node"]],
        "results": [list(row) for row in results],
        "evidence": [list(row) for row in evidence],
        "labels": dict(labels or {}),
        "relations": {"P36": "capital"},
    }
    return ToolCall("Compose", {}, text, data, failed=False)


JAPAN = "Retrieve[Japan]"
CAPITAL = "Neighbor[Q17, capital]"
TOKYO = {
    JAPAN: gives("Retrieve[Japan]: 1 node.\nJapan (Q17)", ["1", "", "", "Q17", "node"], labels={"Q17": "Japan"}),
    CAPITAL: gives(
        "1 node.\nJapan (Q17) | capital (P36) | Tokyo (Q1490)",
        ["1", "Q17", "P36", "Q1490", "node"],
        labels={"Q17": "Japan", "Q1490": "Tokyo"},
    ),
}
"""A graph that knows the capital of Japan."""


def step(action: str, plan: str = "plan it", thought: str = "think of it") -> tuple[str, str, str]:
    """Return the three replies of a step."""
    return plan, thought, action


@dataclass
class Told:
    """A run: its answer, the model with what it was asked, and the graph with what it was asked."""

    answer: CounselorAnswer
    llm: ScriptedLlm
    graph: PlayedGraph

    @property
    def said(self) -> tuple[str, ...]:
        """What was answered, whether or not the graph says so."""
        return (*self.answer.texts, *self.answer.model_answer)

    def prompts(self, purpose: str) -> list[str]:
        """Return the last message of each call for a purpose."""
        return [asked.prompt for asked in self.llm.asked if asked.purpose == purpose]

    @property
    def observations(self) -> list[str]:
        """What the steps of the last attempt observed."""
        return [step.observation or "" for step in self.answer.attempts[-1].steps]

    @property
    def purposes(self) -> list[str]:
        """What the model was asked for, in order."""
        return [asked.purpose for asked in self.llm.asked]


async def counselled(
    replies: Iterable[Scripted] | Mapping[str, Iterable[Scripted]],
    graph: PlayedGraph | None = None,
    settings: CounselorSettings | None = None,
    clock: Callable[[], float] = lambda: 0.0,
) -> Told:
    """Ask the question of this module; replies follow each other in the order of the calls."""
    played = graph or PlayedGraph(TOKYO)
    llm = ScriptedLlm(replies)
    chosen = settings or PAPER
    counselor = GraphCounselor(llm, KnowledgeGraph(played), settings=chosen)
    return Told(await counselor.answer(QUESTION, talk=Dialogue(llm, chosen.limits, clock)), llm, played)
