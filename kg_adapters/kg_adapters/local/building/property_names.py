"""Names of Wikidata's relations, which its files give to the properties: what `wd:P31` is called, `wdt:P31` is too."""

from collections.abc import Callable, Container, Iterator, Mapping
from typing import Final

import numpy as np

from kg_adapters.local.index import Ints, Longs

_ENTITY: Final = "http://www.wikidata.org/entity/"
_DIRECT: Final = "http://www.wikidata.org/prop/direct/"


def names_of_relations(
    find_node: Callable[[str], int | None],
    relations: Mapping[str, int],
    feature_heads: Ints,
    feature_relations: Ints,
    texts: Container[str],
) -> Iterator[tuple[str, str, Longs]]:
    """Yield which relations are called by which literals of their properties.

    Args:
        find_node: Returns the number of a node, or None.
        relations: The number of each relation.
        feature_heads: Whom the literals belong to; shape [f].
        feature_relations: Their relations; shape [f].
        texts: Relations that name and describe.

    Yields:
        The relation of Wikidata, the relation that names or describes it, and the rows of the literals.
    """
    direct = [relation for relation in relations if relation.startswith(_DIRECT)]
    found = ((find_node(_ENTITY + each.removeprefix(_DIRECT)), each) for each in direct)
    owners = {node: each for node, each in found if node is not None}
    if not owners:
        return
    rows = np.flatnonzero(np.isin(feature_heads, np.fromiter(owners, np.int32, len(owners))))
    for name, number in relations.items():
        if name in texts:
            said = rows[feature_relations[rows] == number]
            for head in np.unique(feature_heads[said]).tolist():
                yield owners[head], name, said[feature_heads[said] == head]
