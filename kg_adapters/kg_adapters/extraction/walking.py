"""Query a graph in batches: walk from the named entities within bounds, then read literals, labels and descriptions."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from kg_adapters.errors import BackendTimeout
from kg_adapters.extraction.journal import Bounds, Cut, Journal, Look, Text, Texts, Value, ValueChoice, Values
from kg_adapters.extraction.seeds import batches
from kg_adapters.models import NO_FEATURES, Description, Feature, FeaturePage, NeighborPage
from kg_adapters.open_options import ExtractionProgress, ExtractionStage, OnExtraction
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest, NeighborRequest
from kg_adapters.terms import BlankNode, Iri, Node, Triple, node_from_key

MOST_VALUES: Final = 1_000
"""The most literals of one term."""

MOST_TYPES: Final = 100
"""The most types of one entity."""


class Asker:
    """Asks one graph, and counts how often.

    Args:
        graph: What is asked.
        bounds: How much of its answers is wanted.

    Attributes:
        requests: How many calls about a batch were made.
        value_requests: How many calls for the literals of a batch were made.
    """

    def __init__(self, graph: KGAdapter, bounds: Bounds) -> None:
        self._graph = graph
        self._bounds = bounds
        self.requests = 0
        self.value_requests = 0

    @property
    def blank_nodes_last(self) -> bool:
        """Whether a blank node of one answer is the same node in the next."""
        return self._graph.prefixes.blank_nodes

    def askable(self, keys: Iterable[str]) -> list[Node]:
        """Return the nodes that the graph can be asked about, sorted by key."""
        return [node_from_key(key) for key in sorted(keys) if self.blank_nodes_last or not key.startswith("_:")]

    async def around(self, batch: Sequence[Node]) -> dict[Node, NeighborPage]:
        """Return the triples around entities, each within the bounds.

        What the graph only answers in part, or not in time, it is asked for again in halves.

        Raises:
            BackendTimeout: It cannot answer for a single entity.
            BackendError: It cannot be asked.
        """
        self.requests += 1
        pages: dict[Node, NeighborPage] = {}
        try:
            pages |= await self._graph.neighbors(
                NeighborRequest(
                    tuple(batch), limit_per_relation=self._bounds.per_relation, limit=self._bounds.max_degree
                )
            )
        except BackendTimeout:
            if len(batch) == 1:
                raise
            again = list(batch)
        else:
            again = [node for node in batch if node in pages and self._is_partial(pages[node])]
        if len(batch) > 1:
            middle = len(again) // 2
            for half in (again[:middle], again[middle:]):
                pages |= await self.around(half) if half else {}
        return pages

    async def types(self, batch: Sequence[Node], relations: Collection[Iri]) -> Mapping[Node, NeighborPage]:
        """Return the triples that say of what type entities are."""
        self.requests += 1
        return await self._graph.neighbors(
            NeighborRequest(tuple(batch), direction="out", relations=frozenset(relations), limit=MOST_TYPES)
        )

    async def descriptions(self, batch: Sequence[Node]) -> Mapping[Node, Description]:
        """Return what terms are called and described as."""
        self.requests += 1
        return await self._graph.describe(batch)

    async def values(self, batch: Sequence[Node]) -> dict[Node, FeaturePage]:
        """Return the literals of terms.

        What the graph does not answer in time it is asked for again in halves.

        Raises:
            BackendTimeout: It cannot answer for a single term.
            BackendError: It cannot be asked.
        """
        self.value_requests += 1
        try:
            return dict(await self._graph.features(FeatureRequest(tuple(batch), limit=MOST_VALUES)))
        except BackendTimeout:
            if len(batch) == 1:
                raise
        middle = len(batch) // 2
        return await self.values(batch[:middle]) | await self.values(batch[middle:])

    def _is_partial(self, page: NeighborPage) -> bool:
        return not page.total.exact and page.total.value <= self._bounds.max_degree


class Keys:
    """The keys of nodes, with names for blank nodes that no other answer gives where theirs do not last.

    Args:
        mark: What the names begin with; None where blank nodes keep theirs.
    """

    def __init__(self, mark: str | None) -> None:
        self._mark = mark
        self._names: dict[BlankNode, str] = {}

    def __call__(self, node: Node) -> str:
        """Return the key of a node."""
        if self._mark is None or not isinstance(node, BlankNode):
            return str(node)
        return self._names.setdefault(node, f"_:{self._mark}-{len(self._names)}")


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


@dataclass(frozen=True, slots=True)
class Stated:
    """The names in the journal of the answers about literals, and about labels and descriptions."""

    values: tuple[str, ...]
    texts: tuple[str, ...]


class StatementReader:
    """Asks what the graph says of terms, batch by batch; what the journal holds is not asked for again.

    Args:
        asker: What asks the graph.
        journal: Where every answer is kept.
        batch: How many terms one request is about.
        tell: Told how far it has come.
    """

    def __init__(self, asker: Asker, journal: Journal, batch: int, tell: OnExtraction) -> None:
        self._asker = asker
        self._journal = journal
        self._batch = batch
        self._tell = tell

    async def read(self, walked: Walked, choice: ValueChoice) -> Stated:
        """Return the statements about all nodes and relations that were reached.

        Literals are read of those terms that `choice` names.

        Raises:
            BackendError: The graph failed.
            InvalidSource: The journal cannot be written.
        """
        terms = walked.nodes | walked.relations
        whose = {"all": terms, "inner": walked.inner, "none": frozenset[str]()}[choice]
        values: list[str] = []
        spoken = set(terms)
        for name, batch in self._batches(f"values-{choice}", "valuing", self._asker.askable(whose), walked):
            found = await self._journal.once(name, Values, _keys(batch), partial(self._values, batch))
            spoken.update(value.relation for value in found.values)
            values.append(name)
        texts: list[str] = []
        for name, batch in self._batches(f"texts-{choice}", "describing", self._asker.askable(spoken), walked):
            await self._journal.once(name, Texts, _keys(batch), partial(self._texts, batch))
            texts.append(name)
        return Stated(tuple(values), tuple(texts))

    def _batches(
        self, kind: str, stage: ExtractionStage, terms: Sequence[Node], walked: Walked
    ) -> Iterator[tuple[str, Sequence[Node]]]:
        done = 0
        for number, batch in enumerate(batches(terms, self._batch)):
            self._tell(ExtractionProgress(stage, 0, done, len(terms), walked.triples))
            yield f"{kind}-{number:06}", batch
            done += len(batch)

    async def _values(self, batch: Sequence[Node]) -> Values:
        pages = await self._asker.values(batch)
        return Values(
            asked=_keys(batch),
            values=tuple(_value(node, feature) for node in batch for feature in pages.get(node, NO_FEATURES).features),
            left_out=sum(page.total.value - len(page.features) for page in pages.values()),
            exact=all(page.total.exact for page in pages.values()),
        )

    async def _texts(self, batch: Sequence[Node]) -> Texts:
        described = await self._asker.descriptions(batch)
        texts = (
            Text(term=str(node), label=_sound(found.label), description=_sound(found.description))
            for node in batch
            if (found := described.get(node)) is not None
        )
        return Texts(asked=_keys(batch), texts=tuple(text for text in texts if text.label or text.description))


def _value(node: Node, feature: Feature) -> Value:
    return Value(
        term=str(node),
        relation=feature.relation.value,
        value=_sound(feature.value.value) or "",
        datatype=feature.value.datatype.value,
        language=_sound(feature.value.language),
    )


def _keys(batch: Sequence[Node]) -> tuple[str, ...]:
    return tuple(map(str, batch))


def _sound(text: str | None) -> str | None:
    """Return a text without halves of surrogate pairs, which no file can hold."""
    return None if text is None else text.encode("utf-8", "replace").decode()
