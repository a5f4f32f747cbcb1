"""A graph that is already in this process as an rdflib `Graph` or `Dataset`, whatever store plugin holds it."""
# ruff: noqa: D102 - what an adapter's methods do is documented on the protocol

import shutil
import tempfile
import weakref
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Final, TypeVar

import anyio
import anyio.to_thread
import numpy as np
import rdflib

from kg_adapters.errors import BackendError
from kg_adapters.files.rows import Row, line_in_graph, line_of
from kg_adapters.index.builder import index_of
from kg_adapters.index.graph_index import bare_relations, local_name, name_rows, nodes_called, uses_of_relations
from kg_adapters.index.profiling import profile_of_index, schema_of_index
from kg_adapters.index.reader import IndexReader
from kg_adapters.labels import Vocabulary
from kg_adapters.local.quads import NO_GRAPHS
from kg_adapters.local.sparql.pool import SparqlLimits, SparqlPool
from kg_adapters.local.sparql.store import ensure_sparql_store
from kg_adapters.models import (
    Candidate,
    Degree,
    Description,
    Direction,
    FeaturePage,
    GraphSchema,
    NeighborPage,
    RelationCandidate,
    SparqlAnswer,
    ValueUse,
)
from kg_adapters.name_index import Name, NameIndex, RelationIndex, RelationName, own_name
from kg_adapters.prefixes import Prefixes, prefixes_in_use
from kg_adapters.profile import GraphProfile
from kg_adapters.rdflib_terms import RdflibStatements
from kg_adapters.requests import FeatureRequest, NeighborRequest
from kg_adapters.set_requests import Computed, SetRequest
from kg_adapters.terms import Attribute, Fact, Iri, Literal, Node, Triple, node_key

_PACKED: Final = 10_000

T = TypeVar("T")


class _Copy:
    """What a graph held when it was read: its index, and what is worked out from that when first asked for."""

    def __init__(self, statements: RdflibStatements, vocabulary: Vocabulary, prefixes: Prefixes, name: str) -> None:
        self.asked = 0
        self._vocabulary = vocabulary
        self._prefixes = prefixes
        self._copying = anyio.Lock()
        self._sparql: tuple[SparqlPool, Callable[[], object]] | None = None
        self._quads: list[bytes] = []
        self.index = index_of(self._read(statements), vocabulary)
        self.reader = IndexReader(self.index, vocabulary, name)

    def _read(self, statements: RdflibStatements) -> Iterator[Fact]:
        """Yield all facts, and keep those in named graphs as packed lines of N-Quads."""
        lines: list[str] = []
        for (head, relation, tail), graph in statements.in_graphs():
            if isinstance(tail, Literal):
                yield Attribute(head, relation, tail)
                row: Row = (node_key(head), relation.value, tail.value, tail.datatype.value, tail.language)
            else:
                yield Triple(head, relation, tail)
                row = node_key(head), relation.value, node_key(tail), None, None
            if graph is not None:
                lines.append(line_in_graph(line_of(row), node_key(graph)))
            if len(lines) == _PACKED:
                self._quads.append(zlib.compress("".join(lines).encode(), 1))
                lines.clear()
        if lines:
            self._quads.append(zlib.compress("".join(lines).encode(), 1))

    def quads(self) -> Iterator[list[str]]:
        """Yield the facts in named graphs as lines of N-Quads, many at once."""
        for packed in self._quads:
            yield [f"{line}\n" for line in zlib.decompress(packed).decode().split("\n") if line]

    @cached_property
    def names(self) -> NameIndex:
        return NameIndex(self._names())

    @cached_property
    def relations(self) -> RelationIndex:
        return RelationIndex(self._relation_names())

    @cached_property
    def profile(self) -> GraphProfile:
        return profile_of_index(self.index, self._vocabulary)

    @cached_property
    def schema(self) -> GraphSchema:
        return schema_of_index(self.index, self._vocabulary, self._prefixes)

    async def pool(self, limits: SparqlLimits | None) -> SparqlPool:
        """Return what answers SPARQL, from a folder that is written for the first query."""
        async with self._copying:
            if self._sparql is None:
                # A cancelled caller leaves a thread that is about to stop writing.
                folder = Path(tempfile.mkdtemp(prefix="kg-sextant-sparql-"))
                # Also where nobody closes the graph.
                remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
                with ExitStack() as unfinished:
                    unfinished.callback(remove)
                    await ensure_sparql_store(folder, self.index, quads=self.quads)
                    unfinished.pop_all()
                note = "" if self._quads else NO_GRAPHS
                self._sparql = SparqlPool(folder, self._prefixes, limits, about_graphs=note), remove
            return self._sparql[0]

    async def aclose(self) -> None:
        """End the workers and delete the folder; queries that are still running fail."""
        if self._sparql is not None:
            (pool, remove), self._sparql = self._sparql, None
            with anyio.CancelScope(shield=True):
                await pool.aclose()
            remove()

    def search(self, text: str, limit: int, type: Node | None) -> Sequence[Candidate]:
        dictionary = self.reader.dictionary
        is_instance = None if type is None else self.reader.instances(type)

        def accepts(node: Node) -> bool:
            number = dictionary.node_id(node)
            return is_instance is None or (number is not None and is_instance(number))

        called = (dictionary.node(number) for number in nodes_called(self.index, self._prefixes, text))
        return self.names.search(text, limit, accepts, [node for node in called if accepts(node)])

    def _names(self) -> Iterator[Name]:
        """Yield labels, aliases and, where an entity has neither, the local part of its IRI.

        Relations that no edge is about are no entities: they bear no names here.
        """
        nameless = dict.fromkeys(np.flatnonzero(~bare_relations(self.index)).tolist())
        entities = frozenset(nameless)
        for owner, name in self._written_names():
            nameless.pop(owner, None)
            if owner in entities:
                yield name
        for number in nameless:
            if text := local_name(self.index.nodes[number]):
                yield Name(self.reader.dictionary.node(number), text, alias=False, local=True)

    def _relation_names(self) -> Iterator[RelationName]:
        """Yield labels, aliases and local parts of relations and features, those of the most used ones first."""
        names: defaultdict[Node, list[Name]] = defaultdict(list)
        for _, name in self._written_names():
            names[name.bearer].append(name)
        for number in np.argsort(-uses_of_relations(self.index), kind="stable").tolist():
            relation = self.reader.dictionary.relation(number)
            yield from (RelationName(relation, name.text, name.alias) for name in names[relation])
            yield own_name(relation)

    def _written_names(self) -> Iterator[tuple[int, Name]]:
        """Yield the labels and aliases of all nodes, with their ids."""
        dictionary = self.reader.dictionary
        rows = zip(*(column.tolist() for column in name_rows(self.index, self._vocabulary)), strict=True)
        for row, owner, alias in rows:
            yield owner, Name(dictionary.node(owner), dictionary.text(row), bool(alias))


class RdflibAdapter:
    """Answers from a copy of an rdflib graph, as a local store does; for a dataset from all its graphs together.

    The graph is read once, in a thread, when something is first asked, and again after `refresh`: it stays the
    caller's, who must not change it during that. SPARQL is answered by Oxigraph from a copy in a temporary folder,
    because rdflib cannot stop a query at a deadline; GRAPH queries the graphs of a dataset. Statements that are not
    RDF, such as those with a blank in an IRI, are skipped.

    Args:
        graph: A graph, or a dataset for the union of its graphs.
        name: What people call it.
        vocabulary: The relations that name, describe and type its entities.
        prefixes: The short forms of its IRIs; by default those bound to the graph and well-known ones, where they are
            used, which takes one reading of the graph.
        sparql: How much of the machine SPARQL queries may take; what suits the machine when None.
    """

    def __init__(
        self,
        graph: rdflib.Graph,
        *,
        name: str = "rdflib graph",
        vocabulary: Vocabulary | None = None,
        prefixes: Prefixes | None = None,
        sparql: SparqlLimits | None = None,
    ) -> None:
        self._statements = RdflibStatements(graph)
        self._vocabulary = vocabulary or Vocabulary()
        self._name = name
        self._prefixes = prefixes or _bound_prefixes(graph)
        self._turn = anyio.CapacityLimiter(1)
        self._copy: _Copy | None = None
        self._copies: set[_Copy] = set()
        self._sparql = sparql
        self._closed = False

    @property
    def name(self) -> str:
        return self._name

    @property
    def prefixes(self) -> Prefixes:
        return self._prefixes

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    @property
    def remote(self) -> bool:
        return False

    async def labels(self, terms: Collection[Node]) -> Mapping[Node, str]:
        return (await self._reader()).dictionary.labels_of(terms)

    async def describe(self, terms: Collection[Node]) -> Mapping[Node, Description]:
        return (await self._reader()).describe(terms)

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        return (await self._reader()).neighbors(request)

    async def degrees(
        self, entities: Sequence[Node], *, direction: Direction = "both", relations: Collection[Iri] | None = None
    ) -> Mapping[Node, Degree]:
        return (await self._reader()).degrees(entities, direction, relations)

    async def contains(self, facts: Collection[Fact]) -> frozenset[Fact]:
        return (await self._reader()).contains(facts)

    async def features(self, request: FeatureRequest) -> Mapping[Node, FeaturePage]:
        return (await self._reader()).features(request)

    async def search(self, text: str, *, limit: int, type: Node | None = None) -> Sequence[Candidate]:
        return await self._run(lambda copy: copy.search(text, limit, type))

    async def find_relations(self, text: str, *, limit: int) -> Sequence[RelationCandidate]:
        return await self._run(lambda copy: copy.relations.find(text, limit))

    async def uses_of_values(self, texts: Collection[str], *, limit: int) -> Mapping[str, Sequence[ValueUse]]:
        return await self._run(lambda copy: copy.reader.uses_of_values(texts, limit))

    async def schema(self) -> GraphSchema:
        return await self._run(lambda copy: copy.schema)

    async def profile(self) -> GraphProfile:
        return await self._run(lambda copy: copy.profile)

    async def compute(self, request: SetRequest) -> Computed:
        return await self._run(lambda copy: copy.reader.sets.compute(request))

    async def select(self, query: str, *, timeout_s: float, max_rows: int) -> SparqlAnswer:
        copy = await self._run(lambda copied: copied)
        if self._closed:
            # Perhaps only while the graph was copied: nobody would close what is opened now.
            raise BackendError("This graph is closed. Open it again.")
        self._copies.add(copy)
        copy.asked += 1
        try:
            # Copying it is not what the deadline is for.
            pool = await copy.pool(self._sparql)
            return await pool.select(query, timeout_s=timeout_s, max_rows=max_rows)
        finally:
            copy.asked -= 1
            await self._close_unneeded()

    async def refresh(self) -> None:
        """Have the graph read again by the next call, after it changed; queries over the copy go on."""
        async with self._turn:
            self._copy = None
        await self._close_unneeded()

    async def aclose(self) -> None:
        self._closed, self._copy = True, None
        for copy in tuple(self._copies):
            await copy.aclose()

    async def _close_unneeded(self) -> None:
        for copy in [each for each in self._copies if not each.asked and each is not self._copy]:
            self._copies.discard(copy)
            await copy.aclose()

    async def _reader(self) -> IndexReader:
        copy = self._copy
        return copy.reader if copy is not None else await self._run(lambda copied: copied.reader)

    async def _run(self, work: Callable[[_Copy], T]) -> T:
        """Return what is worked out from the copy, in a thread; the graph is copied where it was not yet."""

        def run() -> T:
            copy = self._copy
            if copy is None:
                copy = self._copy = _Copy(self._statements, self._vocabulary, self._prefixes, self._name)
            return work(copy)

        try:
            return await anyio.to_thread.run_sync(run, limiter=self._turn)
        except OSError as error:
            raise BackendError(f"The store of {self._name} failed to answer: {error}") from error


def _bound_prefixes(graph: rdflib.Graph) -> Prefixes:
    declared = {prefix: str(namespace) for prefix, namespace in graph.namespaces()}
    return prefixes_in_use(sorted(RdflibStatements(graph).iris()), declared)
