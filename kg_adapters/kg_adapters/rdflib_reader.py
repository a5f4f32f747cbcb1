"""The blocking half of the rdflib adapter: what a graph says of one term, and what takes a reading of all of it."""
# ruff: noqa: D102 - what is answered is documented on the protocol

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from operator import attrgetter
from typing import TypeAlias, TypeVar

import numpy as np
import rdflib

from kg_adapters.definition_files import schema_of
from kg_adapters.index.builder import index_of
from kg_adapters.index.graph_index import (
    Dictionary,
    GraphIndex,
    bare_relations,
    local_name,
    name_rows,
    uses_of_relations,
)
from kg_adapters.index.profiling import profile_of_index, schema_rows
from kg_adapters.index.sets.answers import IndexSets, sets_over
from kg_adapters.labels import Vocabulary
from kg_adapters.models import (
    Candidate,
    Count,
    Degree,
    Description,
    Direction,
    EdgeDirection,
    Feature,
    GraphSchema,
    NeighborPage,
    RelationCount,
    Role,
)
from kg_adapters.name_index import Name, NameIndex, RelationIndex, RelationName, own_name
from kg_adapters.prefixes import Prefixes
from kg_adapters.profile import GraphProfile
from kg_adapters.rdflib_terms import RdflibStatements
from kg_adapters.requests import NeighborRequest, cursor_at, in_turns, past_the_end
from kg_adapters.terms import Attribute, Fact, Iri, Literal, Node, Triple, literal_key, node_key

_Group: TypeAlias = tuple[EdgeDirection, Iri, bool]
"""A direction, a relation, and whether the facts are values."""

K = TypeVar("K")
T = TypeVar("T")


class Survey:
    """The names and counts of a graph, read once.

    Args:
        statements: The graph.
        vocabulary: The relations that name and type its entities.
    """

    def __init__(self, statements: RdflibStatements, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self.index: GraphIndex = index_of(
            (
                Attribute(head, relation, tail) if isinstance(tail, Literal) else Triple(head, relation, tail)
                for head, relation, tail in statements.match()
            ),
            vocabulary,
        )
        self._dictionary = Dictionary(self.index)

    @cached_property
    def sets(self) -> IndexSets:
        return sets_over(self.index, self._vocabulary)

    @cached_property
    def profile(self) -> GraphProfile:
        return profile_of_index(self.index, self._vocabulary)

    def schema(self, prefixes: Prefixes) -> GraphSchema:
        return schema_of(schema_rows(self.index, self._vocabulary), prefixes)

    def names(self) -> Iterator[Name]:
        """Yield labels, aliases and, where an entity has neither, the local part of its IRI.

        Relations that no edge is about are no entities: they bear no names here.
        """
        nameless = dict.fromkeys(np.flatnonzero(~bare_relations(self.index)).tolist())
        entities = frozenset(nameless)
        for owner, name in self._written_names():
            nameless.pop(owner, None)
            if owner in entities:
                yield name
        for number in nameless:
            if text := local_name(self.index.nodes[number]):
                yield Name(self._dictionary.node(number), text, alias=False)

    def relation_names(self) -> Iterator[RelationName]:
        """Yield labels, aliases and local parts of relations and features, those of the most used ones first."""
        names: defaultdict[Node, list[Name]] = defaultdict(list)
        for _, name in self._written_names():
            names[name.bearer].append(name)
        for number in np.argsort(-uses_of_relations(self.index), kind="stable").tolist():
            relation = self._dictionary.relation(number)
            yield from (RelationName(relation, name.text, name.alias) for name in names[relation])
            yield own_name(relation)

    def _written_names(self) -> Iterator[tuple[int, Name]]:
        """Yield the labels and aliases of all nodes, with their ids."""
        rows = zip(*(column.tolist() for column in name_rows(self.index, self._vocabulary)), strict=True)
        for row, owner, alias in rows:
            yield owner, Name(self._dictionary.node(owner), self._dictionary.text(row), bool(alias))


class RdflibReader:
    """Answers about one term at a time, and waits for the graph's store.

    Args:
        graph: A graph, or a dataset for the union of its graphs.
        vocabulary: The relations that name, describe and type its entities.
    """

    def __init__(self, graph: rdflib.Graph, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._statements = RdflibStatements(graph)

    @cached_property
    def survey(self) -> Survey:
        return Survey(self._statements, self.vocabulary)

    @cached_property
    def _name_index(self) -> NameIndex:
        return NameIndex(self.survey.names())

    @cached_property
    def relation_index(self) -> RelationIndex:
        return RelationIndex(self.survey.relation_names())

    def forget(self) -> None:
        for built in ("survey", "_name_index", "relation_index"):
            self.__dict__.pop(built, None)

    def label(self, term: Node) -> str | None:
        label = self.vocabulary.label(self._texts(term, self.vocabulary.labels))
        return None if label is None else label.value

    def description(self, term: Node) -> Description | None:
        roles = self._roles(term)
        if not roles:
            return None
        text = self.vocabulary.description(self._texts(term, self.vocabulary.descriptions))
        types = {
            tail
            for relation in self.vocabulary.types
            for _, _, tail in self._statements.match(head=term, relation=relation)
            if not isinstance(tail, Literal)
        }
        return Description(
            self.label(term), None if text is None else text.value, tuple(sorted(types, key=node_key)), roles
        )

    def page(self, request: NeighborRequest, offset: int, graph: str, entity: Node) -> NeighborPage | None:
        groups = self._groups(entity, request.direction, request.relations, values=request.values)
        if not groups and not self._statements.mentions(entity):
            return None
        kept = [sorted(group, key=partial(_far_end, entity))[: request.limit_per_relation] for group in groups.values()]
        total, shown = sum(map(len, groups.values())), sum(map(len, kept))
        if offset and offset >= shown:
            raise past_the_end()
        end = offset + request.limit
        return NeighborPage(
            tuple(islice(in_turns(kept), offset, end)),
            Count(total),
            truncated=end < shown or shown < total,
            cursor=cursor_at(end, request, entity, graph) if end < shown else None,
        )

    def degree(self, direction: Direction, relations: frozenset[Iri] | None, entity: Node) -> Degree | None:
        groups = self._groups(entity, direction, relations)
        if not groups and not self._statements.mentions(entity):
            return None
        ends = {node for group in groups.values() for fact in group for node in (fact.head, fact.tail)}
        counts = (RelationCount(relation, side, Count(len(group))) for (side, relation, _), group in groups.items())
        return Degree(Count(len(ends - {entity})), tuple(counts))

    def has(self, fact: Fact) -> bool:
        # Asked for a literal, rdflib would find one that is written in another way.
        found = self._statements.match(fact.head, fact.relation, fact.tail if isinstance(fact, Triple) else None)
        return any(tail == fact.tail for _, _, tail in found)

    def features(self, relations: frozenset[Iri] | None, entity: Node) -> tuple[Feature, ...]:
        found = {
            Feature(about, value)
            for relation in ((None,) if relations is None else relations)
            for _, about, value in self._statements.match(head=entity, relation=relation)
            if isinstance(value, Literal)
        }
        return tuple(sorted(found, key=attrgetter("order")))

    def search(self, text: str, limit: int, kind: Node | None) -> Sequence[Candidate]:
        if kind is None:
            return self._name_index.search(text, limit, lambda _: True)
        instances = {
            head
            for relation in self.vocabulary.types
            for head, _, _ in self._statements.match(relation=relation, tail=kind)
        }
        return self._name_index.search(text, limit, instances.__contains__)

    def _groups(
        self, entity: Node, direction: Direction, relations: frozenset[Iri] | None, *, values: bool = False
    ) -> dict[_Group, set[Fact]]:
        """Return the facts around an entity by direction, relation and kind, in the order of the groups."""
        groups: defaultdict[_Group, set[Fact]] = defaultdict(set)
        left_out = self.vocabulary.texts if relations is None else frozenset[Iri]()
        for relation in (None,) if relations is None else relations:
            if direction != "in":
                for head, found, tail in self._statements.match(head=entity, relation=relation):
                    if not isinstance(tail, Literal):
                        groups["out", found, False].add(Triple(head, found, tail))
                    elif values and found not in left_out:
                        groups["out", found, True].add(Attribute(head, found, tail))
            if direction != "out":
                for head, found, _ in self._statements.match(relation=relation, tail=entity):
                    if direction == "in" or head != entity:
                        groups["in", found, False].add(Triple(head, found, entity))
        return dict(sorted(groups.items(), key=lambda item: (item[0][0] == "in", *item[0][1:])))

    def _texts(self, term: Node, relations: Iterable[Iri]) -> dict[Iri, list[Literal]]:
        return {
            relation: [
                value
                for _, _, value in self._statements.match(head=term, relation=relation)
                if isinstance(value, Literal)
            ]
            for relation in relations
        }

    def _roles(self, term: Node) -> frozenset[Role]:
        is_relation = isinstance(term, Iri) and any(True for _ in self._statements.match(relation=term))
        roles: dict[Role, bool] = {"entity": self._statements.mentions(term), "relation": is_relation}
        return frozenset(role for role, held in roles.items() if held)


def _far_end(entity: Node, fact: Fact) -> tuple[str, ...]:
    far = fact.tail if fact.head == entity else fact.head
    return literal_key(far) if isinstance(far, Literal) else (node_key(far),)
