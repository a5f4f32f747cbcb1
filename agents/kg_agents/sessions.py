"""Sessions with MCP servers: opened, kept open for a block, and lost without taking the block with them."""

import shlex
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, TypeAlias

import anyio
import httpx2
from anyio.abc import TaskStatus
from mcp import Client, MCPError, StdioServerParameters
from mcp.server import MCPServer
from mcp.types import CallToolResult
from pydantic import ValidationError

from kg_agents.texts import without_secrets
from kg_agents.tool_calls import ToolCall, ToolError, Tools, UnreadableAnswer

Target: TypeAlias = str | StdioServerParameters | MCPServer[None]
"""A server: its URL, the command line that starts it, or the server itself."""

CONNECT_S: Final = 30.0
"""How long a server may take to answer for the first time."""

_ADVICE: Final = "Give a URL, or the command line of a server with these tools."


@dataclass
class Session:
    """An MCP session that a task keeps open.

    Args:
        client: What calls the server; None before it has answered, and when the session is closed.
        fault: Why the session broke; empty where it did not.
        over: Set when it is needed no longer.
        calls: The calls that wait for an answer.
    """

    client: Client | None = None
    fault: str = ""
    over: anyio.Event = field(default_factory=anyio.Event)
    calls: set[anyio.CancelScope] = field(default_factory=set[anyio.CancelScope])

    async def hold(self, target: Target, *, task_status: TaskStatus[None]) -> None:
        """Keep the session open, in a task of its own: where it breaks, calls fail, and who made them goes on."""
        try:
            async with Client(target) as client:
                self.client = client
                task_status.started()
                await self.over.wait()
        except (MCPError, OSError, ValueError, httpx2.HTTPError, ExceptionGroup) as error:
            self.fault = _text_of(error)
            if self.client is None:
                task_status.started()
        finally:
            self.client = None
            for call in self.calls:
                call.cancel()


@dataclass(frozen=True, slots=True)
class SessionTools:
    """Calls tools over an MCP session."""

    session: Session

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """See `Tools`."""
        try:
            result = await self._result(tool, dict(arguments))
        except ValidationError as error:
            raise UnreadableAnswer(f"{tool}: The server answered in a form that is not known.") from error
        except (MCPError, RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise ToolError(f"{tool}: {str(error) or type(error).__name__}") from error
        if result is None:
            raise ToolError(f"{tool}: The server was lost ({self.session.fault or 'it closed the connection'}).")
        return ToolCall(tool, dict(arguments), _text(result), result.structured_content or {}, result.is_error)

    async def _result(self, tool: str, arguments: dict[str, object]) -> CallToolResult | None:
        """Return the answer, or None where the session is closed before it comes."""
        if self.session.client is None:
            return None
        with anyio.CancelScope() as call:
            self.session.calls.add(call)
            try:
                return await self.session.client.call_tool(tool, arguments)
            finally:
                self.session.calls.discard(call)
        return None


@asynccontextmanager
async def connect_tools(target: Target, *, connect_s: float = CONNECT_S) -> AsyncGenerator[Tools]:
    """Open one session to a server, and give what calls its tools.

    Args:
        target: A URL, a command line, or a server in this process.
        connect_s: How many seconds the server may take to answer for the first time.

    Raises:
        ToolError: It cannot be reached, or does not answer.
    """
    served, session, inside = _client_target(target), Session(), _Failure()
    try:
        async with anyio.create_task_group() as tasks:
            with anyio.move_on_after(connect_s):
                await tasks.start(session.hold, served)
            if session.client is not None:
                try:
                    with inside:
                        yield SessionTools(session)
                finally:
                    session.over.set()
                return
    except BaseExceptionGroup:
        if inside.error is None:
            raise
        # What a block raises comes out of it as it is, and not in a group.
        raise inside.error from inside.error.__cause__
    late = f"did not answer within {connect_s:g} seconds"
    fate = f"cannot be reached: {session.fault}" if session.fault else late
    raise ToolError(f"{_name_of(target)} {fate}. {_ADVICE}")


class _Failure:
    """Keeps an error that passes through a block."""

    error: BaseException | None = None

    def __enter__(self) -> None:
        """Keep none at first."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None and not isinstance(error, anyio.get_cancelled_exc_class()):
            self.error = error


def _client_target(target: Target) -> Target:
    """Return what a client connects to.

    Raises:
        ToolError: The text is no command line.
    """
    if not isinstance(target, str) or target.lower().startswith(("http://", "https://")):
        return target
    try:
        command, *arguments = shlex.split(target)
    except ValueError as error:
        raise ToolError(f"The server {target!r} is no command line. {_ADVICE}") from error
    return StdioServerParameters(command=command, args=arguments)


def _name_of(target: Target) -> str:
    return f"The server {without_secrets(target)!r}" if isinstance(target, str) else "The server"


def _text_of(error: BaseException) -> str:
    """Return what an error says; of a group, what its first says."""
    inner: tuple[object, ...] = getattr(error, "exceptions", ())
    match inner:
        case (BaseException() as first, *_):
            return _text_of(first)
        case _:
            return str(error) or type(error).__name__


def _text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")
