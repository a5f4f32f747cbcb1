"""Facts that are in no store: an index of them, made in memory, and sets over it."""

from collections.abc import Iterable

from kg_adapters.index.build.arrays import IndexBuilder
from kg_adapters.labels import Vocabulary
from kg_adapters.local.dictionary import Dictionary
from kg_adapters.local.index import GraphIndex
from kg_adapters.local.sets.answers import LocalSets
from kg_adapters.terms import Attribute, Fact, node_key


def index_of(facts: Iterable[Fact], vocabulary: Vocabulary) -> GraphIndex:
    """Return an index of these facts alone."""
    builder = IndexBuilder(vocabulary)
    for fact in facts:
        head, relation = node_key(fact.head), fact.relation.value
        if isinstance(fact, Attribute):
            builder.add_feature(head, relation, fact.tail.value, fact.tail.datatype.value, fact.tail.language)
        else:
            builder.add_edge(head, relation, node_key(fact.tail))
    return builder.finish()


def sets_of(facts: Iterable[Fact], vocabulary: Vocabulary) -> LocalSets:
    """Return what answers questions about sets from these facts alone."""
    return sets_over(index_of(facts, vocabulary), vocabulary)


def sets_over(index: GraphIndex, vocabulary: Vocabulary) -> LocalSets:
    """Return what answers questions about sets from an index."""
    return LocalSets(index, Dictionary(index), vocabulary)
