"""A local graph that takes a while to open, because its files have to be imported first."""
# ruff: noqa: D102 - what an adapter's methods do is documented on the protocol

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import anyio

from kg_adapters.embedding.protocol import Vectors
from kg_adapters.errors import BackendUnavailable, KGError
from kg_adapters.labels import Vocabulary
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.vectors import LabelVectors
from kg_adapters.models import (
    Candidate,
    Degree,
    Description,
    Direction,
    FeaturePage,
    GraphSchema,
    NeighborPage,
    PathRequest,
    PathsFound,
    SparqlAnswer,
)
from kg_adapters.prefixes import Prefixes
from kg_adapters.progress import Progress
from kg_adapters.surroundings import Surroundings
from kg_adapters.terms import Iri, Node
from kg_boundary.shown import in_quotes


class PendingAdapter:
    """Stands for a local graph from the start, and passes every question on to it once it is open.

    Until then `prefixes` and `vocabulary` are empty or the default, so nothing may keep them, and every question is
    refused.

    Args:
        path: The file or folder that is being opened.
    """

    def __init__(self, path: Path) -> None:
        self._name = path.resolve().name.partition(".")[0]
        self._settled = anyio.Event()
        self._graph: LocalAdapter | None = None
        self._error: KGError | None = None
        self._progress: Progress | None = None

    def take(self, graph: LocalAdapter) -> None:
        """Pass everything on to this graph from now on."""
        self._graph = graph
        self._settled.set()

    def fail(self, error: KGError) -> None:
        """Answer everything with this error from now on."""
        self._error = error
        self._settled.set()

    def note(self, progress: Progress) -> None:
        """Remember how far the import has come; may be called in another thread."""
        self._progress = progress

    async def settled(self) -> None:
        """Wait until the graph is open, or cannot be opened."""
        await self._settled.wait()

    def opened(self) -> LocalAdapter:
        """Return the graph.

        Raises:
            KGError: It cannot be opened.
            BackendUnavailable: It is not open yet.
        """
        if self._graph is not None:
            return self._graph
        if self._error is not None:
            raise self._error
        raise BackendUnavailable(
            f"The graph {in_quotes(self._name)} is still being imported{_extent(self._progress)}. "
            "Call again in a while."
        )

    @property
    def name(self) -> str:
        return self._name if self._graph is None else self._graph.name

    @property
    def prefixes(self) -> Prefixes:
        return Prefixes() if self._graph is None else self._graph.prefixes

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary() if self._graph is None else self._graph.vocabulary

    @property
    def remote(self) -> bool:
        return False

    async def labels(self, terms: Collection[Node]) -> Mapping[Node, str]:
        return await self.opened().labels(terms)

    async def describe(self, terms: Collection[Node]) -> Mapping[Node, Description]:
        return await self.opened().describe(terms)

    async def neighbors(
        self,
        entities: Sequence[Node],
        *,
        direction: Direction,
        relations: Collection[Iri] | None = None,
        limit_per_relation: int | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> Mapping[Node, NeighborPage]:
        return await self.opened().neighbors(
            entities,
            direction=direction,
            relations=relations,
            limit_per_relation=limit_per_relation,
            limit=limit,
            cursor=cursor,
        )

    async def degrees(
        self, entities: Sequence[Node], *, direction: Direction = "both", relations: Collection[Iri] | None = None
    ) -> Mapping[Node, Degree]:
        return await self.opened().degrees(entities, direction=direction, relations=relations)

    async def features(self, entity: Node, *, relation: Iri | None = None, limit: int = 200) -> FeaturePage:
        return await self.opened().features(entity, relation=relation, limit=limit)

    async def search(self, text: str, *, limit: int, type: Node | None = None) -> Sequence[Candidate]:
        return await self.opened().search(text, limit=limit, type=type)

    async def search_relations(self, text: str, *, limit: int) -> Sequence[Candidate]:
        return await self.opened().search_relations(text, limit=limit)

    async def surroundings(self, entities: Sequence[Node], *, per_relation: int, per_entity: int) -> Surroundings:
        return await self.opened().surroundings(entities, per_relation=per_relation, per_entity=per_entity)

    async def label_vectors(self, fingerprint: str) -> LabelVectors | None:
        return await self.opened().label_vectors(fingerprint)

    async def search_vectors(
        self, vector: Vectors, *, fingerprint: str, limit: int, type: Node | None = None
    ) -> Sequence[Candidate]:
        return await self.opened().search_vectors(vector, fingerprint=fingerprint, limit=limit, type=type)

    async def schema(self) -> GraphSchema:
        return await self.opened().schema()

    async def paths(self, request: PathRequest) -> PathsFound:
        return await self.opened().paths(request)

    async def select(self, query: str, *, timeout_s: float, max_rows: int) -> SparqlAnswer:
        return await self.opened().select(query, timeout_s=timeout_s, max_rows=max_rows)

    async def aclose(self) -> None:
        if self._graph is not None:
            await self._graph.aclose()


def _extent(progress: Progress | None) -> str:
    if progress is None or progress.stage != "reading" or progress.total == 0:
        return ""
    return f", {progress.done / progress.total:.0%} of its files read"
