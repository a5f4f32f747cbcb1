"""What the answers of tools state: triples, and what the graph worked out, as far as their form is known."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pydantic import TypeAdapter, ValidationError

from kg_agents.graph_values import Labels, Triple
from kg_agents.parts_seen import PartSeen, size_in
from kg_agents.support import Read, Worked, is_worked_out
from kg_agents.texts import clipped
from kg_agents.tool_answers import GROUP, ROW, group_of, triple_of
from kg_agents.tool_calls import ToolCall, UnreadableAnswer

_ROWS: Final = TypeAdapter(list[list[str]])
_PATHS: Final = TypeAdapter(list[list[list[str]]])
_NAMES: Final = TypeAdapter(dict[str, str])
_COUNTS: Final = TypeAdapter(dict[str, int])
_COMPOSED: Final = 5
_NO_STATEMENT: Final = frozenset({"error", "none", "at least"})
_MAX_EXPRESSION: Final = 300


@dataclass(frozen=True, slots=True)
class Reading:
    """What one result states.

    Args:
        read: Triples and values, and what was worked out.
        listed: What the result lists: its nodes by id, or its values.
        labels: What ids are called.
        denied: Whether the graph denies what was asked for.
        whole: Whether nothing of it is left out.
        named: What it was asked about by name, with the ids that the names were read as.
        page: The cursor that it was asked with.
        next_page: The cursor that goes on behind it.
        total: How much there is of it, shown or not; 0 where nobody says.
        said: What was asked, for what is worked out.
    """

    read: Read = field(default_factory=Read)
    listed: tuple[str, ...] = ()
    labels: Labels = field(default_factory=Labels)
    denied: bool = False
    whole: bool = True
    said: str = ""
    named: Mapping[str, str] = field(default_factory=dict[str, str])
    page: str = ""
    next_page: str = ""
    total: int = 0


def reading_of(call: ToolCall) -> Reading:
    """Return what a result states; nothing where it was refused, or has a form that is not known."""
    read = _READERS.get(call.tool)
    said = asked(call)
    if call.failed or read is None:
        return Reading(said=said)
    try:
        facts, worked, listed = read(call, said)
        labels = Labels(_names(call, "labels") | _candidates(call), _names(call, "relations"))
    except (ValidationError, UnreadableAnswer):
        return Reading(said=said)
    return Reading(
        Read(tuple(dict.fromkeys(facts)), tuple(worked)),
        tuple(each for each in dict.fromkeys(listed) if not each.startswith("_:")),
        labels,
        call.data.get("knowledge") == "denied",
        call.data.get("status") != "truncated" and not call.data.get("cursor"),
        said,
        _names(call, "read"),
        str(call.arguments.get("cursor") or ""),
        str(call.data.get("cursor") or ""),
        _total(call),
    )


def whole(pages: Sequence[Reading]) -> bool:
    """Say whether lists leave nothing out: each is whole, or goes on in another of them."""
    begun = {each.page for each in pages}
    return all(each.whole or (each.next_page and each.next_page in begun) for each in pages) and (
        not begun or "" in begun
    )


def parts_in(readings: Sequence[Reading]) -> Iterator[PartSeen]:
    """Yield the lists of which results show a part, pages that go on one behind the other taken together."""
    following = {each.page: each for each in readings if each.page}
    for first in (each for each in readings if not each.page):
        pages = [first]
        while (page := following.get(pages[-1].next_page)) is not None and page not in pages:
            pages.append(page)
        if not whole(pages):
            yield PartSeen(frozenset(end for page in pages for end in page.listed), first.total)


def asked(call: ToolCall) -> str:
    """Return a call in short: what it asks of the graph."""
    written = call.arguments.get("expression") or call.arguments.get("query")
    if isinstance(written, str):
        return clipped(" ".join(written.split()), _MAX_EXPRESSION)
    told = ", ".join(f"{name}={value}" for name, value in call.arguments.items())
    return clipped(f"{call.tool}({told})", _MAX_EXPRESSION)


_Stated: TypeAlias = tuple[Iterable[Triple], Iterable[Worked], Iterable[str]]


def _neighbors(call: ToolCall, said: str) -> _Stated:
    triples = [triple_of(row) for row in (*_rows(call, "triples"), *_rows(call, "values"))]
    total = call.data.get("total")
    counted = (Worked(said, str(total)),) if call.arguments.get("relation") and isinstance(total, int) else ()
    near = {*_names(call, "read").values(), str(call.arguments.get("entity"))}
    return triples, counted, (head if tail in near else tail for head, _, tail in triples)


def _paths(call: ToolCall, said: str) -> _Stated:
    del said
    paths = _PATHS.validate_python(call.data.get("paths") or [])
    return (triple_of(row) for path in paths for row in path), (), ()


def _observed(call: ToolCall, said: str) -> _Stated:
    del said
    groups = [group_of(row) for row in _rows(call, "groups") if len(row) > GROUP]
    return (triple for group in groups for triple in group.triples), (), ()


def _retrieved(call: ToolCall, said: str) -> _Stated:
    """Return the facts of the card, which is about the one candidate that is meant."""
    del said
    candidates = [row[0] for row in _rows(call, "candidates") if row]
    facts: list[Triple] = []
    for direction, relation, _, *far in (row for row in _rows(call, "card") if len(row) >= ROW):
        ends = [(end, candidates[0]) if direction == "in" else (candidates[0], end) for end in far if candidates]
        facts += ((head, relation, tail) for head, tail in ends)
    return facts, (), candidates


def _features(call: ToolCall, said: str) -> _Stated:
    del said
    entity = _entity(call)
    rows = [row for row in _rows(call, "features") if len(row) > 1]
    return ((entity, row[0], row[1]) for row in rows), (), (row[1] for row in rows)


def _degree(call: ToolCall, said: str) -> _Stated:
    entity, total = _entity(call), str(call.data.get("neighbors", ""))
    worked = [Worked(said, total)]
    for direction, sign in (("outgoing", ""), ("incoming", "-")):
        counts = _COUNTS.validate_python(call.data.get(direction) or {})
        worked += (Worked(f"Degree[{entity}, {sign}{each}]", str(count)) for each, count in counts.items())
    return (), worked, (total,)


def _composed(call: ToolCall, said: str) -> _Stated:
    """Return what rows `[part, node, relation, result, kind]` state, and what they give without stating it."""
    evidence = tuple(triple_of(row) for row in _rows(call, "evidence"))
    plain = not is_worked_out(said)
    shown = {end for head, _, tail in evidence for end in (head, tail)}
    facts, worked, listed = list[Triple](), list[Worked](), list[str]()
    for row in (row for row in _rows(call, "results") if len(row) >= _COMPOSED):
        _, node, relation, result, kind = row[:_COMPOSED]
        if kind in _NO_STATEMENT:
            continue
        listed.append(result if kind == "node" or not node or plain else node)
        if plain and relation and kind != "number":
            facts.append(_triple(node, relation, result))
            continue
        if plain and result in shown:
            continue
        worked.append(Worked(said, result, evidence))
        if node and kind != "node":
            worked.append(Worked(f"{said}: {result}", node, evidence, relation))
    return (*facts, *evidence), worked, listed


def _triple(node: str, relation: str, result: str) -> Triple:
    if relation.startswith("-"):
        return result, relation[1:], node
    return node, relation, result


def _queried(call: ToolCall, said: str) -> _Stated:
    """Return what a query gives: its rows are worked out, whatever they hold."""
    rows, truth = _rows(call, "rows"), call.data.get("truth")
    cells = [str(truth).lower()] if isinstance(truth, bool) else [cell for row in rows for cell in row if cell]
    return (), (Worked(said, cell) for cell in dict.fromkeys(cells)), (row[0] for row in rows if row and row[0])


def _remembered(call: ToolCall, said: str) -> _Stated:
    """Return the facts that a memory holds and the graph too."""
    del said
    rows = [row for row in _rows(call, "facts") if row[-1:] == ["verified"]]
    return (triple_of(row[1:]) for row in rows), (), ()


_READERS: Final[Mapping[str, Callable[[ToolCall, str], _Stated]]] = {
    "GetNeighbor": _neighbors,
    "GetPath": _paths,
    "observe": _observed,
    "Retrieve": _retrieved,
    "Feature": _features,
    "Degree": _degree,
    "Compose": _composed,
    "Sparql": _queried,
    "memory-append": _remembered,
    "memory-read": _remembered,
}


def _rows(call: ToolCall, name: str) -> list[list[str]]:
    return _ROWS.validate_python(call.data.get(name) or [])


def _names(call: ToolCall, name: str) -> dict[str, str]:
    return _NAMES.validate_python(call.data.get(name) or {})


def _candidates(call: ToolCall) -> dict[str, str]:
    return {row[0]: row[1] for row in _rows(call, "candidates") if len(row) > 1}


def _total(call: ToolCall) -> int:
    """Return how much a result says that there is."""
    if isinstance(total := call.data.get("total"), int):
        return total
    parts = _rows(call, "parts")
    return size_in(parts[0][-1]) if len(parts) == 1 and parts[0] else 0


def _entity(call: ToolCall) -> str:
    """Return the entity that a call is about, by the id that its name was read as."""
    given = str(call.arguments.get("entity", ""))
    return _names(call, "read").get(given, given)
