"""A memory as an answer: each path a line, both forms within the budget."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from kg_adapters.errors import InvalidRequest
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri, Literal, Node
from kg_server.budget import fitting
from kg_server.cursors import pack, unpack
from kg_server.memory.checking import Checked, Refusal
from kg_server.memory.network import Fact, Network
from kg_server.memory.result import AppendedResult, MemoryResult
from kg_server.memory.store import Appended
from kg_server.names import Names, names_of
from kg_server.results import Answer, fitted

MAX_FACTS: Final = 200
"""The most facts in one answer."""

LEAST_TOKENS: Final = 10
"""What the row of a fact takes at least, `["1","a:b","a:c","a:d","verified"]`."""

REFUSALS_SHARE: Final = 0.6
"""How much of the budget of an append may go to what it refused."""

SHOWN_NOTES: Final = 3


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
    most = _most(max_tokens)
    places = list(islice(_places(network, path, offset), most + 1))
    names = await _names(graph, places[:most], max_tokens)

    def page(count: int) -> Answer:
        shown, following = places[:count], None
        if count < len(places):
            following = pack(f"{places[count].path}.{places[count].offset}", graph.name, memory)
        result = MemoryResult(
            status="empty" if not shown else "ok" if following is None else "truncated",
            summary=_read_summary(network, count, cursor, following),
            facts=_rows(shown, names),
            labels=names.entity_labels(_entities(shown)),
            relations=names.relation_labels(_relations(shown)),
            total=network.size,
            cursor=following,
        )
        return Answer(result, _lines(shown, names))

    return fitted(page, min(len(places), most), max_tokens)


async def append_answer(
    graph: KGAdapter, *, memory: str, appended: Appended, checked: Checked, max_tokens: int
) -> Answer:
    """Return a memory after an append: whole where it fits, otherwise what was appended."""
    network = appended.network
    changed = _changed(network, appended.added)
    whole = list(_places(network, 0, 0)) if network.size <= _most(max_tokens) else []
    names = await _names(graph, [*whole, *changed], max_tokens)
    refused = shown_refusals(checked.refused, int(max_tokens * REFUSALS_SHARE))

    def answer(shown: Sequence[Place]) -> Answer:
        complete = len(shown) == network.size
        result = AppendedResult(
            status="ok" if complete else "truncated",
            summary=_append_summary(memory, appended, checked, shown=len(shown)),
            memory=memory,
            facts=_rows(shown, names),
            labels=names.entity_labels(_entities(shown)),
            relations=names.relation_labels(_relations(shown)),
            added=len(appended.added),
            refused=refused,
        )
        return Answer(result, (*(f"refused {each}" for each in refused), *_lines(shown, names)))

    if whole:
        everything = answer(whole)
        if everything.tokens <= max_tokens:
            return everything
    return fitted(lambda count: answer(changed[:count]), len(changed), max_tokens)


def shown_refusals(refused: Sequence[Refusal], max_tokens: int) -> list[str]:
    """Return a text for each refusal; where they are too long, the last are named without the reason."""
    texts = [str(each) for each in refused]
    fits = max(1, fitting(texts, max_tokens - 40))
    if fits >= len(texts):
        return texts
    rest = ", ".join(str(each.number) for each in refused[fits:])
    return [*texts[:fits], f"triples {rest}, for reasons that they give when sent alone"]


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


def _most(max_tokens: int) -> int:
    """Return how many facts an answer may show at most, whatever they are."""
    return min(MAX_FACTS, max_tokens // LEAST_TOKENS)


def _changed(network: Network, added: Iterable[Fact]) -> list[Place]:
    """Return where the facts of the last append stand: at the ends of their paths."""
    new = {fact.statement for fact in added}
    places: list[Place] = []
    for number, facts in enumerate(network.paths):
        start = len(facts)
        while start and facts[start - 1].statement in new:
            start -= 1
        places.extend(Place(number, offset, fact) for offset, fact in enumerate(facts[start:], start))
    return places


async def _names(graph: KGAdapter, places: Sequence[Place], max_tokens: int) -> Names:
    return await names_of(graph, [*_entities(places), *_relations(places)], max_tokens=max_tokens)


def _entities(places: Sequence[Place]) -> Collection[Node]:
    ends = (end for place in places for end in (place.fact.head, place.fact.tail))
    return dict.fromkeys(end for end in ends if not isinstance(end, Literal))


def _relations(places: Sequence[Place]) -> Collection[Iri]:
    return dict.fromkeys(place.fact.relation for place in places)


def _lines(places: Sequence[Place], names: Names) -> tuple[str, ...]:
    """Return paths as lines; one that begins before the first place says so."""
    lines: list[str] = []
    before: Place | None = None
    for place in places:
        if before is not None and (place.path, place.offset) == (before.path, before.offset + 1):
            lines[-1] += _step(place.fact, names)
        else:
            lines.append(f"{_start(place, names)}{_step(place.fact, names)}")
        before = place
    return tuple(lines)


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


def _append_summary(memory: str, appended: Appended, checked: Checked, *, shown: int) -> str:
    added, network = len(appended.added), appended.network
    parts = [f"Kept {_counted(added, 'new fact')}; memory {memory} holds {_holdings(network)}."]
    known = len(checked.facts) - added
    if known:
        parts.append(f"{known} of the triples {'was' if known == 1 else 'were'} there already.")
    if checked.refused:
        parts.append(f"{_counted(len(checked.refused), 'triple')} refused: correct and send only these.")
    parts.extend(checked.notes[:SHOWN_NOTES])
    others = len(checked.notes) - SHOWN_NOTES
    if others > 0:
        parts.append(f"{others} more ids have another label in this graph.")
    if shown < network.size:
        new = "The new facts are here" if shown == added else f"{shown} of the new facts are here"
        parts.append(f"{new if added else 'They are not repeated here'}; memory-read shows all.")
    return " ".join(parts)
