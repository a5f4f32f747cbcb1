"""The order of neighbours that came of lists, as a table of the index."""

from collections.abc import Callable, Mapping

import numpy as np

from kg_adapters.local.building.growing import Storage
from kg_adapters.local.building.unfolding import Orders
from kg_adapters.local.index import EdgeTable, GraphIndex, Ints, ListTable


def list_orders(storage: Storage, out: EdgeTable, orders: Orders, node_ranks: Ints, relation_ranks: Ints) -> ListTable:
    """Write the table.

    Args:
        storage: Where it goes.
        out: The edges that it is about.
        orders: The members by head and relation, all of them numbers.
        node_ranks: The node id of each number.
        relation_ranks: The relation id of each number.
    """
    placed = sorted(
        (_group(out, int(node_ranks[head]), int(relation_ranks[relation])), node_ranks[list(members)])
        for head, relation, members in ((*group, members) for group, members in orders.items())
    )
    permutations = [_permutation(out, group, members) for group, members in placed]
    lengths = np.array([len(each) for each in permutations], dtype=np.int64)
    return ListTable(
        groups=storage.whole("lists.groups", np.array([group for group, _ in placed], dtype=np.int64)),
        starts=storage.whole("lists.starts", np.append(0, np.cumsum(lengths)).astype(np.int64)),
        places=storage.whole("lists.places", np.concatenate((np.zeros(0, dtype=np.int32), *permutations))),
    )


def kept_orders(
    index: GraphIndex, find_node: Callable[[str], int | None], relations: Mapping[str, int]
) -> dict[tuple[int, int], list[int]]:
    """Return the order of lists in an index by other numbers.

    Args:
        index: Where they are.
        find_node: Returns the number of a node there is.
        relations: The number of each relation.
    """
    out, lists, owners = index.out, index.lists, index.out.owners()
    found: dict[tuple[int, int], list[int]] = {}
    for place, group in enumerate(lists.groups.tolist()):
        order = lists.places[lists.starts[place] : lists.starts[place + 1]]
        members = out.neighbors[out.starts[group] : out.starts[group + 1]][order]
        nodes = [find_node(index.nodes[number]) for number in (int(owners[group]), *members.tolist())]
        head, *tails = (node for node in nodes if node is not None)
        found[head, relations[index.relations[int(out.relations[group])]]] = tails
    return found


def _group(out: EdgeTable, node: int, relation: int) -> int:
    first, last = int(out.groups[node]), int(out.groups[node + 1])
    return first + int(np.searchsorted(out.relations[first:last], relation))


def _permutation(out: EdgeTable, group: int, members: Ints) -> Ints:
    """Return the places of members in a group in their order, then those of the others."""
    neighbors = out.neighbors[out.starts[group] : out.starts[group + 1]]
    listed = np.searchsorted(neighbors, members).astype(np.int32)
    others = np.setdiff1d(np.arange(len(neighbors), dtype=np.int32), listed)
    return np.concatenate((listed, others))
