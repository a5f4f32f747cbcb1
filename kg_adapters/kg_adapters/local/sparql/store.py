"""The part of a store that answers SPARQL, made from the adjacency index where the store came without it."""

import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

import anyio
import anyio.to_thread
import numpy as np
import pyoxigraph as ox
from filelock import FileLock, Timeout

from kg_adapters.errors import BackendError, BackendTimeout
from kg_adapters.files.rows import Row, StatementColumn, line_of, load_lines, quad_of
from kg_adapters.index.graph_index import GraphIndex, written
from kg_adapters.local.checksums import find_changed_oxigraph, seal_oxigraph
from kg_adapters.local.sparql.rounded import write_rounded
from kg_adapters.local.store import OXIGRAPH_FOLDER
from kg_adapters.local.written_lists import WrittenLists
from kg_adapters.terms import XSD
from kg_adapters.values import held_form

Lines: TypeAlias = Callable[[], Iterator[list[str]]]
"""Returns statements as lines of N-Quads, many at once."""
# Oxigraph sorts what it is given at once in memory: this many statements take about 100 MB.
_BATCH: Final = 100_000
_XSD_VALUE: Final = f'"^^<{XSD}'
_VALUE: Final = re.compile(rf'\S+ <([^>]*)> "([^"\\]*)"\^\^<({re.escape(XSD)}[^>]*)>')
# A parser takes no line of any length.
_LONG: Final = 1_000_000


@contextmanager
def sparql_part(folder: Path) -> Generator["SparqlPart"]:
    """Build Oxigraph's part in a new folder from what is added; Oxigraph sorts and writes beside whoever adds."""
    with ThreadPoolExecutor(1) as beside:
        part = SparqlPart(ox.Store(folder), beside)
        yield part
        part.finish()
    part.close()
    write_rounded(folder, part.rounded)
    seal_oxigraph(folder)


class SparqlPart:
    """Oxigraph's part of a store while it is built; see `sparql_part`."""

    def __init__(self, store: ox.Store, beside: ThreadPoolExecutor) -> None:
        self._store = store
        self._beside = beside
        self._waiting: list[str] = []
        self._loading: Future[None] | None = None
        self.rounded = set[str]()

    def add(self, rows: list[Row]) -> None:
        """Add statements to the default graph."""
        if long := [row for row in rows if len(row[2]) >= _LONG]:
            self._wait()
            self._store.extend(map(quad_of, long))
        self.add_lines(line_of(row) for row in rows if len(row[2]) < _LONG)

    def add_columns(self, columns: Iterable[StatementColumn]) -> None:
        """Add statements by their relations to the default graph."""
        for column in columns:
            if max(map(len, column.tails), default=0) < _LONG:
                self.add_lines(column.lines())
            else:
                self.add(column.rows())

    def add_lines(self, lines: Iterable[str]) -> None:
        """Add lines of N-Quads with one statement each."""
        self._waiting.extend(map(self._held, lines))
        if len(self._waiting) >= _BATCH:
            self._load()

    def finish(self) -> None:
        """Load the statements that wait."""
        self._load()
        self._wait()
        self._loading = None

    def close(self) -> None:
        """Write everything and release the store: Oxigraph deletes some of its files while it is open."""
        self._store.optimize()
        self._store.flush()
        # Whoever added still holds this object.
        del self._store

    def _held(self, line: str) -> str:
        """Return a line with its number or year as Oxigraph computes with it."""
        found = _VALUE.match(line) if _XSD_VALUE in line else None
        if found is None:
            return line
        relation, text, datatype = found.groups()
        held, kept_as = held_form(text, datatype)
        if kept_as != datatype:
            self.rounded.add(relation)
        elif held == text:
            return line
        return f'{line[: found.start(2)]}{held}"^^<{kept_as}>{line[found.end() :]}'

    def _load(self) -> None:
        # One batch is loaded while the next one is gathered, no more.
        self._wait()
        self._loading = self._beside.submit(load_lines, self._store, self._waiting)
        self._waiting = []

    def _wait(self) -> None:
        if self._loading is not None:
            self._loading.result()


MAX_BUILD_S: Final = 600.0
_CHUNK: Final = 50_000
_SMALL_BYTES: Final = 1 << 20
_MOST_KEPT: Final = 1_000_000


async def ensure_sparql_store(
    folder: Path,
    index: GraphIndex,
    *,
    lists: Callable[[], WrittenLists] = WrittenLists,
    quads: Lines = lambda: iter(()),
    timeout_s: float = MAX_BUILD_S,
    sizes_only: bool = False,
) -> Path:
    """Return a store's Oxigraph folder, built first where it is missing, has lost something or has other content.

    One process builds, others wait for it; about 200,000 statements take a second or two. The work is done in a thread,
    mostly outside the interpreter's lock, and given up when the caller is cancelled.

    Args:
        folder: The store.
        index: All that the graph says.
        lists: Returns what was written otherwise.
        quads: Returns what is in named graphs.
        timeout_s: The most seconds that building, or waiting for another process to build, may take.
        sizes_only: Whether to look at the sizes of files alone, because their content was looked at before.

    Raises:
        BackendTimeout: It took too long.
        BackendError: The store's folder cannot be written.
    """
    target = folder / OXIGRAPH_FOLDER
    if is_uncut(target) and (sizes_only or await anyio.to_thread.run_sync(is_intact, target)):
        return target
    given_up = threading.Event()
    end = time.monotonic() + timeout_s

    def go_on(_done: int) -> None:
        if given_up.is_set() or time.monotonic() > end:
            raise BackendTimeout(
                f"Preparing the graph for SPARQL took more than {timeout_s:g} s. Ask again, or import the graph with "
                "kg-sextant import, which prepares it once."
            )

    try:
        rows = partial(written_rows, index, lists)
        await anyio.to_thread.run_sync(make_sparql_store, target, rows, quads, timeout_s, go_on, abandon_on_cancel=True)
    finally:
        given_up.set()
    return target


def is_uncut(target: Path) -> bool:
    """Return whether an Oxigraph folder has all its files in their sizes; reads no content of them."""
    return find_changed_oxigraph(target, most_bytes=-1) is None


def is_intact(target: Path) -> bool:
    """Return whether an Oxigraph folder is complete and unchanged; reads only its small files.

    The engine compares the blocks of large ones with its own checksums whenever it reads one.
    """
    return find_changed_oxigraph(target, most_bytes=_SMALL_BYTES) is None


def make_sparql_store(
    target: Path,
    rows: Callable[[], Iterator[Row]],
    quads: Lines,
    timeout_s: float,
    go_on: Callable[[int], None],
    on_wait: Callable[[], None] = lambda: None,
) -> None:
    """Make an Oxigraph folder, unless another process makes it meanwhile.

    Args:
        target: Where.
        rows: Returns what its default graph is to hold.
        quads: Returns what its named graphs are to hold.
        timeout_s: The most seconds to wait for another process.
        go_on: Called with the number of statements that were added, again and again; what it raises ends the work.
        on_wait: Called before waiting for another process.

    Raises:
        BackendTimeout: Another process took too long.
        BackendError: The folder around it cannot be written.
    """
    try:
        with _alone(target.with_name(f"{target.name}.lock"), timeout_s, on_wait):
            if not is_intact(target):
                _build(target, rows(), quads(), go_on)
    except Timeout as error:
        raise BackendTimeout("Another process is still preparing this graph for SPARQL. Ask again later.") from error
    except OSError as error:
        raise BackendError(
            f"The graph has no SPARQL part yet, and it cannot be made in {target.parent}: {error.strerror or error}. "
            "Make the folder writable, or import the graph again with kg-sextant import."
        ) from error


@contextmanager
def _alone(file: Path, timeout_s: float, on_wait: Callable[[], None]) -> Generator[None]:
    lock = FileLock(file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        # Where no file can be made, the lock would be waited for without end.
        file.stat()
        on_wait()
        lock.acquire(timeout=timeout_s)
    try:
        yield
    finally:
        lock.release()


def _build(target: Path, rows: Iterator[Row], quads: Iterator[list[str]], go_on: Callable[[int], None]) -> None:
    for left_over in target.parent.glob(f".{target.name}-*"):
        # Whoever holds the lock is alone: these belong to builds that were killed.
        shutil.rmtree(left_over)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as temporary:
        building = Path(temporary) / OXIGRAPH_FOLDER
        done = 0
        with sparql_part(building) as part:
            while chunk := list(islice(rows, _CHUNK)):
                go_on(done)
                part.add(chunk)
                done += len(chunk)
            for lines in quads:
                go_on(done)
                part.add_lines(lines)
                done += len(lines)
        go_on(done)
        if target.exists():
            target.rename(Path(temporary) / "damaged")
        building.rename(target)


def statements(index: GraphIndex) -> Iterator[str]:
    """Yield all that an index says, as lines of N-Triples."""
    return map(line_of, _rows(index))


def written_rows(index: GraphIndex, lists: Callable[[], WrittenLists]) -> Iterator[Row]:
    """Yield all that was written, given what an index says and what was written otherwise."""
    return lists().rows(_rows(index))


def _rows(index: GraphIndex) -> Iterator[Row]:
    few = len(index.nodes) <= _MOST_KEPT
    node: Callable[[int], str] = list(written(index.nodes)).__getitem__ if few else index.nodes.__getitem__
    relations = list(written(index.relations))
    yield from _edges(index, node, relations)
    yield from _features(index, node, relations)


def _edges(index: GraphIndex, node: Callable[[int], str], relations: Sequence[str]) -> Iterator[Row]:
    table = index.out
    groups, kinds, starts = map(np.asarray, (table.groups, table.relations, table.starts))
    for number in range(len(index.nodes)):
        head = node(number)
        for group in range(groups[number], groups[number + 1]):
            relation = relations[int(kinds[group])]
            for tail in table.neighbors[starts[group] : starts[group + 1]].tolist():
                yield head, relation, node(tail), None, None


def _features(index: GraphIndex, node: Callable[[int], str], relations: Sequence[str]) -> Iterator[Row]:
    table = index.features
    datatypes, tags = list(written(index.datatypes)), [*written(index.languages), None]
    owners = np.repeat(np.arange(len(index.nodes)), np.diff(table.starts))
    columns = owners, table.relations, table.datatypes, table.languages, written(table.values)
    for owner, relation, datatype, language, value in zip(*columns, strict=True):
        yield node(int(owner)), relations[int(relation)], value, datatypes[int(datatype)], tags[int(language)]
