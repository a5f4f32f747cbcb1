"""The vectors of one open store, mapped when they are first asked for."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Final

from kg_adapters.embedding.protocol import Vectors
from kg_adapters.local.index import GraphIndex
from kg_adapters.local.meaning import MeaningIndex
from kg_adapters.local.vectors import LabelVectors, open_label_vectors

_LOOKED_THROUGH: Final = 2_000
"""How many of the nearest entities are looked through for those of one type."""


class StoreVectors:
    """Opens what `embed_store` wrote, by model; everything here reads files, so call it in a thread.

    Args:
        folder: The store.
        index: Its index.
    """

    def __init__(self, folder: Path, index: GraphIndex) -> None:
        self._folder = folder
        self._index = index
        self._labels: dict[str, LabelVectors] = {}
        self._meanings: dict[str, MeaningIndex] = {}

    def labels(self, fingerprint: str) -> LabelVectors | None:
        """Return the vectors of labels by one model; None where there are none."""
        known = self._labels.get(fingerprint) or open_label_vectors(self._folder, self._index, fingerprint)
        if known is not None:
            self._labels[fingerprint] = known
        return known

    def nearest(
        self, vector: Vectors, fingerprint: str, limit: int, accept: Callable[[int], bool] | None
    ) -> list[tuple[int, float]]:
        """Return the entities nearest to a vector as (node id, cosine), best first, at most `limit`.

        Args:
            vector: A unit vector; shape [dimensions].
            fingerprint: The model that it is by.
            limit: The most entities to return.
            accept: Which nodes count; None for all.
        """
        known = self._meanings.get(fingerprint) or MeaningIndex.open(self._folder, self._index, fingerprint)
        if known is None:
            return []
        self._meanings[fingerprint] = known
        if accept is None:
            return known.search(vector, limit)
        found = known.search(vector, max(limit, _LOOKED_THROUGH))
        return list(islice((each for each in found if accept(each[0])), limit))
