"""Members that a condition leaves out since the graph says nothing of the kind of them: they might meet it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kg_adapters.algebra import Compares, Has, Instances, Kept, Linked, Minus, Path, SetExpression
from kg_adapters.models import Count
from kg_adapters.protocol import KGAdapter
from kg_adapters.set_requests import Listed, SetRequest
from kg_adapters.set_walking import compute_sets
from kg_server.compose.lines import Note
from kg_server.coverage import NEARLY_ALL, counted_clause
from kg_server.lines import Over

_MOST_CONDITIONS: Final = 3


@dataclass(frozen=True, slots=True)
class Silent:
    """What is known of those that conditions leave out.

    Args:
        notes: How many there are, condition by condition.
        denied: Whether nearly all members have what every condition asks about.
    """

    notes: tuple[Note, ...]
    denied: bool


async def left_out(graph: KGAdapter, of: SetExpression, timeout_s: float) -> Silent:
    """Return of how many members of a set nothing is stated that a condition on it asks about.

    A remote graph is not asked for it: there a profile tells it of a whole class, or nothing does.
    """
    notes: list[Note] = []
    shares: list[float] = []
    for among, path in list(_conditions(of))[:_MOST_CONDITIONS]:
        over = last_over(graph, path)
        if graph.remote:
            notes += await _by_profile(graph, among, path, over)
            continue
        every, having = [await _number(graph, each, timeout_s) for each in (among, Kept(among, Has(path)))]
        shares.append(having.value / max(every.value, 1))
        if every.exact and having.exact and every.value > having.value:
            notes.append((f"{every.value - having.value:,} without ", over, " are left out."))
    return Silent(tuple(notes), bool(shares) and min(shares) >= NEARLY_ALL)


def _conditions(of: SetExpression) -> Iterator[tuple[SetExpression, Path]]:
    """Yield what is kept from which set by what it leads to, the innermost condition last."""
    while True:
        match of:
            case Kept(among, Compares(path) | Linked(path)):
                yield among, path
            case Minus((Kept(among, Has(path)), Kept(_, Compares() | Linked()))):
                yield among, path
            case _:
                return
        of = among


def last_over(graph: KGAdapter, path: Path) -> Over:
    """Return the last relation of a path that does not name."""
    steps = [hop.steps[0] for hop in path.hops if hop.steps]
    named = [step for step in steps if step.relation not in graph.vocabulary.texts] or steps
    return Over(named[-1].relation, named[-1].direction == "in")


async def _number(graph: KGAdapter, of: SetExpression, timeout_s: float) -> Count:
    return (await compute_sets(graph, SetRequest(Listed(of), limit=0, witnesses=0, timeout_s=timeout_s))).count


async def _by_profile(graph: KGAdapter, among: SetExpression, path: Path, over: Over) -> list[Note]:
    if not isinstance(among, Instances) or len(path.hops) != 1:
        return []
    known = (await graph.profile()).coverage(among.owner, over.relation, "in" if over.backwards else "out")
    if known is None or known.having == known.instances:
        return []
    clause = counted_clause(known)
    return [(f"{clause[0].upper()}{clause[1:]} (", over, "); the others are left out.")]
