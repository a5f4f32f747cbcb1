"""A memory as an answer: each path a line, both forms within the budget."""

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, TypeAlias

from kg_adapters.requests import read_cursor, write_cursor
from kg_adapters.terms import Iri, Literal, Node, Term
from kg_boundary.shown import counted, in_quotes, listed
from kg_server.answers.results import Answer, Status, fitted, fitting
from kg_server.memory.checking import Checked, RefusedTriple
from kg_server.memory.rechecking import Rechecked
from kg_server.memory.store import Appended, Contents, KeptFact, MemoryRecord, Place
from kg_server.memory.tool import AppendedResult, MemoryResult
from kg_server.names import MAX_LABEL, Names, in_graph

MAX_FACTS: Final = 200
"""The most facts in one answer."""

LEAST_TOKENS: Final = 10
"""What the row of a fact takes at least, `["1","a:b","a:c","a:d","verified"]`."""

REFUSALS_SHARE: Final = 0.6
"""How much of the budget of an append may go to what it refused."""

SHOWN_NOTES: Final = 3
SHOWN_DAMAGED: Final = 10


_Names: TypeAlias = Mapping[str, Names]
NamesOf: TypeAlias = Callable[[Sequence[KeptFact]], Awaitable[_Names]]
"""Returns what the terms of facts are called, by the graphs of the facts."""

Recheck: TypeAlias = Callable[[Iterable[KeptFact]], Awaitable[Rechecked]]
"""Checks facts again, in their graphs."""


async def read_answer(
    names_of: NamesOf, recheck: Recheck, *, memory: str, contents: Contents, cursor: str | None, max_tokens: int
) -> Answer:
    """Return a page of a memory, whose facts are verified where their graphs still hold them.

    What is appended between two pages is seen if it stands behind the cursor; nothing is lost or seen twice.

    Args:
        names_of: Returns what the terms of facts are called.
        recheck: Checks facts again.
        memory: The handle.
        contents: What the memory holds.
        cursor: Where the page begins.
        max_tokens: How long it may be.

    Raises:
        InvalidRequest: The cursor is damaged, or belongs to another memory.
    """
    first_graph = contents.memory.graphs[0]
    start = (0, 0) if cursor is None else read_cursor(cursor, 2, memory, first_graph)
    most = most_shown(max_tokens)
    first = bisect_left(contents.places, start, key=lambda place: place[:2])
    places = contents.places[first : first + most + 1]
    names = await names_of([place.fact for place in places[:most]])
    checked = await recheck(place.fact for place in places[:most])
    places, lost = _as_now(places, checked)
    unasked = _unasked(contents, checked)

    def page(count: int) -> Answer:
        shown, following = places[:count], None
        if count < len(places):
            following = write_cursor((places[count].path, places[count].offset), memory, first_graph)
        result = MemoryResult(
            status=_status(contents, count, following),
            summary=_read_summary(contents, count, cursor, following) + _lost(shown, lost) + unasked,
            facts=_rows(shown, names),
            labels=_entity_labels(shown, names),
            relations=_relation_labels(shown, names),
            total=contents.memory.facts,
            cursor=following,
        )
        return Answer(result, _lines(shown, names))

    return fitted(page, min(len(places), most), max_tokens)


async def append_answer(
    names_of: NamesOf, recheck: Recheck, *, appended: Appended, checked: Checked, max_tokens: int
) -> Answer:
    """Return a memory after an append: whole where it fits, otherwise what was appended."""
    changed = sorted(appended.added, key=lambda place: place[:2])
    whole = () if appended.whole is None else appended.whole.places
    names = await names_of([place.fact for place in (*whole, *changed)])
    new = {place.fact for place in changed}
    whole, lost = _as_now(whole, await recheck(place.fact for place in whole if place.fact not in new))
    refused = shown_refusals(checked.refused, int(max_tokens * REFUSALS_SHARE))

    def answer(shown: Sequence[Place]) -> Answer:
        complete = len(shown) == appended.memory.facts
        result = AppendedResult(
            status="ok" if complete else "truncated",
            summary=_append_summary(appended, checked, shown=len(shown)) + _lost(shown, lost),
            memory=appended.handle,
            facts=_rows(shown, names),
            labels=_entity_labels(shown, names),
            relations=_relation_labels(shown, names),
            added=len(appended.added),
            refused=refused,
            read=dict(checked.read) or None,
        )
        return Answer(result, (*(f"refused {each}" for each in refused), *_lines(shown, names)))

    if whole:
        everything = answer(whole)
        if everything.tokens <= max_tokens:
            return everything
    return fitted(lambda count: answer(changed[:count]), len(changed), max_tokens)


def shown_refusals(refused: Sequence[RefusedTriple], max_tokens: int) -> list[str]:
    """Return a text for each refusal; where they are too long, the last are named without the reason."""
    texts = [str(each) for each in refused]
    fits = max(1, fitting(texts, max_tokens - 40))
    if fits >= len(texts):
        return texts
    rest = ", ".join(str(each.number) for each in refused[fits:])
    return [*texts[:fits], f"triples {rest}, for reasons that they give when sent alone"]


def most_shown(max_tokens: int) -> int:
    """Return how many facts an answer may show at most, whatever they are."""
    return min(MAX_FACTS, max_tokens // LEAST_TOKENS)


def _as_now(places: Sequence[Place], checked: Rechecked) -> tuple[tuple[Place, ...], Collection[Place]]:
    """Return places with the facts that are lost unverified, and these places."""
    lost = {
        place: place._replace(fact=replace(place.fact, verified=False))
        for place in places
        if place.fact in checked.lost
    }
    return tuple(lost.get(place, place) for place in places), set(lost.values())


def _lost(shown: Sequence[Place], lost: Collection[Place]) -> str:
    """Return a sentence on the facts that were verified and are not any more; nothing where there are none here."""
    number = sum(place in lost for place in shown)
    return (
        f" {number} of those here {'is' if number == 1 else 'are'} no longer in the graph: unverified."
        if number
        else ""
    )


def _unasked(contents: Contents, checked: Rechecked) -> str:
    """Return a sentence on the graphs that were not asked again; nothing where all were."""
    last = datetime.fromtimestamp(contents.memory.touched, UTC).date()
    of = listed(checked.unasked, ", ", SHOWN_NOTES)
    return f" Facts of {of} were verified when they were appended, up to {last}." if checked.unasked else ""


def _entities(places: Sequence[Place]) -> Collection[Node]:
    ends = (end for place in places for end in (place.fact.head, place.fact.tail))
    return dict.fromkeys(end for end in ends if not isinstance(end, Literal))


def _relations(places: Sequence[Place]) -> Collection[Iri]:
    return dict.fromkeys(place.fact.relation for place in places)


def _entity_labels(places: Sequence[Place], names: _Names) -> dict[str, str]:
    """Return the labels of entities by short id; of an id in two graphs, in the first that it stands in."""
    shown = [names[name].entity_labels(_entities(of)) for name, of in _by_graph(places).items()]
    return {short: label for each in reversed(shown) for short, label in each.items()}


def _relation_labels(places: Sequence[Place], names: _Names) -> dict[str, str]:
    shown = [names[name].relation_labels(_relations(of)) for name, of in _by_graph(places).items()]
    return {short: label for each in reversed(shown) for short, label in each.items()}


def _by_graph(places: Sequence[Place]) -> Mapping[str, Sequence[Place]]:
    found: dict[str, list[Place]] = {}
    for place in places:
        found.setdefault(place.fact.graph, []).append(place)
    return found


def _lines(places: Sequence[Place], names: _Names) -> tuple[str, ...]:
    """Return paths as lines; one that begins before the first place says so."""
    lines: list[str] = []
    before: Place | None = None
    for place in places:
        if before is not None and (place.path, place.offset) == (before.path, before.offset + 1):
            lines[-1] += _step(place.fact, names[place.fact.graph])
        else:
            here = names[place.fact.graph]
            lines.append(f"{_start(place, here)}{_step(place.fact, here)}")
        before = place
    return tuple(lines)


def _start(place: Place, names: Names) -> str:
    return f"{'… ' if place.offset else ''}{names.entity(place.fact.head)}"


def _step(fact: KeptFact, names: Names) -> str:
    mark = in_graph(fact.graph) + ("" if fact.verified else ", unverified")
    # What the graph holds is found again by what people write; of anything else the datatype is all there is.
    tail = names.plain(fact.tail, fact.relation) if fact.verified and isinstance(fact.tail, Literal) else None
    return f" -[{names.relation(fact.relation)}{mark}]-> {tail or _whole(fact.tail, names)}"


def _whole(tail: Term, names: Names) -> str:
    return names.literal(tail) if isinstance(tail, Literal) else names.entity(tail)


def _rows(places: Sequence[Place], names: _Names) -> list[list[str]]:
    return [
        [
            str(path + 1),
            here.entity_id(fact.head),
            here.relation_id(fact.relation),
            here.literal(fact.tail) if isinstance(fact.tail, Literal) else here.entity_id(fact.tail),
            "verified" if fact.verified else "unverified",
            *([fact.graph] if fact.graph else ()),
        ]
        for path, _, fact in places
        for here in (names[fact.graph],)
    ]


def _holdings(memory: MemoryRecord) -> str:
    marked = f", {memory.unverified:,} of them unverified" if memory.unverified else ""
    return f"{counted(memory.facts, 'fact')} in {counted(memory.paths, 'path')}{marked}"


def _damaged(contents: Contents | None) -> str:
    """Return what is said of damage, after a sentence; nothing where there is none."""
    if contents is None or not contents.damaged:
        return ""
    places = listed(map(str, contents.damaged), ", ", SHOWN_DAMAGED)
    return (
        f" Left out: {counted(len(contents.damaged), 'fact')} damaged in the storage (of memory "
        f"{contents.memory.number} there, in the order of appending: {places}). The others are as they were written."
    )


def _status(contents: Contents, shown: int, following: str | None) -> Status:
    if following is not None or contents.damaged:
        return "truncated"
    return "ok" if shown else "empty"


def _read_summary(contents: Contents, shown: int, cursor: str | None, following: str | None) -> str:
    held = f"The memory holds {_holdings(contents.memory)}"
    if following is not None:
        return f'{held}; {shown} here. Next page: cursor="{following}".{_damaged(contents)}'
    if cursor is not None:
        return f"{held}; the last {shown} here.{_damaged(contents)}"
    return f"{held}{'; ' + str(shown) + ' here' if contents.damaged else ', all here'}.{_damaged(contents)}"


def _append_summary(appended: Appended, checked: Checked, *, shown: int) -> str:
    added, held, whole = len(appended.added), appended.memory, appended.whole
    parts = [f"Kept {counted(added, 'new fact')}; memory {appended.handle} holds {_holdings(held)}.{_damaged(whole)}"]
    known = len(checked.facts) - added
    if known:
        parts.append(f"{known} of the triples {'was' if known == 1 else 'were'} there already.")
    if checked.read:
        told = [f"{in_quotes(name, MAX_LABEL)} as {id_}" for name, id_ in list(checked.read.items())[:SHOWN_NOTES]]
        rest = len(checked.read) - len(told)
        parts.append(f"Read {', '.join(told)}{f' and {rest} more' if rest else ''}.")
    if checked.refused:
        parts.append(f"{counted(len(checked.refused), 'triple')} refused: correct and send only these.")
    parts.extend(checked.notes[:SHOWN_NOTES])
    others = len(checked.notes) - SHOWN_NOTES
    if others > 0:
        parts.append(f"{others} more ids have another label in this graph.")
    if shown < held.facts - (0 if whole is None else len(whole.damaged)):
        new = "The new facts are here" if shown == added else f"{shown} of the new facts are here"
        parts.append(f"{new if added else 'They are not repeated here'}; memory-read shows all.")
    return " ".join(parts)
