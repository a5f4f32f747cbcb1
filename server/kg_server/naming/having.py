"""Which of some entities have what is asked for: a relation, or anything that a path leads to."""

from collections.abc import Sequence

from kg_adapters.algebra import (
    Has,
    Hop,
    HopPath,
    Instances,
    Intersect,
    Kept,
    Linked,
    Members,
    SetExpression,
    Step,
    owner_of,
)
from kg_adapters.errors import UnknownRelation
from kg_adapters.models import Direction, EdgeDirection
from kg_adapters.profile import GraphProfile
from kg_adapters.protocol import KGAdapter, known_profile
from kg_adapters.set_requests import Listed, SetRequest
from kg_adapters.set_walking import compute_sets
from kg_adapters.terms import Literal, Node
from kg_server.answers.coverage import both_steps
from kg_server.naming.refusals import NoSuchRelation
from kg_server.naming.relations import relation_of, without_dash


async def instances_among(graph: KGAdapter, nodes: Sequence[Node], type: Node) -> Sequence[Node]:
    """Return those of some nodes that are instances of a class or of its subclasses."""
    of = Intersect((Members(tuple(nodes)), Instances(type)))
    found = (await compute_sets(graph, SetRequest(Listed(of), limit=len(nodes), witnesses=0))).members
    return [node for node in nodes if node in found]


async def with_any(
    graph: KGAdapter, nodes: Sequence[Node], path: HopPath, to: SetExpression | None = None
) -> frozenset[Node]:
    """Return those of some nodes from which a path leads anywhere, or to a member of a set."""
    condition = Has(path) if to is None else Linked(path, to)
    request = SetRequest(Listed(Kept(Members(tuple(nodes)), condition)), limit=len(nodes), witnesses=0)
    found = (await compute_sets(graph, request)).members
    return frozenset(term for term in found if not isinstance(term, Literal))


def leads_by_profile(profile: GraphProfile, of: SetExpression, path: HopPath) -> bool | None:
    """Return whether a path of one hop leads anywhere from a set; None where the profile of its class is not enough."""
    owner = owner_of(of)
    known = None if owner is None else profile.profile_of(owner)
    if known is None:
        return None
    found = [known.coverage(each.relation, each.direction) for each in path.hops[0].steps or ()]
    if any(each is not None and each.having for each in found):
        return True if isinstance(of, Instances) else None
    is_certain = not profile.approximate and all(each is not None and not each.sampled for each in found)
    return False if is_certain else None


async def with_relation(
    graph: KGAdapter, nodes: Sequence[Node], relation: str, direction: Direction
) -> tuple[frozenset[Node], frozenset[Node]]:
    """Return those of some nodes that have a relation, or one stored the other way, and those whose class has it.

    None are where there is no such relation.
    """
    relation, direction = without_dash(relation, direction)
    try:
        chosen = await relation_of(graph, relation, around=nodes)
    except (NoSuchRelation, UnknownRelation):
        return frozenset(), frozenset()
    ways: Sequence[EdgeDirection] = ("out", "in") if direction == "both" else (direction,)
    turned: Sequence[EdgeDirection] = ["in" if way == "out" else "out" for way in ways]
    steps = [Step(each, way) for each in chosen.relations for way in ways]
    steps += [Step(each, way) for each in chosen.behind for way in turned]
    path = HopPath((Hop(both_steps(steps, (await known_profile(graph)).inverse_of)),))
    return await with_any(graph, nodes, path), await of_classes_with(graph, nodes, path)


async def of_classes_with(graph: KGAdapter, nodes: Sequence[Node], path: HopPath) -> frozenset[Node]:
    """Return those of some nodes of whose classes an instance is known to have the first relation of a path."""
    profile, steps = await known_profile(graph), path.hops[0].steps or ()
    if not profile.classes:
        return frozenset()
    described = await graph.describe(nodes)
    return frozenset(
        node
        for node, each in described.items()
        for owner in map(profile.profile_of, each.types)
        if owner is not None and any(owner.property(step.relation, step.direction) for step in steps)
    )
