"""Comparing texts by their meaning, which no tool of a server does by itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from pydantic import TypeAdapter

from kg_agents.tool_calls import Toolbox, ToolCall, ToolOffer

COMPARE: Final = "compare-texts"
"""The tool that compares texts, in the record of a run."""

_TEXTS: Final = TypeAdapter(list[str])


class Similarity(Protocol):
    """Compares texts with a question."""

    async def __call__(self, question: str, texts: Sequence[str], /) -> Sequence[float]:
        """Return the cosine of the question and each text."""
        ...


@dataclass(frozen=True, slots=True)
class ComparingTools:
    """The tools of a server, and one beside them that compares texts: so that the record of a run holds it, too.

    Args:
        tools: The tools of the server.
        similarity: What compares.
    """

    tools: Toolbox
    similarity: Similarity

    async def offer(self) -> ToolOffer:
        """See `Toolbox`."""
        return await self.tools.offer()

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """See `Tools`."""
        if tool != COMPARE:
            return await self.tools.call(tool, arguments)
        question, *texts = _TEXTS.validate_python([arguments["question"], *_TEXTS.validate_python(arguments["texts"])])
        cosines = await self.similarity(question, texts)
        return ToolCall(tool, arguments, "", {"cosines": [float(each) for each in cosines]}, failed=False)
