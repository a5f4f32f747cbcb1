"""Names of Wikidata's relations, which its files give to the properties: what `wd:P31` is called, `wdt:P31` is too."""

from collections.abc import Container, Iterator, Mapping
from typing import Final

import numpy as np

from kg_adapters.local.index import Ints, Longs

_ENTITY: Final = "http://www.wikidata.org/entity/"
_DIRECT: Final = "http://www.wikidata.org/prop/direct/"


def names_of_relations(
    nodes: Mapping[str, int],
    relations: Mapping[str, int],
    feature_heads: Ints,
    feature_relations: Ints,
    texts: Container[str],
) -> Iterator[tuple[str, str, Longs]]:
    """Yield which relations are called by which literals of their properties.

    Args:
        nodes: The number of each node.
        relations: The number of each relation.
        feature_heads: Whom the literals belong to; shape [f].
        feature_relations: Their relations; shape [f].
        texts: Relations that name and describe.

    Yields:
        The relation of Wikidata, the relation that names or describes it, and the rows of the literals.
    """
    direct = [relation for relation in relations if relation.startswith(_DIRECT)]
    owners = {nodes[entity]: each for each in direct if (entity := _ENTITY + each.removeprefix(_DIRECT)) in nodes}
    if not owners:
        return
    rows = np.flatnonzero(np.isin(feature_heads, np.fromiter(owners, np.int32, len(owners))))
    for name, number in relations.items():
        if name in texts:
            said = rows[feature_relations[rows] == number]
            for head in np.unique(feature_heads[said]).tolist():
                yield owners[head], name, said[feature_heads[said] == head]
