"""`kg-sextant ask` and `replay`: one question answered by a reference agent, and the same again from its record."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from kg_adapters.errors import BackendError, InvalidRequest
from kg_boundary.addresses import credentials_in_command
from kg_boundary.private_files import open_private, private_folder
from kg_boundary.secrets import Redactor
from kg_boundary.shown import visible_line
from kg_server.commands.failures import ExitCode
from kg_server.commands.invocation import invocation
from kg_server.commands.models import model_of
from kg_server.commands.output import warn
from kg_server.commands.questions import (
    AgentName,
    as_published,
    by_oda,
    exact,
    keep_solved,
    likeness,
    question_of,
    see_that_it_reflects,
    usual_method,
)
from kg_server.commands.run_view import RunView, run_view
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_adapters.protocol import KGAdapter
    from kg_agents.evidence.answers import AgentAnswer
    from kg_agents.running import Question, Watcher
    from kg_agents.tools.client import Toolbox

TRACES: Final = "traces"
SET_MODEL: Final = (
    "For a model set llm (--model or KG_SEXTANT_LLM) and llm_api_key (OPENAI_API_KEY), or llm_base_url (--base-url) "
    "for one of your own."
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
    question: Annotated[str, typer.Argument(help="The question.")],
    agent: Annotated[
        AgentName | None,
        typer.Option(help="The method; unless given, tools if the model can call functions, else oda."),
    ] = None,
    entities: Annotated[
        list[str] | None,
        typer.Option("--entity", metavar="ID", help="What it is about: an id, an IRI or a name; may be repeated."),
    ] = None,
    graph: Annotated[str | None, typer.Option(help="`sample`, RDF files, a store, or an endpoint's URL.")] = None,
    server: Annotated[
        str | None, typer.Option(metavar="COMMAND|URL", help="A server with these tools, in place of a graph.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The language model.")] = None,
    base_url: Annotated[str | None, typer.Option(help="The URL of its service: any OpenAI-compatible one.")] = None,
    trace: Annotated[
        Path | None, typer.Option(help="Where to keep the record; in the data folder unless given.")
    ] = None,
    closed_book: Annotated[
        Literal["never", "apart", "allowed"] | None,
        typer.Option(
            help="What the model knows by itself: left out, shown apart (the default), or taken as an answer."
        ),
    ] = None,
    ablation: Annotated[
        str | None, typer.Option(help="A part of the method to leave out: no-observation, no-planning, …")
    ] = None,
    reflector: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Another model, to reflect where the method does.")
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the method, as hops=2; may be repeated."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON, and nothing else.")] = False,
    learn: Annotated[
        bool, typer.Option("--learn", help="Keep what is solved, and show the model what was solved before.")
    ] = False,
) -> None:
    """Answer a question with a model that calls the tools, with ODA or with Graph Counselor, showing every step.

    Without a model, the facts most like the question are shown.
    """
    called = invocation(context)
    if server is not None:
        called.secrecy.redactor = secrets_of_server(server)
    flags = {"llm": model, "llm_base_url": base_url, "reflector_llm": reflector, "learn": learn or None}
    settings = called.load(graph=graph, **flags).settings
    if not question.strip():
        raise InvalidRequest("The question is blank.")
    if not all(each.strip() for each in entities or ()):
        raise InvalidRequest("An --entity is blank. Give an id, an IRI or a name, or leave it out.")
    if settings.llm is None and agent in _NEEDING:
        raise InvalidRequest(f"{_NEEDING[agent]} needs a model. {SET_MODEL}")
    more = {"closed_book": closed_book, "ablation": ablation}
    written = (*(parameters or ()), *(f"{name}={value}" for name, value in more.items() if value is not None))
    method = agent or usual_method(settings, written)
    asked = question_of(settings, question, method, tuple(entities or ()), written)
    see_that_it_reflects(settings, asked, reflector)
    path = trace or _new_trace(settings.data_folder / TRACES, question)
    view = run_view(as_json=as_json)
    redactor = called.secrecy.redactor
    if settings.llm is None:
        view.say(NO_MODEL)
    import anyio

    try:
        with view:
            answer = anyio.run(_ask, settings, asked, server, path, view, redactor)
            if answer.stop_reason == "functions" and agent is None:
                view.say(f"{answer.explanation} ODA is used instead; llm_tools=false skips the attempt.")
                answer = anyio.run(_ask, settings, by_oda(asked), server, path, view, redactor)
    except KeyboardInterrupt:
        warn(f"Interrupted; the record until then is {visible_line(str(path))}.")
        raise
    view.conclude(answer, path)
    if code := ENDS[answer.status]:
        raise typer.Exit(code)


def replay(
    trace: Annotated[Path, typer.Argument(help="The record of a run, as `ask` keeps it.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON, and nothing else.")] = False,
) -> None:
    """Run a question again from its record, without the model and the graph."""
    import anyio

    view = run_view(as_json=as_json)
    with view:
        answer, same = anyio.run(_replay, trace, view)
    view.conclude(answer, trace)
    if not same:
        warn("The answer is not the one that was recorded.")
        raise typer.Exit(ExitCode.REFUSED)


async def _ask(
    settings: Settings, asked: "Question", server: str | None, path: Path, view: RunView, redactor: Redactor
) -> "AgentAnswer":
    from kg_agents.experience import learned_from
    from kg_agents.llm import AgentError
    from kg_agents.running import run_question
    from kg_agents.tools.client import ExactTools
    from kg_agents.trace import Trace

    in_paper = asked.agent == "oda" and asked.oda.paper_score and settings.llm is not None
    settings = exact(settings) if in_paper else settings
    asked = replace(asked, graph_name=redactor.message(settings.graph) if server is None else "")
    names = (settings.llm, settings.judge_llm, settings.reflector_llm)
    llm, judge, reflector = (model_of(settings, name, redactor) for name in names)
    try:
        with Trace(path) as trace:
            async with _tools(as_published(settings, asked.parameters), server, redactor) as (tools, graph):
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
                if graph is not None and await keep_solved(settings, graph, learned_from(answer)):
                    view.say("Kept as an example for other questions.")
                return answer
    except AgentError as error:
        raise BackendError(visible_line(" ".join(str(error).split()))) from error
    finally:
        for each in (llm, judge, reflector):
            if each is not None:
                await each.aclose()


async def _replay(trace: Path, view: RunView) -> "tuple[AgentAnswer, bool]":
    from kg_agents.llm import AgentError
    from kg_agents.running import replay_question

    try:
        return await replay_question(trace, _watcher(view))
    except AgentError as error:
        raise InvalidRequest(visible_line(" ".join(str(error).split()))) from error


def secrets_of_server(server: str) -> Redactor:
    """Return what takes out the secrets in the URL or the command line of a server."""
    return Redactor().also(credentials_in_command(server)).also_in(server)


def _watcher(view: RunView) -> "Watcher":
    from kg_agents.running import Watcher

    return Watcher(view.linked, view.begin, view.used, view.step)


@asynccontextmanager
async def _tools(
    settings: Settings, server: str | None, redactor: Redactor
) -> "AsyncGenerator[tuple[Toolbox, KGAdapter | None]]":
    """Open a session to a server of somebody else, or to one of our own in this process, with its graph."""
    from kg_agents.tools.client import connect_tools

    if server is not None:
        async with connect_tools(server, redactor=redactor) as tools:
            yield tools, None
        return
    from kg_server.app import build_server
    from kg_server.commands.graphs import opened

    async with opened(settings) as graph, connect_tools(build_server(graph, settings)) as tools:
        yield tools, graph


def _new_trace(folder: Path, question: str) -> Path:
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
