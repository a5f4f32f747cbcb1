"""GetPath: what links two entities, as an answer."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from sys import maxsize
from typing import Final, Self
from typing import Literal as Choice

import anyio
import anyio.lowlevel
import anyio.to_thread
import numpy as np

from kg_adapters.embedding.lexical import lexical_scores
from kg_adapters.errors import BackendTimeout, InvalidRequest
from kg_adapters.index.builder import IndexBuilder
from kg_adapters.index.paths.search import UNKNOWN_DEGREE, find_paths_in_index
from kg_adapters.models import Count, Degree, NeighborPage, Path, PathRequest, PathsFound
from kg_adapters.protocol import KGAdapter, SupportsJoins, SupportsPaths, known_profile
from kg_adapters.requests import NeighborRequest, check_path_request
from kg_adapters.terms import BlankNode, Iri, Literal, Node, Term, Triple, node_key
from kg_boundary.shown import counted, in_quotes, listed
from kg_server.answers.intermediates import with_intermediates
from kg_server.answers.results import MOST_HOPS, Answer, AnswerRows, Line, Over, PathsResult, Piece, Status, fitted_rows
from kg_server.names import Names, names_of, terms_of
from kg_server.naming.refusals import described_entity
from kg_server.ontology import CLASS_KINDS, class_paths
from kg_server.settings import Settings

_PAGE: Final = 5_000
_TRIPLES_PER_REQUEST: Final = 20_000
_ENTITIES_PER_REQUEST: Final = 2_000
_WALKED: Final = _PAGE
"""Up to how many neighbours of one end are fetched where the graph can join what links both."""
_MOST_JOINED_HOPS: Final = 3
# The rest of the time is for the search in what was fetched.
_FETCHING_SHARE: Final = 0.9


async def search_paths(graph: KGAdapter, request: PathRequest) -> PathsFound:
    """Return the best simple paths between two nodes, by the graph's own search where it has one.

    Raises:
        InvalidRequest: See `check_path_request`.
    """
    if isinstance(graph, SupportsPaths):
        return await graph.paths(request)
    return await find_paths(graph, request)


async def find_paths(graph: KGAdapter, request: PathRequest) -> PathsFound:
    """Return the best simple paths between two nodes, as `find_paths_in_index` does on the same graph.

    An edge counts as looked at when it is fetched. A backend that times out ends the search as its own deadline does.

    Raises:
        InvalidRequest: See `check_path_request`.
    """
    check_path_request(request)
    surroundings = _Surroundings(graph, request)
    deadline = anyio.current_time() + request.timeout_s
    with anyio.move_on_after(request.timeout_s * _FETCHING_SHARE) as fetching:
        try:
            await surroundings.fetch()
        except BackendTimeout:
            surroundings.stopped = "time"
    stopped = "time" if fetching.cancelled_caught else surroundings.stopped
    found = await anyio.to_thread.run_sync(surroundings.search, deadline - anyio.current_time(), abandon_on_cancel=True)
    return found if stopped is None else replace(found, total=Count(found.total.value, exact=False), stopped=stopped)


class _Surroundings:
    """The part of a graph in which the paths of one request run, as far as it was fetched."""

    def __init__(self, graph: KGAdapter, request: PathRequest) -> None:
        self._graph = graph
        self._request = request
        self._left_out = graph.vocabulary.unwalked if request.avoid_hubs else frozenset[Iri]()
        self._builder = IndexBuilder(graph.vocabulary)
        self._around: dict[Node, set[Node]] = {}
        self._degrees: dict[Node, Degree] = {}
        self._spent = 0
        self._same: dict[BlankNode, BlankNode] = {}
        self._with_facts: dict[frozenset[tuple[Iri, bool, Term]], BlankNode] = {}
        self._joins = graph if isinstance(graph, SupportsJoins) else None
        self.stopped: Choice["expansions", "time"] | None = None
        self.unnamed = False

    async def fetch(self) -> None:
        """Fetch what the search will look at: the same nodes and edges as on an index of the whole graph."""
        ends = self._request.source, self._request.target
        if self._joins is not None and await self._is_joined(self._joins):
            await self._join(self._joins)
        elif self._request.max_hops == 1:
            await self._learn(ends)
            await self._expand([min(ends, key=self._edge_count)])
        else:
            await self._expand(ends)
            await self._approach()

    async def _is_joined(self, graph: SupportsJoins) -> bool:
        """Return whether an end has too many neighbours to be walked, or what links both is as easily asked for."""
        if self._request.max_hops == 1:
            return True
        counts = await graph.neighbor_counts((self._request.source, self._request.target))
        return not all(each.at_most(_WALKED) for each in counts.values())

    async def _join(self, graph: SupportsJoins) -> None:
        """Ask what links both ends, one length after the other, in place of all that is around them."""
        ends, most = (self._request.source, self._request.target), min(self._request.max_hops, _MOST_JOINED_HOPS)
        self.stopped = "expansions"
        whole = most == self._request.max_hops
        for hops in range(1, most + 1):
            found = await graph.joined(*ends, hops, without=self._left_out)
            whole = whole and found.whole
            await self._add_all(found.facts)
            inner = {node for triple in found.facts for node in (triple.head, triple.tail)}
            counts = await graph.neighbor_counts(inner - self._degrees.keys() - set(ends))
            self._degrees.update({node: Degree(number, ()) for node, number in counts.items()})
        self.stopped = None if whole else "expansions"

    async def _approach(self) -> None:
        """Fetch what lies between both ends, whose own edges are fetched."""
        ends = self._request.source, self._request.target
        left, right = (self._around.get(end, set()) - set(ends) for end in ends)
        if not left or not right:
            return
        if self._request.max_hops == 2 or self.stopped:
            await self._learn(left & right)
            return
        near, far = sorted((left, right), key=len)
        frontier = near if self._request.max_hops == 3 else near | far
        await self._learn(frontier)
        await self._expand(self._passable(frontier))
        met = self._beyond(near) & (far if self._request.max_hops == 3 else self._beyond(far))
        await self._learn(met - self._degrees.keys() - set(ends))

    def search(self, timeout_s: float) -> PathsFound:
        """Return the paths in what was fetched."""
        index = self._builder.finish()
        keys = {node_key(node): degree.neighbors.value for node, degree in self._degrees.items()}
        known = (keys.get(index.nodes[number], UNKNOWN_DEGREE) for number in range(len(index.nodes)))
        degrees = np.fromiter(known, dtype=np.int64, count=len(index.nodes))
        request = replace(self._request, max_expansions=maxsize, timeout_s=timeout_s)
        found = find_paths_in_index(index, request, self._left_out, degrees)
        whole = len(found.paths) + found.twins >= found.total.value
        passed = {node for path in found.paths for node in path.nodes[1:-1]} if whole else self._degrees.keys()
        return replace(found, unnamed=self.unnamed, uncounted=any(map(self._may_be_hub, passed)))

    def _may_be_hub(self, node: Node) -> bool:
        """Return whether a node is passed through that may have too many neighbours: not all of them were counted."""
        return self._request.avoid_hubs and node in self._degrees and not self._degrees[node].neighbors.exact

    async def _learn(self, nodes: Collection[Node]) -> None:
        """Ask for the degrees of nodes."""
        ordered = sorted(nodes, key=node_key)
        for first in range(0, len(ordered), _ENTITIES_PER_REQUEST):
            await anyio.lowlevel.checkpoint()
            self._degrees.update(await self._graph.degrees(ordered[first : first + _ENTITIES_PER_REQUEST]))

    async def _expand(self, nodes: Collection[Node]) -> None:
        """Fetch all edges of nodes, as far as the request's budget goes."""
        for batch in self._batches(sorted(nodes, key=node_key)):
            if self._remaining() < 1:
                self.stopped = "expansions"
                return
            for node, page in (await self._pages(batch)).items():
                await self._go_on(node, page)

    async def _go_on(self, node: Node, page: NeighborPage) -> None:
        """Fetch the pages behind the first."""
        while page.truncated:
            if page.cursor is None or self._remaining() < 1:
                self.stopped = "expansions"
                return
            page = (await self._pages([node], page.cursor))[node]

    async def _pages(self, nodes: Sequence[Node], cursor: str | None = None) -> dict[Node, NeighborPage]:
        await anyio.lowlevel.checkpoint()
        limit = max(1, min(_PAGE, self._remaining()))
        pages = await self._graph.neighbors(NeighborRequest(tuple(nodes), limit=limit, cursor=cursor))
        for page in pages.values():
            self._spent += len(page.triples)
            await self._add_all(page.triples)
        return dict(pages)

    async def _add_all(self, triples: Sequence[Triple]) -> None:
        if not self._graph.prefixes.blank_nodes:
            ends = {end for triple in triples for end in (triple.head, triple.tail)}
            await self._tell_apart({end for end in ends if isinstance(end, BlankNode)} - self._same.keys())
        for triple in triples:
            self._add(replace(triple, head=self._known(triple.head), tail=self._known(triple.tail)))

    async def _tell_apart(self, nodes: Collection[BlankNode]) -> None:
        """Learn which blank nodes of several answers are one, by their facts, which came with them, and add these.

        What cannot be known so, since its facts lead to other blank nodes or did not come, cannot be passed through.
        """
        if not nodes:
            return
        pages = await self._graph.neighbors(NeighborRequest(tuple(nodes), limit=_PAGE, values=True))
        for node in nodes:
            page = pages.get(node)
            facts = () if page is None or page.truncated else page.facts
            sides = frozenset(
                (fact.relation, fact.head == node, fact.tail if fact.head == node else fact.head) for fact in facts
            )
            if not sides or any(isinstance(end, BlankNode) for _, _, end in sides):
                self.unnamed = True
                self._same[node] = node
                continue
            first = self._same[node] = self._with_facts.setdefault(sides, node)
            if first == node:
                edges = [fact for fact in facts if isinstance(fact, Triple)]
                neighbors = {end for _, _, end in sides if not isinstance(end, Literal)}
                self._degrees[node] = Degree(Count(len(neighbors)), ())
                for edge in edges:
                    self._add(edge)

    def _known(self, node: Node) -> Node:
        return self._same.get(node, node) if isinstance(node, BlankNode) else node

    def _add(self, triple: Triple) -> None:
        self._builder.add_edge(node_key(triple.head), triple.relation.value, node_key(triple.tail))
        if triple.head != triple.tail and triple.relation not in self._left_out:
            self._around.setdefault(triple.head, set()).add(triple.tail)
            self._around.setdefault(triple.tail, set()).add(triple.head)

    def _batches(self, nodes: Sequence[Node]) -> Iterator[list[Node]]:
        """Yield nodes whose edges fit into one request; none once the budget is spent."""
        batch: list[Node] = []
        expected = 0
        for node in nodes:
            edges = self._edge_count(node)
            room = min(_TRIPLES_PER_REQUEST, self._remaining())
            if batch and (expected + edges > room or len(batch) == _ENTITIES_PER_REQUEST):
                yield batch
                batch, expected = [], 0
            batch.append(node)
            expected += edges
        if batch:
            yield batch

    def _passable(self, nodes: Collection[Node]) -> list[Node]:
        highest = self._request.hub_degree if self._request.avoid_hubs else maxsize
        # What is only known to have so many may be a hub: it is passed through, and the answer says so.
        return [node for node in nodes if node in self._degrees and self._degrees[node].neighbors.value <= highest]

    def _beyond(self, nodes: Collection[Node]) -> set[Node]:
        return set[Node]().union(*(self._around[node] for node in self._passable(nodes)))

    def _edge_count(self, node: Node) -> int:
        degree = self._degrees.get(node)
        return 0 if degree is None else sum(each.count.value for each in degree.relations)

    def _remaining(self) -> int:
        return self._request.max_expansions - self._spent


POOL = 500
SHOWN_HUBS = 5
SHARED_IN_LINE = 20
"""How many nodes that both ends share over a relation stand in one line."""


async def paths_between(
    graph: KGAdapter,
    settings: Settings,
    *,
    source: str,
    target: str,
    max_hops: int,
    limit: int,
    question: str | None,
    avoid_hubs: bool,
    max_tokens: int,
) -> Answer:
    """Answer GetPath.

    With a question, the best `POOL` paths by length are ranked by the likeness of their relations and inner nodes to
    it.

    Raises:
        InvalidRequest: An id is not one, or source and target are the same.
        UnknownEntity: The graph does not mention one of them.
    """
    start, is_class = await _end(graph, source)
    end, both_classes = await _end(graph, target)
    if start == end and source != target:
        thing = (await names_of(graph, [start])).entity(start)
        raise InvalidRequest(
            f"{in_quotes(source)} and {in_quotes(target)} are one thing: {thing}. Name two different entities, or ask "
            "for the neighbours of the one."
        )
    profile = await known_profile(graph)
    request = PathRequest(
        start,
        end,
        max_hops=max_hops,
        limit=limit if question is None else max(limit, POOL),
        avoid_hubs=avoid_hubs,
        hub_degree=settings.hub_degree,
        timeout_s=settings.timeout_s * 0.9,
        inverses=tuple((each.relation, each.inverse) for each in profile.inverses if each.one_used is None),
    )
    found = await search_paths(graph, request)
    compared = len(found.paths) + found.twins
    if compared == found.total.value:
        compared = 0
        found = replace(found, total=replace(found.total, value=len(found.paths)))
    above = _apart(await class_paths(graph, start, end), request) if is_class and both_classes else []
    total = Count(found.total.value + len(above), exact=found.total.exact)
    # The way over superclasses is what mostly connects two classes.
    found = replace(found, paths=(*above, *found.paths), total=total)
    shown_hubs = found.skipped_hubs[:SHOWN_HUBS]
    walked = [triple for path in found.paths for triple in path.triples]
    names = await names_of(graph, (start, end, *shown_hubs, *terms_of(walked)), max_tokens=max_tokens)
    ranked = found.paths if question is None else _by_question(found.paths, question, names)
    shown = ranked[:limit]
    names = await with_intermediates(graph, [each for path in shown for each in path.triples], names, (start, end))
    search = _Search(request, found, len(above), compared)
    return fitted_rows(AnswerRows(_lines(shown, names), names), lambda rows: _answer(search, rows), max_tokens)


@dataclass(frozen=True, slots=True)
class _Search:
    """What was searched for, and what was found.

    Args:
        request: What was asked.
        found: What came of it.
        above: How many of the paths are over superclasses.
        compared: How many of the stored paths were compared; 0 where all were, and the twins are not counted as found.
    """

    request: PathRequest
    found: PathsFound
    above: int
    compared: int


async def _end(graph: KGAdapter, text: str) -> tuple[Node, bool]:
    """Return the entity at one end, and whether it is a class."""
    node, described = await described_entity(graph, text)
    return node, not CLASS_KINDS.isdisjoint(described.types)


def _apart(paths: Sequence[Path], request: PathRequest) -> list[Path]:
    """Return the paths over superclasses that a search does not find; it finds every direct edge."""
    found = request.max_hops if not request.avoid_hubs else 1
    return [each for each in paths if len(each.triples) > found]


def _by_question(paths: Sequence[Path], question: str, names: Names) -> Sequence[Path]:
    scores = lexical_scores(question, [_wording(path, names) for path in paths]).tolist()
    order = sorted(range(len(paths)), key=lambda index: (-scores[index], index))
    return [paths[index] for index in order]


def _wording(path: Path, names: Names) -> str:
    words: list[Node] = [triple.relation for triple in path.triples]
    words.extend(path.nodes[1:-1])
    return " ".join(names.labels.get(word, word.local_part) for word in words)


def _answer(search: _Search, rows: AnswerRows["_PathLine"]) -> Answer:
    names, found = rows.names, search.found
    paths = [[names.row(triple) for triple in path.triples] for line in rows for path in line.paths]
    result = PathsResult(
        status=_status(found, len(paths)),
        knowledge="stated" if paths else "unknown",
        summary=_summary(search, names) + _left_out(found, len(paths)),
        paths=paths,
        total=found.total.value,
        exhaustive=found.exhaustive,
        skipped_hubs=[names.entity_id(hub) for hub in found.skipped_hubs],
        **rows.fields(),
    )
    return Answer(result, rows.texts())


@dataclass(frozen=True, slots=True)
class _PathLine(Line):
    """One path, or those by what both ends share over a relation."""

    paths: tuple[Path, ...] = ()

    @classmethod
    def of(cls, text: Sequence[Piece], *paths: Path) -> Self:
        """Return the line that shows some paths by a text."""
        return cls(tuple(text), (), tuple(triple for path in paths for triple in path.triples), paths=paths)


def _lines(paths: Sequence[Path], names: Names) -> list[_PathLine]:
    """Return a line for each path; what source and target share over a relation stands in one, where the first does."""
    groups: dict[object, list[Path]] = {}
    for path in paths:
        groups.setdefault(_shared(path, names) or path, []).append(path)
    parts = (
        members[first : first + SHARED_IN_LINE]
        for members in groups.values()
        for first in range(0, len(members), SHARED_IN_LINE)
    )
    return [_line(members[0], names) if len(members) == 1 else _shared_line(members, names) for members in parts]


def _line(path: Path, names: Names) -> _PathLine:
    text: list[Piece] = [path.nodes[0]]
    for here, there, triple in zip(path.nodes, path.nodes[1:], path.triples, strict=False):
        over = Over(triple.relation, graph=names.graph_of(triple))
        text += [" -[", over, "]-> ", there] if triple.head == here else [" <-[", over, "]- ", there]
    return _PathLine.of(text, path)


def _shared_line(paths: Sequence[Path], names: Names) -> _PathLine:
    """Return `both | occupation (P106) | writer (Q36180), film producer (Q3282637)`."""
    shared = _shared(paths[0], names)
    text: list[Piece] = ["both | ", *((shared,) if shared is not None else ()), " | "]
    for number, path in enumerate(paths):
        text += [", " if number else "", path.nodes[1]]
    return _PathLine.of(text, *paths)


def _shared(path: Path, names: Names) -> Over | None:
    """Return the relation by which both ends of a path lead to its middle, or it to both; None for any other path."""
    if len(path.triples) != 2 or path.triples[0].relation != path.triples[1].relation:
        return None
    first, last = path.triples
    graph = names.graph_of(first)
    if graph != names.graph_of(last):
        return None
    if first.tail == last.tail == path.nodes[1]:
        return Over(first.relation, graph=graph)
    return Over(first.relation, backwards=True, graph=graph) if first.head == last.head == path.nodes[1] else None


def _status(found: PathsFound, shown: int) -> Status:
    if found.stopped is not None:
        return "timeout" if found.stopped == "time" else "truncated"
    if found.total.value == 0:
        return "empty"
    return "truncated" if shown < found.total.value else "ok"


def _summary(search: _Search, names: Names) -> str:
    request, found, above = search.request, search.found, search.above
    pair = f"{names.entity(request.source)} and {names.entity(request.target)}"
    within = f"within {request.max_hops} hop{'s' if request.max_hops > 1 else ''}"
    if above:
        others = found.total.value - above
        more = f", and {Count(others, exact=found.total.exact)} more {within}" if others else ""
        summary = f"{counted(above, 'path')} over superclasses {'links' if above == 1 else 'link'} {pair}{more}."
    elif found.total.value == 0 and found.stopped is None:
        further = f"; max_hops={request.max_hops + 1} looks further" if request.max_hops < MOST_HOPS else ""
        summary = f"No path links {pair} {within}{further}."
    else:
        noun = "path links" if found.total.value == 1 else "paths link"
        summary = f"{found.total} {noun} {pair} {within}."
    same = ""
    if found.twins and search.compared:
        verb = "says" if found.twins == 1 else "say"
        same = f" Of the best {search.compared:,}, {found.twins:,} {verb} the same as others, over inverse relations."
    elif found.twins:
        same = f" {counted(found.twins, 'more path says', 'more paths say')} the same over inverse relations."
    return f"{summary}{same} {_extent(search, names)}"


def _extent(search: _Search, names: Names) -> str:
    found = search.found
    if found.stopped == "expansions":
        return "The search stopped early, after looking at as many edges as it may: fewer hops need less."
    if found.stopped == "time":
        return "The search stopped early, at its deadline: fewer hops need less."
    if found.skipped_hubs:
        hubs = listed((names.entity(hub, ",") for hub in found.skipped_hubs), ", ", SHOWN_HUBS)
        return f"Hubs left out: {hubs} (avoid_hubs=false includes them, types and superclasses)."
    if found.unnamed:
        return "Not all nodes without a name (_:…) can be passed through here; a Sparql query can go through them."
    if found.uncounted:
        return "Paths may pass through hubs: not all neighbours of the nodes between were counted."
    left = "for mixes of superclasses and others" if search.above else "over types and superclasses"
    but = f", except {left} (avoid_hubs=false)" if search.request.avoid_hubs else ""
    return f"The search was exhaustive{but}."


def _left_out(found: PathsFound, shown: int) -> str:
    if shown == 0 or shown >= found.total.value:
        return ""
    return f" The best {shown} are here; a larger limit, max_tokens or a question shows others."
