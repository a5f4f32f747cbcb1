"""What a best one is chosen from, where an expression names them all: what the others have is evidence too."""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from kg_adapters.algebra import Best, Members, SetExpression, Union, ValueOf
from kg_adapters.protocol import KGAdapter
from kg_adapters.set_requests import Aggregated, Ends, SetQuestion, SetRequest, Tabled
from kg_adapters.set_walking import compute_sets
from kg_adapters.terms import Node
from kg_server.compose.telling import Asked, Worked, chain

MOST_COMPARED: Final = 5
"""Up to how many named entities are shown with the values by which they are compared."""


async def with_compared(graph: KGAdapter, number: int, asked: Asked, worked: Worked, request: SetRequest) -> Worked:
    """Return a call with evidence of what each named entity is compared by, where it compares a few.

    Args:
        graph: The graph.
        number: Of which part, from 1.
        asked: What was asked.
        worked: What came of it.
        request: How it was asked.
    """
    best = _best(asked.question)
    if best is None or not request.witnesses or not 1 < len(_named(best.of)) <= MOST_COMPARED:
        return worked
    every = Tabled(replace(best, n=MOST_COMPARED), (Ends(best.by.path),))
    found = await compute_sets(graph, replace(request, question=every, limit=0, witnesses=MOST_COMPARED))
    known = {line.facts for line in worked.evidence}
    lines = [line for witness in found.witnesses for line in chain(number, witness) if line.facts not in known]
    if isinstance(asked.question, Aggregated):
        # Its remark names them with their values: rows are enough.
        lines = [replace(line, text=(), facts=()) for line in lines]
    return replace(worked, evidence=(*worked.evidence, *lines))


def _best(question: SetQuestion) -> Best | None:
    """Return what a question compares by a value: the best of a set, or its greatest or least value."""
    match question:
        case Tabled(Best(_, ValueOf()) as best):
            return best
        case Aggregated(of, ValueOf() as by, ("min" | "max") as function):
            return Best(of, by, lowest=function == "min")
        case _:
            return None


def _named(of: SetExpression) -> Collection[Node]:
    """Return the entities that a set is written out of; none where anything else is in it."""
    match of:
        case Members(nodes):
            return nodes
        case Union(sets):
            parts = [_named(each) for each in sets]
            return {node for part in parts for node in part} if all(parts) else ()
        case _:
            return ()
