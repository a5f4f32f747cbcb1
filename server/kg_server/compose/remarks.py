"""Remarks on a part of an expression: what it is of, why it is empty, and who is left out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kg_adapters.algebra import (
    Compares,
    Has,
    Hop,
    HopPath,
    Instances,
    Intersect,
    Kept,
    Linked,
    Meets,
    Members,
    Minus,
    Reached,
    SetExpression,
    Step,
    Union,
    ValueOf,
    Values,
)
from kg_adapters.models import Count, EdgeDirection
from kg_adapters.profile import ClassProfile
from kg_adapters.protocol import KGAdapter
from kg_adapters.set_requests import Aggregated, Cell, Column, Computed, Ends, Listed, SetRequest, Tabled
from kg_adapters.set_walking import compute_sets
from kg_adapters.terms import Iri, Node, Term
from kg_boundary.shown import shown_within
from kg_server.answers.coverage import NEARLY_ALL, absence, counted_clause, plural, thinness
from kg_server.answers.results import Knowledge, Note, Over
from kg_server.compose.lines import RemarkRequest, noun
from kg_server.compose.naming import count_of
from kg_server.names import MAX_LABEL


async def remarks_on(
    graph: KGAdapter, asked: RemarkRequest, computed: Computed, request: SetRequest, *, counting: bool
) -> tuple[tuple[Note, ...], Knowledge | None]:
    """Return what an answer means and what it is of."""
    notes, knowledge = await _meant(graph, asked, computed)
    if counting or isinstance(asked.question, Aggregated):
        notes = (*await _operands(graph, asked, computed, request), *notes)
    if not notes and computed.count == Count(0):
        whole = asked.question.of if isinstance(asked.question, Listed) else asked.of
        notes = await _Emptiness(graph, request.timeout_s).said(whole)
    silent = await _left_out(graph, asked.of, request.timeout_s)
    if isinstance(asked.question, Listed) and not computed.count.value and silent.denied:
        knowledge = "denied"
    return (*notes, *silent.notes), knowledge


async def _meant(
    graph: KGAdapter, asked: RemarkRequest, computed: Computed
) -> tuple[tuple[Note, ...], Knowledge | None]:
    """Return what it means that little or nothing was found."""
    way, of = asked.way, asked.of
    if way is None or way.over is None or not isinstance(of, Members):
        return (), None
    direction: EdgeDirection = "in" if way.over.backwards else "out"
    if asked.kind == "nodes" and isinstance(asked.question, Listed):
        if computed.count.value:
            thin = "" if way.over.backwards else await thinness(graph, of.nodes, way.over.relation)
            return ((way.over, f": {thin}."),) if thin else (), None
        turned = Over(way.over.relation, not way.over.backwards)
        back = HopPath((Hop((Step(turned.relation, "in" if turned.backwards else "out"),)),))
        if (await count_of(graph, Kept(of, Has(back)))).value:
            return (("Only the other way round: ", turned, "."),), None
    empty = not computed.count.value or (
        computed.rows and not any(cell.count.value for row in computed.rows for cell in row.cells)
    )
    if empty and len(of.nodes) == 1:
        absent = await absence(graph, of.nodes[0], way.over.relation, direction)
        return (absent.note(way.over),), absent.knowledge
    return (), None


MOST_NAMED: Final = 5
"""Up to how many members are named."""


async def _operands(
    graph: KGAdapter, asked: RemarkRequest, computed: Computed, request: SetRequest
) -> tuple[Note, ...]:
    """Return what a count, sum, mean, least or greatest is of; a count of many says that itself."""
    question = asked.question
    if isinstance(question, Aggregated):
        return await _measured(graph, question, computed, request)
    if not isinstance(question, Listed) or not computed.count.exact or not 0 < computed.count.value <= MOST_NAMED:
        return ()
    found = await compute_sets(graph, replace(request, limit=MOST_NAMED, witnesses=0))
    return (_listed("Namely ", [(member,) for member in found.members]),)


async def _measured(
    graph: KGAdapter, question: Aggregated, computed: Computed, request: SetRequest
) -> tuple[Note, ...]:
    number = computed.measured
    if not number.value:
        return ()
    if not number.exact or number.value > MOST_NAMED:
        return ((f"Over {noun(number, 'node')}.",),)
    column: Column = Ends(question.by.path) if isinstance(question.by, ValueOf) else question.by
    asked = Tabled(Kept(question.of, Has(question.by.path)), (column,))
    found = await compute_sets(graph, replace(request, question=asked, limit=MOST_NAMED, witnesses=0))
    return (_listed(f"Over {number}: ", [(row.node, " ", *_value(row.cells[0])) for row in found.rows]),)


def _value(cell: Cell) -> Note:
    """Return the values of a member, or their number where these are counted."""
    if not cell.terms:
        return (str(cell.count),)
    pieces = [piece for term in cell.terms for piece in (" and ", term)]
    return tuple(pieces[1:])


def _listed(begin: str, items: Sequence[Note]) -> Note:
    pieces = [piece for item in items for piece in (", ", *item)]
    return (begin, *pieces[1:], ".")


_MOST_CONDITIONS: Final = 3


@dataclass(frozen=True, slots=True)
class _Silent:
    """What is known of those that conditions leave out.

    Args:
        notes: How many there are, condition by condition.
        denied: Whether nearly all members have what every condition asks about.
    """

    notes: tuple[Note, ...]
    denied: bool


async def _left_out(graph: KGAdapter, of: SetExpression, timeout_s: float) -> _Silent:
    """Return of how many members of a set nothing is stated that a condition on it asks about.

    A remote graph is not asked for it: there a profile tells it of a whole class, or nothing does.
    """
    notes: list[Note] = []
    shares: list[float] = []
    for among, path in list(_conditions(of))[:_MOST_CONDITIONS]:
        over = _last_over(graph, path)
        if graph.remote:
            notes += await _by_profile(graph, among, path, over)
            continue
        every, having = [await count_of(graph, each, timeout_s) for each in (among, Kept(among, Has(path)))]
        shares.append(having.value / max(every.value, 1))
        if every.exact and having.exact and (without := every.value - having.value):
            has, is_ = ("has", "is") if without == 1 else ("have", "are")
            of_all = f"{every.value:,} {await _called(graph, among, every.value)}"
            notes.append((f"Of {of_all}, {without:,} {has} no ", over, f" and {is_} left out."))
    return _Silent(tuple(notes), bool(shares) and min(shares) >= NEARLY_ALL)


async def _called(graph: KGAdapter, among: SetExpression, number: int) -> str:
    """Return what so many members of a set are called: by their class, and by whether conditions have chosen them."""
    owner, kept = _owner(among), " that meet the other conditions" if isinstance(among, Kept | Minus) else ""
    label = None if owner is None else (await graph.labels([owner])).get(owner)
    name = "node" if label is None else shown_within(label, MAX_LABEL)
    return f"{name if number == 1 else plural(name)}{kept}"


def _conditions(of: SetExpression) -> Iterator[tuple[SetExpression, HopPath]]:
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


def _last_over(graph: KGAdapter, path: HopPath) -> Over:
    """Return the last relation of a path that does not name."""
    steps = [hop.steps[0] for hop in path.hops if hop.steps]
    named = [step for step in steps if step.relation not in graph.vocabulary.texts] or steps
    return Over(named[-1].relation, named[-1].direction == "in")


async def _by_profile(graph: KGAdapter, among: SetExpression, path: HopPath, over: Over) -> list[Note]:
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
class _Emptiness:
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
        """Return the remark about the first of some sets that is empty."""
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
        count = await count_of(self.graph, of, self.timeout_s)
        return count.value if count.exact else None

    async def _apart(self, sets: Sequence[SetExpression]) -> tuple[Note, ...]:
        numbers = [await self._number(each) for each in sets]
        if None in numbers or 0 in numbers:
            return ()
        return ((f"None is in all of the sets, which have {', '.join(f'{each:,}' for each in numbers)}.",),)

    async def _walk(self, among: SetExpression, path: HopPath) -> tuple[Note, ...]:
        over = _last_over(self.graph, path)
        if isinstance(among, Members) and len(among.nodes) == 1:
            return ((among.nodes[0], " has no ", over, "."),)
        return self._sized("None of the {} has ", await self._number(among), over, ".")

    async def _condition(self, kept: Kept, *, others: bool = False) -> tuple[Note, ...]:
        """Return which condition leaves nobody over, and where the relation leads that should lead elsewhere."""
        number, condition = await self._number(kept.of), kept.condition
        if isinstance(condition, Meets):
            return self._sized("Of {} none meets a condition.", number)
        over = _last_over(self.graph, condition.path)
        if isinstance(condition, Has):
            return self._sized("None of the {} has ", number, over, ".")
        led = () if others else await self._led_elsewhere(kept)
        return self._sized("Of {} none meets the condition on ", number, over, *(led or (".",)))

    def _sized(self, text: str, number: int | None, *more: str | Term | Over) -> tuple[Note, ...]:
        return () if number is None else ((text.format(f"{number:,}"), *more),)

    async def _led_elsewhere(self, kept: Kept) -> Note:
        """Return to what a relation leads where it is compared with something of another class."""
        match kept.condition:
            case Linked(HopPath((hop,)), Members((node,))) if hop.steps and hop.steps[0].direction == "out":
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
    while isinstance(of, Kept | Minus):
        of = of.of if isinstance(of, Kept) else of.sets[0]
    return of.owner if isinstance(of, Instances) else None


def _leading(known: ClassProfile, wanted: Sequence[Node]) -> Iri | None:
    """Return the relation over which instances of a class lead to those of others, the most frequent."""
    found = [each for each in known.properties if each.direction == "out" and each.targets[:1]]
    fitting = [each for each in found if each.targets[0][0] in wanted]
    return max(fitting, key=lambda each: each.facts).relation if fitting else None


def _elsewhere(node: Node, target: Node, of: Node, instead: Iri | None) -> Note:
    told: Note = (", which leads to ", target, "; ", node, " is of the class ", of)
    return (*told, ".") if instead is None else (*told, ": try ", Over(instead), ".")
