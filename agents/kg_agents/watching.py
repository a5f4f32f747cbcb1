"""Watching a run: which entities it is about, what it waits for, what that has used, and every step."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from kg_agents.answers import Step
from kg_agents.drafts import ANSWERING, drafted
from kg_agents.linking import Linking
from kg_agents.llm import Completion, Llm, LlmRequest, Usage
from kg_agents.tool_calls import Toolbox, ToolCall, ToolOffer


@dataclass(frozen=True, slots=True)
class Watcher:
    """Who watches a run.

    Args:
        on_linked: Told which entities the question is about, and what stands for none.
        on_begin: Told of every call that begins: a tool by its name, or the purpose that the model is asked for.
        on_used: Told what every call to the model has used.
        on_step: Told of every step.
        on_draft: Told the answers that a reply gives while it is written; None where replies come as a whole.
    """

    on_linked: Callable[[Linking], None] = lambda _: None
    on_begin: Callable[[str], None] = lambda _: None
    on_used: Callable[[Usage], None] = lambda _: None
    on_step: Callable[[Step], None] = lambda _: None
    on_draft: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class WatchedLlm:
    """Passes calls on to a model, and tells of them."""

    llm: Llm
    watcher: Watcher

    @property
    def name(self) -> str:
        """See `Llm`."""
        return self.llm.name

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`."""
        self.watcher.on_begin(request.purpose)
        if self.watcher.on_draft is not None and request.purpose in ANSWERING:
            request = replace(request, on_part=self._tell)
        completion = await self.llm.complete(request)
        self.watcher.on_used(completion.usage)
        return completion

    def _tell(self, so_far: Completion) -> None:
        if self.watcher.on_draft is not None:
            self.watcher.on_draft(drafted(so_far))


@dataclass(frozen=True, slots=True)
class WatchedTools:
    """Passes calls on to the tools, and tells of them."""

    tools: Toolbox
    watcher: Watcher

    async def offer(self) -> ToolOffer:
        """See `Toolbox`."""
        return await self.tools.offer()

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """See `Tools`."""
        self.watcher.on_begin(tool)
        return await self.tools.call(tool, arguments)
