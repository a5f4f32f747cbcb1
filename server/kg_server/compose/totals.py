"""Sentences on computed numbers: over which values they are, and what was left out."""

from collections.abc import Iterator, Sequence
from typing import Final

from kg_adapters.algebra import Best, ComparedKind, Function, Measure, NumberOf, TotalOf, ValueOf
from kg_adapters.models import Count
from kg_adapters.set_requests import Aggregated, Computed, Grouped, Listed, SetQuestion, Tabled
from kg_adapters.terms import Literal
from kg_server.answers.remarks import lacking
from kg_server.answers.results import Note, Piece
from kg_server.compose.routes import Way

_LEAST_PLAIN: Final = 0.001
_LEAST_LONG: Final = 1e15
"""A sum or mean of this size is written with six digits and a power of ten, as are those below the least plain one."""
_NUMBERS: Final[dict[Function, str]] = {
    "sum": "sum",
    "mean": "mean",
    "min": "least",
    "max": "greatest",
    "count": "number of values",
}
_NAMES: Final[dict[ComparedKind, dict[Function, str]]] = {
    "number": _NUMBERS,
    "date": {**_NUMBERS, "min": "first", "max": "last"},
}


def noun(count: Count, name: str) -> str:
    """Return a number of things."""
    plural = name.replace("thing", "things") if name.startswith("thing") else f"{name}s"
    return f"{count} {name if count.value == 1 else plural}"


def plain_number(number: float) -> str:
    """Return a sum or a mean as people write it."""
    if number and not _LEAST_PLAIN <= abs(number) < _LEAST_LONG:
        return f"{number:.6g}"
    return f"{number:,.4f}".rstrip("0").removesuffix(".")


def amount_of(by: Measure, value: float | Literal) -> str | Literal:
    """Return a sum, mean, least or greatest value as it is written: in its unit, where it has one."""
    if isinstance(value, Literal):
        return value
    shown = plain_number(value)
    measured = by.by if isinstance(by, TotalOf) else by
    unit = measured.unit if isinstance(measured, ValueOf) else None
    return shown if unit is None else Literal(shown.replace(",", ""), unit)


def is_counted(total: TotalOf | NumberOf) -> bool:
    """Return whether a total is how many there are, which may be none."""
    return isinstance(total, NumberOf) or total.function == "count"


def total_shown(total: TotalOf | NumberOf, value: float | Literal | None, size: Count) -> tuple[Piece, ...]:
    """Return what values come to, and over how many that is; their number where they are only counted."""
    if value is None:
        return (size,)
    return amount_of(total, value), f" ({noun(size, 'value')})"


def compared_by(question: SetQuestion) -> Best | None:
    """Return the ranking of a question; None where it has none."""
    of = question.of if isinstance(question, Tabled | Listed) else None
    return of if isinstance(of, Best) else None


def notes_on_totals(
    question: SetQuestion, computed: Computed, way: Way | None, ways: Sequence[Way], total: Way | None
) -> Iterator[Note]:
    """Yield over what the numbers of an answer are.

    Args:
        question: What was asked.
        computed: The answer.
        way: What it walks, reads or measures.
        ways: The columns of a table.
        total: What the groups come to.
    """
    best = compared_by(question)
    match question:
        case Grouped(total=TotalOf() | NumberOf() as by) if total is not None and computed.count.value:
            yield from _on_groups(by, computed, total)
        case Aggregated(by=by) if way is not None:
            yield from _in_unit(by, way)
        case Tabled() if best is not None and way is not None:
            yield from _on_ranking(best, computed, way)
        case Tabled(columns=columns):
            for place, (column, its) in enumerate(zip(columns, ways, strict=False), start=1):
                if isinstance(column, TotalOf | NumberOf):
                    begin = f"Column {place}: the" if len(columns) > 1 else "The"
                    yield (f"{begin} {_name(column)} {its.name}.",)
        case _:
            pass
    if computed.partly.value:
        yield (_partly(computed.partly.value, kind_of_values(question)),)


def compared_with(found: Computed, by: Measure, way: Way) -> Note:
    """Return which number members are compared with, and over what it is."""
    if found.value is None:
        return ()
    over = noun(found.measured, "node")
    over = over if found.count == found.measured else f"{noun(found.count, 'value')} of {over}"
    in_unit = next(_in_unit(by, way), ())
    return "Compared with ", amount_of(by, found.value), f", over {over}.", *((" ", *in_unit) if in_unit else ())


def kind_of_values(question: SetQuestion) -> ComparedKind:
    """Return as what the values of a question are compared."""
    best = compared_by(question)
    match question if best is None else best:
        case Best(by=by) | Aggregated(by=by) | Grouped(total=TotalOf() as by):
            return _kind_of(by)
        case Grouped(part=part) if part is not None:
            return "date"
        case _:
            return "number"


def _kind_of(by: Measure) -> ComparedKind:
    measured = by.by if isinstance(by, TotalOf) else by
    return measured.kind if isinstance(measured, ValueOf) else "number"


def _name(by: TotalOf | NumberOf) -> str:
    """Return what a total is, before the name of what it is of."""
    return "number of nodes over" if isinstance(by, NumberOf) else f"{_NAMES[by.by.kind][by.function]} of"


def _on_groups(by: TotalOf | NumberOf, computed: Computed, total: Way) -> Iterator[Note]:
    name = _name(by)
    over = noun(computed.measured, "node")
    if not is_counted(by):
        over = f"{noun(computed.values, 'value')} of {over}"
    yield (f"The {name} {total.name}, over {over}.",)
    left = computed.left_out
    none, unfit = left.members.value - left.unfit.value, left.unfit.value
    if left.members.value:
        more = f" {'node' if (none or unfit) == 1 else 'nodes'} in groups"
        yield lacking("", more, none, unfit, (total.name,), _kind_of(by), "not counted")
    if number := left.groups.value:
        yield (f"{number:,} more {'group has' if number == 1 else 'groups have'} no {total.name}.",)


def _on_ranking(best: Best, computed: Computed, way: Way) -> Iterator[Note]:
    """Yield by what members are ranked, unless each has one value."""
    by, call = best.by, "Bottom" if best.lowest else "Top"
    if isinstance(by, TotalOf):
        yield (f"Ranked by the {_name(by)} {way.name}.",)
    elif isinstance(by, ValueOf) and computed.values.value > computed.measured.value:
        ends: tuple[Function, Function] = ("min", "max") if best.lowest else ("max", "min")
        end, other = ends
        several = f"Some nodes have several values of {way.name} and are ranked by the {_NAMES[by.kind][end]}"
        function: Function = "sum" if by.kind == "number" else other
        alike = f"; Mean and {other.capitalize()} work alike" if by.kind == "number" else ""
        ranking = f"{call}[…, {function.capitalize()}[{way.written}], {best.n}]"
        yield (f"{several}; {ranking} ranks by the {_NAMES[by.kind][function]}{alike}.",)


def _in_unit(by: Measure, way: Way) -> Iterator[Note]:
    """Yield the unit that the name of a feature holds; others are written behind each number."""
    if isinstance(by, ValueOf) and by.unit is None and way.values is not None and way.values.unit:
        yield (f"In {way.values.unit}.",)


def _partly(number: int, kind: ComparedKind) -> str:
    if number == 1:
        return f"1 node also has a value that is not a {kind}, which is not counted."
    return f"{number:,} nodes also have values that are not {kind}s, which are not counted."
