"""The walk from the entities that were named, hop by hop, to all that lies within the bounds."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from kg_adapters.extraction.asking import Asker, Keys
from kg_adapters.extraction.journal import Journal
from kg_adapters.extraction.records import Bounds, Cut, Look
from kg_adapters.extraction.seeds import batches
from kg_adapters.models import NeighborPage
from kg_adapters.progress import ExtractionProgress, OnExtraction
from kg_adapters.terms import Iri, Node, Triple


@dataclass(frozen=True, slots=True)
class Walked:
    """What a walk has found.

    Args:
        looks: The names in the journal of all answers, in order.
        cut: The entities of whose triples some or all were left out.
        inner: The `node_key` of every entity that the graph was asked to look around.
        nodes: The `node_key` of every node that was met, the inner ones among them.
        relations: The IRI of every relation that was met.
        triples: How many triples the answers hold, some more than once.
    """

    looks: tuple[str, ...]
    cut: tuple[Cut, ...]
    inner: frozenset[str]
    nodes: frozenset[str]
    relations: frozenset[str]
    triples: int


class Walk:
    """Looks around entities, batch by batch; what the journal holds is not asked for again.

    Args:
        asker: What asks the graph.
        journal: Where every answer is kept.
        bounds: How far to go.
        tell: Told how far it has come.
    """

    def __init__(self, asker: Asker, journal: Journal, bounds: Bounds, tell: OnExtraction) -> None:
        self._asker = asker
        self._journal = journal
        self._bounds = bounds
        self._tell = tell
        self._looks: list[str] = []
        self._cut: list[Cut] = []
        self._inner: set[str] = set()
        self._nodes: set[str] = set()
        self._relations: set[str] = set()
        self._triples = 0

    async def walk(self, seeds: Collection[str], types: Sequence[Iri]) -> Walked:
        """Return all that lies within the bounds around `seeds`, and the types of what lies outermost.

        Raises:
            BackendError: The graph failed.
            InvalidSource: The journal cannot be written.
        """
        self._nodes.update(seeds)
        for hop in range(1, self._bounds.hops + 1):
            await self._step(hop)
        if types:
            await self._find_types(types)
        return Walked(
            looks=tuple(self._looks),
            cut=tuple(self._cut),
            inner=frozenset(self._inner),
            nodes=frozenset(self._nodes),
            relations=frozenset(self._relations),
            triples=self._triples,
        )

    async def _step(self, hop: int) -> None:
        frontier = self._asker.askable(self._nodes - self._inner)
        self._inner.update(map(str, frontier))
        done = 0
        for number, batch in enumerate(batches(frontier, self._bounds.batch)):
            self._tell(ExtractionProgress("walking", hop, done, len(frontier), self._triples))
            name = f"hop-{hop}-{number:06}"
            await self._note(name, batch, partial(self._look_around, name, batch, named=hop == 1))
            done += len(batch)

    async def _find_types(self, types: Sequence[Iri]) -> None:
        """Find the types of all whose triples were not taken."""
        hubs = {cut.node for cut in self._cut if cut.hub}
        outermost = self._asker.askable((self._nodes - self._inner) | hubs)
        done = 0
        for number, batch in enumerate(batches(outermost, self._bounds.batch)):
            self._tell(ExtractionProgress("typing", 0, done, len(outermost), self._triples))
            name = f"types-{number:06}"
            await self._note(name, batch, partial(self._look_for_types, name, batch, types))
            done += len(batch)

    async def _note(self, name: str, batch: Sequence[Node], ask: Callable[[], Awaitable[Look]]) -> None:
        look = await self._journal.once(name, Look, tuple(map(str, batch)), ask)
        self._looks.append(name)
        self._cut += look.cut
        self._triples += len(look.triples)
        for head, relation, tail in look.triples:
            self._nodes |= {head, tail}
            self._relations.add(relation)

    async def _look_around(self, name: str, batch: Sequence[Node], *, named: bool) -> Look:
        pages = await self._asker.around(batch)
        cut = {node: self._cut_of(node, page, named=named) for node, page in pages.items() if page.truncated}
        hubs = {node for node, each in cut.items() if each.hub}
        taken = (triple for node in batch if node in pages and node not in hubs for triple in pages[node].triples)
        return self._look(name, batch, taken, [cut[node] for node in batch if node in cut])

    async def _look_for_types(self, name: str, batch: Sequence[Node], types: Sequence[Iri]) -> Look:
        pages = await self._asker.types(batch, types)
        taken = (triple for node in batch if node in pages for triple in pages[node].triples)
        return self._look(name, batch, taken, [])

    def _cut_of(self, node: Node, page: NeighborPage, *, named: bool) -> Cut:
        total = page.total
        hub = not named and total.value > self._bounds.max_degree
        return Cut(node=str(node), total=total.value, exact=total.exact, hub=hub)

    def _look(self, name: str, batch: Sequence[Node], triples: Iterable[Triple], cut: Sequence[Cut]) -> Look:
        keys = Keys(None if self._asker.blank_nodes_last else name)
        rows = ((keys(each.head), each.relation.value, keys(each.tail)) for each in dict.fromkeys(triples))
        return Look(asked=tuple(map(str, batch)), triples=tuple(rows), cut=tuple(cut))
