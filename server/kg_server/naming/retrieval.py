"""Retrieve: what texts name, each with its verdict."""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Final, NamedTuple, TypeAlias, TypedDict

from pydantic import TypeAdapter, ValidationError

from kg_adapters.errors import InvalidRequest, KGError, UnknownName
from kg_adapters.models import Candidate, Count
from kg_adapters.protocol import KGAdapter, SupportsSearchNote
from kg_adapters.terms import Node
from kg_boundary.shown import in_quotes
from kg_server.answers.cards import Card, Sketches, entity_card, sketches_of
from kg_server.answers.intermediates import with_intermediates_of_rows
from kg_server.answers.results import Answer, CandidatesResult, Verdict, fitted
from kg_server.concurrency import all_of, off_loop
from kg_server.elsewhere import Places, said_of
from kg_server.names import MAX_LABEL, Names, shown_label
from kg_server.naming.class_names import class_named
from kg_server.naming.close import POOL, judged
from kg_server.naming.entities import (
    AT_ONCE,
    MOST_NAMESAKES,
    MOST_NEAR,
    Identity,
    how_read,
    identify,
)
from kg_server.naming.meaning import Meaning
from kg_server.naming.misspelling import alike
from kg_server.naming.refusals import none_answered
from kg_server.naming.valued import MOST_NAMED, ValueText, bearers_of_value, read_as_value, said_of_value

_COMPARED: Final = 50
"""With how many names each text is compared, about."""
_MOST_LISTED: Final = 50
_MOST_CARDS: Final = 8
_MOST_LINKED: Final = 20
"""Of how many things it is shown which other graphs have them."""
_MOST_SHOWN: Final = 100
"""How many namesakes are shown, where they fit."""
_NEAR: Final = " Near, not the same:"
_Shown: TypeAlias = tuple[str, str]
"""A graph and the id of something that it answered."""

_WEAKEST_FIRST: Final[Sequence[Verdict]] = ("none", "loose", "value", "close", "exact")


class _Block(NamedTuple):
    """The lines about one candidate, with its id, its name and its card among them; those about a text have no id."""

    lines: tuple[str, ...]
    entity: str = ""
    name: str = ""
    card: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Retrieved(Answer):
    """What one graph answers: its lines by what they are about."""

    blocks: tuple[_Block, ...] = ()

    @classmethod
    def of(cls, result: CandidatesResult, blocks: Iterable[_Block]) -> "_Retrieved":
        """Return an answer with the lines of some blocks."""
        every = tuple(blocks)
        return cls(result, tuple(chain.from_iterable(block.lines for block in every)), every)


def grouped(found: Mapping[str, Answer | KGError], places: Mapping[str, Mapping[str, Places]]) -> Answer:
    """Return one answer of what several graphs answered by their names: a part for each, or why there is none of it.

    What is one thing in several stands with the first: its card there, and the rest of it directly below.

    Args:
        found: The answers.
        places: By graph and id, under which ids other graphs have the same thing.

    Raises:
        KGError: None answered.
    """
    parts = {name: each for name, each in found.items() if isinstance(each, Answer)}
    failures = {name: each for name, each in found.items() if isinstance(each, KGError)}
    if not parts:
        raise none_answered(failures)
    results = {name: each.result for name, each in parts.items() if isinstance(each.result, CandidatesResult)}
    every = list(results.values())
    texts = dict.fromkeys(text for each in every for text in each.matches or ())
    whole = "truncated" if failures or any(each.status == "truncated" for each in every) else "ok"
    same = _same(results, places)
    result = CandidatesResult(
        status=whole if failures or any(each.candidates for each in every) else "empty",
        summary=" ".join((*_verdicts(found), *_said_of_same(same))),
        knowledge="stated" if any(each.knowledge == "stated" for each in every) else "unnamed",
        match=_best([each.match for each in every]),
        matches={text: _best([each.matches[text] for each in every if each.matches]) for text in texts} or None,
        candidates=[[*row, name] for name, each in results.items() for row in each.candidates],
        missing=" ".join(filter(None, (*(each.missing for each in every), *map(str, failures.values())))) or None,
        cards={card: rows for name, each in results.items() for card, rows in _cards_in(each, name)} or None,
        held=[row for each in every for row in each.held or ()] or None,
        values=[[*row, name] for name, each in results.items() for row in each.values or ()] or None,
        labels={short: text for each in reversed(every) for short, text in (each.labels or {}).items()} or None,
    )
    blocks = {name: each.blocks for name, each in parts.items() if isinstance(each, _Retrieved)}
    return Answer(result, tuple(_together(blocks, same)))


def _together(blocks: Mapping[str, Sequence[_Block]], same: Mapping[_Shown, Sequence[_Shown]]) -> Iterator[str]:
    """Yield the lines of several graphs, each below its graph, and what is one thing with something directly below."""
    cards = {(name, block.entity): block for name, of in blocks.items() for block in of if block.card}
    later = {each for others in same.values() for each in others}
    above = ""
    for name, block in ((name, block) for name, of in blocks.items() for block in of):
        if block.entity and (name, block.entity) in later:
            continue
        yield from (f"In {name}:",) if above != name else ()
        yield from block.lines
        above = name
        for other, entity in same.get((name, block.entity), ()):
            # The first says that it is the same, and what it is.
            if (rest := cards.pop((other, entity), None)) is not None:
                yield from (f"In {other}:", rest.name, *rest.card)
                above = other


def _verdicts(found: Mapping[str, Answer | KGError]) -> Iterator[str]:
    for name, each in found.items():
        # The lines of each graph stand further below.
        said = str(each) if isinstance(each, KGError) else each.result.summary
        yield f"{name}: {said.replace(_NEAR, ' What is near is not the same.')}"


def _best(verdicts: Sequence[Verdict]) -> Verdict:
    return max(verdicts, key=_WEAKEST_FIRST.index)


def _same(
    results: Mapping[str, CandidatesResult], places: Mapping[str, Mapping[str, Places]]
) -> dict[_Shown, Sequence[_Shown]]:
    """Return which of the things that graphs answered are one with the first of them."""
    shown = {(name, row[0]) for name, each in results.items() for row in each.candidates}
    found: dict[_Shown, Sequence[_Shown]] = {}
    for name in results:
        for entity, elsewhere in places.get(name, {}).items():
            same = {(other, each) for other, ids in elsewhere.items() for each in ids} & shown
            if same and (name, entity) in shown:
                found[name, entity] = sorted(same)
                shown -= same
    return found


def _said_of_same(same: Mapping[_Shown, Sequence[_Shown]]) -> Iterator[str]:
    """Yield which things are one: no name of theirs is ambiguous for that."""
    for (name, entity), of in same.items():
        others = "".join(f" and {each} in {other}" for other, each in of)
        yield f"{entity} in {name}{others} are one thing."


def _cards_in(result: CandidatesResult, graph: str) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the cards of one graph's answer by their ids, with the graph's name."""
    cards = result.cards or {}
    if result.card is not None:
        cards = {result.candidates[0][0]: result.card}
    for entity, rows in cards.items():
        yield f"{entity} [{graph}]", rows


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was asked, and the class among whose instances."""

    identities: Sequence[Identity]
    kind: Node | None
    limit: int
    values: Mapping[str, ValueText]

    def shown(self, identity: Identity) -> Sequence[Candidate]:
        """Return who is shown: all who bear the name, or else have the value, or are near it, of several texts few."""
        if identity.named:
            return identity.named[:_MOST_SHOWN]
        if identity.uses:
            return bearers_of_value(identity.text, identity.uses)[: max(self.limit, MOST_NAMED)]
        return identity.near[: self.limit if len(self.identities) == 1 else min(self.limit, MOST_NEAR)]

    def kept(self, count: int) -> Sequence[Sequence[Candidate]]:
        """Return of each text some of those who are shown, `count` in all: the first of each before any second."""
        shown = [self.shown(identity) for identity in self.identities]
        places = sorted((place, number) for number, of in enumerate(shown) for place in range(len(of)))
        sizes = Counter(number for _, number in places[:count])
        return [of[: sizes[number]] for number, of in enumerate(shown)]


async def retrieval(
    graph: KGAdapter,
    meaning: Meaning,
    *,
    text: str | Sequence[str],
    limit: int,
    type: str | None,
    max_tokens: int,
    elsewhere: Callable[[Collection[Node]], Awaitable[Mapping[Node, Places]]],
) -> Answer:
    """Answer Retrieve; `elsewhere` returns under which ids other graphs have nodes.

    Raises:
        InvalidRequest: A text is blank, or the type names no class, or several.
        UnknownEntity: The graph does not mention the type.
    """
    texts = [each.strip() for each in ([text] if isinstance(text, str) else text)]
    if "" in texts:
        which = f"Item {texts.index('') + 1} of the texts" if len(texts) > 1 else "The text"
        raise InvalidRequest(f"{which} is blank. Give a name, or words that describe what you look for.")
    kind, misread = (None, "") if type is None else await _kind(graph, type)
    found: Sequence[Identity] = [each.widened for each in await identify(graph, list(dict.fromkeys(texts)), type=kind)]
    if isinstance(text, str) and not found[0].uses and (not found[0].named or found[0].is_misnamed):
        found = await _listed(graph, found[0], kind)
    found, missing = await _with_meaning(meaning, found, kind)
    asked = await _asked_of(graph, found, kind, limit)
    identities = asked.identities
    told = await _sketches(graph, asked)
    cards = await _cards(graph, identities)
    named = [each.entity for identity in identities if identity.named for each in asked.shown(identity)]
    also = {node: said_of(places) for node, places in (await elsewhere(named[:_MOST_LINKED])).items()}
    note = misread + _note(graph, identities) + (f" Names alone were compared: {missing}." if missing else "")
    most = sum(len(asked.shown(identity)) for identity in identities)

    def build(count: int, cards: Mapping[Node, Card]) -> Answer:
        kept = asked.kept(count)
        missed = any(len(of) < len(identity.named) for of, identity in zip(kept, identities, strict=True))
        result = CandidatesResult(
            status="empty" if not most else "truncated" if missed or count < most else "ok",
            summary=_summary(asked, kept, told.names) + note,
            knowledge="stated" if any(each.named or each.uses for each in identities) else "unnamed",
            match=next(verdict for verdict in _WEAKEST_FIRST if any(each.match == verdict for each in identities)),
            matches={identity.text: identity.match for identity in identities} if len(identities) > 1 else None,
            candidates=[_row(each, number, told, also) for number, of in enumerate(kept, start=1) for each in of],
            missing=missing or None,
            values=[row for each in asked.values.values() for row in each.rows] or None,
            **_card_fields(cards, told.names, alone=len(identities) == 1),
        )
        return _Retrieved.of(result, _blocks(asked, kept, told, cards, also))

    def fit() -> Answer:
        whole = build(most, cards)
        fits = whole.tokens <= max_tokens
        return whole if fits else fitted(lambda count: build(count, {}), most, max_tokens)

    return await off_loop(fit, _COMPARED * len(identities))


async def _asked_of(graph: KGAdapter, identities: Sequence[Identity], kind: Node | None, limit: int) -> _Asked:
    """Return what was asked, with how texts are values, and nothing near that merely has some letters in common."""
    values = {each.text: await read_as_value(graph, each.text, each.uses) for each in identities if each.uses}
    kept = [each if each.named or each.uses else replace(each, near=each.alike) for each in identities]
    return _Asked(kept, kind, limit, values)


async def _kind(graph: KGAdapter, text: str) -> tuple[Node, str]:
    """Return the class that the type stands for, and how it was read; or fail with an error that is about the type."""
    try:
        found = await class_named(graph, text)
        return found.nodes[0], f" {said}" if (said := await how_read(graph, found)) else ""
    except UnknownName as error:
        raise InvalidRequest(f"There is no type {in_quotes(text, MAX_LABEL)} here. {error}") from error


class _CardFields(TypedDict):
    """The fields of an answer that are about cards."""

    card: list[list[str]] | None
    cards: dict[str, list[list[str]]] | None
    held: list[list[str]] | None
    labels: dict[str, str] | None


def _card_fields(cards: Mapping[Node, Card], names: Names, *, alone: bool) -> _CardFields:
    rows = {names.entity_id(node): card.rows.cells() for node, card in cards.items()}
    fields = [card.rows.fields() for card in cards.values()]
    return {
        "card": next(iter(rows.values()), None) or None if alone else None,
        "cards": None if alone else rows or None,
        "held": [row for each in fields for row in each["held"] or ()] or None,
        "labels": {short: text for each in fields for short, text in (each["labels"] | each["relations"]).items()}
        or None,
    }


async def _listed(graph: KGAdapter, whole: Identity, kind: Node | None) -> Sequence[Identity]:
    """Return the verdicts on the texts that a text lists, where each is a name; otherwise that on the text."""
    texts = _texts_in(whole.text)
    if not 2 <= len(texts) <= _MOST_LISTED:
        return [whole]
    found = [each.widened for each in await identify(graph, texts, type=kind)]
    return found if all((each.named and not each.is_misnamed) or each.uses for each in found) else [whole]


def _texts_in(text: str) -> list[str]:
    """Return the texts of a list: in JSON, or with commas between them."""
    try:
        parts = TypeAdapter(list[str]).validate_json(text)
    except ValidationError:
        parts = text.split(",")
    return list(dict.fromkeys(filter(None, map(str.strip, parts))))


async def _cards(graph: KGAdapter, identities: Sequence[Identity]) -> Mapping[Node, Card]:
    """Return the card of each entity that alone has its name; none where there are too many to be shown."""
    nodes = dict.fromkeys(each.nodes[0] for each in identities if len(each.named) == 1)
    if len(nodes) > _MOST_CARDS:
        return {}
    cards = await all_of([partial(entity_card, graph, node) for node in nodes], at_once=AT_ONCE)
    return {node: card for node, card in zip(nodes, cards, strict=True) if card is not None}


async def _with_meaning(meaning: Meaning, found: Sequence[Identity], kind: Node | None) -> tuple[list[Identity], str]:
    """Return the verdicts with what is near in meaning, and why nothing was looked for by meaning where that failed."""
    identities: list[Identity] = []
    missing = ""
    for each in found:
        if each.named or each.uses:
            identities.append(each)
            continue
        meant = await meaning.candidates(each.text, limit=POOL, type=kind)
        near = ranked(each.text, each.near, meant.candidates)
        identities.append(replace(each, match=judged(each.text, near), near=tuple(near)))
        missing = missing or meant.missing
    return identities, missing


def ranked(text: str, named: Sequence[Candidate], meant: Sequence[Candidate]) -> Sequence[Candidate]:
    """Return one ranking of what was found by name and by meaning, each entity once.

    Where a text is no name but says what something is, single words of it match many names. So these count as much as
    the whole name is like the whole text, beside the cosines.
    """
    if not meant:
        return named
    whole = [replace(each, score=alike(text, each.matched_text)) for each in named]
    best: dict[Node, Candidate] = {}
    for each in sorted((*whole, *meant), key=lambda candidate: -candidate.score):
        best.setdefault(each.entity, each)
    return list(best.values())


async def _sketches(graph: KGAdapter, asked: _Asked) -> Sketches:
    shown = {identity.text: [each.entity for each in asked.shown(identity)] for identity in asked.identities}
    namesakes = [shown[identity.text] for identity in asked.identities if identity.named]
    nodes = list(dict.fromkeys(chain.from_iterable(shown.values())))
    told = await sketches_of(graph, nodes, namesakes, () if asked.kind is None else (asked.kind,))
    if len(nodes) == 1:
        # Its card holds what it has.
        return told
    return replace(told, names=await with_intermediates_of_rows(graph, [(node,) for node in nodes], told.names))


def _row(candidate: Candidate, number: int, told: Sketches, also: Mapping[Node, str]) -> list[str]:
    node = candidate.entity
    return [
        told.names.entity_id(node),
        shown_label(told.names.labels.get(node, node.local_part)),
        told.description(node),
        told.types(node),
        f"{candidate.score:.2f}",
        _how(candidate),
        told.fact(node),
        str(number),
        *filter(None, (also.get(node),)),
    ]


def _how(candidate: Candidate) -> str:
    return f"{candidate.matched_by} {in_quotes(candidate.matched_text, MAX_LABEL)}"


def _blocks(
    asked: _Asked,
    kept: Sequence[Sequence[Candidate]],
    told: Sketches,
    cards: Mapping[Node, Card],
    also: Mapping[Node, str],
) -> Iterator[_Block]:
    """Yield one line for each candidate, above its card; of several texts below one on what is not simply a name.

    Where other graphs have it stands below its card, or at the end of its line.
    """
    left = dict(cards)
    for identity, shown in zip(asked.identities, kept, strict=True):
        if len(asked.identities) > 1 and (len(identity.named) != 1 or identity.match == "close"):
            yield _Block((_verdict(identity, shown, asked, told.names),))
        # Who has a value is named above.
        for each in () if identity.uses else shown:
            elsewhere = also.get(each.entity, "")
            card = left.pop(each.entity, None) if len(identity.named) == 1 else None
            lines = [" | ".join(filter(None, (_line(each, told), elsewhere)))]
            if card is not None:
                lines = [_line(each, told), *card.lines, *filter(None, (elsewhere,))]
            node, facts = each.entity, () if card is None else card.lines
            yield _Block(tuple(lines), told.names.entity_id(node), told.names.entity(node), facts)


def _line(candidate: Candidate, told: Sketches) -> str:
    parts = list(told.of(candidate.entity))
    if candidate.matched_by not in {"id", "value"} and candidate.matched_text != told.names.labels.get(
        candidate.entity
    ):
        parts.append(_how(candidate))
    return " | ".join(parts)


def _summary(asked: _Asked, kept: Sequence[Sequence[Candidate]], names: Names) -> str:
    if len(asked.identities) == 1:
        return _verdict(asked.identities[0], kept[0], asked, names)
    counts = Counter(identity.match for identity in asked.identities)
    unnamed = counts["loose"] + counts["none"]
    many = {
        "exact": counts["exact"],
        "close": counts["close"],
        "a value": counts["value"],
        "named by nothing here": unnamed,
    }
    said = ", ".join(f"{number} {how}" for how, number in many.items() if number)
    return f"{len(asked.identities)} texts: {said}."


def _verdict(identity: Identity, shown: Sequence[Candidate], asked: _Asked, names: Names) -> str:
    text = in_quotes(identity.text, MAX_LABEL)
    among = f" among {names.entity(asked.kind)}" if asked.kind is not None else ""
    several = len(identity.named) > 1
    cut = f", {len(shown)} of them here" if len(shown) < len(identity.named) else ""
    if identity.uses:
        return f"{said_of_value(asked.values[identity.text])}"
    if identity.by:
        return f"Exact: {text} names {names.entity(identity.named[0].entity)}{among}, {identity.by}."
    if identity.match == "exact":
        number = Count(len(identity.named), exact=len(identity.named) < MOST_NAMESAKES)
        things = f"{number} things{cut}" if several else "one thing"
        return f"Exact: {text} names {things}{among}."
    if identity.match == "close":
        meant = names.entity(identity.named[0].entity)
        others = f", the name of {len(identity.named)} things{cut}" if several else ""
        part = f", {identity.how}" if identity.is_part else ""
        return f"Close: read {text} as {meant}{part}{others}."
    if shown:
        return f"No entity{among} matches {text}.{_NEAR}"
    less = " without the type," if asked.kind is not None else ""
    listed = ", and several names as a list" if "," in identity.text else ""
    return f"No entity{among} matches {text}. Try{less} another spelling or fewer words{listed}."


def _note(graph: KGAdapter, identities: Sequence[Identity]) -> str:
    """Return what is to be known about the search where it did not find exactly what was asked for."""
    if all(identity.match in {"exact", "value"} for identity in identities) or not isinstance(
        graph, SupportsSearchNote
    ):
        return ""
    return f" {graph.search_note}" if graph.search_note else ""
