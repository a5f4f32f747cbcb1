"""`kg-sextant ask` and `replay`: answer one question by an agent, or run it again from its record."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from kg_adapters.errors import InvalidRequest
from kg_boundary.addresses import credentials_in_command
from kg_boundary.secrets import Redactor
from kg_boundary.shown import one_line, visible_line
from kg_server.commands import options
from kg_server.commands.answering import SET_MODEL, TRACES, AgentName, Answering, new_trace, question_of, usual_method
from kg_server.commands.invocation import invocation
from kg_server.commands.output import ExitCode, warn
from kg_server.commands.run_view import RunView, run_view
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_agents.evidence.answers import AgentAnswer
    from kg_agents.running import Question
    from kg_agents.tools.client import Toolbox
    from kg_agents.trace import Watcher
    from kg_server.graphs import GraphSet

NOBODY_REFLECTS: Final = (
    "nobody reflects here. Graph Counselor does (--agent graph-counselor, reflections above 0), "
    "and ODA as its paper has it (--agent oda --set manner=paper)."
)


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
        from kg_server.commands.local_models import with_local_model

        settings = with_local_model(settings)
    if settings.llm.model is None and agent in _NEEDING:
        raise InvalidRequest(f"{_NEEDING[agent]} needs a model. {SET_MODEL}")
    more = {"closed_book": closed_book, "ablation": ablation}
    written = (*(parameters or ()), *(f"{name}={value}" for name, value in more.items() if value is not None))
    method = agent or usual_method(settings, written)
    asked = question_of(settings, question, method, tuple(entities or ()), written)
    check_reflector(settings, asked, reflector)
    path = trace or new_trace(settings.data_folder / TRACES, question)
    view = run_view(as_json=as_json)
    if settings.llm.model is None:
        view.say(NO_MODEL)
    redactor = called.secrecy.redactor
    connect = partial(_tools, server=server, redactor=redactor)
    answering = Answering(settings, redactor, connect, _watcher(view), view.say)
    with view:
        answer = _answered(answering, asked, path, chosen=agent is not None)
    view.conclude(answer, path)
    if code := ENDS[answer.status]:
        raise typer.Exit(code)


def _answered(answering: Answering, asked: "Question", path: Path, *, chosen: bool) -> "AgentAnswer":
    import anyio

    from kg_agents.trace import Trace

    try:
        return anyio.run(partial(answering.answer, asked, partial(Trace, path), chosen=chosen))
    except KeyboardInterrupt:
        warn(f"Interrupted; the record until then is {visible_line(str(path))}.")
        raise


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
    settings: Settings, *, server: str | None, redactor: Redactor
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
