"""Who may keep how much in one memory file: what expires, what gives way, and who is refused."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kg_server.memory.refusals import full_share, full_store, hasty_client
from kg_server.memory.rows import MEMORY_COLUMNS, MemoryRow, memory_of
from kg_server.memory.store import MemoryLimits

SECONDS_PER_DAY: Final = 86_400
HOUR_S: Final = 3_600

NOTED_S: Final = 300
"""How long after a use the next one need not be noted."""

IN_USE_S: Final = HOUR_S + NOTED_S
"""How long after its last noted use a memory does not give way to another."""

FACT_OVERHEAD: Final = 200
"""About how many bytes a fact takes beside its texts."""

_AT_ONCE: Final = 20
"""How many expired memories are forgotten at once, so that others need not wait long."""

_EXPIRED: Final = """
    SELECT number FROM memories WHERE touched < :touched
    UNION SELECT number FROM memories WHERE appends <= 1 AND used < :used
    LIMIT :most
"""
_GIVING_WAY: Final = """
    SELECT number FROM memories
    JOIN (SELECT client AS owner, count(*) AS memories, sum(bytes) AS bytes FROM memories GROUP BY client) AS held
    ON held.owner = memories.client
    WHERE memories.used < :idle AND number != :spared AND (:client IS NULL OR client = :client)
    ORDER BY CASE :measure WHEN 'bytes' THEN held.bytes ELSE held.memories END DESC, appends > 1, used, number
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Something that room is made for.

    Args:
        client: Who wants it.
        measure: Whether it is about `memories` or `bytes`.
        spared: The number of a memory that stays whatever happens; 0 for none.
    """

    client: str
    measure: str
    spared: int = 0


class Room:
    """Makes room within a transaction, at the cost of what is old, and first of those who have the most.

    Args:
        limits: How much there is.
        now: Tells the time, in seconds since 1970.
    """

    def __init__(self, limits: MemoryLimits, now: Callable[[], float]) -> None:
        self._limits = limits
        self._now = now

    def oldest(self) -> float:
        """Return when a memory must have been appended to that is not forgotten yet."""
        return self._now() - self._limits.age_days * SECONDS_PER_DAY

    def for_memory(self, connection: sqlite3.Connection, client: str) -> None:
        """Make room for one memory more.

        Raises:
            InvalidRequest: The client has begun too many of late, or nothing can give way.
        """
        self._forget(connection)
        self._refuse_haste(connection, client)
        limits, wanted = self._limits, Wanted(client, "memories")
        share = max(1, int(limits.memories * limits.client_share))
        while _one(connection, "SELECT count(*) FROM memories WHERE client = ?", client) >= share:
            if not self._give_way(connection, wanted, client):
                raise full_share(limits, self._wait(connection, wanted, client))
        while _one(connection, "SELECT count(*) FROM memories") >= limits.memories:
            if not (self._forget(connection) or self._give_way(connection, wanted, None)):
                raise full_store(limits, self._wait(connection, wanted, None))

    def for_bytes(self, connection: sqlite3.Connection, memory: MemoryRow, coming: int) -> None:
        """Make room for facts of a memory, which counts for the client that began it.

        Raises:
            InvalidRequest: Nothing can give way.
        """
        limits, wanted = self._limits, Wanted(memory.client, "bytes", spared=memory.number)
        share = limits.store_bytes * limits.client_share
        own = "SELECT coalesce(sum(bytes + facts * ?), 0) FROM memories WHERE client = ?"
        while _one(connection, own, FACT_OVERHEAD, memory.client) + coming > share:
            if not self._give_way(connection, wanted, memory.client):
                raise full_share(limits, self._wait(connection, wanted, memory.client))
        while bytes_used(connection) + coming > limits.store_bytes:
            if not (self._forget(connection) or self._give_way(connection, wanted, None)):
                raise full_store(limits, self._wait(connection, wanted, None))

    def _refuse_haste(self, connection: sqlite3.Connection, client: str) -> None:
        now = self._now()
        # What was begun within the hour does not give way, so that none of it is missing here.
        begun = "FROM memories WHERE client = ? AND created > ?"
        if _one(connection, f"SELECT count(*) {begun}", client, now - HOUR_S) >= self._limits.new_per_hour:
            first = _one(connection, f"SELECT min(created) {begun}", client, now - HOUR_S)
            raise hasty_client(self._limits, first + HOUR_S - now)

    def _forget(self, connection: sqlite3.Connection) -> bool:
        """Delete some of what has expired, and say whether there was any."""
        touched, used = self.oldest(), self._now() - self._limits.abandoned_days * SECONDS_PER_DAY
        numbers = connection.execute(_EXPIRED, {"touched": touched, "used": used, "most": _AT_ONCE}).fetchall()
        rows = (memory_row(connection, number) for (number,) in numbers)
        # An index that is damaged may name one that is young.
        expired = [row for row in rows if row and (row.touched < touched or (row.appends <= 1 and row.used < used))]
        for row in expired:
            _delete(connection, row)
        return bool(expired)

    def _give_way(self, connection: sqlite3.Connection, wanted: Wanted, client: str | None) -> bool:
        """Delete one memory that is not in use, of one client or of any, and say whether there was one."""
        idle = self._now() - IN_USE_S
        values = {"idle": idle, "spared": wanted.spared, "client": client, "measure": wanted.measure}
        for (number,) in connection.execute(_GIVING_WAY, values).fetchall():
            row = memory_row(connection, number)
            if row is not None and row.used < idle:
                _delete(connection, row)
                return True
        return False

    def _wait(self, connection: sqlite3.Connection, wanted: Wanted, client: str | None) -> float:
        """Return after how many seconds a memory may give way."""
        first = _one(
            connection,
            "SELECT coalesce(min(used), ?1) FROM memories WHERE number != ?2 AND (?3 IS NULL OR client = ?3)",
            self._now(),
            wanted.spared,
            client,
        )
        return first + IN_USE_S - self._now()


def memory_row(connection: sqlite3.Connection, number: int) -> MemoryRow | None:
    """Return the row of a memory, or None if there is none that is whole."""
    found = connection.execute(f"SELECT {MEMORY_COLUMNS} FROM memories WHERE number = ?", (number,)).fetchone()  # noqa: S608 - a constant
    return None if found is None else memory_of(found)


def bytes_used(connection: sqlite3.Connection) -> int:
    """Return how many bytes of the file hold something."""
    pages, free, size = (_one(connection, f"PRAGMA {each}") for each in ("page_count", "freelist_count", "page_size"))
    return int((pages - free) * size)


def _one(connection: sqlite3.Connection, query: str, *values: object) -> float:
    found: float = connection.execute(query, values).fetchone()[0]
    return found


def _delete(connection: sqlite3.Connection, row: MemoryRow) -> None:
    connection.execute("DELETE FROM memories WHERE number = ?", (row.number,))
