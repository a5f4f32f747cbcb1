"""Sets over any graph: the facts that a question needs are fetched in batches, and the answer is worked out from them.

For graphs that cannot work it out themselves (`SupportsSets`). Each hop of a path is a request for every so many nodes.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

import anyio
import anyio.to_thread

from kg_adapters.algebra import (
    ANY,
    Best,
    Condition,
    Hop,
    HopPath,
    Instances,
    Intersect,
    Kept,
    Meets,
    Members,
    Minus,
    Outranks,
    Reached,
    SetExpression,
    Step,
    Union,
    ValueOf,
    Values,
)
from kg_adapters.errors import BackendTimeout, Unsupported
from kg_adapters.index.sets.answers import IndexSets, sets_of
from kg_adapters.models import Direction, EdgeDirection, NeighborPage
from kg_adapters.protocol import KGAdapter, SupportsSets
from kg_adapters.requests import NeighborRequest
from kg_adapters.set_requests import (
    Aggregated,
    Computed,
    Grouped,
    Listed,
    SetQuestion,
    SetRequest,
    SharedBy,
    Tabled,
    at_least,
    grows,
    parts_of,
)
from kg_adapters.terms import Fact, Iri, Literal, Node

BATCH: Final = 200
"""About how many nodes one request is."""
PAGE: Final = 1_000
"""How many facts of one node a request brings."""
MOST_FACTS: Final = 100_000
"""After how many facts no more are fetched."""
_MOST_MEMBERS: Final = 10**9


async def compute_sets(graph: KGAdapter, request: SetRequest, *, most_facts: int = MOST_FACTS) -> Computed:
    """Return what is asked about sets of any graph, by its own means where it has any.

    Raises:
        Unsupported: More facts are needed than are fetched, and what is left out could change the answer.
        BackendTimeout: It took longer than the request allows.
    """
    if isinstance(graph, SupportsSets):
        return await graph.compute(request)
    return await walked_sets(graph, request, most_facts=most_facts)


async def walked_sets(graph: KGAdapter, request: SetRequest, *, most_facts: int = MOST_FACTS) -> Computed:
    """Return what is asked about sets from facts that are fetched in batches; see `compute_sets`."""
    try:
        with anyio.fail_after(request.timeout_s):
            return await _Walk(graph, most_facts).answer(request)
    except TimeoutError as error:
        raise BackendTimeout(
            f"Working out the sets took longer than {request.timeout_s:g} s. Ask about fewer nodes."
        ) from error


class _Walk:
    """The facts that one question needs, as far as they are fetched.

    Args:
        graph: Where they are.
        most_facts: How many are fetched at most.
    """

    def __init__(self, graph: KGAdapter, most_facts: int) -> None:
        self._graph = graph
        self._most = most_facts
        self._facts: dict[Fact, None] = {}
        self._ends: dict[tuple[Node, Hop], list[Node]] = {}
        self._cut = False

    async def answer(self, request: SetRequest) -> Computed:
        """Return the answer from what is fetched; a lower bound where that is not everything."""
        await self._gather_for(request.question)
        if self._cut and not grows(request.question):
            raise Unsupported(
                f"This takes more than {self._most:,} facts, and those left out could change the answer. "
                "Narrow the sets first."
            )
        computed = await anyio.to_thread.run_sync(self._sets().compute, request)
        return at_least(computed) if self._cut else computed

    async def _gather_for(self, question: SetQuestion) -> None:
        match question:
            case Listed(of):
                await self._gather(of)
            case Aggregated(of, by):
                await self._along(of, [by.path])
            case Grouped(of, by, total=total):
                await self._along(of, [by, *(() if total is None else (total.path,))])
            case Tabled(of, columns):
                await self._along(of, [column.path for column in columns])
            case SharedBy(sets=sets):
                for of in sets:
                    await self._gather(of)
                    await self._fetch(self._members(of), ANY)

    async def _gather(self, of: SetExpression) -> None:
        """Fetch what it takes to know what is in a set."""
        for part in parts_of(of):
            await self._gather(part)
        match of:
            case Reached(starts, path) | Values(starts, path):
                await self._walk(self._members(starts), path)
            case Kept(starts, condition):
                for path in _paths_of(condition):
                    await self._walk(self._members(starts), path)
            case Best(starts, by):
                await self._walk(self._members(starts), by.path)
            case Instances(owner, subclasses):
                await self._typed(owner, subclasses=subclasses)
            case Members() | Union() | Intersect() | Minus():
                pass

    async def _along(self, of: SetExpression, paths: Iterable[HopPath]) -> None:
        await self._gather(of)
        for path in paths:
            await self._walk(self._members(of), path)

    async def _typed(self, owner: Node, *, subclasses: bool) -> None:
        vocabulary = self._graph.vocabulary
        classes = [owner]
        if subclasses and vocabulary.subclasses:
            wider = HopPath((Hop(tuple(Step(relation, "in") for relation in vocabulary.subclasses), repeated=True),))
            await self._walk(classes, wider)
            classes += self._members(Reached(Members((owner,)), wider))
        await self._fetch(classes, Hop(tuple(Step(relation, "in") for relation in vocabulary.types)))

    async def _walk(self, starts: Collection[Node], path: HopPath) -> None:
        here: Collection[Node] = starts
        for hop in path.hops:
            once = Hop(hop.steps)
            reached = await self._fetch(here, once)
            while hop.repeated and (ahead := [node for node in reached if (node, once) not in self._ends]):
                reached |= await self._fetch(ahead, once)
            here = reached

    async def _fetch(self, nodes: Collection[Node], hop: Hop) -> dict[Node, None]:
        """Fetch the facts of a hop from some nodes, and return the nodes that it leads to."""
        missing = [node for node in nodes if (node, hop) not in self._ends]
        for batch in _batches(missing):
            self._ends |= {(node, hop): [] for node in batch}
            for direction, relations in _sides(hop):
                await self._page(NeighborRequest(batch, direction, relations, PAGE, values=True), hop)
        return dict.fromkeys(end for node in nodes for end in self._ends[node, hop])

    async def _page(self, request: NeighborRequest, hop: Hop) -> None:
        """Take in what is stated around nodes, page by page where there is more."""
        if len(self._facts) >= self._most:
            self._cut = True
            return
        for node, page in (await self._graph.neighbors(request)).items():
            self._facts |= dict.fromkeys(page.facts)
            self._ends[node, hop] += self._far_ends(node, page)
            if page.cursor is not None:
                await self._page(replace(request, entities=(node,), cursor=page.cursor), hop)
            elif page.truncated:
                self._cut = True

    def _far_ends(self, node: Node, page: NeighborPage) -> list[Node]:
        return [triple.tail if triple.head == node else triple.head for triple in page.triples]

    def _members(self, of: SetExpression) -> list[Node]:
        """Return what is in a set by what is fetched."""
        if isinstance(of, Members):
            return list(of.nodes)
        request = SetRequest(Listed(of), limit=_MOST_MEMBERS, witnesses=0)
        return [term for term in self._sets().compute(request).members if not isinstance(term, Literal)]

    def _sets(self) -> IndexSets:
        return sets_of(self._facts, self._graph.vocabulary)


def _batches(nodes: Iterable[Node]) -> Iterator[tuple[Node, ...]]:
    left = iter(nodes)
    return iter(lambda: tuple(islice(left, BATCH)), ())


def _sides(hop: Hop) -> Iterator[tuple[Direction, frozenset[Iri] | None]]:
    """Yield in which directions a hop leads over which relations."""
    if hop.steps is None:
        yield "both", None
        return
    sides: tuple[EdgeDirection, ...] = ("out", "in")
    for direction in sides:
        if relations := frozenset(step.relation for step in hop.steps if step.direction == direction):
            yield direction, relations


def _paths_of(condition: Condition) -> tuple[HopPath, ...]:
    match condition:
        case Meets(path, other) | Outranks(ValueOf(path), ValueOf(other)):
            return path, other
        case _:
            return (condition.path,)
