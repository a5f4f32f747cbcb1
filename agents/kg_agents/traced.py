"""Models and tools whose calls are kept in a record."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kg_agents.llm import Completion, FunctionCall, Llm, LlmError, LlmRequest, PromptTooLong, ToolsUnsupported
from kg_agents.texts import whole_characters
from kg_agents.tool_calls import Toolbox, ToolCall, ToolError, ToolOffer
from kg_agents.trace import LlmLine, OfferLine, ToolLine, Trace, recorded


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

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`."""
        began = self._trace.now_s
        try:
            completion = await self._llm.complete(request)
        except LlmError as error:
            failed = self._line(request, began, error=str(error))
            kinds = {"too_long": isinstance(error, PromptTooLong), "no_tools": isinstance(error, ToolsUnsupported)}
            self._trace.write(failed.model_copy(update=kinds))
            raise
        completion = replace(
            completion, text=whole_characters(completion.text), calls=tuple(map(_whole, completion.calls))
        )
        usage = completion.usage
        line = self._line(request, began).model_copy(
            update={
                "reply": completion.text,
                "calls": list(completion.calls),
                "finish_reason": completion.finish_reason,
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                "cost": usage.cost,
            }
        )
        self._trace.write(line)
        return completion

    def _line(self, request: LlmRequest, began: float, error: str = "") -> LlmLine:
        return LlmLine(
            purpose=request.purpose,
            messages=list(map(recorded, request.messages)),
            reply="",
            error=error,
            at_s=began,
            took_s=round(self._trace.now_s - began, 6),
        )


@dataclass
class _Place:
    """Where the line of a call belongs that may still go on."""

    line: ToolLine | None = None
    over: bool = False


class TracedTools:
    """Passes calls on to the tools and keeps them.

    Args:
        tools: The tools.
        trace: Where they are kept.
    """

    def __init__(self, tools: Toolbox, trace: Trace) -> None:
        self._tools = tools
        self._trace = trace
        self._places: deque[_Place] = deque()

    async def offer(self) -> ToolOffer:
        """See `Toolbox`."""
        began = self._trace.now_s
        try:
            offer = await self._tools.offer()
        except ToolError as error:
            self._trace.write(OfferLine(error=str(error), at_s=began, took_s=self._since(began)))
            raise
        offered = OfferLine(
            instructions=offer.instructions, tools=list(offer.tools), at_s=began, took_s=self._since(began)
        )
        self._trace.write(offered)
        return offer

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """See `Tools`."""
        began, place = self._trace.now_s, _Place()
        self._places.append(place)
        try:
            call = await self._tools.call(tool, arguments)
        except ToolError as error:
            place.line = self._line(ToolCall(tool, arguments, "", {}, failed=True), began, error=str(error))
            raise
        else:
            place.line = self._line(call, began)
            return call
        finally:
            place.over = True
            self._write()

    def _write(self) -> None:
        """Write calls that are over, in the order in which they began; what follows one that was cut short is left out.

        Several calls may go on at the same time, and end in any order. Who replays them begins them in the same order.
        """
        while self._places and self._places[0].over:
            line = self._places.popleft().line
            if line is None:
                self._places.clear()
            else:
                self._trace.write(line)

    def _line(self, call: ToolCall, began: float, error: str = "") -> ToolLine:
        return ToolLine(
            tool=call.tool,
            arguments=dict(call.arguments),
            text=call.text,
            data=dict(call.data),
            failed=call.failed,
            error=error,
            at_s=began,
            took_s=self._since(began),
        )

    def _since(self, began: float) -> float:
        return round(self._trace.now_s - began, 6)


def _whole(call: FunctionCall) -> FunctionCall:
    return FunctionCall(whole_characters(call.id), whole_characters(call.name), whole_characters(call.arguments))
