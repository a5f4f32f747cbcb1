"""Memories as values: facts, their network, limits, and the errors of a memory that is full or unknown."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, NamedTuple, Protocol, TypeAlias

from kg_adapters.errors import InvalidRequest
from kg_adapters.terms import Iri, Literal, Node, Term
from kg_boundary.shown import in_quotes

Statement: TypeAlias = tuple[Node, Iri, Term]


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement worth keeping: a triple, or a feature, since a date is evidence too.

    Args:
        head: What it is about.
        relation: What it says of it.
        tail: An entity, or a value, at which its path ends for good.
        verified: Whether the graph was seen to hold it.
    """

    head: Node
    relation: Iri
    tail: Term
    verified: bool = True

    @property
    def statement(self) -> Statement:
        """What makes two facts the same."""
        return self.head, self.relation, self.tail

    @property
    def bytes(self) -> int:
        """How long its texts are, in UTF-8."""
        texts = [str(self.head), self.relation.value]
        if isinstance(self.tail, Literal):
            texts.extend((self.tail.value, self.tail.datatype.value, self.tail.language or ""))
        else:
            texts.append(str(self.tail))
        return sum(len(text.encode()) for text in texts)


class Place(NamedTuple):
    """Where a fact stands: the number of its path and its offset there, both from 0. It stays there for ever."""

    path: int
    offset: int
    fact: Fact


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


MB: Final = 1_000_000

_SECONDS_PER_MINUTE: Final = 60


def unknown_memory(limits: MemoryLimits, *, replaced: bool = False) -> InvalidRequest:
    """Return the error for a handle that opens nothing, whatever is wrong with it; it does not repeat the handle.

    Args:
        limits: For how long memories are kept.
        replaced: Whether the file was another one when this server began.
    """
    why = (
        "The memory file was removed, replaced or set back while this server ran, and what was kept in it before is "
        "not there any more. "
        if replaced
        else ""
    )
    return InvalidRequest(
        f"No memory has this handle, or its last append is more than {limits.age_days:g} days ago, or it was not used "
        f"again after a single append and gave way. {why}Pass the handle unchanged as memory-append gave it, or call "
        "memory-append without one to begin a new memory."
    )


def foreign_memory(graph: str, wanted: str) -> InvalidRequest:
    """Return the error for a memory of another graph."""
    return InvalidRequest(
        f"This memory belongs to the graph {in_quotes(graph)}; this server answers from {in_quotes(wanted)}. "
        "Call memory-append without a handle to begin a memory here."
    )


def full_memory(limits: MemoryLimits, held: int, coming: int) -> InvalidRequest:
    """Return the error for facts that do not fit."""
    return InvalidRequest(
        f"This memory holds {held:,} of at most {limits.facts:,} facts: {coming:,} more do not fit, and nothing was "
        "stored. Call memory-append without a handle to begin another memory."
    )


def heavy_memory(limits: MemoryLimits, held: int, coming: int) -> InvalidRequest:
    """Return the error for facts whose texts are too long for what is left."""
    return InvalidRequest(
        f"The texts of this memory take {held:,} of at most {limits.memory_bytes:,} bytes (memory_max_mb): {coming:,} "
        "more do not fit, and nothing was stored. Call memory-append without a handle to begin another memory."
    )


def heavy_fact(limits: MemoryLimits, size: int) -> str:
    """Return why a fact is refused whose texts are too long."""
    return (
        f"its texts take {size:,} bytes where a memory keeps at most {limits.fact_bytes:,} of one fact "
        "(memory_max_fact_kb). Keep another fact that proves the same, such as a shorter value."
    )


def hasty_client(limits: MemoryLimits, wait_s: float) -> InvalidRequest:
    """Return the error for a client that begins too many memories."""
    return InvalidRequest(
        f"You have begun {limits.new_per_hour:,} memories within an hour, as many as one client may "
        f"(memory_new_per_hour). Continue with a memory that you have, or begin the next in {_minutes(wait_s)}."
    )


def full_share(limits: MemoryLimits, wait_s: float) -> InvalidRequest:
    """Return the error for a client that uses all that it may have at once."""
    return InvalidRequest(
        f"You have {limits.client_share:.0%} of what this server keeps, as much as one client may "
        f"(memory_client_share), and used all of it within the last hour. Continue with a memory that you have, "
        f"or come back in {_minutes(wait_s)}: the oldest that is not used gives way."
    )


def full_store(limits: MemoryLimits, wait_s: float) -> InvalidRequest:
    """Return the error for a store in which everything is in use."""
    return InvalidRequest(
        f"This server keeps at most {limits.memories:,} memories (memory_max_count) in {limits.store_bytes // MB:,} MB "
        "(memory_file_max_mb), and all were used within the last hour. Continue with a memory that you have, or come "
        f"back in {_minutes(wait_s)}: the oldest that is not used gives way."
    )


def _minutes(seconds: float) -> str:
    minutes = max(1, ceil(seconds / _SECONDS_PER_MINUTE))
    return f"{minutes} minute{'' if minutes == 1 else 's'}"
