"""Answer one question with an agent, record the run, and learn from it."""

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from kg_adapters.errors import BackendError, InvalidRequest
from kg_adapters.protocol import KGAdapter
from kg_boundary.private_files import open_private, private_folder
from kg_boundary.regular_files import read_regular
from kg_boundary.secrets import Redactor
from kg_boundary.shown import one_line, shown
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_adapters.embedding import Embedder
    from kg_agents.evidence.answers import AgentAnswer
    from kg_agents.experience import Learned
    from kg_agents.running import Question
    from kg_agents.tools.client import Toolbox
    from kg_agents.trace import Trace, Watcher
    from kg_server.graphs import GraphSet
    from kg_server.mcp_server import SextantServer
    from kg_server.memory.experience import ExperienceStore, Solved

SET_MODEL: Final = (
    "For a model set llm.model (--model or KG_SEXTANT_LLM__MODEL) and llm.api_key (OPENAI_API_KEY), or llm.base_url "
    "(--base-url) for one of your own."
)

AT_ONCE: Final = 15
"""How many triples are compared with the graph in one batch."""

MOST_FACTS: Final = 10 * AT_ONCE
"""A run that rests on more triples is not kept: they would take too long to compare."""


async def learn(
    graph: KGAdapter, store: "ExperienceStore", solved: "Solved", facts: Sequence[tuple[str, str, str]]
) -> bool:
    """Keep a question whose evidence the graph holds, and return whether it was kept.

    Args:
        graph: The graph.
        store: Where it is kept.
        solved: The question; its evidence is written as results show it.
        facts: The triples that every answer rests on, by ids.
    """
    if not solved.answers or not 0 < len(facts) <= MOST_FACTS:
        return False
    from kg_server.memory.checking import check
    from kg_server.memory.store import MemoryLimits

    for first in range(0, len(facts), AT_ONCE):
        batch = facts[first : first + AT_ONCE]
        checked = await check(graph, batch, limits=MemoryLimits(), allow_unverified=False)
        if checked.refused:
            return False
    await store.keep(graph.name, solved)
    return True


async def keep_solved(settings: Settings, graphs: "GraphSet", learned: "Learned | None") -> bool:
    """Keep a solved question if learning is on and one graph holds its evidence; return whether it was kept.

    Args:
        settings: Whether it is on, and where it is kept.
        graphs: What the evidence is compared with.
        learned: The solved question, or None.
    """
    if learned is None or not settings.learn or len(learned.graphs) > 1:
        return False
    from kg_server.app import experience_of
    from kg_server.memory.experience import Solved

    store = experience_of(settings)
    assert store is not None  # noqa: S101 - learning is on
    solved = Solved(question=learned.question, calls=learned.calls, answers=learned.answers, evidence=learned.evidence)
    graph = await graphs.opened(next(iter(learned.graphs), None))
    return await learn(graph.adapter, store, solved, learned.plain_facts)


LONGEST_S: Final = 600.0
"""How long one call may take where every triple is embedded: the most that settings allow."""


async def likeness(settings: Settings, question: str, texts: Sequence[str]) -> Sequence[float]:
    """Return the cosine of a question and each text, by the embedder that the settings name.

    Raises:
        ModelUnavailable: It does not answer.
    """
    from kg_adapters.embedding.protocol import products

    async with _embedder(settings) as embedder:
        vectors = await embedder.embed([question, *texts])
    cosines: list[float] = products(vectors[1:], vectors[0]).tolist()
    return cosines


def exact(settings: Settings) -> Settings:
    """Return settings whose `observe` scores as the paper of ODA does, with the time that this takes."""
    return settings.model_copy(update={"observe_score": "paper", "timeout_s": LONGEST_S})


async def score_of(settings: Settings) -> dict[str, str]:
    """Return what a run records of its observations: the score and the fingerprint of the embedder.

    Raises:
        InvalidRequest: The score is the paper's, and no model runs that embeds.
    """
    from kg_adapters.embedding import LexicalEmbedder

    async with _embedder(settings) as embedder:
        if settings.observe_score == "paper" and isinstance(embedder, LexicalEmbedder):
            raise InvalidRequest(
                "The paper's manner of ODA scores observations with an embedding model, and none runs here. Set "
                "embedding.embedder (KG_SEXTANT_EMBEDDING__EMBEDDER) to minilm or openai; kg-sextant doctor shows "
                "whether it runs."
            )
        return {"score": settings.observe_score, "embedder": embedder.fingerprint}


@asynccontextmanager
async def _embedder(settings: Settings) -> "AsyncGenerator[Embedder]":
    from kg_adapters.embedding import LexicalEmbedder, OpenAiEmbedder
    from kg_server.embedders import embedder_of

    embedder = LexicalEmbedder() if settings.embedding.embedder == "lexical" else (await embedder_of(settings)).embedder
    try:
        yield embedder
    finally:
        if isinstance(embedder, OpenAiEmbedder):
            await embedder.aclose()


AgentName: TypeAlias = Literal["tools", "oda", "graph-counselor"]


def question_of(
    settings: Settings,
    text: str,
    agent: AgentName,
    entities: tuple[str, ...],
    flags: tuple[str, ...],
) -> "Question":
    """Return what is asked, with the parameters of the settings and, before them, those of the command line.

    Raises:
        InvalidRequest: A parameter is unknown, or has a wrong value.
    """
    from kg_agents.parameters import AGENTS, InvalidParameter, read_parameters
    from kg_agents.running import Question
    from kg_server.notes import NotesFile

    graphs = [settings.of(name) for name in settings.graphs] or [settings]
    examples = [each for of in graphs for each in NotesFile.of(of.graph, of.notes).at_start.examples]
    try:
        chosen = read_parameters(AGENTS[agent], (*settings.agent_parameters, *flags))
        return Question(text, entities, chosen, learn=settings.learn or bool(examples))
    except InvalidParameter as error:
        raise InvalidRequest(str(error)) from error


def as_published(settings: Settings, parameters: object) -> Settings:
    """Return the settings of the server for an agent: in the manner of Graph Counselor's paper, Retrieve's too."""
    from kg_agents.papers.graph_counselor import CounselorSettings

    if isinstance(parameters, CounselorSettings) and parameters.manner == "paper":
        return settings.model_copy(update={"compose_retrieve": "nearest"})
    return settings


def usual_method(settings: Settings, flags: tuple[str, ...]) -> Literal["tools", "oda"]:
    """Return the method where none is chosen: calls by the model, unless it makes none or ODA's parameters are set."""
    from kg_agents.parameters import InvalidParameter, ToolsSettings, read_parameters

    if settings.llm.model is None or settings.llm.tools is False:
        return "oda"
    try:
        read_parameters(ToolsSettings, (*settings.agent_parameters, *flags))
    except InvalidParameter:
        return "oda"
    return "tools"


def by_oda(asked: "Question") -> "Question":
    """Return the same question for ODA, with the limits that it has."""
    from kg_agents.parameters import OdaSettings

    tools, oda = asked.settings, OdaSettings()
    limits = replace(oda.limits, tokens=tools.limits.tokens, seconds=tools.limits.seconds)
    return replace(asked, settings=replace(oda, closed_book=tools.closed_book, limits=limits))


Connecting: TypeAlias = Callable[[Settings], AbstractAsyncContextManager["tuple[Toolbox, GraphSet | None]"]]
"""Opens a session with the tools of graphs, and yields these graphs too unless another server holds them."""


@dataclass(frozen=True, slots=True)
class Answering:
    """How questions are answered.

    Args:
        settings: The models, and the graphs.
        redactor: Removes secrets from texts.
        connect: Opens the tools under settings, which a method may change.
        watcher: Notified of each step of a run.
        say: Called with other messages about a run.
    """

    settings: Settings
    redactor: Redactor
    connect: Connecting
    watcher: "Watcher"
    say: Callable[[str], None]

    async def answer(self, asked: "Question", trace: "Callable[[], Trace]", *, chosen: bool) -> "AgentAnswer":
        """Answer a question, by ODA where the model cannot call the functions of the usual method.

        Args:
            asked: The question.
            trace: Returns the record to write, for each method that is tried.
            chosen: Whether the method was chosen, so that no other is tried.

        Raises:
            KGError: A graph or a model cannot be used.
        """
        answer = await self._answered(asked, trace())
        if answer.stop_reason == "functions" and not chosen:
            self.say(f"{answer.explanation} ODA is used instead; llm.tools = false skips the attempt.")
            answer = await self._answered(by_oda(asked), trace())
        return answer

    async def _answered(self, asked: "Question", record: "Trace") -> "AgentAnswer":
        from kg_agents.experience import learned_from
        from kg_agents.llm import AgentError
        from kg_agents.running import run_question
        from kg_agents.tools.client import ExactTools
        from kg_agents.tools.several import graphs_of
        from kg_server.commands.graphs import models_of

        in_paper = asked.settings.paper_score and self.settings.llm.model is not None
        settings = exact(self.settings) if in_paper else self.settings
        first = settings.of(next(iter(settings.graphs))) if settings.graphs else settings
        try:
            async with (
                models_of(settings, self.redactor) as (llm, judge, reflector),
                self.connect(as_published(settings, asked.settings)) as (tools, graphs),
            ):
                name = "" if graphs is None else self.redactor.message(first.graph)
                asked = replace(asked, graph_name=name, graphs=graphs_of((await tools.offer()).tools))
                with record as trace:
                    answer = await run_question(
                        asked,
                        ExactTools(tools) if in_paper else tools,
                        llm,
                        trace,
                        judge=judge,
                        reflector=reflector,
                        similarity=partial(likeness, settings),
                        watcher=self.watcher,
                    )
                if graphs is not None and await keep_solved(settings, graphs, learned_from(answer)):
                    self.say("Kept as an example for other questions.")
                return answer
        except AgentError as error:
            raise BackendError(one_line(str(error))) from error


TRACES: Final = "traces"
"""The folder of records in the data folder."""


def new_trace(folder: Path, question: str) -> Path:
    """Create an empty file for a record, under a name that no other run has."""
    words = "-".join("".join(letter if letter.isalnum() else " " for letter in question.lower()).split())[:40]
    name = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{words or 'question'}"
    private_folder(folder, ours=True)
    for each in chain([name], (f"{name}-{number}" for number in count(2))):
        path = folder / f"{each}.jsonl"
        try:
            os.close(open_private(path, new=True))
        except FileExistsError:
            continue
        return path
    raise AssertionError("there is always another name")


TRACE_URI: Final = "kg-trace://run"
"""How the URI of a record of a run begins."""

MAX_TRACE_BYTES: Final = 50_000_000
"""What a browser can show in a reasonable time."""

_MAX_TITLE: Final = 100


def record_of(path: Path) -> str:
    """Return the record of a run.

    Raises:
        InvalidRequest: It cannot be read.
    """
    try:
        return read_regular(path, MAX_TRACE_BYTES).decode()
    except OSError as error:
        raise InvalidRequest(f"The trace {path} cannot be read: {error.strerror}.") from error


def list_record(server: "SextantServer", uri: str, question: str, read: Callable[[], str]) -> None:
    """List the record of a run among the resources of a server."""
    server.resource(uri, name="run", title=shown(question)[:_MAX_TITLE], mime_type="application/jsonl")(read)
