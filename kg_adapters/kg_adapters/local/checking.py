"""Whether the index of an open store can be answered from."""

import threading

from kg_adapters.local.array_files import ArrayFiles
from kg_adapters.local.index import GraphIndex
from kg_adapters.local.index_check import check_index
from kg_adapters.local.seal import Damage


class IndexCheck:
    """Compares an index with its seal, and its numbers with each other, once; later only sizes are looked at.

    Args:
        index: The index.
        files: Its files.
    """

    def __init__(self, index: GraphIndex, files: ArrayFiles) -> None:
        self._index = index
        self._files = files
        self._running = threading.Lock()
        self._problem: Damage | None = None
        self.done = False

    def run(self) -> None:
        """Check what was not checked yet; this may read all of the index, so call it in a thread.

        Raises:
            Damage: A file is not what the import wrote, now or when this was called before.
        """
        with self._running:
            if self._problem is not None:
                raise self._problem
            if self.done:
                return
            try:
                self._files.check()
                check_index(self._index)
            except Damage as problem:
                self._problem = problem
                raise
            self.done = True

    def require_whole(self) -> None:
        """Make sure that no file of the index was cut off since it was opened; half a microsecond for each mapped one.

        Raises:
            Damage: One was.
        """
        self._files.require_whole()
