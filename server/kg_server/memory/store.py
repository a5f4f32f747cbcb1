"""Where memories are kept: the contract that any database can meet."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kg_adapters.errors import InvalidRequest
from kg_server.memory.network import Fact, Network


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """How much may be kept, and for how long.

    Args:
        triples_per_call: The most triples that one append may bring; K in the ODA paper.
        facts: The most facts of one memory.
        memories: The most memories of one store.
        age_days: How many days after its last append a memory is forgotten.
    """

    triples_per_call: int = 15
    facts: int = 10_000
    memories: int = 10_000
    age_days: float = 30.0


@dataclass(frozen=True, slots=True)
class Appended:
    """What an append left behind: the whole network, and the facts of it that are new."""

    network: Network
    added: tuple[Fact, ...]


class MemoryStore(Protocol):
    """Keeps networks of facts by handle, each bound to the graph that it was made for.

    Several processes may use one store at once. An append that was answered is never lost, nor kept twice, and the
    network depends on nothing but the order in which appends were committed.
    """

    async def create(self, graph: str) -> str:
        """Begin an empty memory for a graph and return its handle; forget those past their age.

        Raises:
            InvalidRequest: There are as many memories as there may be.
            BackendError: The store failed to answer.
            InvalidSource: The store is damaged.
        """
        ...

    async def append(self, handle: str, graph: str, facts: Sequence[Fact]) -> Appended:
        """Append facts in order, all or none.

        Raises:
            InvalidRequest: No memory has this handle, it is one of another graph, or it would grow too large.
            BackendError: The store failed to answer.
            InvalidSource: The store is damaged.
        """
        ...

    async def read(self, handle: str, graph: str) -> Network:
        """Return the network of a memory.

        Raises:
            InvalidRequest: No memory has this handle, or it is one of another graph.
            BackendError: The store failed to answer.
            InvalidSource: The store is damaged.
        """
        ...

    async def aclose(self) -> None:
        """Give back everything that the store holds; calling it twice is harmless."""
        ...


def unknown_memory(limits: MemoryLimits) -> InvalidRequest:
    """Return the error for a handle that opens nothing, whatever is wrong with it; it does not repeat the handle."""
    return InvalidRequest(
        f"No memory has this handle, or its last append is more than {limits.age_days:g} days ago. Pass the handle "
        "unchanged as memory-append gave it, or call memory-append without one to begin a new memory."
    )


def foreign_memory(graph: str, wanted: str) -> InvalidRequest:
    """Return the error for a memory of another graph."""
    return InvalidRequest(
        f"This memory belongs to the graph {graph!r}; this server answers from {wanted!r}. "
        "Call memory-append without a handle to begin a memory here."
    )


def full_memory(limits: MemoryLimits, held: int, coming: int) -> InvalidRequest:
    """Return the error for facts that do not fit."""
    return InvalidRequest(
        f"This memory holds {held:,} of at most {limits.facts:,} facts: {coming:,} more do not fit, and nothing was "
        "stored. Call memory-append without a handle to begin another memory."
    )


def too_many_memories(limits: MemoryLimits) -> InvalidRequest:
    """Return the error for one memory too many."""
    return InvalidRequest(
        f"There are {limits.memories:,} memories, as many as this server keeps; each is forgotten {limits.age_days:g} "
        "days after its last append. Go on with a memory that you have, or let the server keep more."
    )
