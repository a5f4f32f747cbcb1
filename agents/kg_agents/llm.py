"""What an agent asks of a language model, and what can go wrong.

AgentError
├── LlmError            the model gave no reply
│   ├── PromptTooLong   it would not take so long a prompt
│   └── LlmUnavailable  it cannot be reached, refuses the key, or fails again and again
└── ToolError           a call of a tool came to nothing (see `kg_agents.tool_calls`)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

Role: TypeAlias = Literal["system", "user", "assistant"]


class AgentError(Exception):
    """Anything that this package raises on purpose; the text is for people."""


class LlmError(AgentError):
    """The model gave no reply."""


class PromptTooLong(LlmError):
    """The prompt does not fit into the model's context; a shorter one may."""


class LlmUnavailable(LlmError):
    """The model cannot be reached, refuses the key, or fails again and again."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls have used: tokens as the model counts them, and their price; 0 where it is not known."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    calls: int = 0

    @property
    def tokens(self) -> int:
        """All tokens."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cost + other.cost,
            self.calls + other.calls,
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply.

    Args:
        text: What the model said; empty where it said nothing or refused.
        usage: What this call has used.
        finish_reason: Why it ended, as the model says it: `stop`, `length`, `content_filter` and the like.
    """

    text: str
    usage: Usage = Usage()
    finish_reason: str = "stop"


class Llm(Protocol):
    """A language model."""

    @property
    def name(self) -> str:
        """What the model is called."""
        ...

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        purpose: str,
        temperature: float,
        max_tokens: int,
        top_p: float | None = None,
    ) -> Completion:
        """Return what the model replies.

        Args:
            messages: The conversation so far.
            purpose: What the call is for, in a word: `action`, `reflection`, `answer` and the like.
            temperature: How freely it chooses its words.
            max_tokens: How long the reply may be.
            top_p: From which share of the likeliest words it chooses; the model's own value when None.

        Raises:
            PromptTooLong: The messages do not fit into its context.
            LlmError: It gave no reply.
        """
        ...
