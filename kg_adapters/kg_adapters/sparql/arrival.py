"""An answer on its way: rows are read while it comes, and the rest is left where there are enough of them.

Small answers are read as a whole, by SPARQLWrapper. What is larger is read in slices, between which other tasks have
their turn and the deadline is looked at: nobody waits for somebody else's 24 MB.
"""

import codecs
import json
import re
from collections.abc import AsyncIterator, Callable
from io import BytesIO
from typing import Final, Protocol, TypeAlias
from typing import Literal as Choice

import anyio.lowlevel
from SPARQLWrapper import QueryResult

from kg_adapters.http.messages import BodyWatch, HttpReply
from kg_adapters.sparql.solutions import (
    GRAPH_VARIABLES,
    MOST_CELLS,
    Beginning,
    Form,
    RdfSyntax,
    RowReader,
    Solution,
    Solutions,
    UnreadableAnswer,
    in_slices,
    read_graph,
    read_results,
    read_triples,
    solutions_of,
    too_many_cells,
)
from kg_boundary.bodies import SLICE_BYTES

MAX_VALUE_CHARACTERS: Final = 4_000_000
"""A longer row, or a longer value outside the rows, is refused: it is decoded at once, while all others wait."""

_GAP: Final = re.compile(r"[ \t\n\r]*")

# What follows a number that is not whole, or nothing.
_GOING_ON: Final = frozenset({"", ".", "e", "E"})

_DECODE: Final = json.JSONDecoder().raw_decode

_Place: TypeAlias = Choice["before", "document", "results", "rows", "behind"]

_ENDS: Final[dict[_Place, tuple[str, _Place]]] = {
    "document": ("}", "behind"),
    "results": ("}", "document"),
    "rows": ("]", "results"),
}


class JsonRows:
    """Takes a document in parts of any size, and gives out the rows that have come whole.

    The rows are the elements of the array `bindings` in the object `results`, wherever that stands in the document.

    Attributes:
        members: All other members of the document that have come; those of `results` under that name, with no rows.
    """

    def __init__(self) -> None:
        self.members: dict[str, object] = {}
        self._results: dict[str, object] = {}
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0
        self._place: _Place = "before"
        # Whether the next thing follows another one of the same object or array.
        self._after: Choice["opening", "comma", "value"] = "opening"
        self._wanted_characters = 0

    def feed(self, part: bytes) -> list[object]:
        """Return the rows that the next part completes, as JSON has them.

        Raises:
            UnreadableAnswer: This is not a JSON object, it holds rows twice, or a value is too long.
        """
        return self._read(part, final=False)

    def end(self) -> list[object]:
        """Return what is left when all parts were fed; afterwards `members` is complete.

        Raises:
            UnreadableAnswer: As `feed` does, or the document is not complete.
        """
        rows = self._read(b"", final=True)
        if self._place != "behind":
            raise UnreadableAnswer("it is not a JSON object, or ends in the middle of one")
        return rows

    def document(self, rows: list[object]) -> dict[str, object]:
        """Return the document as far as it has arrived, with these rows in place of those in it."""
        if self.members.get("results") is not self._results:
            return self.members
        return {**self.members, "results": {**self._results, "bindings": rows}}

    def _read(self, part: bytes, *, final: bool) -> list[object]:
        try:
            self._text = self._text[self._at :] + self._decoder.decode(part, final)
        except UnicodeDecodeError as error:
            raise UnreadableAnswer("it is not a JSON object: it is not written in UTF-8") from error
        self._at = 0
        rows: list[object] = []
        # A value that is not whole is looked at again when twice as much has come: not once for every part.
        if final or len(self._text) >= self._wanted_characters:
            while self._step(rows):
                pass
            left = len(self._text) - self._at
            if left > MAX_VALUE_CHARACTERS:
                raise UnreadableAnswer(
                    f"it is not a JSON object, or a row or value has more than {MAX_VALUE_CHARACTERS:,} characters"
                )
            self._wanted_characters = min(2 * left, MAX_VALUE_CHARACTERS)
        return rows

    def _step(self, rows: list[object]) -> bool:
        """Read the next mark or value; say whether there was one."""
        if self._place == "rows":
            self._rows(rows)
        self._at = _gap(self._text, self._at)
        if self._at == len(self._text):
            return False
        mark = self._text[self._at]
        end, outer = _ENDS.get(self._place, ("{", "document"))
        if self._place == "behind" or (self._place == "before" and mark != "{"):
            _value(self._text, self._at)
            raise UnreadableAnswer(f"it is not a JSON object, but has {mark!r} where one should begin or have ended")
        if mark == end and self._after != "comma":
            self._enter(outer, "opening" if self._place == "before" else "value")
            return True
        if self._after == "value":
            if mark != ",":
                raise UnreadableAnswer(f"it is not a JSON object: {mark!r} where a comma should be")
            self._at, self._after = self._at + 1, "comma"
            return True
        return self._place != "rows" and self._member()

    def _rows(self, rows: list[object]) -> None:
        """Read rows and the commas behind them for as long as they are whole: `_step` many times, only faster."""
        text = self._text
        while self._after != "value":
            start = _gap(text, self._at)
            if text[start : start + 1] in {"", "]"}:
                return
            if text[start] != "{":
                raise UnreadableAnswer("it is not a SPARQL JSON result: one of its rows is not an object")
            found = _value(text, start)
            if found is None:
                return
            value, end = found
            rows.append(value)
            comma = text[end : end + 1] == ","
            self._at, self._after = (end + 1, "comma") if comma else (end, "value")

    def _member(self) -> bool:
        named = _value(self._text, self._at)
        if named is None:
            return False
        name, end = named
        colon = _gap(self._text, end)
        start = _gap(self._text, colon + 1)
        if start >= len(self._text):
            return False
        if not isinstance(name, str) or self._text[colon] != ":":
            raise UnreadableAnswer("it is not a JSON object: a member has no name")
        inner = self._container(name, self._text[start])
        if inner is not None:
            self._at = start
            self._enter(inner, "opening")
            return True
        found = _value(self._text, start)
        # A number may go on in the next part.
        if found is None or self._text[found[1] : found[1] + 1] in _GOING_ON:
            return False
        self._keep(name, found[0])
        self._at, self._after = found[1], "value"
        return True

    def _container(self, name: str, mark: str) -> _Place | None:
        """Return where the value of a member leads, if that is not read as a whole."""
        inner: _Place | None = None
        if (self._place, name, mark) == ("document", "results", "{"):
            inner = "results"
            self._claim(self.members, name, self._results)
        elif (self._place, name, mark) == ("results", "bindings", "["):
            inner = "rows"
            self._claim(self._results, name, list[object]())
        return inner

    def _claim(self, members: dict[str, object], name: str, value: object) -> None:
        if name in members:
            raise UnreadableAnswer(f"it is not a SPARQL JSON result: it has {name} twice")
        members[name] = value

    def _keep(self, name: str, value: object) -> None:
        members = self._results if self._place == "results" else self.members
        if name in {"results", "bindings"}:
            self._claim(members, name, value)
        members[name] = value

    def _enter(self, place: _Place, after: Choice["opening", "value"]) -> None:
        self._at, self._place, self._after = self._at + 1, place, after


def _gap(text: str, at: int) -> int:
    """Return where something follows that is no blank; at the end of the text where nothing does."""
    found = _GAP.match(text, at)
    return len(text) if found is None else found.end()


def _value(text: str, at: int) -> tuple[object, int] | None:
    """Return the value that starts at a place, and where it ends; None where it is not whole."""
    try:
        return _DECODE(text, at)
    except json.JSONDecodeError:
        return None
    except RecursionError as error:
        raise UnreadableAnswer("its JSON is nested too deeply") from error
    except ValueError as error:
        # A number with more digits than Python reads.
        raise UnreadableAnswer("it holds a number that is too long") from error


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
        self._rows: list[Solution | None] = []
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
        self._rows: list[Solution | None] = []
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
        self._rows: list[Solution | None] = []
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
