"""Evidence compared with the graph before anybody is shown it."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from kg_agents.answers import AgentAnswer, ClosedBook, without
from kg_agents.graph_values import Triple, plain_value
from kg_agents.grounding import is_name_of
from kg_agents.knowledge import KnowledgeGraph
from kg_agents.tool_calls import ToolError, ToolRefusal

AT_ONCE: Final = 15
"""How many triples one call compares."""

LOOKED_AT: Final = 20
"""How many times an answer's facts are looked for in the other direction."""

ALL: Final = 200
"""How many facts of one relation are looked through for that."""

UNCHECKED: Final = "The evidence could not be compared with the graph"


async def checked(answer: AgentAnswer, graph: KnowledgeGraph, closed_book: ClosedBook) -> AgentAnswer:
    """Return an answer whose evidence the graph holds; what rested on anything else counts as the model's own.

    Args:
        answer: The answer.
        graph: The graph.
        closed_book: What becomes of what the model says by itself.
    """
    try:
        refuted = await _refuted(answer.evidence, graph)
        refuted -= await _stored_backwards(refuted, graph)
    except ToolError as error:
        return unchecked(answer, str(error))
    return without(answer, refuted, closed_book)


def unchecked(answer: AgentAnswer, reason: str) -> AgentAnswer:
    """Return an answer that says that its evidence could not be compared with the graph."""
    return replace(answer, explanation=f"{answer.explanation} {UNCHECKED}: {reason}".strip())


async def _refuted(facts: Sequence[Triple], graph: KnowledgeGraph) -> frozenset[Triple]:
    """Return the facts that the graph does not hold: a memory takes only what it holds.

    Raises:
        ToolError: The graph cannot be asked.
    """
    refuted: set[Triple] = set()
    for first in range(0, len(facts), AT_ONCE):
        batch = facts[first : first + AT_ONCE]
        try:
            held = await graph.remember(None, [_plain(fact) for fact in batch])
        except ToolRefusal:
            # None of them is taken.
            refuted.update(batch)
            continue
        refuted.update(fact for fact in batch if not any(_is_same(fact, taken) for _, taken in held.facts))
    return frozenset(refuted)


async def _stored_backwards(facts: Collection[Triple], graph: KnowledgeGraph) -> frozenset[Triple]:
    """Return those of some facts that the graph holds over the inverse of their relation, or of a symmetric one.

    Raises:
        ToolError: The graph cannot be asked.
    """
    held: set[Triple] = set()
    for head, relation in sorted({fact[:2] for fact in facts})[:LOOKED_AT]:
        try:
            found = await graph.neighbors(head, relation=relation, direction="out", limit=ALL)
        except ToolRefusal:
            continue
        held.update((head, relation, start) for start, _, end in found.triples if end == head)
    return frozenset(held & set(facts))


def _is_same(fact: Triple, taken: Triple) -> bool:
    """Say whether two facts are the same, however their values are written."""
    return fact[:2] == taken[:2] and is_name_of(plain_value(fact[2]), taken[2], None)


def _plain(fact: Triple) -> Triple:
    head, relation, tail = fact
    return head, relation, plain_value(tail)
