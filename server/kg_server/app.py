"""Build the server of a graph: its tools, prompts and resources."""

import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import cache, partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)
from pydantic import BaseModel, Field, TypeAdapter

from kg_adapters.errors import InvalidRequest, KGError
from kg_adapters.profile import GraphProfile
from kg_adapters.protocol import KGAdapter
from kg_boundary.installation import install_command
from kg_boundary.secrets import Redactor
from kg_boundary.shown import FileNames, visible_lines
from kg_server.callers import LOCAL, caller
from kg_server.compose.tool import ComposeTool
from kg_server.concurrency import load, off_loop
from kg_server.graphs import GraphSet, ServedGraph
from kg_server.instructions import Instructing
from kg_server.mcp_server import SextantServer
from kg_server.memory.store import MemoryLimits, MemoryStore
from kg_server.memory.tool import MemoryTools
from kg_server.names import names_of
from kg_server.notes import Preferring
from kg_server.resources import Resources
from kg_server.settings import Settings
from kg_server.tool_list import GRAPH
from kg_server.tools import Tools
from kg_server.view import VIEW_URI

if TYPE_CHECKING:
    from kg_prompts.methods import GraphCounselorMethod, OdaMethod
    from kg_server.examples import Examples
    from kg_server.memory.experience import ExperienceStore
    from kg_server.serving.audit import Watcher


logger = logging.getLogger(__name__)

_ANSWER: Final = TypeAdapter(dict[str, object])

_BLOCKS: Final = TypeAdapter(list[dict[str, object]])


class Withholding:
    """Middleware that removes secrets from answers, and from errors also short secrets and the folders of files.

    Args:
        redactor: Removes secrets.
        files: Shortens the paths of files; the log keeps the whole text.
    """

    def __init__(self, redactor: Redactor, files: FileNames) -> None:
        self._redactor = redactor
        self._files = files

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Pass a message on, and rewrite its answer.

        Raises:
            MCPError: The error that the message is answered with.
        """
        try:
            result = await call_next(ctx)
        except MCPError as error:
            message = self.text(error.error.message)
            raise MCPError(code=error.error.code, message=message, data=error.error.data) from error
        if ctx.method == "resources/read" and (ctx.params or {}).get("uri") == VIEW_URI:
            return result  # A file of this package, whose script runs only as it was built.
        return result if result is None else self.answer(result)

    def answer(self, result: BaseModel | dict[str, Any]) -> HandlerResult:
        """Return an answer as it is shown."""
        if isinstance(result, BaseModel):
            refused = bool(getattr(result, "is_error", False))
        else:
            refused = bool(result.get("isError"))
        if not refused and not self._redactor.secrets:
            return result
        if isinstance(result, BaseModel):
            result = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        written = json.dumps(result, ensure_ascii=False).encode(errors="replace")
        shown = _ANSWER.validate_json(self._redactor.data(written))
        if refused:
            shown["content"] = [self._block(each) for each in _BLOCKS.validate_python(shown["content"])]
        return shown

    def text(self, text: str) -> str:
        """Return a text of an error as it is shown."""
        without = self._redactor.text(text)
        shown = self._files.shown(without)
        if shown != without:
            logger.warning("Shown to a client without its folders: %s", without)
        return shown

    def _block(self, block: dict[str, object]) -> dict[str, object]:
        text = block.get("text")
        return {**block, "text": self.text(text)} if isinstance(text, str) else block


async def _sharing(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Answer a message; a list that clients may cache is everybody's where nobody logs in."""
    result = await call_next(ctx)
    if isinstance(result, dict) and result.get("ttlMs") and caller() is LOCAL:
        return {**result, "cacheScope": "public"}
    return result


MAX_QUESTION: Final = 2_000

MAX_COMPLETIONS: Final = 20

_COMPLETION_S: Final = 2.0

Question: TypeAlias = Annotated[str, Field(description="What to answer")]

Entities: TypeAlias = Annotated[str, Field(description="Names or ids to begin with, separated by commas")]

AskedGraph: TypeAlias = Annotated[str, Field(description="The graph to answer from")]


class MethodPrompts:
    """The prompts `oda` and `graph-counselor`, and the completion of their arguments.

    Args:
        graphs: What names are completed from.
        examples: What is shown as examples; None for nothing.
    """

    def __init__(self, graphs: GraphSet, examples: "Examples | None" = None) -> None:
        self._graphs = graphs
        self._examples = examples

    def provide(self, server: SextantServer) -> None:
        """Add both prompts and what completes their arguments."""
        oda, counselor = self.oda, self.graph_counselor
        server.prompt("oda", title="Observe, act, reflect (ODA)")(oda if self._graphs.several else _of_one(oda))
        server.prompt("graph-counselor", title="Plan, think, act, reflect (Graph Counselor)")(
            counselor if self._graphs.several else _of_one(counselor)
        )
        complete = partial(self.complete, server)
        server.completion()(complete)  # type: ignore[no-untyped-call] # the SDK gives this decorator no types

    async def oda(self, question: Question, entities: Entities = "", graph: AskedGraph = "") -> str:
        """Answer a question in rounds: observe what bears on it, take one action, keep the triples that help."""
        await load("jinja2", "kg_prompts", "kg_prompts.methods")
        from kg_prompts.methods import OdaMethod

        return await self._rendered(OdaMethod, question, entities, graph)

    async def graph_counselor(self, question: Question, entities: Entities = "", graph: AskedGraph = "") -> str:
        """Answer a question in steps of plan, thought and one compound call, then judge the answer and improve it."""
        await load("jinja2", "kg_prompts", "kg_prompts.methods")
        from kg_prompts.methods import GraphCounselorMethod

        return await self._rendered(GraphCounselorMethod, question, entities, graph)

    async def _rendered(
        self, method: "type[OdaMethod | GraphCounselorMethod]", question: str, entities: str, graph: str
    ) -> str:
        from kg_prompts import render

        asked, listed, served = _checked(question), _listed(entities), self._named(graph)
        solved = await self._shown(asked)
        name = served.name if served.known is None else served.known.adapter.name
        prompt = method(question=asked, entities=listed, graph=name, solved=solved)
        text = await off_loop(partial(render, prompt))  # The first compiles its templates.
        return (
            f'{text}\n\nAnswer from the graph "{served.name}": give every tool graph="{served.name}".'
            if graph
            else text
        )

    def _named(self, graph: str) -> ServedGraph:
        """Return the graph of a name, the first without one.

        Raises:
            MCPError: There is none.
        """
        try:
            return self._graphs.chosen(graph or None)[0]
        except InvalidRequest as error:
            raise MCPError(code=INVALID_PARAMS, message=str(error)) from error

    async def _shown(self, question: str) -> str:
        """Return examples for a question, as a text.

        Raises:
            MCPError: The file of solved questions cannot be used.
        """
        if self._examples is None:
            return ""
        try:
            return "\n".join((await self._examples.answer(question)).lines)
        except KGError as error:
            raise MCPError(code=INTERNAL_ERROR, message=visible_lines(str(error))) from error

    async def complete(
        self,
        server: SextantServer,
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion | None:
        """Return the entities, or graphs, that an argument may mean, for a prompt that the caller may get."""
        if not isinstance(ref, PromptReference) or argument.name not in {"entities", GRAPH}:
            return None
        if ref.name not in {each.name for each in await server.list_prompts()}:
            return None
        if argument.name == GRAPH:
            return Completion(values=[each for each in self._graphs.names if each.startswith(argument.value)])
        others = {} if context is None else context.arguments or {}
        before, comma, begun = argument.value[:MAX_QUESTION].rpartition(",")
        try:
            with anyio.move_on_after(_COMPLETION_S):
                found = await self._matching(begun.strip(), others.get(GRAPH))
                start = f"{before}{comma} " if comma else ""
                return Completion(values=[start + each for each in found], total=len(found), has_more=False)
        except KGError:
            # A host completes while somebody types: what the graph cannot answer now is no completion.
            return Completion(values=[])
        return Completion(values=[])

    async def _matching(self, begun: str, name: str | None) -> Sequence[str]:
        if not begun:
            return ()
        graph = (await self._graphs.opened(name)).adapter
        found = [each.entity for each in await graph.search(begun, limit=MAX_COMPLETIONS)]
        names = await names_of(graph, found)
        # A comma would end the name, and the id beside it says what is meant anyway.
        return [names.entity(each).replace(",", "") for each in found]


def _of_one(prompt: Callable[[str, str], Awaitable[str]]) -> Callable[[str, str], Awaitable[str]]:
    """Return a prompt without the argument that names a graph."""

    async def of_one(question: Question, entities: Entities = "") -> str:
        return await prompt(question, entities)

    of_one.__doc__ = prompt.__doc__
    return of_one


def _checked(question: str) -> str:
    """Return a question that is not blank.

    Raises:
        MCPError: It is blank or too long.
    """
    if not question.strip():
        raise MCPError(code=INVALID_PARAMS, message="The question is blank. Say in words what is to be answered.")
    if len(question) > MAX_QUESTION:
        raise MCPError(
            code=INVALID_PARAMS,
            message=f"The question has {len(question):,} characters; {MAX_QUESTION:,} are allowed.",
        )
    return question


def _listed(entities: str) -> str:
    return "\n".join(part.strip() for part in entities[:MAX_QUESTION].split(",") if part.strip())


DISTRIBUTION: Final = "kg-sextant"

MEMORY_FILE: Final = "memories.sqlite3"

EXPERIENCE_FILE: Final = "experience.sqlite3"

MAX_DATABASE_WAIT_S: Final = 5.0


def build_server(
    graph: KGAdapter | GraphSet,
    settings: Settings,
    profile: GraphProfile | None = None,
    watchers: "Sequence[Watcher]" = (),
) -> SextantServer:
    """Return the MCP server of graphs; `run` it, or connect `mcp.Client` to it in memory.

    Args:
        graph: The graphs, or the only one.
        settings: How they are served.
        profile: What is known of the only graph, for the server's instructions; they say less without it.
        watchers: They are called with a record of each call.
    """
    graphs = graph if isinstance(graph, GraphSet) else GraphSet.of(graph, settings, profile)
    server = SextantServer(
        DISTRIBUTION,
        version=version(DISTRIBUTION),
        tools=settings.hosting.tools,
        timeout_s=settings.timeout_s,
        graphs=graphs,
    )
    server.middleware.append(Withholding(settings.redactor, graphs.files))
    if watchers:
        from kg_server.serving.audit import Accounting

        server.middleware.append(Accounting(server.tool_names, watchers, server.graphs_of))
    server.middleware.extend((_sharing, Instructing(graphs, server.callable_tools), Preferring(graphs)))
    server.call_at_end(graphs.embedder.aclose)
    Tools(graphs, settings).provide(server)
    ComposeTool(graphs, settings).provide(server)
    if not settings.hosting.read_only:
        memories = cache(partial(memories_of, settings))
        if settings.memory.database is not None:
            memories()  # What it needs and is missing is reported at the start.
        MemoryTools(graphs, memories, _memory_limits(settings), settings).provide(server)
    Resources(graphs).provide(server)
    if graphs.several:
        server.needs.append((f"graph {graphs.first.name}", partial(graphs.first.require, within_s=0)))
    solved, examples = experience_of(settings), None
    if solved is not None or any(each.notes.at_start.examples for each in graphs.all):
        from kg_server.examples import Examples

        examples = Examples(graphs, solved, settings.max_tokens)
        examples.provide(server)
    MethodPrompts(graphs, examples).provide(server)
    server.check_tools()
    return server


def experience_of(settings: Settings) -> "ExperienceStore | None":
    """Return where solved questions are kept; None unless learning is asked for.

    Raises:
        InvalidRequest: Memories are in a database.
    """
    if not settings.learn:
        return None
    if settings.memory.database is not None:
        raise InvalidRequest(
            "Solved questions (learn) are kept in a file of this machine, which the other servers on memory.database "
            "would not see. Set only one of the two."
        )
    from kg_server.memory.experience import ExperienceStore

    return ExperienceStore(settings.data_folder / EXPERIENCE_FILE)


def memories_of(settings: Settings) -> MemoryStore:
    """Return where memories are kept: the database that is set, or a file in the data folder.

    Raises:
        InvalidRequest: The package for the database is missing.
    """
    if settings.memory.database is None:
        from kg_server.memory.sqlite_storage import SqliteStorage

        return MemoryStore(SqliteStorage(settings.data_folder / MEMORY_FILE), _memory_limits(settings))
    try:
        from kg_server.memory.postgres_storage import PostgresStorage
    except ImportError as error:
        raise InvalidRequest(
            f"Memories in PostgreSQL (memory.database) need one more package. Run: {install_command('hosting')}"
        ) from error
    # A call that waits for the database must end before its own deadline.
    wait_s = min(MAX_DATABASE_WAIT_S, settings.timeout_s / 4)
    storage = PostgresStorage(settings.memory.database.get_secret_value(), wait_s=wait_s)
    return MemoryStore(storage, _memory_limits(settings))


def _memory_limits(settings: Settings) -> MemoryLimits:
    memory = settings.memory
    return MemoryLimits(
        memories=memory.memories,
        age_days=memory.age_days,
        store_mb=memory.store_mb,
        caller_mb=settings.hosting.memory_mb,
    )
