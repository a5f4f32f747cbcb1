"""Evidence compared with the graph before anybody is shown it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kg_agents.evidence.answers import AgentAnswer, ClosedBook, without
from kg_agents.evidence.matching import states_value
from kg_agents.evidence.values import Triple, plain_value, split_graph
from kg_agents.tools.client import ToolError, ToolRefusal
from kg_agents.tools.knowledge import KnowledgeGraph

AT_ONCE: Final = 15
"""How many triples one call compares."""

LOOKED_AT: Final = 20
"""How many times facts of an answer are looked for at their head."""

ALL: Final = 200
"""How many facts of one relation are looked through for that."""

UNCHECKED: Final = "The evidence could not be compared with the graph"


@dataclass(frozen=True, slots=True)
class _Doubt:
    """Why a fact counts as doubtful.

    Args:
        absent: Whether the graph was asked and does not hold it, as far as one direction tells.
        reason: Why nobody could tell, where that is so.
    """

    absent: bool = False
    reason: str = ""


async def checked(answer: AgentAnswer, graph: KnowledgeGraph, closed_book: ClosedBook) -> AgentAnswer:
    """Return an answer whose evidence the graph holds; what rested on anything else counts as the model's own.

    What the graph neither shows nor denies stays, and is said to be unchecked.

    Args:
        answer: The answer.
        graph: The graph.
        closed_book: What becomes of what the model says by itself.
    """
    try:
        doubtful = await _doubtful(answer.evidence, graph)
        left = await _not_found(doubtful, graph)
    except ToolError as error:
        return unchecked(answer, str(error))
    found = without(answer, frozenset(fact for fact, doubt in left.items() if doubt.absent), closed_book)
    unclear = [left[fact].reason for fact in found.evidence if fact in left]
    if not unclear:
        return found
    said = " ".join(dict.fromkeys(filter(None, unclear)))
    return unchecked(found, f"this is so for {len(unclear)} of {len(found.evidence)} facts. {said}".strip())


def unchecked(answer: AgentAnswer, reason: str) -> AgentAnswer:
    """Return an answer that says that its evidence could not be compared with the graph."""
    return replace(answer, explanation=f"{answer.explanation} {UNCHECKED}: {reason}".strip())


async def _doubtful(facts: Sequence[Triple], graph: KnowledgeGraph) -> Mapping[Triple, _Doubt]:
    """Return the facts that a memory does not take for held by the graph.

    Raises:
        ToolError: The graph cannot be asked.
    """
    doubtful: dict[Triple, _Doubt] = {}
    for first in range(0, len(facts), AT_ONCE):
        batch = facts[first : first + AT_ONCE]
        try:
            held = await graph.remember(None, [_plain(fact) for fact in batch], allow_unverified=True)
        except ToolRefusal as refusal:
            # For instance, the memory is full: that says nothing of the facts.
            doubtful.update(dict.fromkeys(batch, _Doubt(reason=" ".join(str(refusal).split()))))
            continue
        taken = [each for _, each in held.facts if each not in held.unverified]
        absent = set(map(_key, held.unverified))
        for fact in (fact for fact in batch if not any(_is_same(fact, each) for each in taken)):
            # Of a value, a memory may have looked at some of many only.
            doubtful[fact] = _Doubt(absent=_key(fact) in absent and not fact[2].startswith('"'))
    return doubtful


async def _not_found(doubtful: Mapping[Triple, _Doubt], graph: KnowledgeGraph) -> Mapping[Triple, _Doubt]:
    """Return the facts that do not stand at their head either, over their relation, its inverse or a symmetric one.

    Raises:
        ToolError: The graph cannot be asked.
    """
    left = dict(doubtful)
    for head, relation in sorted({fact[:2] for fact in doubtful})[:LOOKED_AT]:
        here = [fact for fact in doubtful if fact[:2] == (head, relation)]
        try:
            found = await graph.neighbors(head, relation=relation, direction="out", limit=ALL)
        except ToolRefusal:
            # The graph knows no such entity or relation.
            left.update(dict.fromkeys(here, _Doubt(absent=True)))
            continue
        for fact in here:
            ends = [start for start, _, end in found.triples if end == head]
            if not left[fact].absent:
                ends += [end for start, _, end in (*found.triples, *found.values) if start == head]
            if any(_is_same(fact, (head, relation, end)) for end in ends):
                del left[fact]
            elif found.shown.whole:
                left[fact] = _Doubt(absent=True)
    return left


def _is_same(fact: Triple, taken: Triple) -> bool:
    """Return whether two facts are the same, however their values are written."""
    one, other = plain_value(fact[2]), plain_value(taken[2])
    return _key(fact)[:2] == _key(taken)[:2] and (
        one == other or states_value(other, one) or _key(fact)[2] == _key(taken)[2]
    )


def _key(fact: Triple) -> Triple:
    """Return a fact with its graph behind its relation alone: what two graphs call the same may be an id of either."""
    head, relation, tail = fact
    if not split_graph(relation)[1]:
        return fact
    return split_graph(head)[0], relation, split_graph(tail)[0]


def _plain(fact: Triple) -> Triple:
    head, relation, tail = fact
    return head, relation, plain_value(tail)
