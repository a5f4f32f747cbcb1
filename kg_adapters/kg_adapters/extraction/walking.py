"""Query a graph in batches: walk from the named entities within bounds, then read literals, labels and descriptions."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from kg_adapters.errors import BackendTimeout
from kg_adapters.extraction.journal import BatchAnswer, Bounds, Cut, Journal, Plan, ValueChoice
from kg_adapters.extraction.seeds import batches
from kg_adapters.files.rows import Row
from kg_adapters.models import NO_FEATURES, Count, Description, Feature, FeaturePage, NeighborPage
from kg_adapters.open_options import ExtractionProgress, ExtractionStage, OnExtraction
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest, NeighborRequest
from kg_adapters.terms import XSD_STRING, BlankNode, Iri, Literal, Node, node_from_key

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
        """Return the triples that state the types of entities."""
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


class Walk:
    """Walks around entities and reads what is stated there, batch by batch; nothing in the journal is asked for again.

    Args:
        asker: What asks the graph.
        journal: Where every answer is kept.
        plan: Where to start, and how far to go.
        tell: Called with the progress.

    Attributes:
        answers: The names in the journal of all answers, in order.
        cut: The entities of whose triples some or all were left out.
        values_left_out: How many literals were left out of the terms that were asked for theirs.
    """

    def __init__(self, asker: Asker, journal: Journal, plan: Plan, tell: OnExtraction) -> None:
        self.answers: list[str] = []
        self.cut: list[Cut] = []
        self.values_left_out = Count(0)
        self._asker = asker
        self._journal = journal
        self._plan = plan
        self._bounds = plan.request.bounds
        self._tell = tell
        self._inner: set[str] = set()
        self._named = frozenset(plan.seeds)
        self._nodes = set(plan.seeds)
        self._relations: set[str] = set()
        self._names: defaultdict[str, defaultdict[Iri, list[Literal]]] = defaultdict(lambda: defaultdict(list))
        self._triples = 0

    async def walk(self, choice: ValueChoice) -> None:
        """Find all that lies within the bounds, the types of what lies outermost, literals, labels and descriptions.

        Literals are read of those terms that `choice` names.

        Raises:
            BackendError: The graph failed.
            InvalidSource: The journal cannot be written.
        """
        for hop in range(1, self._bounds.hops + 1):
            frontier = self._nodes - self._inner
            self._inner.update(map(str, self._asker.askable(frontier)))
            await self._each("walking", f"hop-{hop}", frontier, self._look_around, hop)
        if self._plan.vocabulary.types:
            # Of all whose triples were not taken.
            hubs = {cut.node for cut in self.cut if cut.hub}
            await self._each("typing", "types", (self._nodes - self._inner) | hubs, self._look_for_types)
        terms = self._nodes | self._relations
        whose = {"all": terms, "inner": self._inner, "none": set[str]()}[choice]
        await self._each("valuing", f"values-{choice}", whose, self._values)
        await self._each("describing", f"texts-{choice}", terms | self._relations, self._texts)

    async def _each(
        self,
        stage: ExtractionStage,
        kind: str,
        terms: Iterable[str],
        ask: Callable[[str, Sequence[Node]], Awaitable[BatchAnswer]],
        hop: int = 0,
    ) -> None:
        """Ask about terms, as far as the graph can be asked about them."""
        asked, done = self._asker.askable(terms), 0
        for number, batch in enumerate(batches(asked, self._bounds.batch)):
            self._tell(ExtractionProgress(stage, hop, done, len(asked), self._triples))
            name = f"{kind}-{number:06}"
            self._take(await self._journal.once(name, _keys(batch), partial(ask, name, batch)))
            self.answers.append(name)
            done += len(batch)

    def _take(self, answer: BatchAnswer) -> None:
        left_out = self.values_left_out
        self.values_left_out = Count(left_out.value + answer.left_out, left_out.exact and answer.exact)
        self.cut += answer.cut
        naming = {iri.value: iri for iri in (*self._plan.vocabulary.labels, *self._plan.vocabulary.descriptions)}
        for head, relation, tail, datatype, language in answer.rows:
            self._relations.add(relation)
            if datatype is None:
                self._nodes |= {head, tail}
                self._triples += 1
            elif relation in naming:
                self._names[head][naming[relation]].append(Literal(tail, Iri(datatype), language))

    async def _look_around(self, name: str, batch: Sequence[Node]) -> BatchAnswer:
        pages = await self._asker.around(batch)
        cut = {node: self._cut_of(node, page) for node, page in pages.items() if page.truncated}
        taken = {node: page for node, page in pages.items() if node not in cut or not cut[node].hub}
        return self._answer(name, batch, taken, tuple(cut[node] for node in batch if node in cut))

    async def _look_for_types(self, name: str, batch: Sequence[Node]) -> BatchAnswer:
        return self._answer(name, batch, await self._asker.types(batch, self._plan.vocabulary.types))

    def _cut_of(self, node: Node, page: NeighborPage) -> Cut:
        total = page.total
        hub = str(node) not in self._named and total.value > self._bounds.max_degree
        return Cut(node=str(node), total=total.value, exact=total.exact, hub=hub)

    def _answer(
        self, name: str, batch: Sequence[Node], pages: Mapping[Node, NeighborPage], cut: tuple[Cut, ...] = ()
    ) -> BatchAnswer:
        keys = Keys(None if self._asker.blank_nodes_last else name)
        triples = dict.fromkeys(triple for node in batch if node in pages for triple in pages[node].triples)
        rows = ((keys(each.head), each.relation.value, keys(each.tail), None, None) for each in triples)
        return BatchAnswer(asked=_keys(batch), rows=tuple(rows), cut=cut)

    async def _values(self, _name: str, batch: Sequence[Node]) -> BatchAnswer:
        pages = await self._asker.values(batch)
        return BatchAnswer(
            asked=_keys(batch),
            rows=tuple(_row(node, feature) for node in batch for feature in pages.get(node, NO_FEATURES).features),
            left_out=sum(page.total.value - len(page.features) for page in pages.values()),
            exact=all(page.total.exact for page in pages.values()),
        )

    async def _texts(self, _name: str, batch: Sequence[Node]) -> BatchAnswer:
        """Return the labels and descriptions that do not follow from the literals."""
        described = await self._asker.descriptions(batch)
        rows = (row for node in batch if node in described for row in self._missing(node, described[node]))
        return BatchAnswer(asked=_keys(batch), rows=tuple(rows))

    def _missing(self, node: Node, description: Description) -> Iterator[Row]:
        vocabulary, known = self._plan.vocabulary, self._names[str(node)]
        for wanted, found, relations in (
            (_sound(description.label), vocabulary.label(known), vocabulary.labels),
            (_sound(description.description), vocabulary.description(known), vocabulary.descriptions),
        ):
            if wanted and relations and (found is None or found.value != wanted):
                yield str(node), relations[0].value, wanted, XSD_STRING.value, None


def _row(node: Node, feature: Feature) -> Row:
    value = feature.value
    return str(node), feature.relation.value, _sound(value.value) or "", value.datatype.value, _sound(value.language)


def _keys(batch: Sequence[Node]) -> tuple[str, ...]:
    return tuple(map(str, batch))


def _sound(text: str | None) -> str | None:
    """Return a text without halves of surrogate pairs, which no file can hold."""
    return None if text is None else text.encode("utf-8", "replace").decode()
