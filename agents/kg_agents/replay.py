"""A run once more from its record, without the model and without the graph."""

from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from kg_agents.llm import AgentError, Completion, LlmError, LlmRequest, PromptTooLong, ToolsUnsupported, Usage
from kg_agents.tools.client import ToolCall, ToolError, ToolOffer
from kg_agents.trace import AnswerLine, LlmLine, OfferLine, RunLine, ToolLine, read_trace

INTERRUPTED: Final = "interrupted"
"""How a run ended whose record holds no answer."""

_SHOWN: Final = 200


class ReplayDiverged(AgentError):
    """The run asks for something else than its record holds."""


class Replay:
    """The record of one run, which answers in place of the model and the tools.

    Args:
        path: The file of the record.

    Raises:
        InvalidTrace: It is none.
    """

    def __init__(self, path: Path) -> None:
        lines = read_trace(path)
        self.run = next(line for line in lines if isinstance(line, RunLine))
        self.answer = next((line for line in lines if isinstance(line, AnswerLine)), None)
        self.clock = RecordedClock(
            next((line.at_s for line in lines if isinstance(line, LlmLine | OfferLine | ToolLine)), 0.0)
        )
        end = self.answer.stop_reason if self.answer is not None else INTERRUPTED
        # All models answer from one list: which of them was asked follows from what for.
        calls = deque(line for line in lines if isinstance(line, LlmLine))
        self.llm = ReplayedLlm(self.run.model, calls, self.clock, end)
        self.judge = ReplayedLlm(self.run.judge, calls, self.clock, end)
        self.reflector = ReplayedLlm(self.run.reflector, calls, self.clock, end)
        self.tools = ReplayedTools([line for line in lines if isinstance(line, OfferLine | ToolLine)], self.clock, end)

    def check_that_all_was_replayed(self) -> None:
        """Make sure that the run made every call that the record holds.

        Raises:
            ReplayDiverged: It did not.
        """
        if left := self.llm.left + self.tools.left:
            raise ReplayDiverged(f"The run is over without calls that the record holds ({left}).")


class RecordedClock:
    """Shows the time that it was when a recorded call ended.

    Args:
        now_s: The time at first, in seconds.
    """

    def __init__(self, now_s: float = 0.0) -> None:
        self._now_s = now_s

    def __call__(self) -> float:
        """Return the time."""
        return self._now_s

    def pass_by(self, line: LlmLine | OfferLine | ToolLine) -> None:
        """Go on to the end of a call."""
        self._now_s = max(self._now_s, line.at_s + line.took_s)


class ReplayedLlm:
    """Replies what a model replied, to the same calls in the same order.

    Args:
        name: What the model was called.
        lines: Its calls; those that were made are taken away.
        clock: Moved on with every call.
        end: Why the run ended, in a word: where its time was over, a call that is not here was too late.
    """

    def __init__(self, name: str, lines: deque[LlmLine], clock: RecordedClock, end: str) -> None:
        self.name = name
        self._left = lines
        self._clock = clock
        self._end = end

    @property
    def left(self) -> int:
        """How many calls were not made yet."""
        return len(self._left)

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`.

        Raises:
            ReplayDiverged: The record holds another call here, or none.
            LlmError: The model failed here.
            TimeoutError: The time was over here.
        """
        if not self._left:
            raise _nothing_left(f"The record holds no more replies; asked was for {request.purpose!r}.", self._end)
        line = self._left.popleft()
        self._clock.pass_by(line)
        if line.purpose != request.purpose or line.asked != request.messages:
            raise ReplayDiverged(
                f"The run asks for {request.purpose!r} with {request.prompt[:_SHOWN]!r}; the record holds "
                f"{line.purpose!r} with {line.messages[-1:]!r:.{_SHOWN}}. "
                "It was made by another version or with other parameters."
            )
        if line.error:
            raise _failure(line)
        usage = Usage(line.prompt_tokens, line.completion_tokens, line.cost, 1)
        return Completion(line.reply, usage, line.finish_reason, tuple(line.calls))


class ReplayedTools:
    """Answers what tools answered, to the same calls in the same order.

    Args:
        lines: The calls.
        clock: Moved on with every call.
        end: See `ReplayedLlm`.
    """

    def __init__(self, lines: Sequence[OfferLine | ToolLine], clock: RecordedClock, end: str) -> None:
        self._left = deque(lines)
        self._clock = clock
        self._end = end

    @property
    def left(self) -> int:
        """How many calls were not made yet."""
        return len(self._left)

    async def offer(self) -> ToolOffer:
        """See `Toolbox`.

        Raises:
            ReplayDiverged: The record holds a call here, or none.
            ToolError: The server did not answer here.
            TimeoutError: The time was over here.
        """
        if not self._left:
            raise _nothing_left("The record does not hold which tools there are.", self._end)
        line = self._left.popleft()
        self._clock.pass_by(line)
        if isinstance(line, ToolLine):
            raise ReplayDiverged(f"The run asks which tools there are; the record holds {line.tool!r:.{_SHOWN}}.")
        if line.error:
            raise ToolError(line.error)
        return ToolOffer(line.instructions, tuple(line.tools))

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """See `Tools`.

        Raises:
            ReplayDiverged: The record holds another call here, or none.
            ToolError: No answer came here.
            TimeoutError: The time was over here.
        """
        if not self._left:
            raise _nothing_left(f"The record holds no more calls; asked was for {tool}.", self._end)
        line = self._left.popleft()
        self._clock.pass_by(line)
        if isinstance(line, OfferLine):
            raise ReplayDiverged(f"The run calls {tool}; the record holds which tools there are.")
        if line.tool != tool or line.arguments != dict(arguments):
            raise ReplayDiverged(
                f"The run calls {tool} {dict(arguments)}; the record holds {line.tool!r:.{_SHOWN}} "
                f"{line.arguments!r:.{_SHOWN}}."
            )
        if line.error:
            raise ToolError(line.error)
        return ToolCall(line.tool, line.arguments, line.text, line.data, line.failed)


def _failure(line: LlmLine) -> LlmError:
    if line.no_tools:
        return ToolsUnsupported(line.error)
    return PromptTooLong(line.error) if line.too_long else LlmError(line.error)


def _nothing_left(reason: str, end: str) -> ReplayDiverged | TimeoutError:
    if end == "seconds":
        return TimeoutError()
    return ReplayDiverged(f"{reason} The run was interrupted here." if end == INTERRUPTED else reason)
