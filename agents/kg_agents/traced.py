"""Models and tools whose calls are kept in a record."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kg_agents.llm import Completion, Llm, LlmError, Message, PromptTooLong
from kg_agents.texts import whole_characters
from kg_agents.tool_calls import ToolCall, ToolError, Tools
from kg_agents.trace import LlmLine, ToolLine, Trace


class TracedLlm:
    """Passes calls on to a model and keeps them.

    Args:
        llm: The model.
        trace: Where they are kept.
    """

    def __init__(self, llm: Llm, trace: Trace) -> None:
        self._llm = llm
        self._trace = trace

    @property
    def name(self) -> str:
        """See `Llm`."""
        return self._llm.name

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        purpose: str,
        temperature: float,
        max_tokens: int,
        top_p: float | None = None,
    ) -> Completion:
        """See `Llm`."""
        began = self._trace.now_s
        try:
            completion = await self._llm.complete(
                messages, purpose=purpose, temperature=temperature, max_tokens=max_tokens, top_p=top_p
            )
        except LlmError as error:
            failed = self._line(messages, purpose, began, error=str(error))
            self._trace.write(failed.model_copy(update={"too_long": isinstance(error, PromptTooLong)}))
            raise
        completion = replace(completion, text=whole_characters(completion.text))
        usage = completion.usage
        line = self._line(messages, purpose, began).model_copy(
            update={
                "reply": completion.text,
                "finish_reason": completion.finish_reason,
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                "cost": usage.cost,
            }
        )
        self._trace.write(line)
        return completion

    def _line(self, messages: Sequence[Message], purpose: str, began: float, error: str = "") -> LlmLine:
        return LlmLine(
            purpose=purpose,
            messages=[(each.role, each.content) for each in messages],
            reply="",
            error=error,
            at_s=began,
            took_s=round(self._trace.now_s - began, 6),
        )


class TracedTools:
    """Passes calls on to the tools and keeps them.

    Args:
        tools: The tools.
        trace: Where they are kept.
    """

    def __init__(self, tools: Tools, trace: Trace) -> None:
        self._tools = tools
        self._trace = trace

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """See `Tools`."""
        began = self._trace.now_s
        try:
            call = await self._tools.call(tool, arguments)
        except ToolError as error:
            self._write(ToolCall(tool, arguments, "", {}, failed=True), began, error=str(error))
            raise
        self._write(call, began)
        return call

    def _write(self, call: ToolCall, began: float, error: str = "") -> None:
        self._trace.write(
            ToolLine(
                tool=call.tool,
                arguments=dict(call.arguments),
                text=call.text,
                data=dict(call.data),
                failed=call.failed,
                error=error,
                at_s=began,
                took_s=round(self._trace.now_s - began, 6),
            )
        )
