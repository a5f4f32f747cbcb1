"""Reads the rows of an endpoint's answers; no value is trusted to be of the kind that was asked for."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from kg_adapters.errors import BackendError, InvalidRequest
from kg_adapters.sparql.dialects import Dialect
from kg_adapters.sparql.queries import writing
from kg_adapters.sparql.queries.descriptions import TextChoice
from kg_adapters.sparql.queries.edges import EdgeQueries, GroupKey, Side, cut_short
from kg_adapters.sparql.solutions import Solutions, in_slices
from kg_adapters.terms import XSD_STRING, BlankNode, Iri, Literal, Node, Term
from kg_boundary.shown import in_quotes

Texts = dict[Iri, Literal]
"""By relation, the one text of a term that its label or description may be."""

_MOST_COUNTED: Final = 10**15
_SIDES: Final[Mapping[str, Side]] = {"out": "out", "in": "in", "value": "value"}


class Bindings:
    """One solution, whose values are asked for by name and kind."""

    __slots__ = ("_places", "_terms")

    def __init__(self, places: Mapping[str, int], terms: tuple[Term | None, ...]) -> None:
        self._places = places
        self._terms = terms

    def term(self, name: str) -> Term | None:
        """Return a value; None where it is unbound."""
        place = self._places.get(name)
        return None if place is None else self._terms[place]

    def node(self, name: str) -> Node | None:
        """Return a value that must not be a literal.

        Raises:
            BackendError: It is one.
        """
        term = self.term(name)
        if isinstance(term, Literal):
            raise _unexpected(name, term)
        return term

    def iri(self, name: str) -> Iri | None:
        """Return a value that must be an IRI.

        Raises:
            BackendError: It is something else.
        """
        term = self.term(name)
        if isinstance(term, Literal) and term.datatype == XSD_STRING:
            # Virtuoso returns constant IRIs as strings when it groups.
            return _iri(name, term)
        if isinstance(term, Literal | BlankNode):
            raise _unexpected(name, term)
        return term

    def literal(self, name: str) -> Literal | None:
        """Return a value that must be a literal.

        Raises:
            BackendError: It is something else.
        """
        term = self.term(name)
        if isinstance(term, Iri | BlankNode):
            raise _unexpected(name, term)
        return term

    def text(self, name: str) -> str | None:
        """Return the text of a value that must be a literal.

        Raises:
            BackendError: It is something else.
        """
        literal = self.literal(name)
        return None if literal is None else literal.value

    def number(self, name: str) -> int | None:
        """Return a value that must be a count.

        Raises:
            BackendError: It is something else.
        """
        term = self.term(name)
        if term is None:
            return None
        # Some engines count in decimals.
        digits = term.value.removesuffix(".0") if isinstance(term, Literal) else ""
        if not digits.isascii() or not digits.isdigit() or not int(digits[:20]) < _MOST_COUNTED:
            raise _unexpected(name, term)
        return int(digits)


def rows(solutions: Solutions) -> Iterator[Bindings]:
    """Yield the rows of an answer."""
    places = {name: place for place, name in enumerate(solutions.variables)}
    for terms in solutions.rows:
        yield Bindings(places, terms)


@dataclass(frozen=True)
class FactsAround:
    """The facts of entities, as answers state them.

    Args:
        known: The entities that the graph mentions.
        neighbors: How many distinct neighbours an entity has in all.
        counts: How many far ends each group of an entity has.
        members: The far ends that came along.
        texts: By term, what its label may be; a term without any has none.
        complete: Whether the endpoint sent all that it found.
        cut: The entities, and the side of their facts, whose counts are too small.
    """

    known: set[Node] = field(default_factory=set[Node])
    neighbors: dict[Node, int] = field(default_factory=dict[Node, int])
    counts: defaultdict[Node, dict[GroupKey, int]] = field(default_factory=lambda: defaultdict(dict))
    members: defaultdict[tuple[Node, GroupKey], set[Term]] = field(default_factory=lambda: defaultdict(set))
    texts: defaultdict[Node, Texts] = field(default_factory=lambda: defaultdict(dict))
    complete: bool = True
    cut: frozenset[tuple[Node, Side]] = frozenset()

    def is_exact(self, entity: Node, sides: Iterable[Side]) -> bool:
        """Return whether the counts of an entity's facts on some sides are complete."""
        return self.complete and not any((entity, side) in self.cut for side in sides)

    def merged(self, other: "FactsAround") -> "FactsAround":
        """Return the facts of both answers, which are about different entities, or different groups."""
        return FactsAround(
            self.known | other.known,
            self.neighbors | other.neighbors,
            defaultdict(dict, {**self.counts, **other.counts}),
            defaultdict(set, {**self.members, **other.members}),
            defaultdict(dict, {**self.texts, **other.texts}),
            self.complete and other.complete,
            self.cut | other.cut,
        )


class ValueRows(Protocol):
    """Reads the rows about values of a graph that states them in ways of its own, all values of an entity at once."""

    def take(self, entity: Node, row: Bindings) -> None:
        """Take in one row about an entity."""
        ...

    def said(self) -> Mapping[Node, Collection[tuple[Iri, Literal]]]:
        """Return the relations and values of each entity that has any."""
        ...

    @property
    def is_cut(self) -> bool:
        """Whether there may be more rows than were asked for."""
        ...


async def read_around(
    solutions: Solutions, asked: Sequence[Node], queries: EdgeQueries, values: ValueRows | None = None
) -> FactsAround:
    """Return the facts in the answer to one of `EdgeQueries`.

    Args:
        solutions: The answer.
        asked: The entities that the query was about.
        queries: What wrote the query; blank nodes that its answers open are read as though they were asked about.
        values: What reads the rows about values, where they are not read as they are.

    Raises:
        BackendError: A value is not of the kind that was asked for.
    """
    found = FactsAround(complete=not solutions.truncated)
    entities = named(asked, queries.dialect)
    async for some in in_slices(rows(solutions)):
        for row in some:
            term = row.term("e")
            opened = term if queries.opens_blank_nodes and isinstance(term, BlankNode) else None
            entity = entities.get(str(term), opened)
            if entity is None:
                continue
            if values is not None and row.text("d") == "value":
                values.take(entity, row)
            else:
                _read_edge_row(row, entity, found, queries.texts)
    counted = found if queries.most_counted is None else _marked(found, asked, queries.most_counted)
    return counted if values is None else _with_values(counted, asked, values)


def named(asked: Iterable[Node], dialect: Dialect) -> dict[str, Node]:
    """Return nodes by the texts that an answer may have for them."""
    # Virtuoso returns constant IRIs as strings when it groups: the text identifies them.
    return {name: entity for entity in asked for name in writing.names(entity, dialect)}


def _marked(found: FactsAround, asked: Sequence[Node], most_counted: int) -> FactsAround:
    """Return what was found, marked as too little where counting ended early."""
    read: defaultdict[Side, Counter[Node]] = defaultdict(Counter)
    for entity in asked:
        for group, number in found.counts.get(entity, {}).items():
            read[group.side][entity] += number
    cut = {(entity, side) for side, of in read.items() for entity in cut_short(most_counted, asked, of)}
    for (entity, group), members in found.members.items():
        found.counts[entity][group] = max(found.counts[entity].get(group, 0), len(members))
    return replace(found, cut=frozenset(cut))


def _with_values(found: FactsAround, asked: Sequence[Node], values: ValueRows) -> FactsAround:
    """Return what was found with the values that were read beside it."""
    for entity, said in values.said().items():
        for relation, value in said:
            found.members[entity, GroupKey.on("value", relation)].add(value)
        for relation in {relation for relation, _ in said}:
            group = GroupKey.on("value", relation)
            found.counts[entity][group] = len(found.members[entity, group])
    return replace(found, cut=found.cut | {(entity, "value") for entity in asked}) if values.is_cut else found


def _read_edge_row(row: Bindings, entity: Node, found: FactsAround, texts: TextChoice) -> None:
    about, number = row.text("d"), row.number("n")
    if about == "self":
        found.known.add(entity)
        _read_text(row, entity, found.texts, texts)
        return
    if about == "all":
        found.neighbors[entity] = number or 0
        return
    relation = row.iri("p")
    if relation is None:
        return
    group = GroupKey.on(_SIDES.get(about or "", "out"), relation)
    far = row.literal("o") if group.literal else row.node("o")
    if far is not None:
        found.members[entity, group].add(far)
    if number is not None:
        found.counts[entity][group] = number
    about_it = far if number is None else relation
    if about_it is not None and not isinstance(about_it, Literal):
        _read_text(row, about_it, found.texts, texts)


async def read_texts(solutions: Solutions, texts: TextChoice) -> dict[Node, Texts]:
    """Return the texts of terms by rows `?t` term, `?a` relation, `?label` key.

    Raises:
        BackendError: A value is not of the kind that was asked for.
    """
    found: defaultdict[Node, Texts] = defaultdict(dict)
    async for some in in_slices(rows(solutions)):
        for row in some:
            if (term := row.node("t")) is not None:
                _read_text(row, term, found, texts)
    return dict(found)


def _read_text(row: Bindings, term: Node, found: defaultdict[Node, Texts], texts: TextChoice) -> None:
    said = found[term]
    relation, key = row.iri("a"), row.text("label")
    if relation is not None and key is not None:
        said[relation] = texts.read(key)


def _iri(name: str, term: Literal) -> Iri:
    try:
        return Iri(term.value)
    except InvalidRequest as error:
        raise _unexpected(name, term) from error


def _unexpected(name: str, term: Term) -> BackendError:
    return BackendError(
        f"The endpoint answered {in_quotes(str(term))} for ?{name}, which is not what was asked for. "
        "It may not speak SPARQL 1.1 as it should: check the setting of its dialect."
    )
