"""The MCP server: one deadline, one snapshot and clear errors for every call."""

import inspect
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from typing import Any, Final, TypeVar
from urllib.parse import unquote

import anyio
from mcp.server import MCPServer
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import MCPServerError, ResourceError, ResourceNotFoundError, ToolError
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolResult,
    GetPromptResult,
    InputRequiredResult,
    Prompt,
    Resource,
    ResourceTemplate,
    SubscriptionsListenRequestParams,
    Tool,
    ToolAnnotations,
)
from pydantic import AnyUrl, TypeAdapter, ValidationError

from kg_adapters.calls import note_failure, watching_completeness
from kg_adapters.errors import BackendTimeout, InvalidRequest, KGError, causes
from kg_adapters.open_options import setting
from kg_boundary.shown import clipped, in_plain_words, in_quotes, visible_line, visible_lines
from kg_server.answers.results import located
from kg_server.callers import caller
from kg_server.graphs import GraphSet, ServedGraph, answered, graph_argument, graph_names
from kg_server.naming.refusals import MAX_ECHO, is_about_unknown, unknown_name
from kg_server.serving.messages import LISTEN
from kg_server.serving.stdio import Channel, StdioLimits, standard_streams
from kg_server.tool_list import GRAPH, Schema, as_list, by_listed_names, is_absent, listed, naming_graphs
from kg_server.view import DRAWN, FOR_APPS, VIEW_URI, view_app

T = TypeVar("T")

GRAPH_SCHEME: Final = "kg://"
_ARGUMENTS: Final = TypeAdapter(dict[str, object])

logger = logging.getLogger(__name__)

_OTHER_KINDS: Final = frozenset({"string_type", "list_type"})

MAX_URI: Final = 4_000

_LISTS: Final[Mapping[CacheableMethod, CacheHint]] = {
    method: CacheHint(ttl_ms=3_600_000)
    for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
}
"""How long clients may cache lists, each for its own caller: what is added while a server runs is announced."""

NEEDED_TOOLS: Final[Mapping[str, frozenset[str]]] = {
    "kg://schema": frozenset({"Schema"}),
    "kg://entity/": frozenset({"GetNeighbor"}),
    "kg-memory:": frozenset({"memory-read"}),
    "oda": frozenset({"observe", "GetNeighbor", "memory-append"}),
    "graph-counselor": frozenset({"Schema", "Compose"}),
}
"""The tools that a prompt asks for, by its name, or whose answers a resource shows, by its URI or the start of it."""


def reading(graphs: GraphSet, title: str) -> ToolAnnotations:
    """Return the hints of a tool that only reads graphs, with its title for people."""
    return hints(title, reads=True, remote=graphs.remote)


def hints(title: str, *, reads: bool, remote: bool) -> ToolAnnotations:
    """Return the hints of a tool, all of them: directories refuse a server where a title or a hint is missing."""
    return ToolAnnotations(title=title, read_only_hint=reads, destructive_hint=False, open_world_hint=remote)


class SextantServer(MCPServer[None]):
    """Tools with strict arguments, readable errors, a deadline and a small list.

    Args:
        name: The server's name.
        version: Its version.
        timeout_s: How many seconds a call may take that is about no graph, unless its tool keeps another deadline.
        graphs: What is asked, so that each call is answered by one state of the graphs that it is about; None where
            the tools see to that.
        tools: The only tools that are served; None for all.

    Attributes:
        needs: What must be reached for calls to be answered, each with a check that raises `KGError` where it is not.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str,
        timeout_s: float,
        graphs: GraphSet | None = None,
        tools: Collection[str] | None = None,
    ) -> None:
        events = InMemorySubscriptionBus()
        super().__init__(
            name,
            title="KG Sextant",
            version=version,
            log_level="WARNING",
            lifespan=_closing,
            subscriptions=events,
            extensions=[view_app()],
            cache_hints=_LISTS,
        )
        self._listening = ListenHandler(events)
        self._lowlevel_server.add_request_handler(LISTEN, SubscriptionsListenRequestParams, self._listening)
        self._graphs = graphs
        self.needs: list[tuple[str, Callable[[], Awaitable[None]]]] = []
        self._closers: list[Callable[[], Awaitable[None]]] = []
        self._timeout_s = timeout_s
        self._arguments: dict[str, Mapping[str, Schema]] = {}
        self._unlimited: set[str] = set()
        self._spanning: set[str] = set()
        self._drawn: set[str] = set()
        self._only = tools
        self._left_out: set[str] = set()
        self._listed: list[Tool] | None = None

    @property
    def tool_names(self) -> Collection[str]:
        """The names of all tools, also of those that are added later."""
        return self._arguments.keys()

    def callable_tools(self) -> list[str]:
        """Return the names of the tools that the caller may call."""
        return [each for each in self._arguments if caller().may_call(each)]

    def check_tools(self) -> None:
        """Check that every tool which is to be served was added.

        Raises:
            InvalidRequest: One was not: there is none of its name, or this server does not offer it.
        """
        for each in self._only or ():
            if each not in self._arguments:
                raise InvalidRequest(unknown_name("This server", "tool", each, {*self._arguments, *self._left_out}))

    def end_subscriptions(self) -> None:
        """End the streams of clients that listen for changes, which would go on for ever."""
        self._listening.close()

    def call_at_end(self, closer: Callable[[], Awaitable[None]]) -> None:
        """Have something closed when the server stops; it may be used, and so closed, again afterwards."""
        self._closers.append(closer)

    async def aclose(self) -> None:
        """Close what was registered for it, the last first."""
        for closer in reversed(self._closers):
            await closer()

    def provide(
        self,
        tool: Callable[..., Any],
        name: str,
        annotations: ToolAnnotations,
        *,
        own_deadline: bool = False,
        spans: bool = False,
        drawn: bool = False,
        for_apps: bool = False,
    ) -> None:
        """Add a tool: an async function with annotated arguments and a docstring that a model reads.

        Args:
            tool: The function.
            name: Its public name.
            annotations: Its hints for clients, with the title that people see.
            own_deadline: Whether it ends by itself, so that the server sets it no deadline.
            spans: Whether it asks all graphs where its argument `graph` names none, and opens them by itself.
            drawn: Whether hosts that show MCP Apps draw its answers.
            for_apps: Whether hosts are to keep it from models.
        """
        if self._only is not None and name not in self._only:
            self._left_out.add(name)
            return
        meta = DRAWN if drawn else FOR_APPS if for_apps else None
        self.add_tool(
            tool,
            name=name,
            title=annotations.title,
            description=inspect.getdoc(tool),
            annotations=annotations,
            meta=meta,
        )
        found = self._tool_manager.get_tool(name)
        assert found is not None  # noqa: S101 - it was added the line before
        self._arguments[name] = naming_graphs(found.parameters["properties"], self._graphs)
        if own_deadline:
            self._unlimited.add(name)
        if spans:
            self._spanning.add(name)
        if drawn:
            self._drawn.add(name)

    async def list_tools(self) -> list[Tool]:
        """List the tools that the caller may call, with schemas cut to what helps it."""
        if self._listed is None:
            self._listed = [listed(tool) for tool in await super().list_tools()]
        return [each for each in self._listed if caller().may_call(each.name)]

    async def list_resources(self) -> list[Resource]:
        """List the resources that the caller may read, for people and models: hosts find the view by the tools."""
        every = await super().list_resources()
        return [each for each in every if each.uri != VIEW_URI and self._serves(str(each.uri))]

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        """List the resource templates that the caller may read."""
        return [each for each in await super().list_resource_templates() if self._serves(each.uri_template)]

    async def list_prompts(self) -> list[Prompt]:
        """List the prompts whose tools the caller may call."""
        return [each for each in await super().list_prompts() if self._serves(each.name)]

    def _serves(self, place: str) -> bool:
        """Return whether the caller may call the tools that a resource shows the answers of, or a prompt uses."""
        if place == VIEW_URI:
            return not self._drawn.isdisjoint(self.callable_tools())
        # The name of a graph may be written in several ways; what is shown depends on the rest of the path.
        of_one = GRAPH_SCHEME + place.removeprefix(GRAPH_SCHEME).partition("/")[2]
        needed = [tools for named, tools in NEEDED_TOOLS.items() if _is_of(named, place) or _is_of(named, of_one)]
        return frozenset[str]().union(*needed).issubset(self.callable_tools())

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool.

        Raises:
            MCPError: No tool has this name (-32602).
            ToolError: The call was refused or failed; the text is written for a model.
        """
        try:
            return await self._call(name, arguments, context)
        except (MCPError, MCPServerError) as error:
            note_failure(error)
            raise

    async def _call(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None
    ) -> CallToolResult | InputRequiredResult:
        known = self._arguments.get(name)
        if known is None:
            raise MCPError(
                code=INVALID_PARAMS, message=unknown_name("This server", "tool", name, self.callable_tools())
            )
        if not caller().may_call(name):
            allowed = ", ".join(self.callable_tools()) or "none"
            raise MCPError(code=INVALID_PARAMS, message=f"This caller may not call {name}. It may call: {allowed}.")
        present = {each: value for each, value in arguments.items() if not is_absent(value, known.get(each, {}))}
        arguments = by_listed_names(present, known)
        for argument in arguments:
            if argument not in known:
                raise ToolError(unknown_name(name, "argument", argument, known))
        arguments = {each: as_list(value, known[each]) for each, value in arguments.items()}
        timeout_s = self._timeout_s
        place = ""
        named = graph_names(arguments.get(GRAPH)) is not None
        try:
            graphs = self._asked(name, arguments)
            if self._graphs is not None and GRAPH in known and name not in self._spanning:
                place = self._graphs.asked_in(graphs if named else ())
            if named:
                arguments = {**arguments, GRAPH: graph_argument(name, graphs, takes_list="anyOf" in known[GRAPH])}
            timeout_s = self._seconds(graphs)
            with watching_completeness():
                most_s = None if name in self._unlimited else timeout_s
                call = partial(super().call_tool, name, arguments, context)
                return located(await answered(graphs, most_s, call), "" if named else place)
        except KGError as error:
            raise ToolError(visible_lines(str(error))) from error
        except TimeoutError as error:
            raise ToolError(
                f"{name} took longer than {timeout_s:g} seconds and was stopped. "
                f"To wait longer, raise {setting('timeout_s')}.{_less(name)}"
            ) from error
        except ToolError as error:
            raise _readable(name, error, known, place) from error

    def _asked(self, name: str, arguments: Mapping[str, object]) -> Sequence[ServedGraph]:
        """Return the graphs that a call of a tool is about.

        Raises:
            InvalidRequest: There is no graph of a name, or the argument holds no name.
        """
        if self._graphs is None:
            return ()
        names = graph_names(arguments.get(GRAPH))
        if names is None and self._graphs.several and name in self._spanning:
            return ()
        return self._graphs.chosen(names)

    def _shown(self, uri: str) -> Sequence[ServedGraph]:
        """Return the graph that a resource is about: what is named at the beginning of its path, or the first.

        A resource beside graphs, of several, asks those that it needs by itself.
        """
        if self._graphs is None or uri == VIEW_URI or (self._graphs.several and not uri.startswith(GRAPH_SCHEME)):
            return ()
        named = unquote(uri.removeprefix(GRAPH_SCHEME).partition("/")[0]).lower()
        several = self._graphs.all if self._graphs.several else ()
        return [each for each in several if each.name.lower() == named] or (self._graphs.first,)

    def graphs_of(self, method: str, params: Mapping[str, Any]) -> str:
        """Return the names of the graphs, of several, that a message is about; nothing where it is about none."""
        if self._graphs is None or not self._graphs.several:
            return ""
        try:
            if method == "tools/call":
                arguments = _ARGUMENTS.validate_python(params.get("arguments") or {})
                graphs = self._asked(str(params.get("name")), arguments) or self._graphs.all
            else:
                graphs = self._shown(str(params["uri"])) if "uri" in params else ()
        except (InvalidRequest, ValidationError):
            return ""
        return ", ".join(each.name for each in graphs)

    def _seconds(self, graphs: Sequence[ServedGraph]) -> float:
        """Return how many seconds a call that is about some graphs may take."""
        return max((each.settings.timeout_s for each in graphs), default=self._timeout_s)

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[None, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Read a resource.

        Raises:
            MCPError: The URI is too long to be one.
            ResourceNotFoundError: There is no such resource.
            ResourceError: Reading it failed or took too long.
        """
        asked = str(uri)
        if len(asked) > MAX_URI:
            raise MCPError(
                code=INVALID_PARAMS, message=f"A URI has at most {MAX_URI:,} characters; this one has {len(asked):,}."
            )
        if not self._serves(asked):
            raise ResourceNotFoundError(await self._unknown_resource(asked))
        graphs = self._shown(asked)
        timeout_s = self._seconds(graphs)
        try:
            return await answered(graphs, timeout_s, lambda: super(SextantServer, self).read_resource(uri, context))
        except KGError as error:
            raise ResourceError(visible_lines(str(error))) from error
        except TimeoutError as error:
            raise ResourceError(f"Reading it took longer than {timeout_s:g} seconds and was stopped.") from error
        except ResourceNotFoundError as error:
            if isinstance(error.__cause__, KGError):
                raise
            raise ResourceNotFoundError(await self._unknown_resource(asked)) from error

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[None, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """Get a prompt.

        Raises:
            MCPError: No prompt has this name, or an argument is missing or unknown (-32602).
        """
        prompts = {each.name: each for each in await self.list_prompts()}
        if name not in prompts:
            raise MCPError(code=INVALID_PARAMS, message=unknown_name("This server", "prompt", name, prompts))
        known = {each.name: each for each in prompts[name].arguments or ()}
        given = arguments or {}
        for argument in given:
            if argument not in known:
                raise MCPError(code=INVALID_PARAMS, message=unknown_name(name, "argument", argument, known))
        for argument, each in known.items():
            if each.required and argument not in given:
                raise MCPError(code=INVALID_PARAMS, message=f"The prompt {name} needs the argument {argument}.")
        return await super().get_prompt(name, arguments, context)

    async def run_stdio_async(
        self,
        limits: StdioLimits = StdioLimits(),  # noqa: B008 - it is frozen
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Serve one client over standard input and output; `at_end` is called when it has gone."""
        with standard_streams() as streams:
            channel = Channel(*streams, limits, at_end)
            server = self._lowlevel_server
            await server.run(channel, channel, server.create_initialization_options())

    async def _unknown_resource(self, uri: str) -> str:
        known = [str(each.uri) for each in await self.list_resources()]
        known.extend(each.uri_template.replace("{+", "{") for each in await self.list_resource_templates())
        there = f"There are {', '.join(known)}, with ids percent-encoded." if known else "This caller may read none."
        return f"There is no resource {in_quotes(uri, MAX_ECHO)}. {there}"


def _is_of(named: str, place: str) -> bool:
    """Return whether a resource or a prompt has a name, or begins with one that is only the beginning of others."""
    return place == named or (named.endswith(("/", ":")) and place.startswith(named))


@asynccontextmanager
async def _closing(server: MCPServer[None]) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        if isinstance(server, SextantServer):
            with anyio.CancelScope(shield=True):
                await server.aclose()


_IN_LESS_TIME: Final = {
    "observe": "Or ask for less: fewer hops, fewer entities.",
    "GetNeighbor": "Or ask for less: a single relation, a lower limit.",
    "GetPath": "Or ask for less: a lower max_hops.",
    "Retrieve": "Or ask for less: fewer names at once.",
    "Feature": "Or ask for less: a single feature.",
    "Degree": "Or ask for less: a single relation.",
    "Compose": "Or ask for less: a part of the expression.",
    "Schema": "The other tools answer without it.",
    "memory-append": "Or append fewer triples at once.",
}
"""What a tool that ran out of time can do in less."""


_INTERNAL_ERRORS = count(1)


def _readable(name: str, error: ToolError, known: Mapping[str, Schema], place: str) -> ToolError:
    cause = error.__cause__
    if isinstance(cause, ValidationError):
        return ToolError(visible_lines(_bad_arguments(name, cause, known)))
    if isinstance(cause, KGError):
        less = _less(name) if isinstance(cause, BackendTimeout) else ""
        where = f"\n{place}" if place and is_about_unknown(cause) else ""
        return ToolError(visible_lines(f"{cause}{less}{where}"))
    number = next(_INTERNAL_ERRORS)
    kind = type(causes(error)[-1]).__name__
    logger.error("Internal error %d: %s failed by a %s; log_level=debug shows where.", number, name, kind)
    logger.debug("Internal error %d", number, exc_info=cause)
    return ToolError(
        f"{name} failed because of an internal error, number {number} in the server's log. Other calls still work."
    )


def _less(name: str) -> str:
    """Return what to ask a tool for that has run out of time, after a blank; nothing where there is no less."""
    return f" {_IN_LESS_TIME[name]}" if name in _IN_LESS_TIME else ""


def _bad_arguments(name: str, error: ValidationError, known: Mapping[str, Schema]) -> str:
    problems: list[str] = []
    errors = error.errors(include_url=False, include_context=False)
    # What may be a text or a list of them has an error of each kind, of which one says nothing.
    telling = {each["loc"][:1] for each in errors if each["type"] not in _OTHER_KINDS}
    for each in errors:
        if each["type"] in _OTHER_KINDS and each["loc"][:1] in telling:
            continue
        where = str(each["loc"][0]) if each["loc"] else "the arguments"
        item = next((f"item {place + 1} of " for place in each["loc"] if isinstance(place, int)), "")
        if each["type"] == "missing":
            problems.append(f"{where} is missing")
        elif each["type"] == "list_type" and str(each["input"]).lstrip().startswith("["):
            problems.append(f"{where}={_given(each['input'])}: it begins like a JSON list, but is not valid JSON")
        else:
            problems.append(f"{item}{where}={_given(each['input'])}: {in_plain_words(each['msg'])}")
        if (
            each["type"] in {"list_type", "missing"}
            and len(each["loc"]) == 1
            and (examples := known[where].get("examples"))
        ):
            problems[-1] += f". Expected a list such as {' or '.join(map(json.dumps, examples))}"
    return f"{name} was called with wrong arguments: {'; '.join(dict.fromkeys(problems))}."


def _given(value: object) -> str:
    """Return a value as the caller wrote it, cut where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, default=repr)
    cut = in_quotes(text, MAX_ECHO) if isinstance(value, str) else clipped(visible_line(text), MAX_ECHO)
    return f"{cut} ({len(text):,} characters)" if len(text) > MAX_ECHO else cut
