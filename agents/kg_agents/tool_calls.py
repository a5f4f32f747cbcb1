"""What a call of a tool is, whoever performs it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from kg_agents.llm import AgentError, Function


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


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """The tools that a server offers, and what it says of their use.

    Args:
        instructions: What the server tells a model that uses it.
        tools: Each tool with its description and the schema of its arguments.
    """

    instructions: str
    tools: tuple[Function, ...]


class Tools(Protocol):
    """What calls tools: a session, or the record of one."""

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """Call a tool.

        Raises:
            ToolError: The server does not answer.
        """
        ...


class Toolbox(Tools, Protocol):
    """What calls tools, and says which there are."""

    async def offer(self) -> ToolOffer:
        """Return what the server offers.

        Raises:
            ToolError: The server does not answer.
        """
        ...
