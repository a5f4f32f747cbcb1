"""A run once more from its record, without the model and without the graph."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from kg_agents.llm import AgentError, Completion, LlmError, Message, PromptTooLong, Usage
from kg_agents.tool_calls import ToolCall
from kg_agents.trace import AnswerLine, LlmLine, RunLine, ToolLine, read_trace

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
        self.llm = ReplayedLlm(self.run.model, [line for line in lines if isinstance(line, LlmLine)])
        self.tools = ReplayedTools([line for line in lines if isinstance(line, ToolLine)])


class ReplayedLlm:
    """Replies what a model replied, to the same calls in the same order.

    Args:
        name: What the model was called.
        lines: Its calls.
    """

    def __init__(self, name: str, lines: Sequence[LlmLine]) -> None:
        self.name = name
        self._left = list(lines)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        purpose: str,
        temperature: float,
        max_tokens: int,
        top_p: float | None = None,
    ) -> Completion:
        """See `Llm`.

        Raises:
            ReplayDiverged: The record holds another call here, or none.
            LlmError: The model failed here.
        """
        del temperature, max_tokens, top_p
        if not self._left:
            raise ReplayDiverged(f"The record holds no more replies; asked was for {purpose!r}.")
        line = self._left.pop(0)
        asked = [(each.role, each.content) for each in messages]
        if line.purpose != purpose or line.messages != asked:
            raise ReplayDiverged(
                f"The run asks for {purpose!r} with {asked[-1][1][:_SHOWN]!r}; the record holds {line.purpose!r} with "
                f"{line.messages[-1][1][:_SHOWN]!r}. It was made by another version or with other parameters."
            )
        if line.error:
            raise PromptTooLong(line.error) if line.too_long else LlmError(line.error)
        usage = Usage(line.prompt_tokens, line.completion_tokens, line.cost, 1)
        return Completion(line.reply, usage, line.finish_reason)


class ReplayedTools:
    """Answers what tools answered, to the same calls in the same order.

    Args:
        lines: The calls.
    """

    def __init__(self, lines: Sequence[ToolLine]) -> None:
        self._left = list(lines)

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """See `Tools`.

        Raises:
            ReplayDiverged: The record holds another call here, or none.
        """
        if not self._left:
            raise ReplayDiverged(f"The record holds no more calls; asked was for {tool}.")
        line = self._left.pop(0)
        if line.tool != tool or line.arguments != dict(arguments):
            raise ReplayDiverged(
                f"The run calls {tool} {dict(arguments)}; the record holds {line.tool} {line.arguments}."
            )
        return ToolCall(line.tool, line.arguments, line.text, line.data, line.failed)
