"""The plain labels that follow from those of SKOS-XL, which are nodes (SKOS reference, appendix B.3.4)."""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from kg_adapters.local.index import Ints, Longs

_XL: Final = "http://www.w3.org/2008/05/skos-xl#"
_CORE: Final = "http://www.w3.org/2004/02/skos/core#"
LITERAL_FORM: Final = f"{_XL}literalForm"
"""From a node that is a label to the text that it says."""
_NAMES: Final = ("prefLabel", "altLabel", "hiddenLabel")


def plain_labels(
    relations: Mapping[str, int], edges: tuple[Ints, ...], feature_heads: Ints, feature_relations: Ints
) -> Iterator[tuple[str, Ints, Longs]]:
    """Yield relations of SKOS with the entities that have a label by them, and the literals that it is.

    A node of SKOS-XL without exactly one literal form is no label, and nothing follows from it.

    Args:
        relations: The number of each relation.
        edges: Heads, relations and tails, numbered; shape [e] each.
        feature_heads: Whom the literals belong to; shape [f].
        feature_relations: Their relations; shape [f].

    Yields:
        The relation's IRI, heads of shape [k], and the row of the literal of each; shape [k].
    """
    if LITERAL_FORM not in relations:
        return
    rows = np.flatnonzero(feature_relations == relations[LITERAL_FORM])
    labels, firsts, counts = np.unique(feature_heads[rows], return_index=True, return_counts=True)
    labels, rows = labels[counts == 1], rows[firsts[counts == 1]]
    heads, edge_relations, tails = edges
    for name in _NAMES:
        if len(labels) and (number := relations.get(_XL + name)) is not None:
            said = np.flatnonzero(edge_relations == number)
            places = np.minimum(np.searchsorted(labels, tails[said]), len(labels) - 1)
            known = labels[places] == tails[said]
            yield _CORE + name, heads[said][known], rows[places[known]]
