"""The profile of a graph whose statements are at hand."""

from collections.abc import Iterable
from typing import TypeAlias

from kg_adapters.index.build.profiling import profile_of_index
from kg_adapters.labels import Vocabulary
from kg_adapters.local.sets.gathered import index_of
from kg_adapters.profile import GraphProfile
from kg_adapters.terms import Attribute, Iri, Literal, Node, Term, Triple

Statement: TypeAlias = tuple[Node, Iri, Term]


def profile_of(statements: Iterable[Statement], vocabulary: Vocabulary) -> GraphProfile:
    """Return the profile of a graph.

    Args:
        statements: All of them, in any order.
        vocabulary: Says which relations lead to classes and to wider classes, and which only name and describe.
    """
    facts = (
        Attribute(head, relation, tail) if isinstance(tail, Literal) else Triple(head, relation, tail)
        for head, relation, tail in statements
    )
    return profile_of_index(index_of(facts, vocabulary), vocabulary)
