"""What is kept of a run: only what the graph holds."""

from collections.abc import Sequence
from typing import Final

from kg_adapters.protocol import KGAdapter
from kg_server.experience.store import ExperienceStore, Solved
from kg_server.memory.checking import check
from kg_server.memory.store import MemoryLimits

AT_ONCE: Final = 15
"""How many triples are compared with the graph at once."""

MOST_FACTS: Final = 10 * AT_ONCE
"""A run that rests on more triples is not kept: they would take too long to compare."""


async def learn(
    graph: KGAdapter, store: ExperienceStore, solved: Solved, facts: Sequence[tuple[str, str, str]]
) -> bool:
    """Keep a question whose evidence the graph holds, and say whether it was kept.

    Args:
        graph: The graph.
        store: Where it is kept.
        solved: The question; its evidence is written as results show it.
        facts: The triples that every answer rests on, by ids.
    """
    if not solved.answers or not 0 < len(facts) <= MOST_FACTS:
        return False
    for first in range(0, len(facts), AT_ONCE):
        batch = facts[first : first + AT_ONCE]
        checked = await check(graph, batch, limits=MemoryLimits(), allow_unverified=False)
        if checked.refused:
            return False
    await store.keep(graph.name, solved)
    return True
