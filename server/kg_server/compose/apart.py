"""Remarks on dates that stand apart: those not precise enough for a condition, and times of other zones, or of none."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kg_adapters.algebra import Best, Compares, Has, HopPath, Kept, Minus, SetExpression, Timed, ValueOf, Zone
from kg_adapters.dates import period_of
from kg_adapters.protocol import KGAdapter, known_profile
from kg_adapters.set_requests import Aggregated, Ends, Grouped, Listed, SetQuestion, SetRequest, Tabled
from kg_adapters.set_walking import compute_sets
from kg_adapters.terms import XSD, Iri, Literal
from kg_adapters.values import value_kind
from kg_server.answers.results import Note
from kg_server.answers.values import plain_value
from kg_server.compose.naming import count_of

_MOST_SHOWN: Final = 3
_MOST_CONDITIONS: Final = 3


@dataclass(frozen=True, slots=True)
class _Dated:
    """What dates are compared with.

    Args:
        among: The nodes that have the dates.
        path: What leads to these.
        given: The date that they are compared with; None where it is with each other.
        possible: What is true of nodes that may meet the condition.
        certain: What is true of those that do.
    """

    among: SetExpression
    path: HopPath
    given: Literal | None = None
    possible: Compares | None = None
    certain: Compares | None = None


async def dates_apart(graph: KGAdapter, question: SetQuestion, timeout_s: float) -> tuple[Sequence[Note], bool]:
    """Return remarks on the dates that a question compares, and whether there is something that may meet a condition.

    A remote graph is asked for what may meet a condition, and for zones where a condition is a point in time.
    """
    notes: list[Note] = []
    open_ended = False
    if isinstance(question, Grouped) and question.part is not None:
        notes += await _as_written(graph, question, timeout_s)
    for _, dated in zip(range(_MOST_CONDITIONS), _dates_of(question), strict=False):
        vague = await _vague(graph, dated, timeout_s)
        open_ended |= bool(vague)
        notes += [note for note in (vague, await _zones(graph, dated, timeout_s)) if note]
    return notes, open_ended


def _dates_of(question: SetQuestion) -> Iterator[_Dated]:
    of: SetExpression
    match question:
        case Aggregated(of, ValueOf(path, "date")):
            yield _Dated(of, path)
        case Listed(of) | Tabled(of) | Aggregated(of):
            pass
        case _:
            return
    while True:
        match of:
            case Best(among, ValueOf(path, "date")):
                yield _Dated(among, path)
            case Kept(among, Compares(path, operator, given) as certain) if value_kind(given) == "date":
                yield _Dated(among, path, given, Compares(path, operator, given, possibly=True), certain)
            case Minus((Kept(among, Has(path)), Kept(_, Compares(_, "=", given) as possible))) if (
                value_kind(given) == "date"
            ):
                yield _Dated(among, path, given, possible, Compares(path, "=", given))
            case Kept(among) | Best(among) | Minus((among, *_)):
                pass
            case _:
                return
        of = among


async def _vague(graph: KGAdapter, dated: _Dated, timeout_s: float) -> Note:
    """Return which nodes may meet a condition, for all that their dates say."""
    if dated.given is None or dated.possible is None or dated.certain is None or not period_of(dated.given.value).vague:
        return ()
    maybe = Minus((Kept(dated.among, dated.possible), Kept(dated.among, dated.certain)))
    question = Tabled(maybe, (Ends(dated.path),))
    request = SetRequest(question, limit=_MOST_SHOWN, cell_limit=1, witnesses=0, timeout_s=timeout_s)
    found = await compute_sets(graph, request)
    if not found.count.value:
        return ()
    listed = [piece for row in found.rows for piece in (", ", row.node, " ", *row.cells[0].terms[:1])][1:]
    more = found.count.value - len(found.rows)
    theirs = "its date is" if found.count.value == 1 else "their dates are"
    why = f"{found.count} may meet it, as {theirs} less precise than {_written(dated.given)}: "
    return (why, *listed, f" and {more:,} more." if more else ".")


_ZEROS: Final = {"number": Literal("0", Iri(XSD + "integer")), "date": Literal("2000", Iri(XSD + "gYear"))}


async def unfit_values(graph: KGAdapter, among: SetExpression, by: ValueOf, timeout_s: float) -> tuple[int, Note]:
    """Return how many members of a set have values none of which compares, and the first of them with one of these."""
    zero = _ZEROS[by.kind]
    if by.unit is not None:
        zero = replace(zero, datatype=by.unit)
    fit = (Kept(among, Compares(by.path, operator, zero, possibly=True)) for operator in (">=", "<"))
    question = Tabled(Minus((Kept(among, Has(by.path)), *fit)), (Ends(by.path),))
    request = SetRequest(question, limit=_MOST_SHOWN, cell_limit=1, witnesses=0, timeout_s=timeout_s)
    found = await compute_sets(graph, request)
    listed = [piece for row in found.rows for piece in (", ", row.node, " ", *row.cells[0].terms[:1])][1:]
    more = found.count.value - len(found.rows)
    return found.count.value, (*listed, f" and {more:,} more") if more else tuple(listed)


async def _zones(graph: KGAdapter, dated: _Dated, timeout_s: float) -> Note:
    """Return that times have no zone beside others that have one, or that what they are compared with has none."""
    given = None if dated.given is None else _ZONE.search(dated.given.value)
    moment = dated.given is not None and "T" in dated.given.value
    if graph.remote and not moment and not await _may_hold_times(graph, dated.path):
        return ()

    async def number(*zones: Zone) -> int:
        return (await count_of(graph, Kept(dated.among, Timed(dated.path, zones)), timeout_s)).value

    bare = await number("none")
    zoned = 0 if given else await number("other", *_UTC[: bool(moment or bare)])
    if bare and (zoned or given):
        has = f"{bare:,} {'has a time' if bare == 1 else 'have times'} without a zone"
        day = "" if given or dated.given is None else f", and so is {_written(dated.given)}"
        return (f"{has}, read as UTC{day}.",)
    if zoned and dated.given is not None:
        return (f"{_written(dated.given)} has no zone and is read as UTC.",)
    return ()


async def _as_written(graph: KGAdapter, question: Grouped, timeout_s: float) -> Sequence[Note]:
    """Return how many times are counted by a date that is another one in UTC, by which conditions compare them."""
    if graph.remote and not await _may_hold_times(graph, question.by):
        return ()
    elsewhere = Kept(question.of, Timed(question.by, ("other",)))
    number = (await count_of(graph, elsewhere, timeout_s)).value
    times = "1 time is" if number == 1 else f"{number:,} times are"
    return ((f"{times} in another zone than UTC and count by the date that is written.",),) if number else ()


async def _may_hold_times(graph: KGAdapter, path: HopPath) -> bool:
    """Say whether the values at the end of a path may be points in time, as far as is known without a request."""
    profile = (await known_profile(graph)).everything
    known = [profile.property(step.relation) for step in path.hops[-1].steps or ()]
    ranges = [each.values for each in known if each is not None]
    return not ranges or any(each is None or _MOMENTS.intersection(each.datatypes) for each in ranges)


_MOMENTS: Final = frozenset(Iri(XSD + each) for each in ("dateTime", "dateTimeStamp"))
_UTC: Final[tuple[Zone, ...]] = ("utc",)
_ZONE: Final = re.compile("T.*(?:Z|[+-][0-9]{2}:[0-9]{2})$")


def _written(given: Literal) -> str:
    return plain_value(given) or given.value
