"""Whether the index of an open store can be answered from."""

import threading

from kg_adapters.local.array_files import ArrayFiles
from kg_adapters.local.index import GraphIndex
from kg_adapters.local.index_check import check_index
from kg_adapters.local.seal import Damage


class IndexCheck:
    """Compares an index with its seal, and its numbers with each other, once; later only what was written to.

    Args:
        index: The index.
        files: Its files.
    """

    def __init__(self, index: GraphIndex, files: ArrayFiles) -> None:
        self._index = index
        self._files = files
        self._running = threading.Lock()
        self._problem: Damage | None = None
        self._done = False

    @property
    def due(self) -> bool:
        """Whether something is to be checked before the index is used; a microsecond for each mapped file."""
        return not self._done or self._files.changed

    def run(self) -> None:
        """Check what was not checked yet, or was written to; this may read all of the index, so call it in a thread.

        Raises:
            Damage: A file is not what the import wrote, now or when this was called before.
        """
        with self._running:
            if self._problem is not None:
                raise self._problem
            try:
                if not self._done:
                    self._files.check()
                    check_index(self._index)
                self._files.require_whole()
            except Damage as problem:
                self._problem = problem
                raise
            self._done = True
