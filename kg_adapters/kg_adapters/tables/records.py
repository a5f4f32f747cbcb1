"""Turn records, which may hold further ones, into rows of tables: JSON arrays, JSON Lines."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import IO, Final, TypeAlias

from kg_adapters.files.rdf import Problem
from kg_adapters.files.sources import ENTRIES, JSON_LINES, Source
from kg_adapters.open_options import ReadingLimits, Refused, setting
from kg_adapters.tables.rows import SEVERAL, Batch, Repeats, SourceTable, TableBatch, check_width, is_batch, stem_of
from kg_adapters.tables.survey import ID_NAMES, NAMES, plain
from kg_boundary.json_stream import BrokenJson, Json, JsonStream
from kg_boundary.shown import in_quotes, listed

_MOST_TABLES: Final = 1_000
_MOST_ENTRIES: Final = 1_000_000
_HELD: Final = 1 << 24
_NAMED: Final = frozenset({*ID_NAMES, "keyof", *NAMES})
"""What an object has that stands for one thing wherever it is, if all of its content is the same."""
_MAIN_NAMES: Final = ("common", "default", "en", "full", "name", "label", "text", "value")
_WRAPPERS: Final = frozenset({"data", "results", "items", "records", "rows", "features", "values", "entries", "list"})

Record: TypeAlias = Mapping[str, Json]


class _Growing:
    """A table whose columns are found while its rows come.

    Args:
        name: What it is called.
        nested: Whether its rows are parts of those of another.

    Attributes:
        numbers: The keys with numbers as such, not as texts.
        count: How many rows it has.
        repeats: How many further records are equal to one of these.
        uneven: By key, how many lists hold a value more than once.
    """

    def __init__(self, name: str, *, nested: bool) -> None:
        self.name = name
        self.nested = nested
        self._places: dict[tuple[str, bool], int] = {}
        self._headers: dict[str, None] = {}
        self.links: dict[str, tuple[str, str]] = {}
        self.numbers: set[str] = set()
        self._rows: list[dict[int, str]] = []
        self._lines: list[int] = []
        self._characters = 0
        self.count = 0
        self.repeats = Repeats()
        self.uneven: dict[str, int] = {}

    def place(self, key: str, leads_to: str = "") -> int:
        """Return the column of a key; nested values have a separate column."""
        found = self._places.get((key, bool(leads_to)))
        if found is not None:
            return found
        header = " ".join(key.split()) or "column"
        while header in self._headers:
            header += " details"
        check_width(len(self._headers) + 1, f"{self.name}: it")
        self._headers[header] = None
        self._places[key, bool(leads_to)] = len(self._headers) - 1
        if leads_to:
            self.links[header] = (leads_to, "")
        return len(self._headers) - 1

    def note(self, key: str, value: Json, texts: Sequence[str]) -> None:
        """Note whether a value has numbers as such, and whether its texts repeat."""
        if key not in self.numbers and any(map(_is_number, value if isinstance(value, list) else [value])):
            self.numbers.add(key)
        if len(texts) > 1 and len(set(texts)) < len(texts):
            self.uneven[key] = self.uneven.get(key, 0) + 1

    def append(self, line: int, row: dict[int, str]) -> int:
        """Add a row, and return how many characters it has."""
        self._lines.append(line)
        self._rows.append(row)
        characters = sum(map(len, row.values()))
        self._characters += characters
        return characters

    @property
    def is_full(self) -> bool:
        """Whether its rows are as many as a batch may have."""
        return is_batch(len(self._rows), len(self._headers), self._characters)

    def batches(self, path: str, unit: str) -> Iterator[TableBatch]:
        """Yield the rows that have come since the last call, if there are any."""
        rows, lines = self._rows, self._lines
        self._rows, self._lines, self._characters = [], [], 0
        if rows:
            columns = [[row.get(place, "") for row in rows] for place in range(len(self._headers))]
            shown = f"{path}, {self.name}" if self.nested else path
            links = self.links.copy()
            headers = tuple(self._headers)
            exact = frozenset(headers[self.place(key)] for key in self.numbers)
            table = SourceTable(
                self.name,
                shown,
                headers,
                unit,
                several=True,
                nested=self.nested,
                links=links,
                exact=exact,
                repeats=self.repeats,
                uneven={headers[self.place(key)]: count for key, count in self.uneven.items()},
            )
            yield table, Batch(lines, columns, even=True)


class RecordTables:
    """Turns records into rows; a record in a record is a row of another table, to which the row leads.

    Args:
        path: The file, for messages.
        unit: What the numbers of records count, for messages.
        problem: Called for each record that cannot be taken.
        limits: How long a value may be.
    """

    def __init__(self, path: str, unit: str, problem: Problem, limits: ReadingLimits) -> None:
        self._path = path
        self._unit = unit
        self._problem = problem
        self._limits = limits
        self._tables: dict[str, _Growing] = {}
        self._full: dict[str, _Growing] = {}
        self._entries: dict[bytes, int] = {}
        self._held = 0
        self.records = 0

    def add(self, table: str, number: int, record: Json) -> Iterator[TableBatch]:
        """Add a record, and yield rows once there are many."""
        place = f"{self._path}, {self._unit} {number:,}"
        if not isinstance(record, dict):
            self._problem(f"{place}: a record is an object {{…}}.", ValueError())
            return
        try:
            json.dumps(record, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            self._problem(f"{place}: a text holds half of a surrogate pair, not a character.", error)
            return
        self.records += 1
        self._add(self._table(table, nested=False), number, record)
        if self._held > _HELD:
            yield from self.rest()
        for each in self._full.values():
            yield from each.batches(self._path, self._unit)
        self._full.clear()

    def rest(self) -> Iterator[TableBatch]:
        """Yield the rows of all tables that were not yielded yet."""
        self._held = 0
        for table in self._tables.values():
            yield from table.batches(self._path, self._unit)

    def _table(self, name: str, *, nested: bool) -> _Growing:
        if name not in self._tables:
            if len(self._tables) >= _MOST_TABLES:
                raise Refused(f"{in_quotes(name)}: over {_MOST_TABLES:,} keys lead to objects, which would be classes")
            self._tables[name] = _Growing(name, nested=nested)
        return self._tables[name]

    def _add(self, table: _Growing, line: int, record: Record) -> int:
        """Add a record to a table, and return the number of its row."""
        table.count += 1
        number, row = table.count, dict[int, str]()
        for key, value in record.items():
            if not isinstance(value, dict | list):
                texts, objects = [_text(value)], list[Record]()
            else:
                texts, objects = _parts(value)
            if isinstance(value, dict) and plain(key) in NAMES:
                texts = _main_name(value)
            if cell := self._cell(SEVERAL.join(texts), line, key):
                row[table.place(key)] = cell
                table.note(key, value, texts)
            if objects:
                below = self._table(f"{table.name}.{key}", nested=True)
                # In a list, equal objects may be several, such as the lines of orders.
                add = self._entry if isinstance(value, dict) and all(map(_is_named, objects)) else self._add
                numbers = [str(add(below, line, each)) for each in objects]
                row[table.place(key, below.name)] = SEVERAL.join(numbers)
        if table.nested and len(row) == 1 and not table.links:
            text = next(iter(row.values()))
            # A node with a single text has it as its name.
            if SEVERAL not in text and any(map(str.isalpha, text)):
                row[table.place("name")] = text
        self._held += table.append(line, row)
        if table.is_full:
            self._full[table.name] = table
        return number

    def _entry(self, table: _Growing, line: int, record: Record) -> int:
        """Return the number of the row of an id or key: the same for equal content."""
        said = blake2b(f"{table.name}\n{json.dumps(record, sort_keys=True)}".encode(), digest_size=16).digest()
        number = self._entries.get(said)
        if number is None:
            number = self._add(table, line, record)
            if len(self._entries) < _MOST_ENTRIES:
                self._entries[said] = number
        else:
            table.repeats.count += 1
        return number

    def _cell(self, cell: str, line: int, key: str) -> str:
        if len(cell) > self._limits.literal_bytes:
            reason = f"over {self._limits.literal_mb:,} MB in one value; {setting('imports.literal_mb')} allows more"
            self._problem(f"{self._path}, {self._unit} {line:,}: {in_quotes(key)}: {reason}.", ValueError())
            return ""
        return cell


def _parts(value: list[Json] | dict[str, Json]) -> tuple[list[str], list[Record]]:
    """Return the texts and the objects that a value consists of."""
    if isinstance(value, dict):
        if _is_by_key(value):
            inner = ((key, each) for key, each in value.items() if isinstance(each, dict))
            return [], [{"key" if "key" not in each else "key of": key, **each} for key, each in inner]
        return [], [value] if value else []
    texts = [text for each in value if not isinstance(each, dict) and (text := _text(each))]
    return texts, [each for each in value if isinstance(each, dict) and each]


def _is_by_key(value: Record) -> bool:
    """Return whether the keys of an object are values themselves: `{"EUR": {"name": "Euro"}}`."""
    return bool(value) and all(isinstance(each, dict) for each in value.values())


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_named(record: Record) -> bool:
    return any(plain(key) in _NAMED for key in record)


def _text(value: Json) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float() if not math.isfinite(value):
            return "NaN"
        case list() | dict():
            return json.dumps(value, ensure_ascii=False) if value else ""
        case _:
            return str(value).replace(SEVERAL, " ").strip()


def _main_name(value: Record) -> list[str]:
    """Return the name in an object of names, such as `{"common": "Germany", "official": …}`."""
    texts = {key: text for key, each in value.items() if isinstance(each, str) and (text := _text(each))}
    known = (texts[key] for key in _MAIN_NAMES if key in texts)
    return [name] if (name := next(known, "") or next(iter(texts.values()), "")) else []


def json_batches(
    source: Source, stream: IO[bytes], problem: Problem, note: Callable[[str], None], limits: ReadingLimits
) -> Iterator[TableBatch]:
    """Yield the rows of the records in a file of JSON or JSON Lines, and of what is nested in them.

    Args:
        source: The file.
        stream: Its content.
        problem: Called for each record that cannot be read; it raises, or lets the rest be read.
        note: Called with what is left out.
        limits: How long a value may be.

    Raises:
        Refused: A record has too many keys.
    """
    stem = stem_of(source.name)
    if source.ending in JSON_LINES:
        unit, found = "line", _lines(source, stream, stem, problem, limits)
    else:
        unit, found = "record", _values(source, stream, stem, problem, note)
    tables = RecordTables(str(source.path), unit, problem, limits)
    for table, number, record in found:
        yield from tables.add(table, number, record)
    if not tables.records:
        problem(f"{source.path} holds no record: an object {{…}} in a list, or in each line.", ValueError())
    yield from tables.rest()


def _lines(
    source: Source, stream: IO[bytes], stem: str, problem: Problem, limits: ReadingLimits
) -> Iterator[tuple[str, int, Json]]:
    most = limits.literal_bytes
    for number, line in enumerate(iter(lambda: stream.readline(most), b""), start=1):
        if len(line) == most and not line.endswith(b"\n"):
            raise Refused(
                f"line {number:,}: it has over {limits.literal_mb:,} MB; {setting('imports.literal_mb')} allows more"
            )
        if not line.strip():
            continue
        try:
            record: Json = json.loads(line.removeprefix(b"\xef\xbb\xbf"))
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else "it cannot be read as JSON in UTF-8"
            problem(f"{source.path}, line {number:,}: {reason}.", error)
        else:
            yield stem, number, record


def _values(
    source: Source, stream: IO[bytes], stem: str, problem: Problem, note: Callable[[str], None]
) -> Iterator[tuple[str, int, Json]]:
    try:
        text = JsonStream(stream)
        if text.peek() == "[":
            for number in text.items():
                yield stem, number, text.value()
        elif source.ending == ENTRIES:
            for number, key in enumerate(text.members(), start=1):
                value = text.value()
                yield stem, number, {"key": key, **value} if isinstance(value, dict) else value
        else:
            yield from _members(text, source, stem, note)
        text.end()
    except BrokenJson as error:
        problem(f"{error.told(str(source.path))}.", error)


def _members(
    text: JsonStream, source: Source, stem: str, note: Callable[[str], None]
) -> Iterator[tuple[str, int, Json]]:
    """Yield the records in the lists that an object holds."""
    others = dict[str, None]()
    for key in text.members():
        if text.peek() != "[":
            others[key] = None
            text.value()
            continue
        table = stem if plain(key) in _WRAPPERS else key.replace(".", " ").strip() or stem
        for number in text.items():
            if text.peek() == "{":
                yield table, number, text.value()
            else:
                others[key] = None
                text.value()
    if others:
        note(f"{source.path}: {listed(map(in_quotes, others), ', ')} left out: only the objects in lists are records.")
