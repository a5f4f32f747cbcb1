"""An answer on its way: rows are read while it comes, and the rest is left where there are enough of them.

Small answers are read as a whole, by SPARQLWrapper. What is larger is read in slices, between which other tasks have
their turn and the deadline is looked at: nobody waits for somebody else's 24 MB.
"""

from collections.abc import AsyncIterator, Callable
from io import BytesIO
from typing import Final, Protocol

import anyio.lowlevel
from SPARQLWrapper import QueryResult

from kg_adapters.sparql.forms import Form
from kg_adapters.sparql.json_rows import MAX_VALUE_CHARACTERS, JsonRows
from kg_adapters.sparql.messages import BodyWatch, HttpReply
from kg_adapters.sparql.slices import in_slices
from kg_adapters.sparql.solutions import (
    MOST_CELLS,
    Row,
    RowReader,
    Solutions,
    UnreadableAnswer,
    read_results,
    solutions_of,
    too_many_cells,
)
from kg_adapters.sparql.triples import GRAPH_VARIABLES, Beginning, RdfSyntax, read_graph, read_triples
from kg_boundary.bodies import SLICE_BYTES

SMALL_BYTES: Final = SLICE_BYTES
"""Up to this size an answer is read at once, which takes a millisecond or two."""
_CELLS_AT_ONCE: Final = 10_000
_TRIPLES_AT_ONCE: Final = 500
# An answer of 32 MB may have a million rows, and four million cells more than a small one.
_BYTES_OF_A_ROW: Final = 32
_BYTES_OF_A_CELL: Final = 8
_SYNTAXES: Final[dict[str, RdfSyntax]] = {"text/turtle": "turtle"}


class Arrival:
    """The answer to one query.

    Args:
        form: The form of the query.
        max_rows: How many rows are wanted; None for all.
    """

    def __init__(self, form: Form, max_rows: int | None) -> None:
        self._form: Form = form
        self._max_rows = max_rows
        self._rows: _Rows | None = None

    def watch(self, reply: HttpReply) -> BodyWatch:
        """Return what reads the rows of a reply while it comes; see `Watching`."""
        self._rows = self._rows_of(reply)
        return _Patient(self._rows)

    async def read(self, reply: HttpReply, result: Callable[[HttpReply], QueryResult]) -> Solutions:
        """Return what a reply says, whether it was watched or comes from a memory.

        Args:
            reply: The reply, with its body.
            result: Makes what SPARQLWrapper reads of it.

        Raises:
            UnreadableAnswer: It is not what its format demands.
        """
        if len(reply.body) <= SMALL_BYTES:
            return _converted(result(reply), self._form, _syntax(reply), self._max_rows)
        rows = self._rows
        if rows is None:
            rows = self._rows_of(reply)
            await _replay(reply.body, rows)
        return await rows.solutions(reply.body)

    def _rows_of(self, reply: HttpReply) -> "_Rows":
        if self._form in {"SELECT", "ASK"}:
            return _Results(self._form, self._max_rows)
        return _Turtle(self._max_rows) if _syntax(reply) == "turtle" else _Lines(self._max_rows)


class _Rows(BodyWatch, Protocol):
    """Reads rows from a body; a problem shows when `solutions` is called."""

    async def solutions(self, body: bytes) -> Solutions:
        """Return the answer when all of the body that is wanted was taken."""
        ...


class _Patient:
    """Leaves a body alone while it is small: then it is read as a whole."""

    def __init__(self, rows: _Rows) -> None:
        self._rows = rows
        self._seen = bytearray()
        self._small = True

    async def take(self, part: bytes) -> bool:
        if not self._small:
            return await self._rows.take(part)
        self._seen += part
        self._small = len(self._seen) <= SMALL_BYTES
        return not self._small and await self._rows.take(bytes(self._seen))


class _Results:
    """The rows of SPARQL JSON results."""

    def __init__(self, form: Form, max_rows: int | None) -> None:
        self._form: Form = form
        self._max_rows = max_rows
        # One row more than wanted tells that there are more; a row is all that Virtuoso needs to say yes.
        self._most = 1 if form == "ASK" else None if max_rows is None else max_rows + 1
        self._json = JsonRows()
        self._reader: RowReader | None = None
        # The rows that are still as JSON has them: the names of their variables may come behind them.
        self._raw: list[object] = []
        self._rows: list[Row | None] = []
        self._count = 0
        self._bytes = 0
        self._problem: UnreadableAnswer | None = None

    async def take(self, part: bytes) -> bool:
        self._bytes += len(part)
        try:
            self._keep(self._json.feed(part))
            self._convert()
        except UnreadableAnswer as error:
            self._problem = error
        return self._problem is not None or (self._count == self._most and "head" in self._json.members)

    async def solutions(self, body: bytes) -> Solutions:
        del body
        if self._problem is None and not (self._count == self._most and "head" in self._json.members):
            self._keep(self._json.end())
        if self._problem is not None:
            raise self._problem
        if self._form == "ASK":
            return read_results(self._json.document(self._raw), "ASK")
        reader = self._opened()
        while self._raw:
            self._convert()
            await anyio.lowlevel.checkpoint()
        return solutions_of(reader.variables, iter(self._rows), self._max_rows)

    def _keep(self, found: list[object]) -> None:
        wanted = found if self._most is None else found[: self._most - self._count]
        self._count += len(wanted)
        if self._count > MOST_CELLS // 10 + self._bytes // _BYTES_OF_A_ROW:
            raise too_many_cells()
        self._raw += wanted

    def _convert(self) -> None:
        """Make terms of some rows, as far as their variables are known."""
        if self._form == "ASK" or not self._raw or "head" not in self._json.members:
            return
        reader = self._opened()
        if len(reader.variables) * self._count > MOST_CELLS + self._bytes // _BYTES_OF_A_CELL:
            raise too_many_cells()
        most = max(1, _CELLS_AT_ONCE // max(1, len(reader.variables)))
        self._rows += reader.rows(self._raw[:most], len(self._rows))
        del self._raw[:most]

    def _opened(self) -> RowReader:
        if self._reader is None:
            self._reader = RowReader(self._json.members)
        return self._reader


class _Lines:
    """The triples of N-Triples, which has one in each line."""

    def __init__(self, max_rows: int | None) -> None:
        self._max_rows = max_rows
        self._rest = bytearray()
        self._rows: list[Row | None] = []
        self._problem: UnreadableAnswer | None = None

    async def take(self, part: bytes) -> bool:
        self._rest += part
        try:
            self._read_whole_lines(len(part))
        except UnreadableAnswer as error:
            self._problem = error
        return self._problem is not None or (self._max_rows is not None and len(self._rows) > self._max_rows)

    async def solutions(self, body: bytes) -> Solutions:
        del body
        if self._problem is not None:
            raise self._problem
        if self._max_rows is None or len(self._rows) <= self._max_rows:
            self._read(bytes(self._rest))
        return solutions_of(GRAPH_VARIABLES, iter(self._rows), self._max_rows)

    def _read_whole_lines(self, fresh: int) -> None:
        whole = self._rest.rfind(b"\n", len(self._rest) - fresh) + 1
        self._read(bytes(self._rest[:whole]))
        del self._rest[:whole]
        if len(self._rest) > MAX_VALUE_CHARACTERS:
            raise UnreadableAnswer(f"it has a line of more than {MAX_VALUE_CHARACTERS:,} bytes")

    def _read(self, lines: bytes) -> None:
        self._rows += read_triples(lines, "n-triples")


class _Turtle:
    """The triples of Turtle, of which no part can be read by itself.

    The beginning is read anew whenever twice as much has come: in all that takes no more than twice the time.
    """

    def __init__(self, max_rows: int | None) -> None:
        self._max_rows = max_rows
        self._begun = bytearray()
        self._wanted_bytes = 0
        self._rows: list[Row | None] = []
        self._problem: UnreadableAnswer | None = None

    async def take(self, part: bytes) -> bool:
        if self._max_rows is None:
            return False
        self._begun += part
        if len(self._begun) >= self._wanted_bytes:
            self._wanted_bytes = 2 * len(self._begun)
            try:
                await self._read(Beginning(self._begun))
            except UnreadableAnswer as error:
                self._problem = error
        return self._problem is not None or self._has_enough()

    async def solutions(self, body: bytes) -> Solutions:
        if self._problem is not None:
            raise self._problem
        if not self._has_enough():
            await self._read(BytesIO(body))
        return solutions_of(GRAPH_VARIABLES, iter(self._rows), self._max_rows)

    async def _read(self, document: BytesIO) -> None:
        self._rows = []
        async for rows in in_slices(read_triples(document, "turtle"), _TRIPLES_AT_ONCE):
            self._rows += rows
            if self._has_enough():
                return

    def _has_enough(self) -> bool:
        return self._max_rows is not None and len(self._rows) > self._max_rows


async def _replay(body: bytes, rows: _Rows) -> None:
    async for part in _sliced(body):
        if await rows.take(part):
            return


async def _sliced(body: bytes) -> AsyncIterator[bytes]:
    for first in range(0, len(body), SLICE_BYTES):
        yield body[first : first + SLICE_BYTES]
        await anyio.lowlevel.checkpoint()


def _syntax(reply: HttpReply) -> RdfSyntax:
    return _SYNTAXES.get(reply.media_type, "n-triples")


def _converted(result: QueryResult, form: Form, syntax: RdfSyntax, max_rows: int | None) -> Solutions:
    try:
        document = result.convert()
    except (ValueError, TypeError) as error:
        raise UnreadableAnswer(f"it is not a JSON object: {error}") from error
    except RecursionError as error:
        raise UnreadableAnswer("its JSON is nested too deeply") from error
    if not isinstance(document, bytes):
        return read_results(document, form, max_rows=max_rows)
    return read_graph(document, syntax, max_rows=max_rows)
