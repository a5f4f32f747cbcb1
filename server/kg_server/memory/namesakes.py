"""Which of several rows of one id a triple is about."""

from collections.abc import Sequence
from itertools import product

from kg_adapters.models import Direction
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri, Node, Triple
from kg_server.naming.entities import Identity, decided
from kg_server.naming.having import with_relation


async def of_triple(
    graph: KGAdapter,
    head: Identity | None,
    relation: str,
    relations: Sequence[Iri],
    tail: Identity | None,
    *,
    is_keyed: bool = False,
) -> tuple[Node | None, Node | None]:
    """Return the head and tail that a triple is about, each None where it is not known.

    Those are meant that have the relation, and of several of these the ones between which the graph holds the triple.

    Args:
        graph: The graph.
        head: What the head names, where these are several or the only one; None where it is no name.
        relation: The relation, as it is written.
        relations: What it stands for.
        tail: The same of the tail.
        is_keyed: Whether the tail may as well be a number, so that it is nothing that the relation does not lead to.
    """
    heads = await _with(graph, head, relation, "out")
    tails = await _with(graph, tail, relation, "in", surely=is_keyed)
    if heads and tails and len(heads) * len(tails) > 1:
        every = [Triple(one, each, other) for one, each, other in product(heads, relations, tails)]
        held = await graph.contains(every)
        pairs = {(each.head, each.tail) for each in every if each in held}
        if len(pairs) == 1:
            heads, tails = ((each,) for each in pairs.pop())
    return heads[0] if len(heads) == 1 else None, tails[0] if len(tails) == 1 else None


async def _with(
    graph: KGAdapter, identity: Identity | None, relation: str, direction: Direction, *, surely: bool = False
) -> tuple[Node, ...]:
    """Return those of one id that have a relation; unless that must be so, all where that is not known of any.

    A name of several is not decided on.
    """
    if identity is None or not identity.named:
        return ()
    if not surely and not (identity.rivals and identity.named[0].matched_by == "id"):
        return identity.nodes if len(identity.nodes) == 1 else ()
    having, by_class = await with_relation(graph, identity.widened.nodes, relation, direction)
    if surely:
        return tuple(node for node in decided(identity, having).nodes if node in having)
    return decided(identity, having, by_class).nodes
