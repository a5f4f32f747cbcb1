"""How much one question about sets may cost."""

import time
from typing import Final

from kg_adapters.errors import BackendTimeout, Unsupported

MOST_PAIRS: Final = 10_000_000
"""How many pairs of a node and what a path reaches from it are worked out at once; they take some 60 bytes each."""


class Limits:
    """The time and the memory of one question.

    Args:
        timeout_s: After how many seconds it is given up.
        most_pairs: How many pairs may be held.
    """

    def __init__(self, timeout_s: float, most_pairs: int = MOST_PAIRS) -> None:
        self._until = time.monotonic() + timeout_s
        self._timeout_s = timeout_s
        self._most_pairs = most_pairs

    def require_time(self) -> None:
        """Give up where there is no time left.

        Raises:
            BackendTimeout: There is none.
        """
        if time.monotonic() > self._until:
            raise BackendTimeout(f"Working out these sets took longer than {self._timeout_s:g} seconds. Ask for less.")

    def require_room(self, pairs: int) -> None:
        """Give up before so many pairs are worked out, if they are too many.

        Raises:
            Unsupported: They are.
        """
        if pairs > self._most_pairs:
            raise Unsupported(
                f"This path leads from these nodes to {pairs:,} ends, and {self._most_pairs:,} are worked out at most. "
                "Start from fewer nodes, or leave out a step that leads to very many."
            )
