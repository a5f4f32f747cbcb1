"""Each triple of a call against the graph: what may be kept, what is refused and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kg_adapters.models import NO_FEATURES, Description, FeaturePage
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest
from kg_adapters.terms import Iri, Literal, Node, Term
from kg_boundary.shown import clipped, shown_within, visible_line
from kg_server.answers.values import may_mean, plain_value
from kg_server.memory.explanation import Stated, readings_of, reasons_for
from kg_server.memory.reading import Mention, Mentions, Reading, Value, echo
from kg_server.memory.store import Fact, MemoryLimits
from kg_server.names import MAX_LABEL, shown_literal

MAX_VALUES: Final = 1_000
"""How many values of one feature a literal is looked for among."""

_MAX_REASON: Final = 400
_MIN_CUT: Final = 20
_MAX_NOTED: Final = 60
_TOO_MANY_VALUES: Final = f"it cannot be checked: the head has more than {MAX_VALUES:,} values of this feature."


@dataclass(frozen=True, slots=True)
class Refusal:
    """A triple that may not be kept: its place in the call, from 1, what was written, and why."""

    number: int
    written: str
    reason: str

    def __str__(self) -> str:
        return f"triple {self.number} ({self.written}): {self.reason}"


@dataclass(frozen=True, slots=True)
class Checked:
    """The triples of one call, judged one by one.

    Args:
        facts: What may be kept, in the order it was written.
        refused: Every other triple.
        notes: One line for every label that the graph gives to something else.
        read: The ids that names were read as.
    """

    facts: tuple[Fact, ...]
    refused: tuple[Refusal, ...]
    notes: tuple[str, ...]
    read: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class _Look:
    """What the graph says about stated triples, by number.

    Args:
        tails: The tail as the graph has it.
        unclear: Why a triple is neither there nor missing.
        unchecked: Why it would take too long to find a triple.
    """

    tails: dict[int, Term]
    unclear: dict[int, str]
    unchecked: dict[int, str]


async def check(
    graph: KGAdapter, written: Sequence[Sequence[str] | str], *, limits: MemoryLimits, allow_unverified: bool
) -> Checked:
    """Read triples and look each of them up; a bad one does not harm the others.

    Args:
        graph: Where they should be.
        written: The triples as a model writes them.
        limits: How long a fact may be: a value may be much longer than what was written of it.
        allow_unverified: Keep what the graph does not hold, marked; what cannot be read is refused all the same.
    """
    found = await readings_of(graph, written)
    readings, refused = found.read, dict(found.refused)
    described = await graph.describe([node for reading in readings.values() for node in _nodes(reading)])
    stated = {number: _stated(reading, described) for number, reading in readings.items()}
    look = await _look(graph, stated, described)
    refused.update(look.unclear)
    missing = {number: each for number, each in stated.items() if number not in {*look.tails, *look.unclear}}
    # A word is taken for a value only where the graph has it; it may as well be a name.
    words = {number: each.no_value for number, each in missing.items() if each.no_value}
    refused.update(words)
    missing = {number: each for number, each in missing.items() if number not in words}
    facts = {number: _fact(stated[number], tail) for number, tail in look.tails.items()}
    if allow_unverified:
        facts.update({number: _fact(each, None) for number, each in missing.items()})
    else:
        refused.update(look.unchecked)
        absent = {number: each for number, each in missing.items() if number not in look.unchecked}
        refused.update(zip(absent, await reasons_for(graph, list(absent.values()), described), strict=True))
    refused.update(_too_long(facts, limits))
    facts = {number: fact for number, fact in facts.items() if number not in refused}
    return Checked(
        facts=tuple(facts[number] for number in sorted(facts)),
        refused=tuple(_refusal(number, written[number], refused[number]) for number in sorted(refused)),
        notes=tuple(
            dict.fromkeys(note for number in sorted(facts) for note in _notes(graph, stated[number], described))
        ),
        read={name: graph.prefixes.shorten(node, place) for name, (place, node) in found.names.items()},
    )


def _fact(stated: Stated, tail: Term | None) -> Fact:
    """Return a fact with the tail that the graph has; without one, with the tail as it was written, unverified."""
    return Fact(stated.head.node, stated.relation_iri, stated.own_tail if tail is None else tail, tail is not None)


def _too_long(facts: Mapping[int, Fact], limits: MemoryLimits) -> dict[int, str]:
    sizes = {number: fact.bytes for number, fact in facts.items()}
    return {
        number: f"its texts take {size:,} bytes where a memory keeps at most {limits.fact_bytes:,} of one fact "
        "(memory_max_fact_kb). Keep another fact that proves the same, such as a shorter value."
        for number, size in sizes.items()
        if size > limits.fact_bytes
    }


def _nodes(reading: Reading) -> Sequence[Node]:
    tails = () if isinstance(reading.tail, Value) else reading.tail
    return [mention.node for mention in (*reading.head, *reading.relation, *tails)]


def _stated(reading: Reading, described: Mapping[Node, Description]) -> Stated:
    def choose(mentions: Mentions) -> Mention:
        return next((each for each in mentions if each.node in described), mentions[0])

    head, relation = choose(reading.head), choose(reading.relation)
    if isinstance(reading.tail, Value):
        return Stated(head, relation, reading.tail)
    tail = choose(reading.tail)
    return Stated(head, relation, tail, None if tail.node in described and not reading.either else reading.plain)


async def _look(graph: KGAdapter, stated: Mapping[int, Stated], described: Mapping[Node, Description]) -> _Look:
    known = {number: each for number, each in stated.items() if each.head.node in described}
    whole = {number: each.fact for number, each in known.items()}
    held = await graph.contains(frozenset(whole.values()))
    look = _Look({number: fact.tail for number, fact in whole.items() if fact in held}, {}, {})
    left = {number: each for number, each in known.items() if each.value is not None and number not in look.tails}
    # Most calls are about one or two features: a request for each answers for all heads.
    for relation in dict.fromkeys(each.relation_iri for each in left.values()):
        about = {number: each for number, each in left.items() if each.relation_iri == relation}
        heads = tuple(dict.fromkeys(each.head.node for each in about.values()))
        pages = await graph.features(FeatureRequest(heads, frozenset({relation}), MAX_VALUES))
        for number, each in about.items():
            if each.value is not None:
                _find_value(look, number, each.value, pages.get(each.head.node, NO_FEATURES), graph)
    return look


def _find_value(look: _Look, number: int, value: Value, page: FeaturePage, graph: KGAdapter) -> None:
    prefixes = graph.prefixes
    alike = _alike(value, [feature.value for feature in page.features])
    # Answers leave out the language that is expected: where others have the same text, it is meant.
    alike = [each for each in alike if _kind(each)[1] in graph.vocabulary.languages[:1]] or alike
    if alike and len({plain_value(each) or shown_literal(each, prefixes) for each in alike}) == 1:
        look.tails[number] = alike[0]
    elif alike:
        shown = " or ".join(shown_literal(literal, prefixes) for literal in alike[:3])
        look.unclear[number] = f"several values have this text. Write the one that is meant in full: {shown}."
    elif len(page.features) < page.total.value:
        look.unchecked[number] = _TOO_MANY_VALUES


def _alike(value: Value, values: Sequence[Literal]) -> Sequence[Literal]:
    """Return the values that may be meant, only one if it is exactly what was written."""
    if not value.quoted:
        return _alike_plainly(value, values)
    meant = value.literal
    same_kind = [each for each in values if _kind(each) == _kind(meant)]
    exact = [each for each in same_kind if each.value == meant.value]
    if exact:
        return exact[:1]
    bare = value.datatype is None and value.language is None
    return [each for each in (values if bare else same_kind) if _shows_as(each.value, value)]


def _alike_plainly(value: Value, values: Sequence[Literal]) -> Sequence[Literal]:
    """Return the values that a tail without quotes may mean: those that are written like this, before all others."""
    written = [each for each in values if plain_value(each) == value.text]
    return written or [each for each in values if may_mean(value.text, each) or _shows_as(each.value, value)]


def _kind(literal: Literal) -> tuple[Iri, str]:
    return literal.datatype, (literal.language or "").lower()


def _shows_as(value: str, meant: Value) -> bool:
    """Say whether a value is written like this: cut short as results show long ones, or with blanks for line breaks."""
    line = " ".join(value.split())
    for text in (meant.text, meant.written):
        if text.endswith("…") and len(text) > _MIN_CUT and any(each.startswith(text[:-1]) for each in (value, line)):
            return True
        if text in {value, line}:
            return True
    return False


def _refusal(number: int, written: Sequence[str] | str, reason: str) -> Refusal:
    return Refusal(number + 1, echo(written), clipped(visible_line(reason), _MAX_REASON))


def _notes(graph: KGAdapter, stated: Stated, described: Mapping[Node, Description]) -> Sequence[str]:
    mentions = (stated.head, stated.relation, *(() if isinstance(stated.tail, Value) else (stated.tail,)))
    notes: list[str] = []
    for mention in mentions:
        description = described.get(mention.node)
        real = None if description is None else description.label
        if mention.label is not None and real is not None and _plain(mention.label) != _plain(real):
            short = graph.prefixes.shorten(mention.node, "relation" if mention is stated.relation else "entity")
            here, written = shown_within(real, _MAX_NOTED), shown_within(mention.label, _MAX_NOTED)
            notes.append(f"{short} is {here} in this graph, not {written}; the id counts.")
    return notes


def _plain(label: str) -> str:
    return shown_within(label.strip(), MAX_LABEL).casefold()
