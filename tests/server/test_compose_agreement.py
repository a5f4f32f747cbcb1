"""Whatever the expression and the limits: what Compose calls complete is right, and all else is a lower bound."""

from typing import TypeAlias

import anyio
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

from expression_trees import NOWHERE, combined, entity, route
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_server.compose.evaluation import Limits, evaluate
from kg_server.compose.outcomes import Part
from kg_server.compose.syntax import EntityRef, Mark, NeighborCall, Operand, SetCall, SetFunction

EX = "http://ex.org/"
NODES = [f"<{EX}n{number}>" for number in range(9)]
RELATIONS = [f"<{EX}r{number}>" for number in range(2)]


UNUSED = frozenset((f"<{EX}x>", relation, f"<{EX}y>") for relation in RELATIONS)
"""What makes every relation known, out of reach of every node."""

Edges: TypeAlias = frozenset[tuple[str, str, str]]


def graph_of_edges(edges: Edges) -> RdflibAdapter:
    graph = rdflib.Graph()
    for head, relation, tail in edges:
        graph.add((rdflib.URIRef(head[1:-1]), rdflib.URIRef(relation[1:-1]), rdflib.URIRef(tail[1:-1])))
    for node in NODES:
        graph.add((rdflib.URIRef(node[1:-1]), rdflib.RDFS.label, rdflib.Literal("any")))
    return RdflibAdapter(graph)


def truth(edges: Edges, operand: Operand) -> frozenset[str]:
    """Return the nodes that an operand stands for, by definition."""
    match operand:
        case EntityRef():
            return frozenset({operand.text})
        case NeighborCall():
            assert operand.route is not None
            (leg,) = operand.route.legs
            near, walked = truth(edges, operand.node), leg.name.text
            ways = (edge[::-1] if leg.mark == "-" else edge for edge in edges if edge[1] == walked)
            return frozenset(far for start, _, far in ways if start in near)
        case SetCall():
            first, *others = (truth(edges, each) for each in operand.operands)
            if operand.function == "Union":
                return first.union(*others)
            return first.intersection(*others) if operand.function == "Intersect" else first.difference(*others)
        case _:
            raise AssertionError(operand)


def around(sets: st.SearchStrategy[Operand]) -> st.SearchStrategy[Operand]:
    functions: st.SearchStrategy[SetFunction] = st.sampled_from(("Union", "Intersect", "Minus"))
    pairs = st.tuples(sets, sets)
    marks: st.SearchStrategy[Mark] = st.sampled_from(("", "-"))
    routes = st.builds(route, st.sampled_from(RELATIONS), marks)
    return st.builds(NeighborCall, sets, routes, st.just(NOWHERE)) | st.builds(
        SetCall, functions, pairs, st.just(NOWHERE)
    )


# Few nodes and relations, and tight limits, make hubs of which not everything is fetched common.
graphs = st.frozensets(
    st.tuples(st.sampled_from(NODES), st.sampled_from(RELATIONS), st.sampled_from(NODES)), min_size=8, max_size=30
)
entities: st.SearchStrategy[Operand] = st.sampled_from(NODES).map(entity)
operands = st.recursive(entities, around, max_leaves=6)


def worked_out(edges: Edges, operand: Operand, limits: Limits) -> Part:
    graph = graph_of_edges(edges)
    call = combined("Union", operand, operand) if isinstance(operand, EntityRef) else operand

    async def work() -> Part:
        (part,) = await evaluate(graph, "", [call], limits)
        return part

    return anyio.run(work)


@settings(max_examples=300, derandomize=True, deadline=None, database=None)
@given(edges=graphs, operand=operands, most=st.integers(1, 8))
def test_a_complete_result_is_the_truth_and_any_other_a_part_of_it(edges: Edges, operand: Operand, most: int) -> None:
    part = worked_out(edges | UNUSED, operand, Limits(nodes=most))
    if part.outcome is None:
        assert str(part.failure).startswith("Minus cannot tell what to take away")
        return
    wanted, found = truth(edges, operand), {f"<{node}>" for node in part.outcome.nodes}
    assert found <= wanted
    assert part.outcome.total.value <= len(wanted)
    assert part.outcome.total.value == len(wanted) or not part.outcome.total.exact
    assert found == wanted or not part.outcome.complete


@settings(max_examples=100, derandomize=True, deadline=None, database=None)
@given(edges=graphs, operand=operands)
def test_without_tight_limits_every_result_is_complete(edges: Edges, operand: Operand) -> None:
    outcome = worked_out(edges | UNUSED, operand, Limits()).outcome
    assert outcome is not None
    assert outcome.complete
    assert {f"<{node}>" for node in outcome.nodes} == truth(edges, operand)
