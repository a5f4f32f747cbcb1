"""The vectors of one open store, mapped when they are first asked for."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from kg_adapters.local.index import GraphIndex
from kg_adapters.local.store import LocalStore

if TYPE_CHECKING:
    from kg_adapters.embedding.protocol import Vectors
    from kg_adapters.local.vectors.entities import MeaningIndex
    from kg_adapters.local.vectors.labels import LabelVectors

T = TypeVar("T")

_LOOKED_THROUGH: Final = 2_000
"""How many of the nearest entities are looked through for those of one type."""


class StoreVectors:
    """Opens what `embed_store` wrote, by model; everything here reads files, so call it in a thread.

    Args:
        store: The store.
    """

    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self._labels: dict[str, LabelVectors] = {}
        self._meanings: dict[str, MeaningIndex] = {}

    def labels(self, fingerprint: str) -> "LabelVectors | None":
        """Return the vectors of labels by one model; None where there are none.

        Raises:
            Damage: A file of them is not what was written.
            GraphReplaced: Those of another store lie there by now.
        """
        from kg_adapters.local.vectors.labels import open_label_vectors

        known = self._labels.get(fingerprint) or self._open(fingerprint, open_label_vectors)
        if known is not None:
            self._labels[fingerprint] = known
        return known

    def nearest(
        self, vector: "Vectors", fingerprint: str, limit: int, accept: Callable[[int], bool] | None
    ) -> list[tuple[int, float]]:
        """Return the entities nearest to a vector as (node id, cosine), best first, at most `limit`.

        Args:
            vector: A unit vector; shape [dimensions].
            fingerprint: The model that it is by.
            limit: The most entities to return.
            accept: Which nodes count; None for all.

        Raises:
            Damage: A file of them is not what was written.
            GraphReplaced: Those of another store lie there by now.
        """
        from kg_adapters.local.vectors.entities import MeaningIndex

        known = self._meanings.get(fingerprint) or self._open(fingerprint, MeaningIndex.open)
        if known is None:
            return []
        self._meanings[fingerprint] = known
        if accept is None:
            return known.search(vector, limit)
        found = known.search(vector, max(limit, _LOOKED_THROUGH))
        return list(islice((each for each in found if accept(each[0])), limit))

    def _open(self, fingerprint: str, opener: Callable[[Path, GraphIndex, str], T | None]) -> T | None:
        from kg_adapters.local.vectors.labels import FOLDER

        with self._store.reading(f"{FOLDER}/"):
            return opener(self._store.folder, self._store.index, fingerprint)
