"""Models that agents ask: the protocol, what goes over it, its errors, and a model that replies by script."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from kg_agents.llm.texts import tokens_in

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


class AgentError(Exception):
    """Anything that this package raises on purpose; the text is for people."""


class LlmError(AgentError):
    """The model gave no reply."""


class PromptTooLong(LlmError):
    """The prompt does not fit into the model's context; a shorter one may."""


class ToolsUnsupported(LlmError):
    """The model, or the service that runs it, cannot call functions."""


class LlmUnavailable(LlmError):
    """The model cannot be reached, refuses the key, or fails again and again."""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function that a model asks for.

    Args:
        id: What the model calls this call; the result is returned under it.
        name: The function.
        arguments: The arguments as the model wrote them: a JSON object where it kept to the form.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation.

    Args:
        role: Who speaks; `tool` where the text is the result of a call.
        content: What is said.
        calls: The functions that an assistant calls with it.
        call_id: Which call the text is the result of, for the role `tool`.
    """

    role: Role
    content: str
    calls: tuple[FunctionCall, ...] = ()
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Function:
    """A function that a model may call.

    Args:
        name: Its name.
        description: What it does and when to call it.
        parameters: The JSON schema of its arguments.
    """

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class LlmRequest:
    """What a model is asked.

    Args:
        messages: The conversation so far; not empty.
        purpose: What the call is for, in a word: `action`, `reflection`, `answer` and the like.
        temperature: How freely the model chooses its words.
        max_tokens: How long the reply may be.
        top_p: From which share of the likeliest words it chooses; the model's own value when None.
        stop: Texts before which the reply ends.
        seed: What the dice begin with, where the service lets that be set.
        tools: The functions that the model may call.
        schema: The JSON schema that the reply keeps to, where the service can enforce one.
    """

    messages: tuple[Message, ...]
    purpose: str
    temperature: float
    max_tokens: int
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    tools: tuple[Function, ...] = ()
    schema: Mapping[str, object] | None = None

    @property
    def prompt(self) -> str:
        """The text of the last message."""
        return self.messages[-1].content


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
        calls: The functions that it calls.
    """

    text: str
    usage: Usage = Usage()
    finish_reason: str = "stop"
    calls: tuple[FunctionCall, ...] = ()


class Llm(Protocol):
    """A language model."""

    @property
    def name(self) -> str:
        """What the model is called."""
        ...

    async def complete(self, request: LlmRequest) -> Completion:
        """Return what the model replies.

        Raises:
            PromptTooLong: The messages do not fit into its context.
            ToolsUnsupported: It is offered functions and cannot call any.
            LlmError: It gave no reply.
        """
        ...


@dataclass(frozen=True, slots=True)
class Models:
    """The models of a run: the one that answers, and others that judge and reflect, where there are some."""

    llm: Llm
    judge: Llm | None = None
    reflector: Llm | None = None

    def changed(self, change: Callable[[Llm], Llm]) -> "Models":
        """Return the models, each changed in the same way."""
        judge, reflector = (None if each is None else change(each) for each in (self.judge, self.reflector))
        return Models(change(self.llm), judge, reflector)


def estimated_tokens(request: LlmRequest) -> int:
    """Return about how many tokens a request has, with the functions that it offers."""
    calls = (call.name + call.arguments for each in request.messages for call in each.calls)
    schemas = (json.dumps(each.parameters, separators=(",", ":")) for each in request.tools)
    told = (each.name + each.description for each in request.tools)
    return tokens_in("".join((*(each.content for each in request.messages), *calls, *schemas, *told)))


Scripted: TypeAlias = str | Completion | LlmError | Callable[[str], str | Completion]
"""A reply, an error to raise, or what makes a reply from the last message."""


class ScriptedLlm:
    """Replies in order, and keeps what it was asked.

    Args:
        replies: The replies to all calls but those whose purpose has replies of its own.
        by_purpose: Replies of their own, by purpose.
    """

    name = "scripted"

    def __init__(
        self, replies: Iterable[Scripted] = (), by_purpose: Mapping[str, Iterable[Scripted]] | None = None
    ) -> None:
        self._left = list(replies)
        self._by_purpose = {purpose: list(each) for purpose, each in (by_purpose or {}).items()}
        self.asked: list[LlmRequest] = []

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`.

        Raises:
            LlmError: It is the next entry of the script, or the script is over.
        """
        self.asked.append(request)
        left = self._by_purpose.get(request.purpose, self._left)
        if not left:
            raise LlmError(f"The script holds no more replies for {request.purpose!r}.")
        reply = left.pop(0)
        if isinstance(reply, LlmError):
            raise reply
        text = reply(request.prompt) if callable(reply) else reply
        if isinstance(text, Completion):
            return text
        asked = sum(len(each.content) for each in request.messages)
        return Completion(text, Usage(asked // 4, len(text) // 4, calls=1))
