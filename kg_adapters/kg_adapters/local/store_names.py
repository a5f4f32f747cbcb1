"""The names of one open store, opened when they are first asked for."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from kg_adapters.local.store import LocalStore
from kg_adapters.models import RelationCandidate

if TYPE_CHECKING:
    from kg_adapters.local.names.search import Hit, TextIndex


class StoreNames:
    """Searches the text index of a store; everything here reads files, so call it in a thread.

    Args:
        store: The store.
    """

    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self._opening = threading.Lock()
        self._opened: TextIndex | None = None

    def entities(self, text: str, limit: int, accept: Callable[[int], bool] | None) -> "list[Hit]":
        """Return the nodes that a text may name, best first, at most `limit`; only those that `accept` allows.

        Raises:
            Damage: A file of the text index is not what the import wrote.
            GraphReplaced: The names of another store lie there by now.
        """
        return self._index().search(text, limit=limit, accept=accept)

    def relations(self, text: str, limit: int) -> list[RelationCandidate]:
        """Return the relations that a text may name, as `KGAdapter.find_relations` does.

        Raises:
            Damage: A file of the text index is not what the import wrote.
            GraphReplaced: The names of another store lie there by now.
        """
        return self._index().relations.find(text, limit)

    def _index(self) -> "TextIndex":
        with self._opening:
            if self._opened is None:
                self._opened = self._open()
        self._opened.require_whole()
        return self._opened

    def _open(self) -> "TextIndex":
        from kg_adapters.local.names.search import FOLDER, TextIndex

        with self._store.reading(f"{FOLDER}/"):
            return TextIndex.open(self._store.folder, self._store.index, self._store.files_of(FOLDER))
