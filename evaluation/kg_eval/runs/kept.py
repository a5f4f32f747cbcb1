"""Models and tools whose calls are kept, counted, and not made twice."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kg_agents.llm import Completion, Llm, LlmRequest, Usage
from kg_agents.tool_calls import Toolbox, ToolCall, ToolError, ToolOffer
from kg_agents.trace import recorded
from kg_eval.runs.journal import CallLine, Journal, ModelLine, call_key, key_of


@dataclass
class Account:
    """What a question has used.

    Args:
        usage: What models used, in earlier runs as well.
        tool_calls: How many calls of tools were made.
        earlier_s: How long models and tools took in earlier runs, for what is not asked for again.
    """

    usage: Usage = field(default_factory=Usage)
    tool_calls: int = 0
    earlier_s: float = 0.0


@dataclass(frozen=True, slots=True)
class KeptLlm:
    """Passes requests on to a model and keeps the replies; what an earlier run was told is not asked for again.

    Args:
        llm: The model.
        journal: Where they are kept; open.
        account: What they count for.
        clock: Seconds, from any beginning.
    """

    llm: Llm
    journal: Journal
    account: Account
    clock: Callable[[], float] = time.monotonic

    @property
    def name(self) -> str:
        """See `Llm`."""
        return self.llm.name

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`."""
        key = key_of(self.name, request)
        if (known := self.journal.reply(key)) is not None:
            self.account.usage += known.completion.usage
            self.account.earlier_s += known.seconds
            return known.completion
        began = self.clock()
        completion = await self.llm.complete(request)
        self.account.usage += completion.usage
        self.journal.write(
            ModelLine(
                key=key,
                model=self.name,
                purpose=request.purpose,
                messages=[*map(recorded, request.messages)],
                completion=completion,
                seconds=round(self.clock() - began, 3),
            )
        )
        return completion


@dataclass(frozen=True, slots=True)
class KeptTools:
    """Passes calls on to tools and keeps their results; a call that an earlier run made is not made again.

    Args:
        tools: The tools.
        journal: Where they are kept; open.
        account: What they count for.
        clock: Seconds, from any beginning.
    """

    tools: Toolbox
    journal: Journal
    account: Account
    clock: Callable[[], float] = time.monotonic

    async def offer(self) -> ToolOffer:
        """See `Toolbox`."""
        return await self.tools.offer()

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """See `Tools`."""
        self.account.tool_calls += 1
        if (known := self.journal.result(call_key(tool, arguments))) is not None:
            self.account.earlier_s += known.seconds
            return ToolCall(tool, arguments, known.text, known.data, known.failed)
        began = self.clock()
        try:
            call = await self.tools.call(tool, arguments)
        except ToolError as error:
            self._write(ToolCall(tool, arguments, str(error), {}, failed=True), began, lost=True)
            raise
        self._write(call, began)
        return call

    def _write(self, call: ToolCall, began: float, *, lost: bool = False) -> None:
        self.journal.write(
            CallLine(
                tool=call.tool,
                arguments=dict(call.arguments),
                text=call.text,
                failed=call.failed,
                seconds=round(self.clock() - began, 3),
                data=dict(call.data),
                lost=lost,
            )
        )
