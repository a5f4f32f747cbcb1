"""Remarks on a part of an expression: what it is of, why it is empty, and who is left out."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import isfinite
from typing import Final

from kg_adapters.algebra import (
    Best,
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
    NumberOf,
    Numbers,
    Outranks,
    Reached,
    SetExpression,
    Step,
    TotalOf,
    Union,
    ValueOf,
    Values,
    counts_values,
    holds_values,
    owner_of,
)
from kg_adapters.models import Count, EdgeDirection
from kg_adapters.profile import is_unit
from kg_adapters.protocol import KGAdapter
from kg_adapters.set_requests import (
    Aggregated,
    Cell,
    Column,
    Computed,
    Ends,
    Grouped,
    Listed,
    SetQuestion,
    SetRequest,
    Tabled,
)
from kg_adapters.set_walking import compute_sets
from kg_adapters.terms import Iri, Literal
from kg_adapters.values import compared_kind_of, unit_of, value_kind
from kg_boundary.shown import in_quotes
from kg_server.answers.columns import by_owner, texts_instead
from kg_server.answers.coverage import NEARLY_ALL, absence, counted_clause, folded, thinness
from kg_server.answers.remarks import first_without, lacking, led_elsewhere, left_out
from kg_server.answers.results import Knowledge, Note, Over
from kg_server.compose.apart import dates_apart, unfit_values
from kg_server.compose.lines import RemarkRequest, Told, exactness
from kg_server.compose.naming import count_of
from kg_server.compose.totals import noun, plain_number
from kg_server.names import MAX_LABEL, names_of
from kg_server.naming.entities import identify


async def remarks_on(
    graph: KGAdapter, asked: RemarkRequest, computed: Computed, request: SetRequest, absent: Collection[Iri]
) -> tuple[tuple[Note, ...], Knowledge | None]:
    """Return what an answer means and what it is of.

    Args:
        graph: The graph.
        asked: What was asked.
        computed: What came of it.
        request: How it was asked.
        absent: The relations of which another remark says already that nothing in the set has them.
    """
    notes, knowledge = await _meant(graph, asked, computed)
    if isinstance(asked.question, Grouped) and asked.total is None and computed.count.value > 1 and not graph.remote:
        members = await count_of(graph, Kept(asked.of, Has(asked.question.by)), request.timeout_s)
        members = Count(members.value - computed.unfit.value, exact=members.exact)
        notes = ((f"Over {noun(members, 'node')}.",), *notes)
    if asked.counting or isinstance(asked.question, Aggregated):
        notes = (*await _operands(graph, asked, computed, request), *notes)
    notes = (*notes, *await _by_owner(graph, asked), *await _values_beside(graph, asked, request.timeout_s))
    instead = await _texts_instead(graph, asked.of)
    if instead:
        return (*notes, *instead), "unknown" if computed.count == Count(0) else knowledge
    if not notes and computed.count == Count(0):
        whole = asked.question.of if isinstance(asked.question, Listed) else asked.of
        emptied = await _emptied(graph, whole, request.timeout_s)
        notes = (emptied,) if emptied and not _names_any(emptied, absent) else ()
    silent, nearly_none = await _left_out(graph, asked.of, request.timeout_s)
    if isinstance(asked.question, Listed) and not computed.count.value and nearly_none:
        knowledge = "denied"
    apart, may_meet = await dates_apart(graph, asked.question, request.timeout_s)
    if may_meet and not computed.count.value:
        knowledge = "unknown"
    return (*notes, *(each for each in silent if not _names_any(each, absent)), *apart), knowledge


def _names_any(note: Note, relations: Collection[Iri]) -> bool:
    return any(isinstance(piece, Over) and piece.relation in relations for piece in note)


async def _meant(
    graph: KGAdapter, asked: RemarkRequest, computed: Computed
) -> tuple[tuple[Note, ...], Knowledge | None]:
    """Return what it means that little or nothing was found."""
    way, of = asked.way, asked.of
    if way is None or way.over is None or not isinstance(of, Members):
        return (), None
    direction: EdgeDirection = "in" if way.over.backwards else "out"
    if isinstance(asked.question, Listed) and not holds_values(asked.question.of):
        if computed.count.value:
            thin = "" if way.over.backwards else await thinness(graph, of.nodes, way.relations)
            return ((way.only or way.name, f": {thin}."),) if thin else (), None
        turned = Over(way.over.relation, not way.over.backwards)
        back = HopPath((Hop(tuple(Step(each, "in" if turned.backwards else "out") for each in way.relations)),))
        if (await count_of(graph, Kept(of, Has(back)))).value:
            return (("Only the other way round: ", turned, "."),), None
    empty = not computed.count.value or (
        computed.rows and not any(cell.count.value for row in computed.rows for cell in row.cells)
    )
    if empty and len(of.nodes) == 1:
        absent = await absence(graph, of.nodes[0], way.relations, direction)
        return (absent.note(way.only or way.name),), absent.knowledge
    return (), None


_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_NOT_ADDED: Final = re.compile(
    "age|altitude|average|code|day|density|elevation|height|hour|id|identifier|index|lat|latitude|lng|lon|longitude|"
    "mean|median|minute|month|percent|percentage|postcode|rank|ranking|rate|ratio|share|speed|temperature|year|zip"
)
"""Names of numbers whose sum means nothing."""


async def totals_of(
    graph: KGAdapter, number: int, asked: RemarkRequest, computed: Computed, request: SetRequest
) -> tuple[Told, ...]:
    """Return the sums of the numbers in a table of several rows, where adding them makes sense.

    A number that changes may be stated repeatedly, so none is given where a row has several, nor where one has
    something else. A remote graph is not asked for them.
    """
    if graph.remote or asked.counting or computed.count.value <= 1:
        return ()
    sums: list[Told] = []
    columns = asked.question.columns if isinstance(asked.question, Tabled) else ()
    for way, column in zip(asked.ways, columns, strict=False):
        if isinstance(column, NumberOf | TotalOf) and not (isinstance(column, TotalOf) and column.function == "sum"):
            continue
        datatypes = () if way.values is None else way.values.datatypes
        adds_up = not any(_NOT_ADDED.fullmatch(word.lower()) for word in _WORD.findall(way.name))
        if way.kind == "number" and way.over is not None and adds_up and not any(map(is_unit, datatypes)):
            question = Aggregated(asked.of, ValueOf(way.path, "number"), "sum")
            found = await compute_sets(graph, replace(request, question=question, limit=0, witnesses=0))
            single = 1 < found.measured.value == found.count.value and not found.unfit.value
            if single and isinstance(found.value, float) and isfinite(found.value):
                total = plain_number(found.value)
                row = (str(number), "", way.over, total, exactness(found.count))
                sums.append(Told(("in all | ", way.over, " | ", total), row, (), "total", number))
    return tuple(sums)


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
    having = Kept(question.of, Has(question.by.path))
    # A member with nothing that compares is not among the best.
    asked = Tabled(Best(question.of, question.by, MOST_NAMED) if computed.unfit.value else having, (column,))
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


async def _left_out(graph: KGAdapter, of: SetExpression, timeout_s: float) -> tuple[Sequence[Note], bool]:
    """Return of how many members of a set nothing is stated that a condition asks about, and whether of nearly none.

    Of a remote graph a profile tells it for a whole class; it is asked only for values that do not compare.
    """
    notes, several = list[Note](), list[Note]()
    shares: list[float] = []
    for among, path, by in islice(_conditions(of), _MOST_CONDITIONS):
        if graph.remote:
            notes.append(await _by_profile(graph, among, path))
            if by is not None:
                unfit, shown = await unfit_values(graph, among, by, timeout_s)
                over = await _last_over(graph, path)
                notes.append(lacking("", "", 0, unfit, (over,), by.kind, "left out", shown) if unfit else ())
            if by is not None and len(path.hops) > 1:
                several.append(
                    ("Of several values of one node any may meet the condition on ", await _last_over(graph, path), ".")
                )
            continue
        every, having = [await count_of(graph, each, timeout_s) for each in (among, Kept(among, Has(path)))]
        shares.append(having.value / max(every.value, 1))
        if every.exact and having.exact:
            kept = " that meet the other conditions" if isinstance(among, Kept | Minus) else ""
            unfit, shown = (0, ()) if by is None else await unfit_values(graph, among, by, timeout_s)
            none, kind = every.value - having.value, "" if by is None else by.kind
            over = await _last_over(graph, path)
            notes.append(await left_out(graph, every.value, none, unfit, over, owner_of(among), kept, kind, shown))
            if by is not None:
                several.append(await _any_of_several(graph, among, path, over, timeout_s))
    return list(filter(None, (*notes, *several))), bool(shares) and min(shares) >= NEARLY_ALL


async def _any_of_several(
    graph: KGAdapter, among: SetExpression, path: HopPath, over: Over | str, timeout_s: float
) -> Note:
    """Return how many members of a set have several values, any of which may meet a condition; empty for none."""
    number = (await count_of(graph, Kept(among, Numbers(path, ">", 1)), timeout_s)).value
    if not number:
        return ()
    has = "1 has" if number == 1 else f"{number:,} have"
    return f"{has} several values of ", over, ": any of them may meet the condition."


def _conditions(of: SetExpression) -> Iterator[tuple[SetExpression, HopPath, ValueOf | None]]:
    """Yield what is kept from which set by what it leads to, the innermost condition last, and the values it orders."""
    while True:
        match of:
            case Kept(among, Compares(path, operator, given)):
                kind = compared_kind_of(given, operator)
                yield among, path, None if kind is None else ValueOf(path, kind, unit_of(given))
            case Kept(among, Outranks(by, other)):
                yield among, other.path, other
                yield among, by.path, by
            case Kept(among, Meets(path, other)) | Minus(
                (Kept(Kept(among, Has(path)), Has(other)), Kept(_, Meets() | Outranks()))
            ):
                yield among, other, None
                yield among, path, None
            case Kept(among, Linked(path)) | Minus((Kept(among, Has(path)), Kept(_, Compares() | Linked()))):
                yield among, path, None
            case _:
                return
        of = among


def _last_step(graph: KGAdapter, path: HopPath) -> tuple[Step, ...]:
    """Return the last step of a path that does not lead to names."""
    steps = [hop.steps for hop in path.hops if hop.steps]
    return ([each for each in steps if each[0].relation not in graph.vocabulary.texts] or steps)[-1]


async def _last_over(graph: KGAdapter, path: HopPath, of: SetExpression | None = None) -> Over | str:
    """Return the relation of the last step of a path that does not lead to names; a name for several or for all.

    Args:
        graph: The graph.
        path: The path.
        of: The set of what it leads to, which tells values from nodes where the last step is over every relation.
    """
    if not counts_values(path):
        return "values other than names and descriptions" if isinstance(of, Values) else "neighbours"
    first, *more = _last_step(graph, path)
    labels = await graph.labels([first.relation, *(each.relation for each in more)])
    label = labels.get(first.relation)
    alike = {relation for relation, each in labels.items() if each == label}
    if label is None or len(alike) == 1:
        return Over(first.relation, first.direction == "in")
    return f"{'-' if first.direction == 'in' else ''}{in_quotes(label, MAX_LABEL)}"


async def _by_profile(graph: KGAdapter, among: SetExpression, path: HopPath) -> Note:
    step = _last_step(graph, path)[0]
    over = Over(step.relation, step.direction == "in")
    if not isinstance(among, Instances) or len(path.hops) != 1 or await _last_over(graph, path) != over:
        return ()
    owner = (await graph.profile()).profile_of(among.owner)
    counted = None if owner is None else await folded(graph, owner, over.relation)
    known = None if counted is None else counted.coverage(over.relation, "in" if over.backwards else "out")
    if known is None or known.having == known.instances:
        return ()
    clause = counted_clause(known)
    return f"{clause[0].upper()}{clause[1:]} (", over, "); the others are left out."


async def _values_beside(graph: KGAdapter, asked: RemarkRequest, timeout_s: float) -> Sequence[Note]:
    """Return how many values a relation leads to beside the nodes that are listed or counted."""
    way = asked.way
    if way is None or not (way.to_nodes and way.to_values) or not isinstance(asked.question, Listed):
        return ()
    if not isinstance(asked.question.of, Reached) or asked.question.of.path != way.path:
        return ()
    values = await count_of(graph, Values(asked.of, way.path), timeout_s)
    if not values.value:
        return ()
    return ((way.only or way.name, f" leads to {values.of('value')} too, which Feature[…] gives and this leaves out."),)


async def _by_owner(graph: KGAdapter, asked: RemarkRequest) -> Sequence[Note]:
    """Return of which classes those are that one relation leads from, where they are counted together."""
    notes: list[Note] = []
    for reached in islice(_counted_together(asked.question), _MOST_CONDITIONS):
        (first, *_), every = reached.path.hops[-1].steps or [None], reached.path.hops[-1]
        if first is None or first.direction == "out" or every.repeated or len(every.steps or ()) > 1:
            continue
        if counted := await by_owner(graph, first.relation, reached):
            notes.append((Over(first.relation, backwards=True), ": ", *counted, "."))
    return notes


def _counted_together(question: SetQuestion) -> Iterator[Reached]:
    """Yield the sets of nodes that a question lists, or whose numbers it compares or ranks by."""
    match question:
        case Listed(Reached() as reached):
            yield reached
        case Listed(Best(of, NumberOf(path))) | Tabled(of, (NumberOf(path),)):
            yield Reached(of, path)
        case Listed(of):
            while isinstance(of, Kept):
                if isinstance(of.condition, Numbers):
                    yield Reached(of.of, of.condition.path)
                of = of.of
        case _:
            pass


async def _texts_instead(graph: KGAdapter, of: SetExpression) -> Sequence[Note]:
    """Return for conditions on texts that nothing has, but that name entities, what stands for these there.

    A remote graph is not asked for it.
    """
    notes: list[Note] = []
    if graph.remote:
        return notes
    for among, path, text in islice(_written_texts(of), _MOST_CONDITIONS):
        last = path.hops[-1].steps or ()
        (identity,) = await identify(graph, [text.value])
        # A name is found faster than the members of a large class that have a text.
        if not identity.nodes or (await count_of(graph, Kept(among, Compares(path, "=", text)))).value:
            continue
        for node in identity.nodes[:_MOST_CONDITIONS]:
            around = among if len(path.hops) == 1 else Reached(among, HopPath(path.hops[:-1]))
            instead = await texts_instead(graph, node, [each.relation for each in last], around)
            if instead is not None and instead.text:
                names = await names_of(graph, [node])
                notes.append((await _last_over(graph, path), f": {instead.clause(names.entity(node))}."))
    return notes


def _written_texts(of: SetExpression) -> Iterator[tuple[SetExpression, HopPath, Literal]]:
    """Yield with which texts the values of which set are compared, the outermost condition first."""
    while True:
        match of:
            case Kept(among, Compares(path, "=", Literal() as text)) if value_kind(text) == "text":
                yield among, path, text
            case Minus((Kept(among, Has()), Kept(_, Compares(path, "=", Literal() as text)))) if (
                value_kind(text) == "text"
            ):
                yield among, path, text
            case Kept(among) | Minus((among, *_)):
                pass
            case _:
                return
        of = among


_MOST_SETS: Final = 8
"""Of how many sets that are taken together the members are counted."""


async def _emptied(graph: KGAdapter, of: SetExpression, timeout_s: float) -> Note:
    """Return which step of an empty set leaves nothing; empty where it is a plain name, or where that is not known."""
    steps = [of]
    while (inner := _inner(steps[0])) is not None:
        steps.insert(0, inner)

    async def has_match(first: int) -> bool:
        return await _number(graph, steps[first - 1], timeout_s) != 0

    found = await first_without(len(steps), has_match)
    if found is None:
        return ()
    if found:
        number = await _number(graph, steps[found - 1], timeout_s)
        return () if number is None else await _leaving_nothing(graph, steps[found], f"{number:,}")
    start = steps[0]
    return await _apart(graph, start.sets, timeout_s) if isinstance(start, Intersect | Union) else ()


def _inner(of: SetExpression) -> SetExpression | None:
    """Return the set that a step chooses from or starts at; None where it is none, or of several."""
    match of:
        case Minus((Kept(among, Has()), Kept(others, Linked() | Compares()))) if among == others:
            return among
        case Kept(among) | Reached(among) | Values(among) | Minus((among, *_)):
            return among
        case _:
            return None


async def _number(graph: KGAdapter, of: SetExpression, timeout_s: float) -> int | None:
    """Return how many members a set has, or None where that is not known."""
    count = Count(len(of.nodes)) if isinstance(of, Members) else await count_of(graph, of, timeout_s)
    return count.value if count.exact else None


async def _apart(graph: KGAdapter, sets: Sequence[SetExpression], timeout_s: float) -> Note:
    """Return which of some sets is empty, or that they have no member in common."""
    numbers = [await _number(graph, each, timeout_s) for each in sets[:_MOST_SETS]]
    if 0 in numbers:
        return await _emptied(graph, sets[numbers.index(0)], timeout_s)
    if None in numbers or len(numbers) < len(sets):
        return ()
    return (f"None is in all of the sets, which have {', '.join(f'{each:,}' for each in numbers)}.",)


async def _leaving_nothing(graph: KGAdapter, step: SetExpression, number: str) -> Note:
    """Return that a step leaves none of so many, and where the relation leads that should lead elsewhere."""
    match step:
        case Kept(_, Meets()):
            return (f"Of {number} none meets a condition.",)
        case Reached(Members((node,)), path) | Values(Members((node,)), path):
            return node, " has no ", await _last_over(graph, path, step), "."
        case Kept(_, Has(path)) | Reached(_, path) | Values(_, path):
            return f"None of the {number} has ", await _last_over(graph, path, step), "."
        case Kept(among, Linked(HopPath((Hop((Step(relation, "out"), *_)),)) as path, Members((node,)))):
            led = await led_elsewhere(graph, relation, node, owner_of(among)) or (".",)
        case Minus((Kept(_, Has()), Kept(_, Linked(path) | Compares(path)))):
            led = (".",)
        case Kept(_, Linked(path) | Compares(path) | Numbers(path) | Outranks(ValueOf(path))):
            led = (".",)
        case Minus((_, Kept(_, Has(path)))):
            return f"All {number} have ", await _last_over(graph, path), "."
        case _:
            return (f"All {number} are taken away.",)
    return (f"Of {number} none meets the condition on ", await _last_over(graph, path), *led)
