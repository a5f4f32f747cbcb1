"""Fails fast while an endpoint is down, and finds out when it is back."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal as Choice
from typing import TypeAlias

from kg_adapters.errors import BackendUnavailable
from kg_adapters.sparql.timing import Timing

Health: TypeAlias = Choice["unknown", "alive", "failing"]
"""What a query has shown about its endpoint."""


class Admission:
    """Leave to send one query; whoever has it says in `health` what came of it."""

    def __init__(self) -> None:
        self.health: Health = "unknown"
        self.reason = ""

    def failing(self, reason: str) -> None:
        """Say that the endpoint failed, and how."""
        self.health, self.reason = "failing", reason


class CircuitBreaker:
    """Refuses queries after some have failed in a row; later lets one through to see, and all when that succeeds.

    Args:
        who: What it refuses to ask, as a sentence begins.
        failures_until_pause: How many failures in a row make it refuse.
        pause_s: For how many seconds it refuses before one query may try.
        timing: Where time comes from.
    """

    def __init__(self, who: str, *, failures_until_pause: int, pause_s: float, timing: Timing) -> None:
        self._who = who
        self._failures_until_pause = failures_until_pause
        self._pause_s = pause_s
        self._timing = timing
        self._failures = 0
        self._reason = ""
        self._probe_at: float | None = None
        self._probing = False

    @contextmanager
    def admitted(self) -> Generator[Admission]:
        """Enter to send a query; what its admission says at the end is learned.

        Raises:
            BackendUnavailable: Too many queries have failed, and it is not yet time to try again.
        """
        probes = self._check()
        self._probing = self._probing or probes
        admission = Admission()
        try:
            yield admission
        finally:
            if probes:
                self._probing = False
            self._learn(admission, probes=probes)

    def _check(self) -> bool:
        """Say whether the query that is about to start is the one that tries."""
        if self._probe_at is None:
            return False
        wait_s = self._probe_at - self._timing.clock()
        if wait_s <= 0 and not self._probing:
            return True
        when = "One query is trying it now" if wait_s <= 0 else f"It is tried again at {self._timing.time_in(wait_s)}"
        raise BackendUnavailable(
            f"{self._who} has failed {self._failures} times in a row, so it is left alone for now. "
            f"{when}: ask again then. Last: {self._reason}"
        )

    def _learn(self, admission: Admission, *, probes: bool) -> None:
        if admission.health == "alive":
            self._failures, self._probe_at = 0, None
        elif admission.health == "failing":
            self._failures += 1
            self._reason = admission.reason
            # Queries that were under way when it began to refuse do not put the trial off.
            if probes or (self._probe_at is None and self._failures >= self._failures_until_pause):
                self._probe_at = self._timing.clock() + self._pause_s
