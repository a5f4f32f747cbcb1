"""Servers of tools that break at random."""

import random
from collections.abc import Mapping

from kg_agents.tools.client import Toolbox, ToolCall, ToolError, ToolOffer


class Broken:
    """A server that answers a few calls with too much, some not at all, and none once it is lost.

    Args:
        tools: What answers the other calls.
        dice: Decides which.
        spared: How many calls are answered well before.
    """

    def __init__(self, tools: Toolbox, dice: random.Random, spared: int = 0) -> None:
        self._tools = tools
        self._dice = dice
        self._spared = spared
        self._left = dice.choice((0, 3, 10, 1_000, 1_000, 1_000))

    async def offer(self) -> ToolOffer:
        if self._dice.random() < 0.03:
            raise ToolError("tools/list: The server was lost.")
        return await self._tools.offer()

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        if self._spared:
            self._spared -= 1
            return await self._tools.call(tool, arguments)
        self._left -= 1
        if self._left < 0:
            raise ToolError(f"{tool}: The server was lost.")
        if self._dice.random() < 0.1:
            return ToolCall(tool, arguments, "word " * 50_000, {"rows": 5, "labels": []}, failed=False)
        return await self._tools.call(tool, arguments)
