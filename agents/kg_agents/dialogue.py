"""Talking to a model within limits: every reply is read, or sent back once with the reason."""

import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar

import anyio

from kg_agents.llm import Llm, LlmError, Message, PromptTooLong, Usage
from kg_prompts import render
from kg_prompts.oda import RetryPrompt

T = TypeVar("T")

Limit: TypeAlias = Literal["tokens", "seconds", "model", "graph"]
"""What can end a run before its method does."""

MAX_REPLY: Final = 10_000
"""How many characters of a reply are read."""
_MAX_RETURNED: Final = 1_000
_BYTES_PER_TOKEN: Final = 4
_THINKING: Final = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)


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


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may use.

    Args:
        tokens: The most tokens, of prompts and replies together.
        seconds: The most time.
        prompt_tokens: About how long one prompt may be.
    """

    tokens: int = 300_000
    seconds: float = 300.0
    prompt_tokens: int = 12_000


class Dialogue:
    """The calls of one run to its model.

    Args:
        llm: The model.
        limits: What the run may use.
        clock: Seconds, from any beginning.
    """

    def __init__(self, llm: Llm, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._llm = llm
        self._limits = limits
        self._clock = clock
        self._began = clock()
        self.usage = Usage()

    @property
    def seconds(self) -> float:
        """For how long the run has been going on."""
        return self._clock() - self._began

    @property
    def prompt_tokens(self) -> int:
        """About how long one prompt may be."""
        return self._limits.prompt_tokens

    async def ask(
        self,
        prompt: str,
        read: Callable[[str], T | Unreadable],
        *,
        purpose: str,
        temperature: float,
        max_tokens: int,
    ) -> T:
        """Return what a model's reply says.

        Args:
            prompt: What it is asked.
            read: Reads the reply.
            purpose: What the call is for, in a word.
            temperature: How freely it chooses its words.
            max_tokens: How long the reply may be.

        Raises:
            FailedReply: Neither the first nor the second reply could be read.
            RunEnded: A limit is reached, or the model fails.
        """
        messages = [Message("user", prompt)]
        for last in (False, True):
            reply = await self._reply(messages, purpose, temperature, max_tokens)
            found = read(without_thinking(reply))
            if not isinstance(found, Unreadable):
                return found
            if last:
                raise FailedReply(found.reason)
            messages.append(Message("assistant", reply[:_MAX_RETURNED] or "(nothing)"))
            messages.append(Message("user", render(RetryPrompt(reason=found.reason))))
        raise AssertionError("a loop of two turns ends in its second")

    async def within(self, call: Awaitable[T]) -> T:
        """Wait for something until the run's time is over.

        Raises:
            RunEnded: It is over.
        """
        try:
            with anyio.fail_after(max(0.0, self._limits.seconds - self.seconds)):
                return await call
        except TimeoutError as error:
            raise self._too_late() from error

    def _too_late(self) -> RunEnded:
        return RunEnded("seconds", f"The limit of {self._limits.seconds:g} seconds is reached.")

    async def _reply(self, messages: list[Message], purpose: str, temperature: float, max_tokens: int) -> str:
        if self.usage.tokens >= self._limits.tokens:
            raise RunEnded("tokens", f"The limit of {self._limits.tokens:,} tokens is reached.")
        if self.seconds >= self._limits.seconds:
            raise self._too_late()
        asked = self._llm.complete(messages, purpose=purpose, temperature=temperature, max_tokens=max_tokens)
        try:
            completion = await self.within(asked)
        except PromptTooLong as error:
            raise RunEnded("model", f"{error} Set a smaller limit for prompts.") from error
        except LlmError as error:
            raise RunEnded("model", str(error)) from error
        self.usage += completion.usage
        # Half a character, which some models produce, can be sent nowhere.
        return completion.text[:MAX_REPLY].encode(errors="replace").decode()


def without_thinking(reply: str) -> str:
    """Return a reply without what a model that thinks aloud puts between tags; a tag never closed runs to the end."""
    return _THINKING.sub("", reply).strip()


def tokens_in(text: str) -> int:
    """Return about how many tokens a text has: a quarter of its bytes."""
    return len(text.encode()) // _BYTES_PER_TOKEN
