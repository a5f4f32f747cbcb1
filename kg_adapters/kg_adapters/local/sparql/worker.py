"""What a worker process of a `SparqlPool` runs: queries over one Oxigraph store."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Final, TypeAlias

import pyoxigraph

from kg_adapters.errors import BackendError, InvalidRequest, KGError
from kg_adapters.local.sparql.rounded import read_rounded
from kg_adapters.models import SparqlAnswer
from kg_adapters.sparql_guard import CheckedQuery, check_query, read_engine_error
from kg_adapters.terms import XSD, BlankNode, Iri, Literal, Term
from kg_adapters.worker_process import RECURSION_LIMIT, Send, limit_memory

MAX_ANSWER_BYTES: Final = 2_000_000
_DOUBLE: Final = Iri(XSD + "double")
_TRIPLE: Final = ("subject", "predicate", "object")
Row: TypeAlias = tuple[Term | None, ...]


class SparqlWorker:
    """Checks queries and runs them on one store.

    Args:
        folder: The Oxigraph store.
        namespaces: By prefix; usable in a query without declaring them.
        max_bytes: The most bytes of text in an answer.
        about_graphs: A note for answers to queries with GRAPH.
    """

    def __init__(
        self,
        folder: Path,
        namespaces: Mapping[str, str],
        max_bytes: int = MAX_ANSWER_BYTES,
        *,
        about_graphs: str = "",
    ) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._about_graphs = about_graphs
        self._store: pyoxigraph.Store | None = None
        self._check = lru_cache(maxsize=64)(partial(check_query, namespaces=namespaces))

    def open(self) -> pyoxigraph.Store:
        """Return the store, opened if it is not yet.

        Raises:
            OSError: There is none, or a file of it is missing.
            RuntimeError: It is damaged.
        """
        if self._store is None:
            self._store = pyoxigraph.Store.read_only(str(self._folder))
        return self._store

    def answer(self, query: str, max_rows: int) -> SparqlAnswer:
        """Return the answer to a query, with at most so many rows.

        Raises:
            InvalidRequest: The query is wrong, or is refused.
            BackendError: The engine failed, or the store is damaged.
        """
        try:
            store = self.open()
        except (OSError, RuntimeError) as error:
            raise self._damaged(error) from error
        try:
            checked = self._check(query)
            return self._with_rounded(checked, self._answer(store, checked, max_rows))
        except MemoryError:
            raise BackendError(
                "The query needs more memory than it may have. Make it more selective or add a LIMIT."
            ) from None
        except (OSError, RuntimeError, ValueError) as error:
            if str(error).startswith("Corruption"):
                raise self._damaged(error) from error
            raise BackendError(f"The graph's SPARQL engine failed: {str(error)[:400]}. Try a simpler query.") from error

    def _answer(self, store: pyoxigraph.Store, query: CheckedQuery, max_rows: int) -> SparqlAnswer:
        found = _run(store, query)
        note = self._about_graphs if query.uses_graph else ""
        if isinstance(found, pyoxigraph.QueryBoolean):
            return SparqlAnswer(query.form, (), (), truncated=False, truth=bool(found), named=query.named, note=note)
        if isinstance(found, pyoxigraph.QuerySolutions):
            variables = tuple(variable.value for variable in found.variables)
            rows: Iterator[Row] = (tuple(map(_term, solution)) for solution in found)
        else:
            variables = _TRIPLE
            rows = _distinct(tuple(map(_term, triple)) for triple in found)
        kept, truncated = self._bounded(rows, max_rows)
        return SparqlAnswer(query.form, variables, kept, truncated=truncated, named=query.named, note=note)

    def _with_rounded(self, query: CheckedQuery, answer: SparqlAnswer) -> SparqlAnswer:
        rounded = tuple(iri for iri in query.named if iri.value in self._rounded)
        if not rounded and query.any_relation and any(map(_is_double, chain.from_iterable(answer.rows))):
            rounded = tuple(map(Iri, sorted(self._rounded)))
        return replace(answer, rounded=rounded)

    @cached_property
    def _rounded(self) -> frozenset[str]:
        return read_rounded(self._folder)

    def _bounded(self, rows: Iterable[Row], max_rows: int) -> tuple[tuple[Row, ...], bool]:
        """Return as many rows as may be, and whether there are more."""
        kept: list[Row] = []
        room = self._max_bytes
        for row in islice(rows, max_rows + 1):
            room -= sum(map(_size, row))
            if len(kept) == max_rows or (kept and room < 0):
                return tuple(kept), True
            if room < 0:
                raise InvalidRequest(
                    f"One row of the answer has over {self._max_bytes:,} bytes. Select less, or shorten it with SUBSTR."
                )
            kept.append(row)
        return tuple(kept), False

    def _damaged(self, error: Exception) -> BackendError:
        return BackendError(
            f"The part of the store that answers SPARQL is damaged: {str(error)[:400]}. "
            f"Delete the folder {self._folder}: the next query builds it again."
        )


def answer_queries(
    requests: Iterator[tuple[str, int]],
    send: Send,
    folder: Path,
    namespaces: Mapping[str, str],
    memory_bytes: int,
    about_graphs: str,
) -> None:
    """Answer queries, each with the most rows that are wanted, on the Oxigraph store in a folder."""
    sys.setrecursionlimit(RECURSION_LIMIT)
    worker = SparqlWorker(folder, namespaces, about_graphs=about_graphs)
    with suppress(OSError, RuntimeError):
        # The address space that the store takes for its threads and caches is no query's fault.
        worker.open()
    limit_memory(memory_bytes)
    for query, max_rows in requests:
        try:
            send(worker.answer(query, max_rows))
        except KGError as error:
            send(error)


def _run(
    store: pyoxigraph.Store, query: CheckedQuery
) -> pyoxigraph.QueryBoolean | pyoxigraph.QuerySolutions | pyoxigraph.QueryTriples:
    try:
        return store.query(query.text, prefixes=dict(query.prefixes))
    except SyntaxError as error:
        problem = read_engine_error(query.text, str(error)).describe(query.text)
        raise InvalidRequest(f"The query is not SPARQL as this graph reads it{problem}") from None


def _distinct(rows: Iterable[Row]) -> Iterator[Row]:
    seen: set[Row] = set()
    for row in rows:
        if row not in seen:
            seen.add(row)
            yield row


def _is_double(term: Term | None) -> bool:
    return isinstance(term, Literal) and term.datatype == _DOUBLE


def _size(term: Term | None) -> int:
    match term:
        case None:
            return 4
        case Iri():
            return 4 + len(term.value.encode())
        case BlankNode():
            return 4 + len(term.label.encode())
        case Literal():
            return 4 + len(term.value.encode()) + len(term.datatype.value) + len(term.language or "")


def _term(term: object) -> Term | None:
    match term:
        case None:
            return None
        case pyoxigraph.NamedNode():
            return Iri(term.value)
        case pyoxigraph.BlankNode():
            return BlankNode(term.value)
        case pyoxigraph.Literal():
            return Literal(term.value, Iri(term.datatype.value), term.language)
        case _:
            # A triple term of RDF 1.2, for which the project has no kind.
            return Literal(str(term))
