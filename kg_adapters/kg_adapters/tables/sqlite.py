"""Read the tables of a SQLite database, with the keys that it declares, and nothing that it would compute."""

import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, TypeAlias

from kg_adapters.errors import InvalidSource
from kg_adapters.files.rdf import Problem
from kg_adapters.files.sources import Source, look
from kg_adapters.open_options import ReadingLimits, setting
from kg_adapters.tables.rows import SourceTable, TableBatch, batches, check_width, joined_cell, joined_header
from kg_boundary.shown import in_quotes, listed

_VIRTUAL_COLUMN: Final = 2
_SHADOWS: Final = (
    "content",
    "data",
    "idx",
    "docsize",
    "config",
    "segments",
    "segdir",
    "stat",
    "node",
    "parent",
    "rowid",
)

Cell: TypeAlias = "str | int | float | bytes | None"


@dataclass(frozen=True, slots=True)
class _Schema:
    """What a database declares about a table.

    Args:
        name: Its name.
        columns: Its columns that are stored.
        computed: Those that are not.
        key: The columns of its primary key.
        links: By its columns, the table and the columns that they refer to; none where these are its primary key.
        truths: Its columns of truth values, which are 0 and 1.
    """

    name: str
    columns: tuple[str, ...]
    computed: tuple[str, ...]
    key: tuple[str, ...]
    links: Mapping[tuple[str, ...], tuple[str, tuple[str, ...]]]
    truths: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Layout:
    """How a table is read.

    Args:
        schema: What the database declares.
        joined: The columns of keys of several columns, which follow those of the table.
        key: The header of the column with its key.
        links: The table and header that each header refers to.
        unheld: Foreign keys that lead to no key.
    """

    schema: _Schema
    joined: tuple[tuple[str, ...], ...] = ()
    key: str | None = None
    links: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    unheld: tuple[str, ...] = ()


def sqlite_batches(
    source: Source, stream: IO[bytes], problem: Problem, note: Callable[[str], None], limits: ReadingLimits
) -> Iterator[TableBatch]:
    """Yield the rows of all tables of a database.

    Args:
        source: The file.
        stream: Its content; read where the file is packed.
        problem: Called for each table that cannot be read to its end; it raises, or lets the others be read.
        note: Called with what is left out: views, values that are no text, columns that would be computed.
        limits: How long a value may be.

    Raises:
        InvalidSource: It is damaged, or no database.
    """
    path = source.path
    waiting = [f"{path}{end}" for end in ("-wal", "-journal") if _has_bytes(Path(f"{path}{end}"))]
    if waiting:
        problem(
            f"{waiting[0]} holds changes that are not in {path.name} yet. Close the program that uses it, or run: "
            f"sqlite3 {path} 'PRAGMA wal_checkpoint(TRUNCATE)'.",
            ValueError(),
        )
    try:
        with _opened(source, stream) as database:
            schemas = list(_schemas(database, path, note))
            if not schemas:
                problem(f"{path} has no table with a column.", ValueError())
            for layout in _layouts(schemas):
                yield from _Table(database, path, layout, limits, note).batches(problem)
    except sqlite3.Error as error:
        raise InvalidSource(
            f"{path} cannot be read as a SQLite database: {error}. Check it with: "
            f"sqlite3 {path} 'PRAGMA integrity_check'"
        ) from error


def _decoded(text: bytes) -> str:
    return text.decode(errors="replace")


def _has_bytes(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


@contextmanager
def _opened(source: Source, stream: IO[bytes]) -> Generator[sqlite3.Connection]:
    """Open a database so that nothing is written, and nothing in it is run."""
    packed = bool(source.packing or source.member)
    # Without a lock: as it is, even on a read-only disk.
    address = ":memory:" if packed else f"{source.path.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as database:
        if packed:
            database.deserialize(stream.read())
        for pragma in ("query_only=ON", "trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0"):
            database.execute(f"PRAGMA {pragma}")
        database.text_factory = _decoded
        yield database


def _schemas(database: sqlite3.Connection, path: Path, note: Callable[[str], None]) -> Iterator[_Schema]:
    """Yield what a database declares about each table that holds rows of people."""
    rows = database.execute("SELECT type, name, ifnull(sql, '') FROM sqlite_master ORDER BY rowid").fetchall()
    known = [(str(kind), str(name), str(sql)) for kind, name, sql in rows]
    virtual = [name for kind, name, sql in known if kind == "table" and sql.upper().startswith("CREATE VIRTUAL")]
    inner = {f"{name}_{end}" for name in virtual for end in _SHADOWS}
    views = [name for kind, name, _ in known if kind == "view"]
    if views:
        note(f"{path}: {listed(map(in_quotes, views), ', ')} left out: a view repeats what tables hold.")
    if virtual:
        note(f"{path}: {listed(map(in_quotes, virtual), ', ')} left out: a virtual table holds nothing itself.")
    for kind, name, _ in known:
        if kind == "table" and not name.lower().startswith("sqlite_") and name not in {*inner, *virtual}:
            schema = _schema(database, name)
            if schema.computed:
                there = listed(schema.computed, ", ")
                note(f"{path}, {name}: {there} left out: such columns are computed from others.")
            if schema.columns:
                yield schema


def _schema(database: sqlite3.Connection, name: str) -> _Schema:
    columns, computed, key, truths = list[str](), list[str](), dict[int, str](), set[str]()
    for _, column, kind, _, _, place, hidden in database.execute(f"PRAGMA table_xinfo({_quoted(name)})"):
        (computed if hidden == _VIRTUAL_COLUMN else columns).append(str(column))
        if place:
            key[int(place)] = str(column)
        if str(kind).lower() in {"bool", "boolean"}:
            truths.add(str(column))
    ends: dict[int, tuple[str, list[tuple[int, str, str | None]]]] = {}
    for number, place, table, here, there, *_ in database.execute(f"PRAGMA foreign_key_list({_quoted(name)})"):
        ends.setdefault(int(number), (str(table), []))[1].append((int(place), str(here), there))
    links: dict[tuple[str, ...], tuple[str, tuple[str, ...]]] = {}
    for table, pairs in ends.values():
        here = tuple(_spelled(column, columns) for _, column, _ in sorted(pairs))
        links[here] = (table, tuple(column for _, _, column in sorted(pairs) if column is not None))
    keys = tuple(key[place] for place in sorted(key))
    return _Schema(name, tuple(columns), tuple(computed), keys, links, frozenset(truths))


def _spelled(name: str, names: Sequence[str]) -> str:
    """Return a name as it is spelled where it was declared."""
    return next((each for each in names if each.casefold() == name.casefold()), name)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _layouts(schemas: Sequence[_Schema]) -> Iterator[_Layout]:
    """Yield how each table is read, so that each key and each link is in one column."""
    tables = {schema.name.casefold(): schema for schema in schemas}
    keys = {schema.name: schema.key for schema in schemas}
    for schema in schemas:
        for table, there in schema.links.values():
            target = tables.get(table.casefold())
            if target is not None and not keys[target.name]:
                # What others refer to is unique.
                keys[target.name] = tuple(_spelled(column, target.columns) for column in there)
    for schema in schemas:
        links: dict[str, tuple[str, str]] = {}
        joined = [keys[schema.name]] if len(keys[schema.name]) > 1 else []
        unheld = list[str]()
        for here, (table, there) in schema.links.items():
            target = tables.get(table.casefold())
            key = () if target is None else keys[target.name]
            wanted = key if target is None or not there else tuple(_spelled(each, target.columns) for each in there)
            if (
                target is None
                or not set(here) <= set(schema.columns)
                or len(here) != len(key)
                or set(wanted) != set(key)
            ):
                unheld.append(f"{joined_header(here)} → {table}")
                continue
            # The columns of a key may be named in another order.
            ordered = tuple(here[wanted.index(column)] for column in key)
            links[joined_header(ordered)] = (target.name, joined_header(key))
            joined += [ordered] if len(ordered) > 1 and ordered not in joined else []
        yield _Layout(schema, tuple(joined), joined_header(keys[schema.name]) or None, links, tuple(unheld))


class _Table:
    """Reads one table.

    Args:
        database: Where it is.
        path: The file, for messages.
        layout: How it is read.
        limits: How long a value may be.
        note: Called with what is left out.
    """

    def __init__(
        self,
        database: sqlite3.Connection,
        path: Path,
        layout: _Layout,
        limits: ReadingLimits,
        note: Callable[[str], None],
    ) -> None:
        self._database = database
        self._layout = layout
        self._limits = limits
        self._note = note
        self._binary = dict[str, int]()
        self._long = dict[str, int]()
        self._exact = set[str]()
        schema = layout.schema
        self._path, self._seen = path, look(path)
        self._place = f"{path}, {schema.name}"
        self._places = [[schema.columns.index(each) for each in columns] for columns in layout.joined]

    def batches(self, problem: Problem) -> Iterator[TableBatch]:
        """Yield its rows."""
        layout = self._layout
        columns = layout.schema.columns
        check_width(len(columns), f"table {in_quotes(layout.schema.name)}: it")
        joined = tuple(map(joined_header, layout.joined))
        table = SourceTable(
            layout.schema.name,
            self._place,
            (*columns, *joined),
            unit="row",
            exact=self._exact,
            key=layout.key,
            links=layout.links,
            joined=joined,
        )
        empty = True
        for some in batches(table, self._rows(problem), problem):
            empty = False
            yield some
        if empty:
            self._note(f"{self._place} left out: it has no row.")
        for found, what in (
            (self._binary, "binary values"),
            (
                self._long,
                f"values of over {self._limits.literal_mb:,} MB ({setting('imports.literal_mb')} allows more)",
            ),
        ):
            for column, count in found.items():
                self._note(f"{self._place}: {column}: {count:,} {what} left out.")
        for each in layout.unheld:
            self._note(f"{self._place}: {each} is no link: what it refers to is not the key of a table.")

    def _rows(self, problem: Problem) -> Iterator[tuple[int, Sequence[str]]]:
        schema = self._layout.schema
        names = ", ".join(map(_quoted, schema.columns))
        try:
            found = self._database.execute(f"SELECT {names} FROM {_quoted(schema.name)}")  # noqa: S608 - quoted
            for number, row in enumerate(found, start=1):
                cells = [self._text(column, cell) for column, cell in zip(schema.columns, row, strict=True)]
                yield number, [*cells, *(joined_cell([cells[place] for place in places]) for places in self._places)]
        except sqlite3.Error as error:
            changed = "it was changed while it was read. Close the program that writes to it"
            reason = error if look(self._path) == self._seen else changed
            problem(f"{self._place} cannot be read to its end: {reason}.", error)

    def _text(self, column: str, cell: Cell) -> str:
        """Return a value as a table would have it; nothing for one that is left out."""
        if cell is None:
            return ""
        if isinstance(cell, bytes):
            self._binary[column] = self._binary.get(column, 0) + 1
            return ""
        if not isinstance(cell, str):
            self._exact.add(column)
            if cell in {0, 1} and column in self._layout.schema.truths:
                return "true" if cell else "false"
        text = cell.strip() if isinstance(cell, str) else repr(cell)
        if len(text) > self._limits.literal_bytes:
            self._long[column] = self._long.get(column, 0) + 1
            return ""
        return text
