"""Explain why an expression of Compose found nothing, and what was left out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kg_adapters.algebra import (
    Compares,
    Has,
    Instances,
    Intersect,
    Kept,
    Linked,
    Meets,
    Members,
    Minus,
    Path,
    Reached,
    SetExpression,
    Union,
    Values,
)
from kg_adapters.models import Count
from kg_adapters.profile import ClassProfile
from kg_adapters.protocol import KGAdapter
from kg_adapters.set_requests import Listed, SetRequest
from kg_adapters.set_walking import compute_sets
from kg_adapters.terms import Iri, Node, Term
from kg_server.answers.coverage import NEARLY_ALL, counted_clause
from kg_server.answers.results import Over
from kg_server.compose.lines import Note

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


_MOST_COUNTED: Final = 8
"""How many sets are counted to find the step."""


@dataclass(slots=True)
class Emptiness:
    """Looks for the step that leaves nothing over.

    Args:
        graph: The graph.
        timeout_s: After how many seconds a number is no longer wanted.
    """

    graph: KGAdapter
    timeout_s: float
    _counted: int = 0

    async def said(self, of: SetExpression) -> tuple[Note, ...]:
        """Return what to say of a set if it is empty; nothing where it is a plain name, or one step of one."""
        return await self._below((of,))

    async def _step(self, of: SetExpression) -> tuple[Note, ...]:
        """Return which step of a set that is empty left nothing."""
        match of:
            case Kept(among):
                return await self._below((among,)) or await self._condition(of)
            case Reached(among) | Values(among):
                return await self._below((among,)) or await self._walk(among, of.path)
            case Minus((Kept() as having, Kept(condition=Linked()) as linked)) if linked.of == having.of:
                return await self._below((having.of,)) or await self._condition(linked, others=True)
            case Minus((first, *_)):
                return await self._below((first,)) or self._sized("All {} are taken away.", await self._number(first))
            case Intersect(sets) | Union(sets):
                return await self._below(sets) or await self._apart(sets)
            case _:
                return ()

    async def _below(self, sets: Sequence[SetExpression]) -> tuple[Note, ...]:
        """Return what is said of the first of some sets that is empty."""
        for each in sets:
            if not isinstance(each, Members) and await self._number(each) == 0:
                return await self._step(each)
        return ()

    async def _number(self, of: SetExpression) -> int | None:
        """Return how many members a set has; None where that is not known, or enough were counted."""
        if isinstance(of, Members):
            return len(of.nodes)
        if self._counted == _MOST_COUNTED:
            return None
        self._counted += 1
        request = SetRequest(Listed(of), limit=0, witnesses=0, timeout_s=self.timeout_s)
        count = (await compute_sets(self.graph, request)).count
        return count.value if count.exact else None

    async def _apart(self, sets: Sequence[SetExpression]) -> tuple[Note, ...]:
        numbers = [await self._number(each) for each in sets]
        if None in numbers or 0 in numbers:
            return ()
        return ((f"None is in all of the sets, which have {', '.join(f'{each:,}' for each in numbers)}.",),)

    async def _walk(self, among: SetExpression, path: Path) -> tuple[Note, ...]:
        if isinstance(among, Members):
            return ()
        number = await self._number(among)
        return self._sized("None of the {} has ", number, last_over(self.graph, path), ".")

    async def _condition(self, kept: Kept, *, others: bool = False) -> tuple[Note, ...]:
        """Return which condition leaves nobody over, and where the relation leads that should lead elsewhere."""
        number, condition = await self._number(kept.of), kept.condition
        if isinstance(condition, Meets):
            return self._sized("Of {} none meets a condition.", number)
        over = last_over(self.graph, condition.path)
        if isinstance(condition, Has):
            return self._sized("None of the {} has ", number, over, ".")
        led = () if others else await self._led_elsewhere(kept)
        return self._sized("Of {} none meets the condition on ", number, over, *(led or (".",)))

    def _sized(self, text: str, number: int | None, *more: str | Term | Over) -> tuple[Note, ...]:
        return () if number is None else ((text.format(f"{number:,}"), *more),)

    async def _led_elsewhere(self, kept: Kept) -> Note:
        """Return to what a relation leads where it is compared with something of another class."""
        match kept.condition:
            case Linked(Path((hop,)), Members((node,))) if hop.steps and hop.steps[0].direction == "out":
                pass
            case _:
                return ()
        profile = await self.graph.profile()
        owner = _owner(kept.of)
        known = profile.everything if owner is None else profile.profile_of(owner) or profile.everything
        described = (await self.graph.describe([node])).get(node)
        types = () if described is None else described.types
        wider = [each for owner in types if (its := profile.profile_of(owner)) is not None for each in its.broader]
        wanted = [*types, *wider]
        property_ = known.property(hop.steps[0].relation, "out")
        targets = [] if property_ is None else [target for target, _ in property_.targets]
        if not targets or not wanted or set(targets).intersection(wanted):
            return ()
        return _elsewhere(node, targets[0], wanted[0], _leading(known, wanted))


def _owner(of: SetExpression) -> Node | None:
    """Return the class of which the members of a set are."""
    while isinstance(of, Kept):
        of = of.of
    return of.owner if isinstance(of, Instances) else None


def _leading(known: ClassProfile, wanted: Sequence[Node]) -> Iri | None:
    """Return the relation over which instances of a class lead to those of others, the most frequent."""
    found = [each for each in known.properties if each.direction == "out" and each.targets[:1]]
    fitting = [each for each in found if each.targets[0][0] in wanted]
    return max(fitting, key=lambda each: each.facts).relation if fitting else None


def _elsewhere(node: Node, target: Node, of: Node, instead: Iri | None) -> Note:
    told: Note = (", which leads to ", target, "; ", node, " is of the class ", of)
    return (*told, ".") if instead is None else (*told, ": try ", Over(instead), ".")
