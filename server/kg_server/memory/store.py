"""Where memories are kept: the contract that any database can meet."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kg_server.memory.network import Fact, Place


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """How much may be kept, and for how long.

    Args:
        triples_per_call: The most triples that one append may bring; K in the ODA paper.
        facts: The most facts of one memory.
        memories: The most memories of one store.
        age_days: How many days after its last append a memory is forgotten.
        abandoned_days: How many days after its last use one is forgotten that had no second append.
        new_per_hour: The most memories that one client may begin in an hour.
        client_share: The most that one client may have of all memories, and of all bytes.
        fact_bytes: The most bytes of the texts of one fact.
        memory_bytes: The most bytes of the texts of one memory.
        store_bytes: The most bytes of the whole store.
    """

    triples_per_call: int = 15
    facts: int = 10_000
    memories: int = 10_000
    age_days: float = 30.0
    abandoned_days: float = 1.0
    new_per_hour: int = 1_000
    client_share: float = 0.25
    fact_bytes: int = 64_000
    memory_bytes: int = 16_000_000
    store_bytes: int = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Holdings:
    """What a memory holds, in numbers.

    Args:
        facts: How many facts.
        paths: How many paths they form.
        unverified: How many of them the graph was not seen to hold.
    """

    facts: int = 0
    paths: int = 0
    unverified: int = 0


@dataclass(frozen=True, slots=True)
class Damage:
    """Facts that cannot be read any more.

    Args:
        memory: The number that the store has for the memory; a handle is never logged.
        facts: Their numbers in the order in which they came, from 1.
    """

    memory: int
    facts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """A whole memory: its facts by path, and those that are damaged."""

    holdings: Holdings = Holdings()
    places: tuple[Place, ...] = ()
    damage: Damage | None = None


@dataclass(frozen=True, slots=True)
class Appended:
    """What an append left behind.

    Args:
        holdings: What the memory holds now.
        added: The facts that are new, in the order in which they came.
        whole: The memory, where it is small enough to be shown.
    """

    holdings: Holdings
    added: tuple[Place, ...]
    whole: Contents | None = None


class MemoryStore(Protocol):
    """Keeps networks of facts by handle, each bound to the graph that it was made for.

    Several processes may use one store at once. An append that was answered is never lost, nor kept twice, and the
    network depends on nothing but the order in which appends were committed.
    """

    async def create(self, graph: str, client: str) -> str:
        """Begin an empty memory for a graph and return its handle; forget those past their age.

        Where there are too many, memories that nobody has used for an hour give way: the oldest of the client that has
        the most, those with a single append first.

        Args:
            graph: The graph that it is bound to.
            client: Who begins it, as an address or another name that a client cannot choose.

        Raises:
            InvalidRequest: The client has begun too many, or all are in use.
            BackendError: The store failed to answer.
            InvalidSource: The store is damaged.
        """
        ...

    async def append(self, handle: str, graph: str, facts: Sequence[Fact], *, whole: int = 0) -> Appended:
        """Append facts in order, all or none.

        Args:
            handle: The memory.
            graph: The graph that it should be bound to.
            facts: What is appended.
            whole: How many facts it may hold for all of it to be returned.

        Raises:
            InvalidRequest: No memory has this handle, it is one of another graph, or it would grow too large.
            BackendError: The store failed to answer.
            InvalidSource: The store is damaged where the append would need it.
        """
        ...

    async def read(self, handle: str, graph: str) -> Contents:
        """Return what a memory holds.

        Raises:
            InvalidRequest: No memory has this handle, or it is one of another graph.
            BackendError: The store failed to answer.
            InvalidSource: The store is damaged, or what it says of the memory as a whole.
        """
        ...

    async def aclose(self) -> None:
        """Give back everything that the store holds; calling it twice is harmless."""
        ...
