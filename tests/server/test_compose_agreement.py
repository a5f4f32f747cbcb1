"""Whatever the expression, and whether the graph computes sets: what Compose finds is the truth."""

from typing import TypeAlias

import anyio
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_server.answers.results import Answer
from kg_server.compose.answer import composition
from kg_server.compose.syntax import EntityRef, Operand
from kg_server.compose.tool import ComposeResult, ExpressionLimits
from set_expressions import GraphWords, call, neighbour_sets, spelled
from small_graphs import WithoutSets

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
    if isinstance(operand, EntityRef):
        return frozenset({operand.text})
    first, *others = (truth(edges, each) for each in operand.operands)
    match operand.function:
        case "Union":
            return first.union(*others)
        case "Intersect":
            return first.intersection(*others)
        case "Minus":
            return first.difference(*others)
        case _:
            (leg,) = operand.routes[0].legs
            ways = (edge[::-1] if leg.mark == "-" else edge for edge in edges if edge[1] == leg.name.text)
            return frozenset(far for start, _, far in ways if start in first)


graphs = st.frozensets(
    st.tuples(st.sampled_from(NODES), st.sampled_from(RELATIONS), st.sampled_from(NODES)), min_size=8, max_size=30
)
operands = neighbour_sets(GraphWords(tuple(NODES), tuple(RELATIONS)))


@settings(max_examples=100, derandomize=True, deadline=None, database=None)
@given(edges=graphs, operand=operands, sets=st.booleans())
def test_every_result_is_the_truth(edges: Edges, operand: Operand, *, sets: bool) -> None:
    whole = graph_of_edges(edges | UNUSED)
    graph = whole if sets else WithoutSets(whole)
    expression = spelled(call("Union", operand, operand))

    async def work() -> Answer:
        return await composition(graph, expression, limits=ExpressionLimits(calls=200, depth=40), max_tokens=4_000)

    result = anyio.run(work).result
    assert isinstance(result, ComposeResult)
    assert {f"<{whole.prefixes.expand(row[3])}>" for row in result.results} == truth(edges, operand)
    assert result.status == ("ok" if result.results else "empty")
