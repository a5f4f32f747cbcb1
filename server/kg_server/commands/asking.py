"""The tool `ask` of the page that `explore` serves: it sends each line of a run's record as it is written."""

import math
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import quote

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from kg_adapters.errors import BackendError, KGError
from kg_agents.evidence.answers import AgentAnswer
from kg_agents.evidence.answers import Status as Outcome
from kg_agents.evidence.values import split_graph, without_graph
from kg_agents.tools.client import Toolbox, connect_tools
from kg_agents.trace import AnyLine, LlmLine, OfferLine, ToolLine, Trace, Watcher
from kg_boundary.secrets import Redactor
from kg_boundary.shown import json_text, one_line
from kg_server.answers.results import Answer, Result
from kg_server.app import build_server
from kg_server.commands.answering import (
    TRACE_URI,
    TRACES,
    AgentName,
    Answering,
    list_record,
    new_trace,
    question_of,
    record_of,
    usual_method,
)
from kg_server.commands.run_view import doing, lines_of
from kg_server.concurrency import load
from kg_server.graphs import GraphName, GraphSet
from kg_server.mcp_server import hints
from kg_server.settings import Settings
from kg_server.tools import EntityId, Text

if TYPE_CHECKING:
    from kg_server.mcp_server import SextantServer

MAX_SENT: Final = 200_000
"""The most characters of a line that is sent; the record has all of them."""
_MAX_TEXT: Final = 4_000


class AskResult(Result):
    """Answers to a question, and the facts that yield them; `trace` is the record of the run."""

    outcome: Outcome
    answers: list[list[str]] = Field(description="[answer, graph/computed/model, steps of working it out]")
    evidence: list[list[str]] = Field(description="[head, relation, tail]")
    labels: dict[str, str]
    relations: dict[str, str]
    trace: str


class AskTool:
    """The tool `ask` over graphs that a server has opened already.

    Args:
        server: Where the tool is offered, and the records of its runs are listed.
        graphs: The graphs.
        settings: They name the model.
        redactor: Removes secrets from texts.
    """

    def __init__(self, server: "SextantServer", graphs: GraphSet, settings: Settings, redactor: Redactor) -> None:
        self._server = server
        self._graphs = graphs
        self._settings = settings
        self._redactor = redactor

    def provide(self) -> None:
        """Add the tool."""
        asking = hints("Ask a model", reads=False, remote=True)
        self._server.provide(self.ask, "ask", asking, own_deadline=True, spans=True, for_apps=True)

    async def ask(
        self,
        question: Text,
        context: Context,
        entities: Annotated[list[EntityId], Field(max_length=20)] = [],  # noqa: B006 - it is not changed
        agent: AgentName | None = None,
        graph: GraphName = None,
    ) -> Annotated[CallToolResult, AskResult]:
        """Answer a question with the model of this page's owner, which is sent what it reads of the graph.

        The lines of the record come as progress.
        """
        await load("openai", "kg_agents.running")
        settings = self._settings if graph is None or not self._settings.graphs else self._settings.of(graph)
        asked = question_of(settings, question, agent or usual_method(settings, ()), tuple(entities), ())
        folder = settings.data_folder / TRACES
        with _writing_to(folder):
            path = new_trace(folder, question)
        trace = f"{TRACE_URI}/{quote(path.stem)}"
        list_record(self._server, trace, question, lambda: record_of(path))
        await context.notify_resources_changed()
        messages: list[str] = []
        async with _reported(context) as report:
            watcher = Watcher(on_begin=lambda what: report(json_text({"kind": "doing", "text": doing(what)})))
            answering = Answering(settings, self._redactor, partial(self._connected, graph), watcher, messages.append)
            record = partial(_Sent, path, lambda line: report(self._redactor.data(line.encode()).decode()))
            answer = await answering.answer(asked, record, chosen=agent is not None)
        if answer.stop_reason == "model" and not answer.answers:
            raise BackendError(answer.explanation)
        return _result(answer, trace, messages).to_mcp()

    @asynccontextmanager
    async def _connected(self, graph: str | None, settings: Settings) -> AsyncGenerator[tuple[Toolbox, GraphSet]]:
        """Open a session with another server in this process, over the same graphs."""
        graphs = self._graphs.under(settings, graph)
        if not graphs.several:
            await graphs.first.opened()
        async with connect_tools(build_server(graphs, settings)) as tools:
            yield tools, graphs


class _Sent(Trace):
    """A record whose lines are sent as well, without prompts and with their texts cut.

    Args:
        path: The file of the record.
        send: Called with each line.
    """

    def __init__(self, path: Path, send: Callable[[str], None]) -> None:
        super().__init__(path)
        self._send = send

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        # Closing writes again what could not be written.
        with _writing_to(self.path.parent):
            super().__exit__(kind, error, at)

    def write(self, line: AnyLine) -> None:
        """Add a line."""
        with _writing_to(self.path.parent):
            super().write(line)
        brief = _brief(line)
        text = json_text(brief.model_dump(mode="json"))
        if len(text) > MAX_SENT and isinstance(brief, ToolLine):
            text = json_text(brief.model_copy(update={"data": {}, "arguments": {}}).model_dump(mode="json"))
        if len(text) <= MAX_SENT:
            self._send(text)


@contextmanager
def _writing_to(folder: Path) -> Generator[None]:
    """Explain why a record cannot be written.

    Raises:
        BackendError: The file system refuses it.
    """
    try:
        yield
    except OSError as error:
        raise BackendError(
            f"The record of the run cannot be written to {folder}: {error.strerror}. "
            "Free space there, or set data_folder to another folder."
        ) from error


def _brief(line: AnyLine) -> AnyLine:
    """Return a line without prompts and descriptions of tools, its text cut."""
    match line:
        case LlmLine():
            return line.model_copy(update={"messages": (), "reply": line.reply[:_MAX_TEXT]})
        case OfferLine():
            return line.model_copy(update={"instructions": "", "tools": ()})
        case ToolLine():
            return line.model_copy(update={"text": line.text[:_MAX_TEXT]})
        case _:
            return line


@asynccontextmanager
async def _reported(context: Context) -> AsyncGenerator[Callable[[str], None]]:
    """Yield a function that queues a text for the client; all are sent as progress, in order, before this ends."""
    texts, sent = anyio.create_memory_object_stream[str](math.inf)
    failure: KGError | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_send, context, sent)
        with texts:
            try:
                yield texts.send_nowait
            except KGError as error:  # a task group would wrap it
                failure = error
    if failure is not None:
        raise failure


async def _send(context: Context, texts: MemoryObjectReceiveStream[str]) -> None:
    number = 0
    async with texts:
        async for text in texts:
            number += 1
            await context.report_progress(number, None, text)


def _result(answer: AgentAnswer, trace: str, messages: list[str]) -> Answer:
    nodes, relations, rows = dict[str, str](), dict[str, str](), list[list[str]]()
    for fact in answer.evidence:
        bare, (_, graph) = without_graph(fact), split_graph(fact[1])
        rows.append([*bare, graph] if graph else [*bare])
        nodes |= {bare[at]: answer.labels.nodes[fact[at]] for at in (0, 2) if fact[at] in answer.labels.nodes}
        relations |= {bare[1]: answer.labels.relations[fact[1]]} if fact[1] in answer.labels.relations else {}
    summary, *lines = lines_of(answer)
    result = AskResult(
        status="ok" if answer.answers else "empty",
        knowledge="stated" if rows else "unnamed" if answer.status == "unknown_entity" else "unknown",
        summary=summary,
        outcome=answer.status,
        answers=[[each.text, each.source, *each.computed] for each in answer.answers],
        evidence=rows,
        labels=nodes,
        relations=relations,
        trace=trace,
    )
    return Answer(result, (*lines, *map(one_line, messages)))
