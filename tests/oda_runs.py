"""How tests run the three agents: a server in this process over a small graph, and models that reply by script."""

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from calls import several_graphs
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.store import open_store
from kg_agents.evidence.answers import AgentAnswer
from kg_agents.llm import Completion, FunctionCall, PromptTooLong, Scripted, ScriptedLlm, Usage
from kg_agents.llm.dialogue import Dialogue
from kg_agents.llm.texts import tokens_in
from kg_agents.papers.graph_counselor import CounselorAnswer, CounselorSettings, GraphCounselor
from kg_agents.running import Question, run_question
from kg_agents.tools.client import (
    OnCall,
    OtherTools,
    Toolbox,
    ToolCall,
    ToolError,
    ToolOffer,
    connect_tools,
    ignore_call,
)
from kg_agents.tools.knowledge import KnowledgeGraph
from kg_agents.trace import Trace
from kg_server.app import build_server
from kg_server.settings import Settings
from small_graphs import shared_store

NEIGHBORS = "Thought: I look around.\nAction: GetNeighbor\nEntity_id: {}"
PATH = "Thought: I look between.\nAction: GetPath\nEntity_id: {}, {}"
ENOUGH = "Thought: The memory holds it.\nAction: Answer"


def selecting(*triples: str) -> str:
    """Return a reflection that selects triples."""
    return "\n".join(("Thought: These help.", "Triples:", *triples))


def taking(most: int, reply: Callable[[str], str]) -> Callable[[str], str]:
    """Return a model that takes prompts of so many tokens."""

    def replying(prompt: str) -> str:
        if tokens_in(prompt) > most:
            raise PromptTooLong("Too long.")
        return reply(prompt)

    return replying


@asynccontextmanager
async def story(
    folder: Path, turtle: str, *, embedder: str = "lexical", on_call: OnCall = ignore_call
) -> AsyncGenerator[KnowledgeGraph]:
    """Serve a small graph to an agent in this process."""
    async with story_tools(folder, turtle, embedder) as tools:
        yield KnowledgeGraph(tools, on_call)


@asynccontextmanager
async def story_tools(folder: Path, turtle: str, embedder: str = "lexical", **more: object) -> AsyncGenerator[Toolbox]:
    """Serve a small graph in this process, and give what calls its tools."""
    async with serving_store(story_store(turtle), folder, embedder, **more) as tools:
        yield tools


def story_store(turtle: str) -> Path:
    """Return the store of a small graph."""
    return shared_store(turtle, "story", sparql=False).folder


@asynccontextmanager
async def serving_store(
    store: Path, folder: Path, embedder: str = "lexical", **more: object
) -> AsyncGenerator[Toolbox]:
    """Serve a store in this process, and give what calls its tools."""
    settings = Settings.model_validate(
        {"cache_folder": folder, "data_folder": folder, "embedding": {"embedder": embedder}, **more}
    )
    async with (
        aclosing(LocalAdapter(open_store(store))) as graph,
        connect_tools(build_server(graph, settings)) as connected,
    ):
        yield connected


@asynccontextmanager
async def stories_tools(folder: Path, turtle: Mapping[str, str]) -> AsyncGenerator[Toolbox]:
    """Serve several small graphs by their names in this process, and give what calls their tools."""
    settings = Settings.model_validate(
        {"cache_folder": folder, "data_folder": folder, "embedding": {"embedder": "lexical"}, "timeout_s": 120}
    )
    async with AsyncExitStack() as stack:
        graphs = {
            name: await stack.enter_async_context(aclosing(LocalAdapter(open_store(story_store(text)))))
            for name, text in turtle.items()
        }
        server = build_server(several_graphs(graphs, settings), settings)
        yield await stack.enter_async_context(connect_tools(server))


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


@dataclass(frozen=True, slots=True)
class ChangedTools(OtherTools):
    """Tools of a server whose answers are changed on the way."""

    change: Callable[[ToolCall], ToolCall]

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """See `ToolCaller`."""
        return self.change(await self.tools.call(tool, arguments))


def refusing(tools: Toolbox, tool: str, text: str, about: str = "") -> ChangedTools:
    """Return tools of which one refuses calls, where they are about something."""

    def refused(call: ToolCall) -> ToolCall:
        refuses = call.tool == tool and about in str(call.arguments)
        return ToolCall(call.tool, call.arguments, text, {}, failed=True) if refuses else call

    return ChangedTools(tools, refused)


async def answered(asked: Question, tools: Toolbox, folder: Path, *replies: Scripted) -> AgentAnswer:
    """Answer a question with a model that replies by script, and keep the record."""
    with Trace(folder / "run.jsonl") as trace:
        return await run_question(asked, tools, ScriptedLlm(replies), trace)


Called: TypeAlias = tuple[str, Mapping[str, object] | str]


def calls(*made: Called, text: str = "") -> Completion:
    """Return a reply that calls functions, by name and arguments."""
    written = (
        FunctionCall(f"c{number}", name, given if isinstance(given, str) else json.dumps(given))
        for number, (name, given) in enumerate(made, start=1)
    )
    return Completion(text, Usage(100, 10, calls=1), "tool_calls", tuple(written))


def answer(*texts: str, cites: tuple[int, ...] = (1,), **more: object) -> Completion:
    """Return a reply that answers, each answer with the numbers of the results that show it."""
    answers = [{"text": text, "results": list(cites)} for text in texts]
    return calls(("answer", {"answers": answers, **more}))
