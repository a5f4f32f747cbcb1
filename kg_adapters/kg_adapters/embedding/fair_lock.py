"""A lock for threads that is given on in the order in which they came."""

from collections import deque
from threading import Lock


class FairLock:
    """Held by one thread at a time, as a context; who waits longest is next.

    A plain lock often goes to the thread that has just released it, so that one with much to do keeps all others out.
    """

    def __init__(self) -> None:
        self._guard = Lock()
        self._waiting: deque[Lock] = deque()
        self._held = False

    def __enter__(self) -> None:
        """Wait for the turn."""
        with self._guard:
            if not self._held:
                self._held = True
                return
            turn = Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()

    def __exit__(self, *_: object) -> None:
        """Give it on."""
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._held = False
