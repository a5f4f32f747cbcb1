"""Watching a run: which entities it is about, what it waits for, what that has used, and every step."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kg_agents.answers import Step
from kg_agents.linking import Linking
from kg_agents.llm import Completion, Llm, Message, Usage
from kg_agents.tool_calls import ToolCall, Tools


@dataclass(frozen=True, slots=True)
class Watcher:
    """Who watches a run.

    Args:
        on_linked: Told which entities the question is about, and what stands for none.
        on_begin: Told of every call that begins: a tool by its name, or the purpose that the model is asked for.
        on_used: Told what every call to the model has used.
        on_step: Told of every step.
    """

    on_linked: Callable[[Linking], None] = lambda _: None
    on_begin: Callable[[str], None] = lambda _: None
    on_used: Callable[[Usage], None] = lambda _: None
    on_step: Callable[[Step], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class WatchedLlm:
    """Passes calls on to a model, and tells of them."""

    llm: Llm
    watcher: Watcher

    @property
    def name(self) -> str:
        """See `Llm`."""
        return self.llm.name

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
        self.watcher.on_begin(purpose)
        completion = await self.llm.complete(
            messages, purpose=purpose, temperature=temperature, max_tokens=max_tokens, top_p=top_p
        )
        self.watcher.on_used(completion.usage)
        return completion


@dataclass(frozen=True, slots=True)
class WatchedTools:
    """Passes calls on to the tools, and tells of them."""

    tools: Tools
    watcher: Watcher

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """See `Tools`."""
        self.watcher.on_begin(tool)
        return await self.tools.call(tool, arguments)
