"""Talking to the models of one run: prompts that fit, limits that hold, and replies that are read or sent back once."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias, TypeVar

import anyio

from kg_agents.dialogue import MAX_REPLY, FailedReply, RunEnded, Unreadable, tokens_in
from kg_agents.graph_counselor.scratchpad import Step, fitted, written
from kg_agents.graph_counselor.sections import clipped
from kg_agents.graph_counselor.settings import CounselorSettings
from kg_agents.llm import Llm, LlmError, Message, PromptTooLong, Usage
from kg_prompts import render
from kg_prompts.oda import RetryPrompt

T = TypeVar("T")

Writer: TypeAlias = Callable[[str, bool], str]
"""Writes a prompt around a scratchpad, and says in it whether observations there are shortened."""

MAX_RETURNED: Final = 1_000
"""How many characters of a reply that could not be read are shown to the model again."""

_SMALLER: Final = 0.7
_TIMES_SMALLER: Final = 5


@dataclass(frozen=True, slots=True)
class Task:
    """What a model is asked.

    Args:
        purpose: What for, in a word.
        write: Writes the prompt around the steps.
        steps: The steps of the attempt.
        max_tokens: How long the reply may be.
    """

    purpose: str
    write: Writer
    steps: Sequence[Step]
    max_tokens: int


class Conversation:
    """The calls of one run to its models.

    Args:
        settings: Sampling and limits.
        clock: Seconds, from any beginning.
    """

    def __init__(self, settings: CounselorSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._limits = settings.limits
        self._clock = clock
        self._began = clock()
        self.usage = Usage()

    @property
    def seconds(self) -> float:
        """For how long the run has been going on."""
        return self._clock() - self._began

    async def ask(self, llm: Llm, task: Task, read: Callable[[str], T | Unreadable]) -> T:
        """Return what a model's reply says.

        Args:
            llm: The model.
            task: What it is asked.
            read: Reads the reply.

        Raises:
            FailedReply: Neither the first nor the second reply could be read.
            RunEnded: A limit is reached, or the model fails.
        """
        prompt, reply = await self._answered(llm, task)
        found = read(reply)
        if not isinstance(found, Unreadable):
            return found
        returned = Message("assistant", clipped(reply, MAX_RETURNED) or "(nothing)")
        reason = Message("user", render(RetryPrompt(reason=found.reason)))
        try:
            second = read(await self._reply(llm, task, (prompt, returned, reason)))
        except PromptTooLong as error:
            raise FailedReply(found.reason) from error
        if isinstance(second, Unreadable):
            raise FailedReply(second.reason)
        return second

    async def within(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call something that takes no longer than the run's time.

        Raises:
            RunEnded: The time is over, before or while it is waited for.
        """
        left_s = self._limits.seconds - self.seconds
        too_late = RunEnded("seconds", f"The limit of {self._limits.seconds:g} seconds is reached.")
        if left_s <= 0:
            raise too_late
        try:
            with anyio.fail_after(left_s):
                return await call()
        except TimeoutError as error:
            raise too_late from error

    async def _answered(self, llm: Llm, task: Task) -> tuple[Message, str]:
        """Return the prompt that was short enough for the model, and the reply."""
        room = self._limits.prompt_tokens
        for _ in range(_TIMES_SMALLER):
            prompt = Message("user", _written_within(room, task))
            try:
                return prompt, await self._reply(llm, task, (prompt,))
            except PromptTooLong:
                room = int(tokens_in(prompt.content) * _SMALLER)
        raise RunEnded("model", "The model's context is too short for this run.")

    async def _reply(self, llm: Llm, task: Task, messages: Sequence[Message]) -> str:
        if self.usage.tokens >= self._limits.tokens:
            raise RunEnded("tokens", f"The limit of {self._limits.tokens:,} tokens is reached.")
        call = partial(
            llm.complete,
            messages,
            purpose=task.purpose,
            temperature=self._settings.temperature,
            top_p=self._settings.top_p,
            max_tokens=task.max_tokens,
        )
        try:
            completion = await self.within(call)
        except PromptTooLong:
            raise
        except LlmError as error:
            raise RunEnded("model", str(error)) from error
        self.usage += completion.usage
        # Half of a surrogate pair is no character, and no request could hold it.
        return completion.text[:MAX_REPLY].encode("utf-8", "replace").decode("utf-8")


def _written_within(room: int, task: Task) -> str:
    """Return a prompt of at most so many tokens.

    Raises:
        RunEnded: It is longer, however much is shortened.
    """

    def prompt(steps: Sequence[Step]) -> str:
        return task.write(written(steps), steps is not task.steps)

    steps = fitted(task.steps, lambda shorter: tokens_in(prompt(shorter)) <= room)
    if steps is None:
        raise RunEnded(
            "model", f"A prompt of {room:,} tokens does not hold the question, the graph's definition and the steps."
        )
    return prompt(steps)
