"""Calls of tools, over an MCP session or from a record."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import anyio
from mcp import Client, MCPError
from mcp.types import CallToolResult

from kg_agents.llm import AgentError


class ToolError(AgentError):
    """A call came to nothing: the tool refused or failed, or the server does not answer or has no such tool."""


class ToolRefusal(ToolError):
    """A tool refused the call or failed, and says why; the text is its own."""


class UnreadableAnswer(ToolError):
    """A tool answered in a form that is not the one that is expected of it."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call, for those who watch: the tool, its arguments, and the text and data that came back."""

    tool: str
    arguments: Mapping[str, object]
    text: str
    data: Mapping[str, object]
    failed: bool


OnCall: TypeAlias = Callable[[ToolCall], None]
"""Told of every call."""


def ignore_call(call: ToolCall) -> None:
    """Take no note."""
    del call


class Tools(Protocol):
    """What calls tools: a session, or the record of one."""

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """Call a tool.

        Raises:
            ToolError: The server does not answer.
        """
        ...


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

    def close(self) -> None:
        """Have no call wait any longer, nor another begin."""
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


def _text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")
