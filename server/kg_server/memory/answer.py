"""A memory as an answer: each path a line, within the budget."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from kg_adapters.errors import InvalidRequest
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri, Literal, Node
from kg_server.budget import BYTES_PER_TOKEN, fitting, token_count
from kg_server.cursors import pack, unpack
from kg_server.memory.checking import Checked, Refusal
from kg_server.memory.network import Fact, Network
from kg_server.memory.result import AppendedResult, MemoryResult
from kg_server.memory.store import Appended
from kg_server.names import Names, names_of
from kg_server.results import Answer

MAX_FACTS: Final = 200
"""The most facts in one answer."""

REFUSALS_SHARE: Final = 0.6
RESERVED_TOKENS: Final = 110


class Place(NamedTuple):
    """Where a fact stands: the number of its path and its offset there, both from 0. It stays there for ever."""

    path: int
    offset: int
    fact: Fact


async def read_answer(
    graph: KGAdapter, *, memory: str, network: Network, cursor: str | None, max_tokens: int
) -> Answer:
    """Return a page of a memory.

    What is appended between two pages is seen if it stands behind the cursor; nothing is lost or seen twice.

    Raises:
        InvalidRequest: The cursor is damaged, or belongs to another memory.
    """
    path, offset = (0, 0) if cursor is None else _position(unpack(cursor, graph.name, memory))
    places = list(islice(_places(network, path, offset), MAX_FACTS + 1))
    names = await _names(graph, places[:MAX_FACTS], max_tokens)
    lines, count = _lines(places[:MAX_FACTS], names, max_tokens - RESERVED_TOKENS)
    following = None
    if count < len(places):
        following = pack(f"{places[count].path}.{places[count].offset}", graph.name, memory)
    shown = places[:count]
    result = MemoryResult(
        status="empty" if not shown else "ok" if following is None else "truncated",
        summary=_read_summary(network, count, cursor, following),
        memory=memory,
        facts=_rows(shown, names),
        labels=names.entity_labels(_entities(shown)),
        relations=names.relation_labels(_relations(shown)),
        total=network.size,
        paths=len(network.paths),
        cursor=following,
    )
    return Answer(result, tuple(lines))


async def append_answer(
    graph: KGAdapter, *, memory: str, appended: Appended, checked: Checked, max_tokens: int
) -> Answer:
    """Return a memory after an append: whole where it fits, otherwise what was appended."""
    network = appended.network
    whole = list(islice(_places(network, 0, 0), MAX_FACTS))
    changed = _changed(network, appended.added)
    names = await _names(graph, [*whole, *changed], max_tokens)
    above = [*refusal_lines(checked.refused, int(max_tokens * REFUSALS_SHARE)), *checked.notes]
    room = max_tokens - RESERVED_TOKENS - token_count("\n".join(above))
    shown = whole
    lines, count = _lines(whole, names, room)
    if count < network.size:
        shown = changed
        lines, count = _lines(changed, names, room)
    complete = count == network.size
    shown = shown[:count]
    result = AppendedResult(
        status="ok" if complete and not checked.refused else "truncated",
        summary=_append_summary(memory, appended, checked, complete=complete),
        memory=memory,
        facts=_rows(shown, names),
        labels=names.entity_labels(_entities(shown)),
        relations=names.relation_labels(_relations(shown)),
        total=network.size,
        paths=len(network.paths),
        added=len(appended.added),
        refused=[str(each) for each in checked.refused],
    )
    return Answer(result, (*above, *lines))


def refusal_lines(refused: Sequence[Refusal], max_tokens: int) -> Sequence[str]:
    """Return a line for each refusal; where they are too long, the last are named without the reason."""
    lines = [f"refused {each}" for each in refused]
    fits = max(1, fitting(lines, max_tokens - 40))
    if fits >= len(lines):
        return lines
    rest = ", ".join(str(each.number) for each in refused[fits:])
    return [*lines[:fits], f"refused too, for reasons that they give when sent alone: triples {rest}"]


def _position(text: str) -> tuple[int, int]:
    path, dot, offset = text.partition(".")
    if not (dot and all(part.isdecimal() and part.isascii() and len(part) < 10 for part in (path, offset))):
        raise InvalidRequest("This cursor is damaged. Copy it unchanged from the answer, or leave it out.")
    return int(path), int(offset)


def _places(network: Network, path: int, offset: int) -> Iterator[Place]:
    for number, facts in enumerate(network.paths[path:], path):
        start = offset if number == path else 0
        for place, fact in enumerate(facts[start:], start):
            yield Place(number, place, fact)


def _changed(network: Network, added: Iterable[Fact]) -> list[Place]:
    new = {fact.statement for fact in added}
    return [place for place in _places(network, 0, 0) if place.fact.statement in new]


async def _names(graph: KGAdapter, places: Sequence[Place], max_tokens: int) -> Names:
    return await names_of(graph, [*_entities(places), *_relations(places)], max_tokens=max_tokens)


def _entities(places: Sequence[Place]) -> Collection[Node]:
    ends = (end for place in places for end in (place.fact.head, place.fact.tail))
    return dict.fromkeys(end for end in ends if not isinstance(end, Literal))


def _relations(places: Sequence[Place]) -> Collection[Iri]:
    return dict.fromkeys(place.fact.relation for place in places)


def _lines(places: Sequence[Place], names: Names, max_tokens: int) -> tuple[list[str], int]:
    """Return paths as lines, and how many facts fit; the first always does."""
    lines: list[str] = []
    room = max_tokens * BYTES_PER_TOKEN
    before: Place | None = None
    for count, place in enumerate(places):
        goes_on = before is not None and (place.path, place.offset) == (before.path, before.offset + 1)
        text = _step(place.fact, names) if goes_on else f"{_start(place, names)}{_step(place.fact, names)}"
        room -= len(text.encode()) + (0 if goes_on else 1)
        if room < 0 and count:
            return lines, count
        if goes_on:
            lines[-1] += text
        else:
            lines.append(text)
        before = place
    return lines, len(places)


def _start(place: Place, names: Names) -> str:
    return f"{'… ' if place.offset else ''}{names.entity(place.fact.head)}"


def _step(fact: Fact, names: Names) -> str:
    mark = "" if fact.verified else ", unverified"
    return f" -[{names.relation(fact.relation)}{mark}]-> {names.term(fact.tail)}"


def _rows(places: Sequence[Place], names: Names) -> list[list[str]]:
    return [
        [
            str(path + 1),
            names.entity_id(fact.head),
            names.relation_id(fact.relation),
            names.literal(fact.tail) if isinstance(fact.tail, Literal) else names.entity_id(fact.tail),
            "verified" if fact.verified else "unverified",
        ]
        for path, _, fact in places
    ]


def _holdings(network: Network) -> str:
    unverified = network.unverified
    marked = f", {unverified:,} of them unverified" if unverified else ""
    return f"{_counted(network.size, 'fact')} in {_counted(len(network.paths), 'path')}{marked}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _read_summary(network: Network, shown: int, cursor: str | None, following: str | None) -> str:
    held = f"The memory holds {_holdings(network)}"
    if following is not None:
        return f'{held}; {shown} here. Next page: cursor="{following}".'
    return f"{held}; the last {shown} here." if cursor is not None else f"{held}, all here."


def _append_summary(memory: str, appended: Appended, checked: Checked, *, complete: bool) -> str:
    parts = [f"Kept {_counted(len(appended.added), 'new fact')}; memory {memory} holds {_holdings(appended.network)}."]
    known = len(checked.facts) - len(appended.added)
    if known:
        parts.append(f"{known} of the triples {'was' if known == 1 else 'were'} there already.")
    if checked.refused:
        parts.append(f"{_counted(len(checked.refused), 'triple')} refused: correct and send only these.")
    if not complete:
        parts.append("Only what is new is here; memory-read pages through all.")
    return " ".join(parts)
