"""The tool that shows solved questions like one, and the same as part of a prompt."""

from collections.abc import Sequence
from typing import Annotated, Final, TypeAlias

from mcp.types import CallToolResult
from pydantic import Field

from kg_adapters.protocol import KGAdapter
from kg_boundary.shown import visible_line
from kg_server.experience.store import MAX_QUESTION, ExperienceStore, Solved
from kg_server.mcp_server import SextantServer, reading
from kg_server.results import Answer, Result, fitted

MOST: Final = 3
"""How many questions are shown."""

MAX_TOKENS: Final = 1_000
_SHOWN: Final = 5
"""How many answers and triples are shown of each."""

Asked: TypeAlias = Annotated[str, Field(min_length=1, max_length=MAX_QUESTION)]


class SolvedResult(Result):
    """Solved questions as rows: `[number, question, call, answer or evidence, text]`."""

    solved: list[list[str]]


class RecallTool:
    """The tool over what was learned.

    Args:
        graph: The graph.
        store: Where solved questions are kept.
        max_tokens: How long an answer may be.
    """

    def __init__(self, graph: KGAdapter, store: ExperienceStore, max_tokens: int) -> None:
        self._graph = graph
        self._store = store
        self._max_tokens = min(max_tokens, MAX_TOKENS)

    def provide(self, server: SextantServer) -> None:
        """Add the tool."""
        server.provide(self.recall, "Recall", reading(self._graph))

    async def recall(self, question: Asked) -> CallToolResult:
        """Show solved questions like this one."""
        found = await self._store.like(self._graph.name, question, MOST)
        return solved_answer(found, self._max_tokens).to_mcp()


def solved_answer(found: Sequence[Solved], max_tokens: int) -> Answer:
    """Return solved questions as an answer."""

    def build(count: int) -> Answer:
        rows = [[str(number), *row] for number, each in enumerate(found[:count], start=1) for row in _rows(each)]
        summary = (
            f"{count} solved questions like this one, as examples." if count else "Nothing like this was solved yet."
        )
        return Answer(
            SolvedResult(status="ok" if rows else "empty", summary=summary, solved=rows),
            tuple(f"{number}. {kind}: {text}" for number, kind, text in rows),
        )

    return fitted(build, len(found), max_tokens)


def _rows(solved: Solved) -> list[tuple[str, str]]:
    parts = (
        ("question", (solved.question,)),
        ("call", solved.calls),
        ("answer", solved.answers[:_SHOWN]),
        ("evidence", solved.evidence[:_SHOWN]),
    )
    return [(kind, visible_line(text)) for kind, texts in parts for text in texts]
