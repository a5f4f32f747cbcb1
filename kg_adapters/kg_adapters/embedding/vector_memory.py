"""Vectors of the texts that were used last, in memory."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from kg_adapters.embedding.packing import PackedRows

_FIRST_ROWS: Final = 1_024
# So much is given up at once when the memory is full, because finding what was used least takes a while.
_GIVEN_UP: Final = 8


class VectorMemory:
    """A bounded table of 16-bit rows by text; it grows as needed and gives up what was not used for longest.

    Args:
        capacity: The most rows, at least 1.
        dimensions: The length of a row.
    """

    def __init__(self, capacity: int, dimensions: int) -> None:
        self._capacity = capacity
        self._slots: dict[str, int] = {}
        self._texts = [""] * capacity
        self._free = list(range(capacity - 1, -1, -1))
        self._rows: PackedRows = np.empty((min(_FIRST_ROWS, capacity), dimensions), dtype=np.int16)
        self._used = np.zeros(capacity, dtype=np.int64)
        self._clock = 0

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, text: str) -> bool:
        return text in self._slots

    def find(self, texts: Sequence[str]) -> PackedRows | None:
        """Return the rows of texts, shape [texts, dimensions]; None where one of them is not here."""
        get = self._slots.get
        slots = [get(text, -1) for text in texts]
        if -1 in slots:
            return None
        places = np.array(slots, dtype=np.int64)
        self._clock += 1
        self._used[places] = self._clock
        return self._rows.take(places, axis=0)

    def put(self, texts: Sequence[str], rows: Sequence[PackedRows]) -> None:
        """Remember the rows of texts, each of shape [dimensions]; of more than there is room for, the last ones."""
        self._clock += 1
        for text, row in zip(texts[-self._capacity :], rows[-self._capacity :], strict=True):
            slot = self._slots.get(text)
            if slot is None:
                slot = self._new_slot(text)
            self._rows[slot] = row
            self._used[slot] = self._clock

    def _new_slot(self, text: str) -> int:
        if not self._free:
            self._give_up()
        slot = self._free.pop()
        self._slots[text] = slot
        self._texts[slot] = text
        if slot >= len(self._rows):
            more = np.empty((min(2 * len(self._rows), self._capacity), self._rows.shape[1]), dtype=np.int16)
            more[: len(self._rows)] = self._rows
            self._rows = more
        return slot

    def _give_up(self) -> None:
        count = max(self._capacity // _GIVEN_UP, 1)
        self._free = np.argpartition(self._used, count - 1)[:count].tolist()
        for slot in self._free:
            del self._slots[self._texts[slot]]
            self._texts[slot] = ""
