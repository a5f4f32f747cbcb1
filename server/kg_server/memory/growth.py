"""An append to the file: each fact costs a few look-ups by index, however large the memory is."""

from collections.abc import Iterable
from sqlite3 import Connection
from typing import Final

from kg_adapters.errors import InvalidSource
from kg_adapters.terms import Literal, Node
from kg_server.memory.network import Fact, Place
from kg_server.memory.rows import (
    END_COLUMNS,
    FACT_COLUMNS,
    FactRow,
    MemoryRow,
    end_key,
    end_of,
    fact_of,
    insert_end,
    insert_fact,
    statement_of,
)

_HELD: Final = f"SELECT {FACT_COLUMNS} FROM facts WHERE memory = ? AND statement = ?"  # noqa: S608 - a constant
_END: Final = f"SELECT {END_COLUMNS} FROM ends WHERE memory = ? AND tail = ? ORDER BY path LIMIT 1"  # noqa: S608


def append_facts(connection: Connection, memory: MemoryRow, facts: Iterable[Fact]) -> tuple[MemoryRow, list[Place]]:
    """Append facts in order, as `Network.extended` does; return what the memory is then, and what is new in it.

    Raises:
        InvalidSource: A row that the append needs is damaged.
    """
    rows: list[FactRow] = []
    paths = memory.paths
    for fact in facts:
        if _holds(connection, memory, fact):
            continue
        end = _take_end(connection, memory, fact.head)
        path, offset = (paths, 0) if end is None else (end[0], end[1] + 1)
        paths += end is None
        row = FactRow(memory.facts + len(rows), Place(path, offset, fact))
        insert_fact(connection, memory.number, row.cells(memory.digest))
        if not isinstance(fact.tail, Literal):
            insert_end(connection, memory, row.place)
        rows.append(row)
    return memory.with_facts(rows, paths), [row.place for row in rows]


def _holds(connection: Connection, memory: MemoryRow, fact: Fact) -> bool:
    cells = connection.execute(_HELD, (memory.number, statement_of(fact))).fetchone()
    if cells is None:
        return False
    row = fact_of(memory.digest, cells)
    if row is None or row.fact.statement != fact.statement:
        raise _damaged(memory, f"fact {cells[0] + 1}" if isinstance(cells[0], int) else "a fact")
    return True


def _take_end(connection: Connection, memory: MemoryRow, node: Node) -> tuple[int, int] | None:
    """Remove the first path that ends in a node from those that may go on there, and return it with its last offset."""
    cells = connection.execute(_END, (memory.number, end_key(node))).fetchone()
    if cells is None:
        return None
    end = end_of(memory.digest, cells)
    if end is None:
        raise _damaged(memory, "the end of a path")
    connection.execute(
        "DELETE FROM ends WHERE memory = ? AND tail = ? AND path = ?", (memory.number, end_key(node), end[0])
    )
    return end


def _damaged(memory: MemoryRow, what: str) -> InvalidSource:
    return InvalidSource(
        f"Nothing was kept: {what} of this memory (number {memory.number} in the memory file) is damaged: it is not "
        "what was written. memory-read shows what is intact; append that, and these triples, without a handle to begin "
        "another memory."
    )
