"""Remarks on a part: what it counted, why it is empty, and what its values leave out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kg_adapters.algebra import (
    Best,
    Compares,
    Has,
    HopPath,
    Instances,
    Intersect,
    Kept,
    Linked,
    Meets,
    Members,
    Minus,
    NumberOf,
    Reached,
    SetExpression,
    Union,
    ValueOf,
    Values,
)
from kg_adapters.errors import KGError
from kg_adapters.models import Count
from kg_adapters.prefixes import Prefixes
from kg_adapters.profile import ClassProfile
from kg_adapters.protocol import KGAdapter
from kg_adapters.set_requests import (
    Aggregated,
    Cell,
    Computed,
    Grouped,
    Listed,
    Row,
    SetQuestion,
    SharedBy,
    Tabled,
    Witness,
)
from kg_adapters.terms import Iri, Literal, Node, Term
from kg_adapters.values import unit_of
from kg_boundary.shown import clipped, shown_within
from kg_server.answers.coverage import NEARLY_ALL, counted_clause, plural
from kg_server.answers.results import Knowledge, Note, Over, Piece, kind_of_value
from kg_server.compose.lines import Told, chained
from kg_server.compose.naming import Heard, Way, count_of
from kg_server.compose.syntax import Call, Kind, RefusedPart
from kg_server.names import MAX_LABEL, shown_datatype

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
        every, having = [await count_of(graph, each, timeout_s) for each in (among, Kept(among, Has(path)))]
        shares.append(having.value / max(every.value, 1))
        if every.exact and having.exact and (without := every.value - having.value):
            has, is_ = ("has", "is") if without == 1 else ("have", "are")
            of_all = f"{every.value:,} {await _called(graph, among, every.value)}"
            notes.append((f"Of {of_all}, {without:,} {has} no ", over, f" and {is_} left out."))
    return Silent(tuple(notes), bool(shares) and min(shares) >= NEARLY_ALL)


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


def last_over(graph: KGAdapter, path: HopPath) -> Over:
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
        over = last_over(self.graph, path)
        if isinstance(among, Members) and len(among.nodes) == 1:
            return ((among.nodes[0], " has no ", over, "."),)
        return self._sized("None of the {} has ", await self._number(among), over, ".")

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


_LONGEST_REASON: Final = 200

_LEAST_PLAIN: Final = 0.001

_LEAST_LONG: Final = 1e15
"""From what size on a sum or mean is told by six digits and a power of ten, as are those below the least plain one."""


@dataclass(frozen=True, slots=True)
class RemarkRequest:
    """What the graph is asked for a call.

    Args:
        question: The question.
        kind: What it gives.
        of: The set that it starts from.
        way: What it walks, reads or measures, where there is one thing.
        ways: The columns of a table.
    """

    question: SetQuestion
    kind: Kind
    of: SetExpression
    way: Way | None = None
    ways: tuple[Way, ...] = ()


@dataclass(frozen=True, slots=True)
class Worked:
    """A call that was worked out, or why it was not.

    Args:
        call: The call.
        kind: What it gives.
        size: How much that is: `5 nodes`, or the number itself.
        by: What the values of each node are over, where its lines do not say that.
        results: The lines of its results.
        total: How many results there are, told or not.
        evidence: The lines that show the first ones.
        notes: What should be known about it.
        whole: Whether nothing is a lower bound.
        knowledge: What it rests on, where that is not told by its size.
        read: The ids of names that are no ids.
        given: What the expression names, and nothing else is called so.
        typing: The relations from an instance to its class.
        query: SPARQL that asks the same, where it is wanted.
        failure: Why it was not worked out.
    """

    call: Call | RefusedPart
    kind: Kind = "nodes"
    size: Piece = ""
    by: Over | None = None
    results: tuple[Told, ...] = ()
    total: int = 0
    evidence: tuple[Told, ...] = ()
    notes: tuple[Note, ...] = ()
    whole: bool = True
    knowledge: Knowledge | None = None
    read: Mapping[str, Node] = field(default_factory=dict[str, Node])
    given: frozenset[Node] = frozenset()
    typing: frozenset[Iri] = frozenset()
    query: str | None = None
    failure: KGError | None = None


def told(number: int, call: Call, asked: RemarkRequest, computed: Computed, heard: Heard, prefixes: Prefixes) -> Worked:
    """Return what is told of a call from the answer of the graph."""
    written = _Lines(number, asked, prefixes)
    lines = tuple(written.of(computed))
    total = max(computed.count.value, len(lines)) if not isinstance(asked.question, Aggregated) else len(lines)
    cells = [cell.count for row in computed.rows for cell in row.cells]
    return Worked(
        call,
        asked.kind,
        _size(asked, computed),
        written.by if len(computed.rows) > 1 else None,
        lines,
        total,
        tuple(line for witness in computed.witnesses for line in chain(number, witness)),
        (*heard.notes, *_remarks(asked, computed)),
        computed.count.exact and all(each.exact for each in cells),
        "unknown" if asked.kind == "numbers" and cells and not any(each.value for each in cells) else None,
        heard.nodes,
    )


def told_count(number: int, call: Call, asked: RemarkRequest, computed: Computed, heard: Heard) -> Worked:
    """Return what is told of a number of things; that there are none is not stated by any fact."""
    line = Told((computed.count,), (str(number), "", "", computed.count, exactness(computed.count)), part=number)
    evidence = tuple(each for witness in computed.witnesses for each in chain(number, witness))
    notes = (*heard.notes, *_remarks(asked, computed))
    knowledge: Knowledge | None = None if computed.count.value else "unknown"
    return Worked(
        call, "numbers", computed.count, None, (line,), 1, evidence, notes, computed.count.exact, knowledge, heard.nodes
    )


class _Lines:
    """The results of one call, line by line."""

    def __init__(self, number: int, asked: RemarkRequest, prefixes: Prefixes) -> None:
        self._number = number
        self._asked = asked
        self._prefixes = prefixes
        self._over: Piece = (asked.way.over if asked.way is not None else None) or ""
        # What leads from one node over one relation is a statement about it.
        alone = isinstance(asked.question, Listed) and isinstance(asked.of, Members) and len(asked.of.nodes) == 1
        self._source: Piece = asked.of.nodes[0] if alone and self._over and isinstance(asked.of, Members) else ""

    def of(self, computed: Computed) -> Iterator[Told]:
        """Yield the lines of an answer."""
        match self._asked.question:
            case Listed():
                over = self._over if self._source else ""
                for member in computed.members:
                    yield self._line((member,), self._source, over, member, self._kind(member))
            case Aggregated():
                if computed.value is not None:
                    value = _total(self._asked.question, computed.value)
                    unit = unit_of(value) if isinstance(value, Literal) else None
                    kind = "number" if unit is None else shown_datatype(unit, self._prefixes)
                    yield self._line((value,), "", "", value, kind)
            case Grouped():
                for group in computed.groups:
                    text = (group.by, ": ", group.size)
                    yield self._line(text, group.by, self._over, group.size, "number", marks=":")
            case SharedBy():
                for shared in computed.shared:
                    over = Over(shared.step.relation, shared.step.direction == "in")
                    yield self._line((over, " | ", shared.term), "", over, shared.term, self._kind(shared.term))
            case Tabled():
                yield from (self._row(row, alone=len(computed.rows) == 1) for row in computed.rows)

    @property
    def by(self) -> Over | None:
        """The one relation that the cells of all rows are over."""
        return None if self._numbers else self._overs[0] if len(self._overs) == 1 else None

    @property
    def _overs(self) -> Sequence[Over | None]:
        asked = self._asked
        return [way.over for way in asked.ways] or [None if asked.way is None else asked.way.over]

    def _row(self, row: Row, *, alone: bool) -> Told:
        """Return the line of a node; one that stands alone names the relation that its values are over."""
        text: list[Piece] = [row.node]
        cells: list[tuple[Piece, ...]] = []
        for place, (each, over) in enumerate(zip(row.cells, self._overs, strict=True)):
            cell = _values_of(each) if self._asked.kind == "values" else each
            named: list[Piece] = [" | ", self.by, " | "] if alone and self.by is not None and cell.terms else [": "]
            text += [" | "] if place or len(row.cells) > 1 else named
            text += self._shown(cell)
            cells += self._cells(row.node, over or "", cell)
        first, *more = cells
        return Told(tuple(text), first, part=self._number, more=tuple(more), marks=",:")

    def _shown(self, cell: Cell) -> Iterator[Piece]:
        if self._numbers:
            yield cell.count
        elif not cell.terms:
            yield "none" if cell.count.exact else "not known"
        else:
            if len(cell.terms) > 1:
                yield f"{cell.count}: "
            for place, term in enumerate(cell.terms):
                yield from ((", ", term) if place else (term,))
            if cell.count.value > len(cell.terms):
                yield ", …"

    def _cells(self, node: Term, over: Piece, cell: Cell) -> list[tuple[Piece, ...]]:
        number = str(self._number)
        if self._numbers:
            return [(number, node, over, cell.count, exactness(cell.count))]
        told: list[tuple[Piece, ...]] = [(number, node, over, term, self._kind(term)) for term in cell.terms]
        return told or [(number, node, over, "", "none" if cell.count.exact else "at least")]

    @property
    def _numbers(self) -> bool:
        question = self._asked.question
        return isinstance(question, Tabled) and isinstance(question.columns[0], NumberOf)

    def _line(
        self, text: tuple[Piece, ...], node: Piece, over: Piece, result: Piece, kind: str, *, marks: str | None = None
    ) -> Told:
        return Told(text, (str(self._number), node, over, result, kind), part=self._number, marks=marks)

    def _kind(self, term: Term) -> str:
        return kind_of_value(term, self._prefixes) or "text" if isinstance(term, Literal) else "node"


def _values_of(cell: Cell) -> Cell:
    """Return a cell without nodes."""
    values = tuple(term for term in cell.terms if isinstance(term, Literal))
    return Cell(values, Count(len(values), exact=cell.count.exact and cell.count.value == len(cell.terms)))


def exactness(count: Count) -> str:
    """Return what sort of number a count is, for programs."""
    return "number" if count.exact else "at least"


def plain_number(number: float) -> str:
    """Return a sum or a mean as people write it."""
    if number and not _LEAST_PLAIN <= abs(number) < _LEAST_LONG:
        return f"{number:.6g}"
    return f"{number:,.4f}".rstrip("0").removesuffix(".")


def _total(question: Aggregated, value: float | Literal) -> str | Literal:
    """Return a sum, mean, least or greatest value as it is told: in its unit, where it has one."""
    if isinstance(value, Literal):
        return value
    shown = plain_number(value)
    unit = question.by.unit if isinstance(question.by, ValueOf) else None
    return shown if unit is None else Literal(shown.replace(",", ""), unit)


def _size(asked: RemarkRequest, computed: Computed) -> Piece:
    """Return how much there is: the number itself where it is one."""
    count, question = computed.count, asked.question
    if isinstance(question, Aggregated):
        if computed.value is None:
            return "none has a value"
        return _total(question, computed.value)
    if isinstance(question, Tabled) and len(computed.rows) == 1 and asked.kind in {"values", "numbers"}:
        cell = computed.rows[0].cells[0]
        return cell.count if asked.kind == "numbers" else noun(_values_of(cell).count, "value")
    match question:
        case Listed():
            name = asked.kind.removesuffix("s")
        case Grouped():
            name = "group"
        case SharedBy():
            name = "thing in common"
        case Tabled():
            name = "row" if asked.kind == "rows" else "node"
    return noun(count, name)


def noun(count: Count, name: str) -> str:
    """Return a number of things."""
    plural = name.replace("thing", "things") if name.startswith("thing") else f"{name}s"
    return f"{count} {name if count.value == 1 else plural}"


def _remarks(asked: RemarkRequest, computed: Computed) -> Iterator[Note]:
    """Yield what a number alone would hide: members that are as good as the last, several values, those left out."""
    question, number, without = asked.question, computed.count, computed.without
    if computed.without_witnesses:
        yield (f"Without evidence: {clipped(computed.without_witnesses, _LONGEST_REASON)}",)
    best = question.of if isinstance(question, Tabled | Listed) else None
    if isinstance(best, Best) and number.value > best.n:
        yield (f"These are {number}, since {number.value - best.n:,} more equal the last of {best.n}.",)
    adds_up = isinstance(question, Aggregated) and question.function in {"sum", "mean"}
    if adds_up and number.value > computed.measured.value:
        yield (f"Of {noun(number, 'value')} of {noun(computed.measured, 'node')}.",)
    if without.value:
        what = "none of it" if asked.way is None else f"no {asked.way.name}"
        one = without.value == 1
        yield (f"{without} more {'has' if one else 'have'} {what} and {'is' if one else 'are'} not counted.",)


def chain(number: int, witness: Witness) -> Iterator[Told]:
    """Yield the facts that show a result as one line; every fact is a row."""
    if not witness.facts:
        return
    first, *more = [(fact.head, Over(fact.relation), fact.tail) for fact in witness.facts]
    yield Told(chained(witness.facts), first, witness.facts, "evidence", number, tuple(more))
