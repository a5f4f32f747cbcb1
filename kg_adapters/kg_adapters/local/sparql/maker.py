"""The process that makes a store's part for SPARQL: `python -m … STORE PARENT`, given the id of who started it.

It prints how many statements it has added and how many there are, line by line, or `waiting` where another process is
at it, and at the end `done`, or `failed` and why.
"""

import math
import os
import sys
from functools import partial
from pathlib import Path
from typing import Final

from kg_adapters.errors import KGError
from kg_adapters.index.written_lists import read_lists
from kg_adapters.local.seal import Damage
from kg_adapters.local.sparql.making import DONE, FAILED, WAITING
from kg_adapters.local.sparql.store import make_sparql_store, written_rows
from kg_adapters.local.store import OXIGRAPH_FOLDER, LocalStore, open_store
from kg_adapters.local.verifying import verify_index
from kg_adapters.worker_process import end_with_parent

_NICE: Final = 10


def main() -> None:
    """Make the part, with less right to the processor than whoever answers questions."""
    _, store_folder, parent = sys.argv
    end_with_parent(int(parent))
    if sys.platform != "win32":
        os.nice(_NICE)
    try:
        _make(Path(store_folder))
    except (KGError, OSError) as error:
        _tell(FAILED + " ".join(str(error).split()))
    else:
        _tell(DONE)


def _make(folder: Path) -> None:
    store = open_store(folder)
    verify_index(store)
    try:
        _make_of(store)
    except Damage as problem:
        raise store.damaged(problem) from problem


def _make_of(store: LocalStore) -> None:
    lists = read_lists(store)
    counts = store.info.counts
    total = counts.triples + counts.features + len(lists.written) - len(lists.unfolded)

    def go_on(done: int) -> None:
        store.require_current()
        _tell(f"{done} {total}")

    rows = partial(written_rows, store.index, lambda: lists)
    make_sparql_store(store.folder / OXIGRAPH_FOLDER, rows, math.inf, go_on, lambda: _tell(WAITING))


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
