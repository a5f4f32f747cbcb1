"""What takes a reading of a whole rdflib graph: its names and its definition."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final, TypeVar
from urllib.parse import unquote

from kg_adapters.index.build.profiling import profile_of_index
from kg_adapters.labels import Vocabulary
from kg_adapters.local.index import GraphIndex
from kg_adapters.local.sets.answers import LocalSets
from kg_adapters.local.sets.gathered import index_of, sets_over
from kg_adapters.models import ClassSummary, Count, FeatureSummary, GraphSchema, RelationSummary
from kg_adapters.name_index import Name, RelationName, own_name
from kg_adapters.prefixes import Prefixes
from kg_adapters.profile import GraphProfile
from kg_adapters.rdflib_terms import RdflibStatements, Statement
from kg_adapters.terms import Attribute, Iri, Literal, Node, Triple, node_key

MAX_CLASSES: Final = 2_000
MAX_RELATIONS: Final = 5_000

N = TypeVar("N", Node, Iri)


class Survey:
    """The names and counts of a graph, read once."""

    def __init__(self, statements: RdflibStatements, vocabulary: Vocabulary) -> None:
        self._statements = statements
        self._vocabulary = vocabulary
        self._names: list[Name] = []
        self._texts: defaultdict[Node, defaultdict[Iri, list[Literal]]] = defaultdict(lambda: defaultdict(list))
        self._nodes: set[Node] = set()
        self._connected: set[Node] = set()
        self._triples: Counter[Iri] = Counter()
        self._features: Counter[Iri] = Counter()
        self._examples: dict[Iri, Triple] = {}
        self._values: dict[Iri, Literal] = {}
        self._instances: defaultdict[Node, set[Node]] = defaultdict(set)
        for statement in statements.distinct():
            self._read(statement)

    @cached_property
    def index(self) -> GraphIndex:
        """All that the graph says, for sets and SPARQL, for which it is read once more."""
        facts = (
            Attribute(head, relation, tail) if isinstance(tail, Literal) else Triple(head, relation, tail)
            for head, relation, tail in self._statements.distinct()
        )
        return index_of(facts, self._vocabulary)

    @cached_property
    def sets(self) -> LocalSets:
        """What answers questions about sets."""
        return sets_over(self.index, self._vocabulary)

    def names(self) -> Iterator[Name]:
        """Yield labels, aliases and, where an entity has neither, the local part of its IRI.

        Relations that no edge is about are no entities: they bear no names here.
        """
        named: set[Node] = set()
        entities = self._entities()
        for name in self._names:
            named.add(name.bearer)
            if name.bearer in entities:
                yield name
        for node in sorted(entities - named, key=node_key):
            if isinstance(node, Iri):
                yield Name(node, unquote(node.local_part).replace("_", " "), alias=False)

    def relation_names(self) -> Iterator[RelationName]:
        """Yield labels, aliases and local parts of relations and features, those of the most used ones first."""
        names: defaultdict[Node, list[Name]] = defaultdict(list)
        for name in self._names:
            names[name.bearer].append(name)
        for relation, _ in _largest(self._triples + self._features):
            yield from (RelationName(relation, name.text, name.alias) for name in names[relation])
            yield own_name(relation)

    @cached_property
    def profile(self) -> GraphProfile:
        """What kinds of facts there are, counted over the index."""
        return profile_of_index(self.index, self._vocabulary)

    def schema(self, prefixes: Prefixes) -> GraphSchema:
        """Return the definition of the graph."""
        classes = _largest({node: len(found) for node, found in self._instances.items()})
        relations, features = _largest(self._triples), _largest(self._features)
        return GraphSchema(
            entities=Count(len(self._entities())),
            triples=Count(self._triples.total()),
            classes=tuple(
                ClassSummary(node, self._label(node), Count(number), min(self._instances[node], key=node_key))
                for node, number in classes[:MAX_CLASSES]
            ),
            relations=tuple(
                RelationSummary(iri, self._label(iri), Count(number), self._examples[iri])
                for iri, number in relations[:MAX_RELATIONS]
            ),
            features=tuple(
                FeatureSummary(iri, self._label(iri), Count(number), self._values[iri])
                for iri, number in features[:MAX_RELATIONS]
            ),
            prefixes=prefixes,
            complete=len(classes) <= MAX_CLASSES and max(len(relations), len(features)) <= MAX_RELATIONS,
        )

    def _read(self, statement: Statement) -> None:
        head, relation, tail = statement
        self._nodes.add(head)
        if isinstance(tail, Literal):
            self._read_literal(head, relation, tail)
            return
        self._nodes.add(tail)
        self._connected |= {head, tail}
        self._triples[relation] += 1
        self._examples.setdefault(relation, Triple(head, relation, tail))
        if relation in self._vocabulary.types:
            self._instances[tail].add(head)

    def _read_literal(self, head: Node, relation: Iri, value: Literal) -> None:
        self._features[relation] += 1
        self._values.setdefault(relation, value)
        label = relation in self._vocabulary.labels
        if label:
            self._texts[head][relation].append(value)
        if label or relation in self._vocabulary.aliases:
            self._names.append(Name(head, value.value, alias=not label))

    def _entities(self) -> set[Node]:
        relations = {*self._triples, *self._features}
        return {node for node in self._nodes if node in self._connected or node not in relations}

    def _label(self, node: Node) -> str | None:
        label = self._vocabulary.label(self._texts.get(node, {}))
        return None if label is None else label.value


def _largest(counts: Mapping[N, int]) -> list[tuple[N, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], node_key(item[0])))
