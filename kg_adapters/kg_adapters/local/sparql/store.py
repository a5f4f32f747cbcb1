"""The part of a store that answers SPARQL, made from the adjacency index where the store came without it."""

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

import anyio.to_thread
from filelock import FileLock, Timeout

from kg_adapters.errors import BackendError, BackendTimeout
from kg_adapters.files.rows import Row, line_of
from kg_adapters.index.written_lists import WrittenLists
from kg_adapters.local.index import GraphIndex
from kg_adapters.local.names.table import written
from kg_adapters.local.seal import find_changed_oxigraph, find_cut_oxigraph
from kg_adapters.local.sparql.part import sparql_part
from kg_adapters.local.store import OXIGRAPH_FOLDER

MAX_BUILD_S: Final = 600.0
_CHUNK: Final = 50_000
_MOST_KEPT: Final = 1_000_000


async def ensure_sparql_store(
    folder: Path,
    index: GraphIndex,
    *,
    lists: Callable[[], WrittenLists] = WrittenLists,
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
        await anyio.to_thread.run_sync(make_sparql_store, target, rows, timeout_s, go_on, abandon_on_cancel=True)
    finally:
        given_up.set()
    return target


def is_uncut(target: Path) -> bool:
    """Say whether an Oxigraph folder is there with all files in their sizes; reads no content."""
    return find_cut_oxigraph(target) is None


def is_intact(target: Path) -> bool:
    """Say whether an Oxigraph folder is there, whole and as it was made; reads small files alone."""
    return find_changed_oxigraph(target, small_only=True) is None


def make_sparql_store(
    target: Path,
    rows: Callable[[], Iterator[Row]],
    timeout_s: float,
    go_on: Callable[[int], None],
    on_wait: Callable[[], None] = lambda: None,
) -> None:
    """Make an Oxigraph folder, unless another process makes it meanwhile.

    Args:
        target: Where.
        rows: Returns what it is to hold.
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
                _build(target, rows(), go_on)
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


def _build(target: Path, rows: Iterator[Row], go_on: Callable[[int], None]) -> None:
    for left_over in target.parent.glob(f".{target.name}-*"):
        # Whoever holds the lock is alone: these belong to builds that were killed.
        shutil.rmtree(left_over)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as temporary:
        building = Path(temporary) / OXIGRAPH_FOLDER
        done = 0
        with sparql_part(building) as add:
            while chunk := list(islice(rows, _CHUNK)):
                go_on(done)
                add(chunk)
                done += len(chunk)
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
    for number in range(len(index.nodes)):
        head = node(number)
        for group in range(table.groups[number], table.groups[number + 1]):
            relation = relations[int(table.relations[group])]
            for tail in table.neighbors[table.starts[group] : table.starts[group + 1]].tolist():
                yield head, relation, node(tail), None, None


def _features(index: GraphIndex, node: Callable[[int], str], relations: Sequence[str]) -> Iterator[Row]:
    table = index.features
    for number in range(len(index.nodes)):
        head = node(number)
        for row in range(table.starts[number], table.starts[number + 1]):
            language, datatype = int(table.languages[row]), index.datatypes[int(table.datatypes[row])]
            tag = index.languages[language] if language >= 0 else None
            yield head, relations[int(table.relations[row])], table.values[row], datatype, tag
