"""What an agent asks a model: within limits, again where a reply cannot be read."""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal, Self, TypeAlias, TypeVar

import anyio

from kg_agents.llm import (
    Completion,
    Llm,
    LlmError,
    LlmRequest,
    Message,
    PromptTooLong,
    ToolsUnsupported,
    Usage,
    estimated_tokens,
)
from kg_agents.llm.texts import clipped, tokens_in, whole_characters, without_thinking
from kg_prompts import Prompt, render
from kg_prompts.oda import RetryPrompt

T = TypeVar("T")

Limit: TypeAlias = Literal["tokens", "seconds", "model", "functions", "graph"]
"""What can end a run before its method does."""

Writer: TypeAlias = Callable[[int], str]
"""Writes a prompt of at most about so many tokens, or raises `NoRoom`."""

MAX_REPLY: Final = 10_000
"""How many characters of a reply are read."""

MAX_RETURNED: Final = 1_000
"""How many characters of a reply that could not be read are shown to the model again."""

WITHOUT_FUNCTIONS: Final = "Choose another model, or an agent that needs none: oda or graph-counselor."

_SMALLER: Final = 0.7
_TIMES_SMALLER: Final = 10
_LEAST_ROOM: Final = 600
"""Which prompt is so short that a model that finds it too long means something else."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a reply cannot be used, as the model is told."""

    reason: str


class FailedReply(Exception):
    """Neither the first nor the second reply could be used; the text says why."""


class RunEnded(Exception):
    """The run cannot go on.

    Args:
        limit: What has run out or failed.
        reason: Why, in a sentence.
    """

    def __init__(self, limit: Limit, reason: str) -> None:
        self.limit: Limit = limit
        super().__init__(reason)


class NoRoom(RunEnded):
    """A prompt is too long, however much of it is shortened.

    Args:
        reason: Why, in a sentence.
    """

    def __init__(self, reason: str) -> None:
        super().__init__("model", f"{reason} Take a model with a longer context, or raise the limit of a prompt.")

    @classmethod
    def within(cls, room: int, parts: str) -> Self:
        """Return that so many tokens do not hold some parts of a prompt."""
        return cls(f"A prompt of {room:,} tokens does not hold {parts}.")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may use.

    Args:
        tokens: The most tokens, of prompts and replies together.
        seconds: The most time; None for any.
        prompt_tokens: About how long one prompt may be.
    """

    tokens: int = 300_000
    seconds: float | None = 300.0
    prompt_tokens: int = 12_000


@dataclass(frozen=True, slots=True)
class Task:
    """What a model is asked.

    Args:
        purpose: What for, in a word.
        write: Writes the prompt.
        max_tokens: How long the reply may be.
        temperature: How freely the model chooses its words.
        top_p: From which share of the likeliest words it chooses; the model's own value when None.
        system: What it is told before the prompt; nothing where it is empty.
        schema: The JSON schema that the reply keeps to, where the service can enforce one.
        stop: A text before which the reply ends; none where it is empty.
        seed: What the model's dice begin with, where its service lets that be set.
    """

    purpose: str
    write: Writer
    max_tokens: int
    temperature: float
    top_p: float | None = None
    system: str = ""
    schema: Mapping[str, object] | None = None
    stop: str = ""
    seed: int | None = None

    def request(self, room: int) -> LlmRequest:
        """Return the request, of at most about so many tokens.

        Raises:
            NoRoom: It cannot be written so short.
        """
        before = (Message("system", self.system),) if self.system else ()
        prompt = Message("user", self.write(room - tokens_in(self.system)))
        return LlmRequest(
            (*before, prompt),
            self.purpose,
            self.temperature,
            self.max_tokens,
            self.top_p,
            (self.stop,) if self.stop else (),
            self.seed,
            schema=self.schema,
        )


def whole(prompt: Prompt, parts: str) -> Writer:
    """Return what writes a prompt that cannot be shortened.

    Args:
        prompt: The prompt.
        parts: What it holds, for the error where it does not fit.
    """
    return fitting(lambda: [render(prompt)], parts)


def fitting(prompts: Callable[[], Iterable[str]], parts: str) -> Writer:
    """Return what writes the first prompt that fits.

    Args:
        prompts: Gives the prompts, the longest first; none is written before it is wanted.
        parts: What each of them holds, for the error where none fits.
    """

    def within(room: int) -> str:
        for prompt in prompts():
            if tokens_in(prompt) <= room:
                return prompt
        raise NoRoom.within(room, parts)

    return within


class Dialogue:
    """The calls of one run to its models.

    Args:
        llm: The model that is asked where no other is named.
        limits: What the run may use.
        clock: Seconds, from any beginning.
        unreadable: Where replies that could not be read, even when asked again, are counted by what they were for.
    """

    def __init__(
        self,
        llm: Llm,
        limits: Limits,
        clock: Callable[[], float] = time.monotonic,
        unreadable: Counter[str] | None = None,
    ) -> None:
        self._llm = llm
        self._limits = limits
        self._clock = clock
        self._began = clock()
        self._rooms: dict[int, int] = {}
        self._unreadable = Counter[str]() if unreadable is None else unreadable
        self.usage = Usage()

    @property
    def seconds(self) -> float:
        """For how long the run has been going on."""
        return self._clock() - self._began

    def prompt_tokens(self, llm: Llm | None = None) -> int:
        """Return about how long one prompt may be; less than the limit once the model has refused a shorter one.

        Args:
            llm: The model, where it is another one.
        """
        return self._rooms.get(id(llm or self._llm), self._limits.prompt_tokens)

    async def ask(self, task: Task, read: Callable[[str], T | Unreadable], llm: Llm | None = None) -> T:
        """Return what a model's reply says; what it thinks aloud is not part of the reply.

        Args:
            task: What it is asked.
            read: Reads the reply.
            llm: The model, where it is another one.

        Raises:
            FailedReply: Neither the first nor the second reply could be read.
            NoRoom: The prompt is too long for the model.
            RunEnded: A limit is reached, or the model fails.
        """
        request, completion = await self.complete(task.request, llm)
        reply = _said(completion)
        found = read(reply)
        if not isinstance(found, Unreadable):
            return found
        returned = Message("assistant", clipped(reply, MAX_RETURNED) or "(nothing)")
        reason = Message("user", render(RetryPrompt(reason=found.reason)))
        try:
            request = replace(request, messages=(*request.messages, returned, reason))
            second = read(_said(await self._complete(request, llm or self._llm)))
        except PromptTooLong as error:
            self._unreadable[task.purpose] += 1
            raise FailedReply(found.reason) from error
        if isinstance(second, Unreadable):
            self._unreadable[task.purpose] += 1
            raise FailedReply(second.reason)
        return second

    async def complete(
        self, write: Callable[[int], LlmRequest], llm: Llm | None = None
    ) -> tuple[LlmRequest, Completion]:
        """Return the request that was short enough for a model, and what it replied.

        Args:
            write: Writes a request of at most about so many tokens, or raises `NoRoom`.
            llm: The model, where it is another one.

        Raises:
            NoRoom: The request is too long for the model.
            RunEnded: A limit is reached, or the model fails.
        """
        asked = llm or self._llm
        for _ in range(_TIMES_SMALLER):
            request = write(self.prompt_tokens(asked))
            try:
                return request, await self._complete(request, asked)
            except PromptTooLong as error:
                if (tokens := estimated_tokens(request)) <= _LEAST_ROOM:
                    raise RunEnded("model", str(error)) from error
                self._rooms[id(asked)] = int(tokens * _SMALLER)
        raise NoRoom("The model found every prompt too long.")

    async def within(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call something that takes no longer than the run's time.

        Raises:
            RunEnded: The time is over, before or while it is waited for.
        """
        if self._limits.seconds is None:
            return await call()
        left_s = self._limits.seconds - self.seconds
        too_late = RunEnded("seconds", f"The limit of {self._limits.seconds:g} seconds is reached.")
        if left_s <= 0:
            raise too_late
        try:
            with anyio.fail_after(left_s):
                return await call()
        except TimeoutError as error:
            raise too_late from error

    async def _complete(self, request: LlmRequest, llm: Llm) -> Completion:
        if self.usage.tokens >= self._limits.tokens:
            raise RunEnded("tokens", f"The limit of {self._limits.tokens:,} tokens is reached.")
        try:
            completion = await self.within(partial(llm.complete, request))
        except PromptTooLong:
            raise
        except ToolsUnsupported as error:
            raise RunEnded("functions", f"{error} {WITHOUT_FUNCTIONS}") from error
        except LlmError as error:
            raise RunEnded("model", str(error)) from error
        self.usage += completion.usage
        return completion


def _said(completion: Completion) -> str:
    """Return what a model says, without what it thinks aloud."""
    return whole_characters(without_thinking(completion.text)[:MAX_REPLY])
