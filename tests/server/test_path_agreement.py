import anyio
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_adapters.index.paths.search import find_paths_in_index
from kg_adapters.labels import RDF_TYPE
from kg_adapters.models import PathRequest
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.terms import BlankNode, Iri, Node, Triple
from kg_server.answers.paths import find_paths
from path_reference import UNWALKED, index_of_triples, reference_paths

NODES: tuple[Node, ...] = (*(Iri(f"http://example.org/n{number}") for number in range(6)), BlankNode("b"))
RELATIONS = (Iri("http://example.org/r"), Iri("http://example.org/a"), RDF_TYPE)

# Few nodes and relations make self-loops, parallel edges and cycles common.
graphs = st.lists(
    st.builds(Triple, st.sampled_from(NODES), st.sampled_from(RELATIONS), st.sampled_from(NODES)),
    min_size=4,
    max_size=30,
    unique=True,
)
requests = st.builds(
    PathRequest,
    st.sampled_from(NODES[:3]),
    st.sampled_from(NODES[3:]),
    max_hops=st.integers(1, 4),
    limit=st.sampled_from([1, 2, 7, 10_000]),
    avoid_hubs=st.booleans(),
    hub_degree=st.integers(1, 6),
)


@settings(max_examples=400, derandomize=True, deadline=None, database=None)
@given(graphs, requests)
def test_the_index_finds_what_networkx_finds(graph: list[Triple], request: PathRequest) -> None:
    assert find_paths_in_index(index_of_triples(graph), request, UNWALKED) == reference_paths(graph, request)


@settings(max_examples=150, derandomize=True, deadline=None, database=None)
@given(graphs, requests)
def test_the_search_on_any_graph_finds_what_networkx_finds(graph: list[Triple], request: PathRequest) -> None:
    assert anyio.run(find_paths, rdflib_graph(graph), request) == reference_paths(graph, request)


def rdflib_graph(triples: list[Triple]) -> RdflibAdapter:
    graph = rdflib.Graph()
    for triple in triples:
        graph.add((rdflib_node(triple.head), rdflib.URIRef(triple.relation.value), rdflib_node(triple.tail)))
    return RdflibAdapter(graph)


def rdflib_node(node: Node) -> rdflib.URIRef | rdflib.BNode:
    return rdflib.BNode(node.label) if isinstance(node, BlankNode) else rdflib.URIRef(node.value)
