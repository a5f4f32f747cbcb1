"""Collect the distinct texts of a column as hashes."""

from collections.abc import Collection
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Hashes: TypeAlias = npt.NDArray[np.int64]
"""Distinct texts as their hashes, sorted. They agree between processes that were started with one hash seed."""

MOST_DISTINCT: Final = 16_000_000
"""How many distinct texts of a column are kept."""
_PENDING: Final = 1 << 20


class DistinctTexts:
    """Collects the hashes of texts.

    Args:
        most: How many distinct ones are kept.
    """

    def __init__(self, most: int = MOST_DISTINCT) -> None:
        self._most = most
        self._parts: list[Hashes] = []
        self._pending = 0
        self.too_many = False

    def add(self, texts: Collection[str]) -> None:
        """Add texts."""
        if self.too_many or not texts:
            return
        self._parts.append(np.fromiter(map(hash, texts), np.int64, len(texts)))
        self._pending += len(texts)
        if self._pending > max(_PENDING, len(self._parts[0])):
            self.too_many = len(self.sorted()) > self._most
            if self.too_many:
                self._parts.clear()

    @property
    def size(self) -> int:
        """How many texts are kept."""
        return sum(map(len, self._parts))

    def copy(self, most: int) -> "DistinctTexts":
        """Return a collection that begins with what this one has."""
        new = DistinctTexts(most)
        new._parts, new._pending = list(self._parts), self._pending
        return new

    def sorted(self) -> Hashes:
        """Return the distinct hashes."""
        if len(self._parts) != 1 or self._pending:
            self._parts = [np.unique(np.concatenate([np.zeros(0, np.int64), *self._parts]))]
            self._pending = 0
        return self._parts[0]
