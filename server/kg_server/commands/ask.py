"""`kg-sextant ask` and `replay`: answer one question by an agent, or run it again from its record."""

import os
import shlex
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import typer

from kg_adapters.errors import BackendError, InvalidRequest
from kg_adapters.protocol import KGAdapter
from kg_boundary.addresses import credentials_in_command
from kg_boundary.private_files import open_private, private_folder
from kg_boundary.secrets import Redactor
from kg_boundary.shown import one_line, visible_line
from kg_server.commands import options
from kg_server.commands.invocation import invocation
from kg_server.commands.output import ExitCode, warn
from kg_server.commands.run_view import RunView, run_view
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_adapters.embedding import Embedder
    from kg_agents.evidence.answers import AgentAnswer
    from kg_agents.experience import Learned
    from kg_agents.running import Question
    from kg_agents.tools.client import Toolbox
    from kg_agents.trace import Watcher
    from kg_server.graphs import GraphSet
    from kg_server.memory.experience import ExperienceStore, Solved


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

NOBODY_REFLECTS: Final = (
    "nobody reflects here. Graph Counselor does (--agent graph-counselor, reflections above 0), "
    "and ODA as its paper has it (--agent oda --set manner=paper)."
)


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


def check_reflector(settings: Settings, asked: "Question", option: str | None) -> None:
    """Warn if the reflecting model of the settings is not used.

    Raises:
        InvalidRequest: An option names it.
    """
    if settings.llm.reflector is None or asked.settings.reflects:
        return
    if option is not None:
        raise InvalidRequest(f"--reflector {option!r}: {NOBODY_REFLECTS}")
    warn(f"The model of llm.reflector is not asked: {NOBODY_REFLECTS}")


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


TRACES: Final = "traces"

SET_MODEL: Final = (
    "For a model set llm.model (--model or KG_SEXTANT_LLM__MODEL) and llm.api_key (OPENAI_API_KEY), or llm.base_url "
    "(--base-url) for one of your own."
)

NO_MODEL: Final = f"No model is set, so there is no answer. {SET_MODEL}"

_NEEDING: Final[Mapping[str | None, str]] = {"tools": "The agent tools", "graph-counselor": "Graph Counselor"}
"""What the methods are called that need a model."""

ENDS: Final[Mapping[str, ExitCode]] = {
    "answered": ExitCode.OK,
    "partly": ExitCode.OK,
    "no_model": ExitCode.NO_MODEL,
    "not_in_graph": ExitCode.NOT_IN_GRAPH,
    "unknown_entity": ExitCode.UNKNOWN_ENTITY,
    "stopped": ExitCode.REFUSED,
}
"""How the command ends, by the status of the answer."""


def ask(  # noqa: PLR0913, PLR0917 - one argument for each option
    context: typer.Context,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question.")],
    agent: Annotated[
        AgentName | None,
        typer.Option(help="The method; default: tools if the model can call functions, otherwise oda."),
    ] = None,
    entities: Annotated[
        list[str] | None,
        typer.Option(
            "--entity", metavar="ID", help="An entity of the question: an id, an IRI or a name. May be repeated."
        ),
    ] = None,
    graph: options.Graphs = None,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND|URL",
            help="Use the tools of another MCP server instead of opening a graph; server_token is its token.",
        ),
    ] = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to keep the record of the run; default: in the data folder."),
    ] = None,
    closed_book: Annotated[
        Literal["never", "apart", "allowed"] | None,
        typer.Option(
            help="What happens to claims of the model that the graph does not state: they are left out (never), shown "
            "apart (the default), or accepted as an answer (allowed)."
        ),
    ] = None,
    ablation: Annotated[
        str | None, typer.Option(metavar="PART", help="Switch off a part of the method: no-observation, no-planning, …")
    ] = None,
    reflector: options.Reflector = None,
    parameters: options.Parameters = None,
    as_json: options.Json = False,
    learn: options.Learn = False,
) -> None:
    """Answer a question with a model and the tools of a graph, and show every step.

    Without a model it prints the facts most similar to the question.
    """
    called = invocation(context)
    if server is not None:
        called.secrecy.redactor = secrets_of_server(server)
    loaded = called.load_for_any(graph=graph, model=model, base_url=base_url, reflector=reflector, learn=learn or None)
    settings = loaded.settings
    if not question.strip():
        raise InvalidRequest("The question is blank.")
    if not all(each.strip() for each in entities or ()):
        raise InvalidRequest("An --entity is blank. Give an id, an IRI or a name, or leave it out.")
    if settings.llm.model is None:
        settings = _with_local_model(settings)
    if settings.llm.model is None and agent in _NEEDING:
        raise InvalidRequest(f"{_NEEDING[agent]} needs a model. {SET_MODEL}")
    more = {"closed_book": closed_book, "ablation": ablation}
    written = (*(parameters or ()), *(f"{name}={value}" for name, value in more.items() if value is not None))
    method = agent or usual_method(settings, written)
    asked = question_of(settings, question, method, tuple(entities or ()), written)
    check_reflector(settings, asked, reflector)
    path = trace or new_trace(settings.data_folder / TRACES, question)
    view = run_view(as_json=as_json)
    redactor = called.secrecy.redactor
    if settings.llm.model is None:
        view.say(NO_MODEL)
    import anyio

    try:
        with view:
            answer = anyio.run(_ask, settings, asked, server, path, view, redactor)
            if answer.stop_reason == "functions" and agent is None:
                view.say(f"{answer.explanation} ODA is used instead; llm.tools = false skips the attempt.")
                answer = anyio.run(_ask, settings, by_oda(asked), server, path, view, redactor)
    except KeyboardInterrupt:
        warn(f"Interrupted; the record until then is {visible_line(str(path))}.")
        raise
    view.conclude(answer, path)
    if code := ENDS[answer.status]:
        raise typer.Exit(code)


def replay(
    trace: Annotated[Path, typer.Argument(metavar="FILE", help="The record of a run that `ask` kept.")],
    as_json: options.Json = False,
) -> None:
    """Repeat a recorded run without the model and the graph."""
    import anyio

    view = run_view(as_json=as_json)
    with view:
        answer, same = anyio.run(_replay, trace, view)
    view.conclude(answer, trace)
    if not same:
        warn("The answer is not the one that was recorded.")
        raise typer.Exit(ExitCode.REFUSED)


def _with_local_model(settings: Settings) -> Settings:
    """Return the settings with a model that runs on this machine, if there are any and one is picked at a terminal.

    Elsewhere the options that choose each are shown.
    """
    import anyio

    from kg_server.commands.local_models import find_local_models

    found = anyio.run(find_local_models, settings.llm.local_ports)
    if not found:
        return settings
    words = [shlex.join(["--model", each.name, "--base-url", each.base_url]) for each in found]
    warn("No model is set, but some run on this machine:")
    for number, each in enumerate(words, start=1):
        warn(f"  {number}. {visible_line(each)}")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        warn("Add one of these to the command, or set llm.model and llm.base_url.")
        return settings
    picked = typer.prompt("Which one shall answer? Its number, or Enter for none", "", show_default=False, err=True)
    if not (picked.isdecimal() and 0 < int(picked) <= len(found)):
        return settings
    model = found[int(picked) - 1]
    # A key is for the service that it was set for.
    llm = {"model": model.name, "base_url": model.base_url, "api_key": None}
    return settings.model_copy(update={"llm": settings.llm.model_copy(update=llm)})


async def _ask(
    settings: Settings, asked: "Question", server: str | None, path: Path, view: RunView, redactor: Redactor
) -> "AgentAnswer":
    from kg_agents.experience import learned_from
    from kg_agents.llm import AgentError
    from kg_agents.running import run_question
    from kg_agents.tools.client import ExactTools
    from kg_agents.tools.several import graphs_of
    from kg_agents.trace import Trace
    from kg_server.commands.graphs import models_of

    in_paper = asked.settings.paper_score and settings.llm.model is not None
    settings = exact(settings) if in_paper else settings
    first = settings.of(next(iter(settings.graphs))) if settings.graphs else settings
    asked = replace(asked, graph_name=redactor.message(first.graph) if server is None else "")
    try:
        async with (
            models_of(settings, redactor) as (llm, judge, reflector),
            _tools(as_published(settings, asked.settings), server, redactor) as (tools, graphs),
        ):
            asked = replace(asked, graphs=graphs_of((await tools.offer()).tools))
            with Trace(path) as trace:
                answer = await run_question(
                    asked,
                    ExactTools(tools) if in_paper else tools,
                    llm,
                    trace,
                    judge=judge,
                    reflector=reflector,
                    similarity=partial(likeness, settings),
                    watcher=_watcher(view),
                )
            if graphs is not None and await keep_solved(settings, graphs, learned_from(answer)):
                view.say("Kept as an example for other questions.")
            return answer
    except AgentError as error:
        raise BackendError(one_line(str(error))) from error


async def _replay(trace: Path, view: RunView) -> "tuple[AgentAnswer, bool]":
    from kg_agents.llm import AgentError
    from kg_agents.running import replay_question

    try:
        return await replay_question(trace, _watcher(view))
    except AgentError as error:
        raise InvalidRequest(one_line(str(error))) from error


def secrets_of_server(server: str) -> Redactor:
    """Return what takes out the secrets in the URL or the command line of a server."""
    return Redactor().also(credentials_in_command(server)).also_in(server)


def _watcher(view: RunView) -> "Watcher":
    from kg_agents.trace import Watcher

    return Watcher(view.linked, view.begin, view.used, view.step)


@asynccontextmanager
async def _tools(
    settings: Settings, server: str | None, redactor: Redactor
) -> "AsyncGenerator[tuple[Toolbox, GraphSet | None]]":
    """Open a session to a server of somebody else, or to one of our own in this process, with its graphs."""
    from kg_agents.tools.client import connect_tools

    if server is not None:
        token = settings.server_token
        secret = None if token is None else token.get_secret_value()
        async with connect_tools(server, redactor=redactor, token=secret) as tools:
            yield tools, None
        return
    from kg_server.app import build_server
    from kg_server.commands.graphs import served

    async with served(settings) as graphs, connect_tools(build_server(graphs, settings)) as tools:
        yield tools, graphs


def new_trace(folder: Path, question: str) -> Path:
    """Make an empty file for a record, which no other run has."""
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
