"""Path search as its definition says, slowly: what every faster search must answer."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise, product

import networkx as nx

from kg_adapters.index.builder import IndexBuilder
from kg_adapters.index.graph_index import GraphIndex
from kg_adapters.labels import Vocabulary
from kg_adapters.models import Count, Path, PathRequest, PathsFound
from kg_adapters.requests import check_path_request
from kg_adapters.terms import Node, Triple, node_key

UNWALKED = Vocabulary().unwalked


def index_of_triples(triples: Iterable[Triple]) -> GraphIndex:
    """Return the adjacency index of a small graph."""
    builder = IndexBuilder(Vocabulary())
    for triple in triples:
        builder.add_edge(node_key(triple.head), triple.relation.value, node_key(triple.tail))
    return builder.finish()


def reference_paths(triples: Collection[Triple], request: PathRequest) -> PathsFound:
    """Enumerate every path with networkx and sort them all."""
    check_path_request(request)
    whole = _graph(triples)
    degrees = {node: len(set(whole.neighbors(node)) - {node}) for node in whole}
    ends = {request.source, request.target}
    hubs = {node for node in degrees if request.avoid_hubs and degrees[node] > request.hub_degree} - ends
    walked = [triple for triple in triples if _walked(triple, request)]
    graph = _graph(walked)
    found: list[Path] = []
    for nodes in _node_paths(graph.subgraph([node for node in graph if node not in hubs]), request):
        cost = sum(degrees[node] for node in nodes[1:-1])
        found += [Path(nodes, choice, cost) for choice in _choices(nodes, walked)]
    found.sort(key=path_order)
    once: dict[object, list[Path]] = {}
    for path in found:
        once.setdefault(tuple(_both_forms(triple, request) for triple in path.triples), []).append(path)
    best = list(once.values())[: request.limit]
    twins = sum(len(each) - 1 for each in best)
    skipped = sorted(hubs & _met(graph, hubs, request), key=lambda hub: (-degrees[hub], node_key(hub)))
    paths = tuple(each[0] for each in best)
    return PathsFound(paths, Count(len(found)), None, tuple(skipped[:20]), twins=twins)


def _both_forms(triple: Triple, request: PathRequest) -> frozenset[Triple]:
    turned = {one: other for pair in request.inverses for one, other in (pair, pair[::-1])}.get(triple.relation)
    return frozenset({triple} if turned is None else {triple, Triple(triple.tail, turned, triple.head)})


def _graph(triples: Iterable[Triple]) -> "nx.Graph[Node]":
    graph: nx.Graph[Node] = nx.Graph()
    graph.add_edges_from((triple.head, triple.tail) for triple in triples)
    return graph


def _walked(triple: Triple, request: PathRequest) -> bool:
    direct = {triple.head, triple.tail} == {request.source, request.target}
    return direct or not request.avoid_hubs or triple.relation not in UNWALKED


def _node_paths(graph: "nx.Graph[Node]", request: PathRequest) -> Iterator[tuple[Node, ...]]:
    if request.source in graph and request.target in graph:
        yield from map(tuple, nx.all_simple_paths(graph, request.source, request.target, cutoff=request.max_hops))


def _choices(nodes: tuple[Node, ...], triples: Iterable[Triple]) -> Iterator[tuple[Triple, ...]]:
    between: defaultdict[frozenset[Node], list[Triple]] = defaultdict(list)
    for triple in triples:
        between[frozenset((triple.head, triple.tail))].append(triple)
    return product(*(between[frozenset(pair)] for pair in pairwise(nodes)))


def _met(graph: "nx.Graph[Node]", hubs: set[Node], request: PathRequest) -> set[Node]:
    """Return the nodes that a search comes upon where a path might go on."""
    if request.max_hops == 1 or request.source not in graph or request.target not in graph:
        return set()
    ends = {request.source, request.target}
    left, right = (set(graph.neighbors(end)) - ends for end in (request.source, request.target))
    if request.max_hops == 2 or not left or not right:
        return left & right
    near, far = (left, right) if len(left) <= len(right) else (right, left)
    if request.max_hops == 3:
        return near | (far & _around(graph, near - hubs))
    return near | far | (_around(graph, near - hubs) & _around(graph, far - hubs))


def _around(graph: "nx.Graph[Node]", nodes: set[Node]) -> set[Node]:
    return {there for node in nodes for there in graph.neighbors(node)}


def path_order(path: Path) -> tuple[int, int, Sequence[str]]:
    """Return the key that sorts paths as `PathsFound` promises."""
    ids = [text for triple in path.triples for text in (str(triple.head), triple.relation.value, str(triple.tail))]
    return len(path.triples), path.inner_degree, ids
