"""The part of a store that answers SPARQL, while an import reads the statements."""

from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

import pyoxigraph as ox

from kg_adapters.files.rows import Row, line_of, load_lines, quad_of
from kg_adapters.local.seal import seal_oxigraph

AddRows: TypeAlias = Callable[[list[Row]], None]

# Oxigraph sorts what it is given at once in memory: this many statements take about 100 MB.
_BATCH: Final = 100_000
# A parser takes no line of any length.
_LONG: Final = 1_000_000


@contextmanager
def sparql_part(folder: Path) -> Generator[AddRows]:
    """Build Oxigraph's part in a new folder from what is added; Oxigraph sorts and writes beside whoever adds."""
    store = ox.Store(folder)
    with ThreadPoolExecutor(1) as beside:
        part = _Part(store, beside)
        yield part.add
        part.finish()
    store.optimize()
    store.flush()
    del part, store
    seal_oxigraph(folder)


class _Part:
    def __init__(self, store: ox.Store, beside: ThreadPoolExecutor) -> None:
        self._store = store
        self._beside = beside
        self._waiting: list[str] = []
        self._loading: Future[None] | None = None

    def add(self, rows: list[Row]) -> None:
        self._waiting.extend(line_of(row) for row in rows if len(row[2]) < _LONG)
        if long := [row for row in rows if len(row[2]) >= _LONG]:
            self._wait()
            self._store.extend(map(quad_of, long))
        if len(self._waiting) >= _BATCH:
            self._load()

    def finish(self) -> None:
        self._load()
        self._wait()

    def _load(self) -> None:
        # One batch is loaded while the next one is gathered, no more.
        self._wait()
        self._loading = self._beside.submit(load_lines, self._store, self._waiting)
        self._waiting = []

    def _wait(self) -> None:
        if self._loading is not None:
            self._loading.result()
