"""Labels that earlier answers brought along, so that they are not asked for again."""

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from typing import Final

from kg_adapters.terms import Node

MAX_LABELS: Final = 100_000
EXPIRY_S: Final = 600.0


class LabelMemory:
    """Remembers for a while what terms are called, and which have no label; the least recently learned goes first.

    Args:
        max_labels: How many terms to remember.
        expiry_s: After how many seconds a label is forgotten.
        clock: Tells the time, in seconds.
    """

    def __init__(
        self,
        max_labels: int = MAX_LABELS,
        expiry_s: float = EXPIRY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_labels = max_labels
        self._expiry_s = expiry_s
        self._clock = clock
        self._labels: OrderedDict[Node, tuple[float, str | None]] = OrderedDict()

    def learn(self, labels: Mapping[Node, str | None]) -> None:
        """Remember labels."""
        end = self._clock() + self._expiry_s
        for term, label in labels.items():
            self._labels[term] = (end, label)
            self._labels.move_to_end(term)
        while len(self._labels) > self._max_labels:
            self._labels.popitem(last=False)

    def recall(self, terms: Collection[Node]) -> dict[Node, str | None]:
        """Return what is remembered: the label of a term, or None where it is known to have none."""
        now = self._clock()
        found: dict[Node, str | None] = {}
        for term in terms:
            end, label = self._labels.get(term, (now, None))
            if end > now:
                found[term] = label
        return found
