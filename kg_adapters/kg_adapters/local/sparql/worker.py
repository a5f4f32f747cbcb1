"""The process that runs SPARQL for a pool, so that it can be killed: `python -m … STORE_FOLDER MEMORY_BYTES`.

It answers each line of its input with one line of output, and ends when its input does, even in the middle of a query.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final

import pyoxigraph

from kg_adapters.errors import InvalidRequest
from kg_adapters.local.sparql.messages import AnswerLine, ProblemLine, ReplyLine, Request, WireTerm, reply_line
from kg_adapters.sparql_guard import CheckedQuery, check_query, read_engine_error
from kg_adapters.worker_process import RECURSION_LIMIT, answer_lines, limit_memory

_TRIPLE: Final = ["subject", "predicate", "object"]


class SparqlWorker:
    """Checks queries and runs them on one store.

    Args:
        folder: The Oxigraph store.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._store: pyoxigraph.Store | None = None

    def open(self) -> None:
        """Open the store.

        Raises:
            OSError: There is none, or a file of it is missing.
            RuntimeError: It is damaged.
        """
        self._store = pyoxigraph.Store.read_only(str(self._folder))

    def reply(self, line: bytes) -> bytes:
        """Return the reply to a request."""
        return reply_line(self._reply(Request.read(line)))

    def _reply(self, request: Request) -> ReplyLine:
        try:
            if self._store is None:
                self.open()
        except (OSError, RuntimeError) as error:
            return self._blame_damage(error)
        try:
            checked = _check(request.query, tuple(request.namespaces.items()))
            return self._answer(checked, request)
        except InvalidRequest as error:
            return _blame_query(str(error))
        except MemoryError:
            return _blame_engine("The query needs more memory than it may have. Make it more selective or add a LIMIT.")
        except (OSError, RuntimeError, ValueError) as error:
            if str(error).startswith("Corruption"):
                return self._blame_damage(error)
            return _blame_engine(f"The graph's SPARQL engine failed: {str(error)[:400]}. Try a simpler query.")

    def _answer(self, checked: CheckedQuery, request: Request) -> AnswerLine:
        found = self._run(checked)
        reply = AnswerLine(
            form=checked.form,
            variables=[],
            rows=[],
            truncated=False,
            truth=None,
            named=[iri.value for iri in checked.named],
        )
        if isinstance(found, pyoxigraph.QueryBoolean):
            reply["truth"] = bool(found)
            return reply
        if isinstance(found, pyoxigraph.QuerySolutions):
            reply["variables"] = [variable.value for variable in found.variables]
            rows = _bounded(([_wire(term) for term in solution] for solution in found), request)
        else:
            reply["variables"] = list(_TRIPLE)
            rows = _bounded(_distinct([_wire(term) for term in triple] for triple in found), request)
        reply["rows"], reply["truncated"] = rows
        return reply

    def _run(
        self, query: CheckedQuery
    ) -> pyoxigraph.QueryBoolean | pyoxigraph.QuerySolutions | pyoxigraph.QueryTriples:
        assert self._store is not None  # noqa: S101 - tells the type checkers what _reply() does
        try:
            return self._store.query(query.text, prefixes=dict(query.prefixes))
        except SyntaxError as error:
            problem = read_engine_error(query.text, str(error)).describe(query.text)
            raise InvalidRequest(f"The query is not SPARQL as this graph reads it{problem}") from None

    def _blame_damage(self, error: Exception) -> ProblemLine:
        return _blame_engine(
            f"The part of the store that answers SPARQL is damaged: {str(error)[:400]}. "
            f"Delete the folder {self._folder}: the next query builds it again."
        )


def _blame_query(problem: str) -> ProblemLine:
    return ProblemLine(blame="query", problem=problem)


def _blame_engine(problem: str) -> ProblemLine:
    return ProblemLine(blame="engine", problem=problem)


@lru_cache(maxsize=64)
def _check(query: str, namespaces: tuple[tuple[str, str], ...]) -> CheckedQuery:
    return check_query(query, namespaces=dict(namespaces))


def _distinct(rows: Iterable[list[WireTerm]]) -> Iterator[list[WireTerm]]:
    seen: set[str] = set()
    for row in rows:
        key = repr(row)
        if key not in seen:
            seen.add(key)
            yield row


def _bounded(rows: Iterable[list[WireTerm]], request: Request) -> tuple[list[list[WireTerm]], bool]:
    kept: list[list[WireTerm]] = []
    room = request.max_bytes
    for row in islice(rows, request.max_rows + 1):
        room -= sum(_size(term) for term in row)
        if len(kept) == request.max_rows or (kept and room < 0):
            return kept, True
        if room < 0:
            raise InvalidRequest(
                f"One row of the answer has over {request.max_bytes:,} bytes. Select less, or shorten it with SUBSTR."
            )
        kept.append(row)
    return kept, False


def _size(term: WireTerm) -> int:
    texts = term if isinstance(term, list) else [term]
    return 4 + sum(len(text.encode()) for text in texts if text is not None)


def _wire(term: object) -> WireTerm:
    match term:
        case None:
            return None
        case pyoxigraph.NamedNode():
            return term.value
        case pyoxigraph.BlankNode():
            return [term.value]
        case pyoxigraph.Literal():
            return [term.value, term.datatype.value, term.language]
        case _:
            # A triple term of RDF 1.2, for which the project has no kind.
            return [str(term), "http://www.w3.org/2001/XMLSchema#string", None]


def main(folder: str, memory_bytes: str) -> None:
    """Answer the lines of standard input on standard output."""
    sys.setrecursionlimit(RECURSION_LIMIT)
    worker = SparqlWorker(Path(folder))
    with suppress(OSError, RuntimeError):
        # The address space that the store takes for its threads and caches is no query's fault.
        worker.open()
    limit_memory(int(memory_bytes))
    answer_lines(worker.reply)


if __name__ == "__main__":
    main(*sys.argv[1:])
