"""The profile of a graph whose statements are at hand."""

from collections.abc import Collection, Iterable
from typing import TypeAlias

import numpy as np

from kg_adapters.index.builder import index_of
from kg_adapters.index.profiling import profile_of_index
from kg_adapters.labels import Vocabulary
from kg_adapters.profile import GraphProfile
from kg_adapters.terms import Attribute, Iri, Literal, Node, Term, Triple, node_key

Statement: TypeAlias = tuple[Node, Iri, Term]


def profile_of(
    statements: Iterable[Statement], vocabulary: Vocabulary, sampled: Collection[Node] | None = None
) -> GraphProfile:
    """Return the profile of a graph.

    Args:
        statements: All of them, in any order.
        vocabulary: Says which relations lead to classes and to wider classes, and which only name and describe.
        sampled: The entities that are counted, where the statements are all that is known of these, and some about
            others; None for all.
    """
    facts = (
        Attribute(head, relation, tail) if isinstance(tail, Literal) else Triple(head, relation, tail)
        for head, relation, tail in statements
    )
    index = index_of(facts, vocabulary)
    if sampled is None:
        return profile_of_index(index, vocabulary)
    numbers = (index.nodes.find(node_key(node)) for node in sampled)
    counted = np.zeros(len(index.nodes), dtype=np.bool_)
    counted[[number for number in numbers if number is not None]] = True
    return profile_of_index(index, vocabulary, sampled=counted)
