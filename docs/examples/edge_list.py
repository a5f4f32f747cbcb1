# ruff: noqa: D102 - the methods are documented on the protocol
"""A knowledge graph that is a list in memory."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias, TypeVar

import kg_adapters as kg
from kg_adapters.name_index import Name, NameIndex, RelationIndex, RelationName, own_name
from kg_adapters.profiling import profile_of
from kg_adapters.requests import cursor_at, in_turns, offset_of
from kg_adapters.terms import node_key

Statement: TypeAlias = tuple[kg.Node, kg.Iri, kg.Term]
Groups: TypeAlias = Mapping[tuple[kg.EdgeDirection, kg.Iri], Sequence[kg.Triple]]
Facts: TypeAlias = Sequence[Sequence[kg.Fact]]
N = TypeVar("N", kg.Node, kg.Iri)
T = TypeVar("T")


class EdgeListAdapter:
    """Answers from statements in memory, which never change.

    Args:
        statements: Head, relation and tail of each, in any order.
        name: What people call the graph.
        prefixes: The short forms of its IRIs.
        vocabulary: The relations that name, describe and type its entities.
    """

    def __init__(
        self, statements: Iterable[Statement], name: str, prefixes: kg.Prefixes, vocabulary: kg.Vocabulary
    ) -> None:
        self.name, self.prefixes, self.vocabulary, self.remote = name, prefixes, vocabulary, False
        self._groups: defaultdict[kg.Node, dict[tuple[kg.EdgeDirection, kg.Iri], list[kg.Triple]]] = defaultdict(dict)
        self._features: defaultdict[kg.Node, list[kg.Feature]] = defaultdict(list)
        self._edges: defaultdict[kg.Iri, list[kg.Triple]] = defaultdict(list)
        self._values: defaultdict[kg.Iri, list[kg.Literal]] = defaultdict(list)
        self._statements = sorted(set(statements), key=_order)
        for head, relation, tail in self._statements:
            if isinstance(tail, kg.Literal):
                self._features[head].append(kg.Feature(relation, tail))
                self._values[relation].append(tail)
            else:
                triple = kg.Triple(head, relation, tail)
                self._groups[head].setdefault(("out", relation), []).append(triple)
                self._groups[tail].setdefault(("in", relation), []).append(triple)
                self._edges[relation].append(triple)
        self._relations = self._edges.keys() | self._values.keys()
        self._nodes = self._groups.keys() | self._features.keys()
        # A relation with nothing but a label of its own is no entity that anybody looks for.
        self._entities = {node for node in self._nodes if node in self._groups or node not in self._relations}
        self._index = NameIndex(self._names())
        self._relation_index = RelationIndex(self._relation_names())

    async def labels(self, terms: Collection[kg.Node]) -> Mapping[kg.Node, str]:
        found = {term: self.vocabulary.label(self._texts(term)) for term in terms}
        return {term: label.value for term, label in found.items() if label is not None}

    async def describe(self, terms: Collection[kg.Node]) -> Mapping[kg.Node, kg.Description]:
        return {term: self._description(term) for term in terms if term in self._nodes or term in self._relations}

    async def neighbors(self, request: kg.NeighborRequest) -> Mapping[kg.Node, kg.NeighborPage]:
        offset = offset_of(request, self.name)
        return {entity: self._page(request, offset, entity) for entity in request.entities if entity in self._nodes}

    async def degrees(
        self,
        entities: Sequence[kg.Node],
        *,
        direction: kg.Direction = "both",
        relations: Collection[kg.Iri] | None = None,
    ) -> Mapping[kg.Node, kg.Degree]:
        return {entity: self._degree(entity, direction, relations) for entity in entities if entity in self._nodes}

    async def contains(self, facts: Collection[kg.Fact]) -> frozenset[kg.Fact]:
        return frozenset(each for each in facts if self._holds(each))

    async def features(self, request: kg.FeatureRequest) -> Mapping[kg.Node, kg.FeaturePage]:
        found = {entity: self._asked_features(entity, request.relations) for entity in request.entities}
        return {
            entity: kg.FeaturePage(tuple(features[: request.limit]), kg.Count(len(features)))
            for entity, features in found.items()
            if features
        }

    async def search(self, text: str, *, limit: int, type: kg.Node | None = None) -> Sequence[kg.Candidate]:
        return self._index.search(text, limit, lambda node: type is None or type in self._types(node))

    async def find_relations(self, text: str, *, limit: int) -> Sequence[kg.RelationCandidate]:
        return self._relation_index.find(text, limit)

    async def schema(self) -> kg.GraphSchema:
        classes: defaultdict[kg.Node, set[kg.Node]] = defaultdict(set)
        for triple in (triple for relation in self.vocabulary.types for triple in self._edges.get(relation, ())):
            classes[triple.tail].add(triple.head)
        names = await self.labels([*classes, *self._relations])
        return kg.GraphSchema(
            kg.Count(len(self._entities)),
            kg.Count(sum(map(len, self._edges.values()))),
            tuple(kg.ClassSummary(each, names.get(each), n, example) for each, n, example in _largest(classes)),
            tuple(kg.RelationSummary(each, names.get(each), n, example) for each, n, example in _largest(self._edges)),
            tuple(kg.FeatureSummary(each, names.get(each), n, example) for each, n, example in _largest(self._values)),
            self.prefixes,
        )

    async def profile(self) -> kg.GraphProfile:
        return profile_of(self._statements, self.vocabulary)

    async def aclose(self) -> None:
        pass

    def _page(self, request: kg.NeighborRequest, offset: int, entity: kg.Node) -> kg.NeighborPage:
        groups = self._facts(entity, request)
        kept = [group[: request.limit_per_relation] for group in groups]
        total, shown, end = sum(map(len, groups)), sum(map(len, kept)), offset + request.limit
        facts = tuple(islice(in_turns(kept), offset, end))
        cursor = cursor_at(end, request, entity, self.name) if end < shown else None
        return kg.NeighborPage(facts, kg.Count(total), truncated=end < shown or shown < total, cursor=cursor)

    def _facts(self, entity: kg.Node, request: kg.NeighborRequest) -> Facts:
        """Return what is asked for around an entity, group by group."""
        edges = self._chosen(entity, request.direction, request.relations)
        if not request.values or request.direction == "in":
            return list(edges.values())
        values: defaultdict[kg.Iri, list[kg.Attribute]] = defaultdict(list)
        for each in self._asked_features(entity, request.relations):
            if request.relations is not None or each.relation not in self.vocabulary.texts:
                values[each.relation].append(kg.Attribute(entity, each.relation, each.value))
        found: list[tuple[tuple[bool, kg.Iri, bool], Sequence[kg.Fact]]] = [
            *(((side == "in", relation, False), group) for (side, relation), group in edges.items()),
            *(((False, relation, True), group) for relation, group in values.items()),
        ]
        return [group for _, group in sorted(found, key=lambda each: each[0])]

    def _holds(self, fact: kg.Fact) -> bool:
        if isinstance(fact, kg.Attribute):
            return kg.Feature(fact.relation, fact.tail) in self._features.get(fact.head, ())
        return fact in self._edges.get(fact.relation, ())

    def _asked_features(self, entity: kg.Node, relations: Collection[kg.Iri] | None) -> list[kg.Feature]:
        return [each for each in self._features.get(entity, ()) if relations is None or each.relation in relations]

    def _degree(self, entity: kg.Node, direction: kg.Direction, relations: Collection[kg.Iri] | None) -> kg.Degree:
        groups = self._chosen(entity, direction, relations)
        ends = {node for group in groups.values() for triple in group for node in (triple.head, triple.tail)}
        counts = (kg.RelationCount(relation, side, kg.Count(len(group))) for (side, relation), group in groups.items())
        return kg.Degree(kg.Count(len(ends - {entity})), tuple(counts))

    def _chosen(self, entity: kg.Node, direction: kg.Direction, relations: Collection[kg.Iri] | None) -> Groups:
        """Return the groups around an entity in their order; with `both`, edges to itself are outgoing alone."""
        chosen: Groups = {
            key: [triple for triple in group if direction != "both" or key[0] == "out" or triple.head != entity]
            for key, group in self._groups.get(entity, {}).items()
            if direction in {"both", key[0]} and (relations is None or key[1] in relations)
        }
        return {key: chosen[key] for key in sorted(chosen, key=lambda key: (key[0] == "in", key[1])) if chosen[key]}

    def _description(self, term: kg.Node) -> kg.Description:
        label = self.vocabulary.label(self._texts(term))
        text = self.vocabulary.description(self._texts(term))
        roles: dict[kg.Role, bool] = {"entity": term in self._nodes, "relation": term in self._relations}
        return kg.Description(
            None if label is None else label.value,
            None if text is None else text.value,
            tuple(sorted(self._types(term), key=node_key)),
            frozenset(role for role, plays in roles.items() if plays),
        )

    def _types(self, node: kg.Node) -> set[kg.Node]:
        groups = self._groups.get(node, {})
        return {triple.tail for relation in self.vocabulary.types for triple in groups.get(("out", relation), ())}

    def _texts(self, node: kg.Node) -> Mapping[kg.Iri, list[kg.Literal]]:
        texts: defaultdict[kg.Iri, list[kg.Literal]] = defaultdict(list)
        for feature in self._features.get(node, ()):
            texts[feature.relation].append(feature.value)
        return texts

    def _names(self) -> Iterator[Name]:
        for node in self._entities:
            texts = self._texts(node)
            labels = [text.value for relation in self.vocabulary.labels for text in texts.get(relation, ())]
            aliases = [text.value for relation in self.vocabulary.aliases for text in texts.get(relation, ())]
            yield from (Name(node, text, alias=True) for text in aliases)
            yield from (Name(node, text, alias=False) for text in labels or ([] if aliases else [node.local_part]))

    def _relation_names(self) -> Iterator[RelationName]:
        uses = {each: (*self._edges.get(each, ()), *self._values.get(each, ())) for each in self._relations}
        for relation, *_ in _largest(uses):
            texts = self._texts(relation)
            named = (
                (kind, kind in self.vocabulary.aliases) for kind in (*self.vocabulary.labels, *self.vocabulary.aliases)
            )
            yield from (
                RelationName(relation, text.value, alias) for kind, alias in named for text in texts.get(kind, ())
            )
            yield own_name(relation)


def _order(statement: Statement) -> tuple[str, ...]:
    head, relation, tail = statement
    if isinstance(tail, kg.Literal):
        return node_key(head), relation.value, tail.value, tail.language or "", tail.datatype.value
    return node_key(head), relation.value, node_key(tail)


def _largest(found: Mapping[N, Collection[T]]) -> Iterator[tuple[N, kg.Count, T]]:
    """Yield what there is most of first, with how much there is and an example."""
    for each in sorted(found, key=lambda each: (-len(found[each]), node_key(each))):
        yield each, kg.Count(len(found[each])), next(iter(found[each]))
