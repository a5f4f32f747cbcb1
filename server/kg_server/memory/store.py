"""Memories: networks of facts by handle, kept in transactions, with limits and expiry (ODA, section 2.3)."""

import hashlib
import secrets
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

import anyio
import anyio.to_thread

from kg_adapters.errors import BackendError, InvalidRequest
from kg_adapters.terms import Iri, Literal, Node, Term
from kg_boundary.shown import in_quotes

T = TypeVar("T")
Statement: TypeAlias = tuple[Node, Iri, Term, str]

HANDLE_PREFIX: Final = "mem_"
_RANDOM_BYTES: Final = 18
_DAY_S: Final = 86_400
_BETWEEN: Final = "\0"
"""What stands between the names of graphs; none holds it."""

NOTED_S: Final = 300
"""How long after a use the next one need not be noted."""

IN_USE_S: Final = 3_600 + NOTED_S
"""How long after its last noted use a memory is not deleted for another."""

_AT_ONCE: Final = 20
"""How many expired memories are deleted at once, so that others need not wait long."""


@dataclass(frozen=True, slots=True)
class KeptFact:
    """A statement worth keeping: a triple, or a feature, since a date is evidence too.

    Args:
        head: What it is about.
        relation: What it says of it.
        tail: An entity, or a value, at which its path ends for good.
        verified: Whether the graph was seen to hold it.
        graph: Which of several graphs it is of; "" where one is served, and in rows where it is the memory's first.
    """

    head: Node
    relation: Iri
    tail: Term
    verified: bool = True
    graph: str = ""

    @property
    def statement(self) -> Statement:
        """What makes two facts the same."""
        return self.head, self.relation, self.tail, self.graph

    @property
    def bytes(self) -> int:
        """How long its texts are, in UTF-8."""
        texts = [str(self.head), self.relation.value, self.graph]
        if isinstance(self.tail, Literal):
            texts.extend((self.tail.value, self.tail.datatype.value, self.tail.language or ""))
        else:
            texts.append(str(self.tail))
        return sum(len(text.encode()) for text in texts)


class Place(NamedTuple):
    """Where a fact stands: the number of its path and its offset there, both from 0. It stays there for ever."""

    path: int
    offset: int
    fact: KeptFact


class MemoryRecord(NamedTuple):
    """What is known of one memory beside its facts.

    Args:
        number: Its number in the storage.
        digest: The digest of its handle.
        graph: The graph that it is bound to, or those of its facts with `_BETWEEN` them.
        touched: When something was last appended, in seconds since 1970, as all times here.
        used: When something was last appended or read; reads are noted now and then.
        appends: How often something was appended.
        facts: How many facts it holds.
        paths: How many paths they form.
        unverified: How many of them the graph was not seen to hold.
        size: How many bytes their texts take.
        owner: The subject of the caller that it belongs to.
    """

    number: int
    digest: bytes
    graph: str
    touched: float
    used: float
    appends: int = 0
    facts: int = 0
    paths: int = 0
    unverified: int = 0
    size: int = 0
    owner: str = ""

    @property
    def graphs(self) -> tuple[str, ...]:
        """The graphs of its facts; those that name none are of the first."""
        return tuple(self.graph.split(_BETWEEN))

    def shown(self, place: Place, served: Sequence[str]) -> Place:
        """Return a place whose fact names its graph if several are served, and none otherwise."""
        name = (place.fact.graph or self.graphs[0]) if len(served) > 1 else ""
        return place._replace(fact=replace(place.fact, graph=name))

    def with_fact(self, place: Place) -> "MemoryRecord":
        """Return the record after a fact was added."""
        name = place.fact.graph
        return self._replace(
            graph=f"{self.graph}{_BETWEEN}{name}" if name and name not in self.graphs else self.graph,
            facts=self.facts + 1,
            paths=max(self.paths, place.path + 1),
            unverified=self.unverified + (not place.fact.verified),
            size=self.size + place.fact.bytes,
        )


@dataclass(frozen=True, slots=True)
class Contents:
    """The facts of a memory by path, and the numbers of those that are damaged, in the order of appending, from 1."""

    memory: MemoryRecord
    places: tuple[Place, ...] = ()
    damaged: tuple[int, ...] = ()

    def of(self, served: Sequence[str]) -> "Contents":
        """Return the contents whose facts name their graphs if several are served, and none otherwise."""
        return replace(self, places=tuple(self.memory.shown(place, served) for place in self.places))


@dataclass(frozen=True, slots=True)
class Appended:
    """What an append left behind.

    Args:
        handle: The handle of the memory.
        memory: The memory as it is now.
        added: The facts that are new, in the order in which they came.
        whole: All of the memory, where it is small enough to be shown.
    """

    handle: str
    memory: MemoryRecord
    added: tuple[Place, ...]
    whole: Contents | None = None


class StorageUsage(NamedTuple):
    """How many memories and bytes there are, the highest number of a memory, and when something was last appended."""

    memories: int
    size: int
    highest: int
    touched: float


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """How much may be kept, and for how long.

    Args:
        triples_per_call: The most triples that one append may bring; K in the ODA paper.
        facts: The most facts of one memory.
        memories: The most memories of one store.
        age_days: How many days after its last append a memory expires.
        abandoned_days: How many days after its last use one expires that had no second append.
        fact_bytes: The most bytes of the texts of one fact.
        memory_bytes: The most bytes of the texts of one memory.
        store_mb: The most megabytes of the whole store.
        caller_mb: The most megabytes of one caller with a login, who may have a tenth of the memories.
    """

    triples_per_call: int = 15
    facts: int = 10_000
    memories: int = 10_000
    age_days: float = 30.0
    abandoned_days: float = 1.0
    fact_bytes: int = 64_000
    memory_bytes: int = 16_000_000
    store_mb: float = 1_000.0
    caller_mb: float = 100.0

    def has_room(self, usage: StorageUsage, memories: int, size: int) -> bool:
        """Return whether the store has room for more memories and bytes."""
        return _fits(usage, memories, size, self.memories, self.store_mb)

    def has_room_of_caller(self, usage: StorageUsage, memories: int, size: int) -> bool:
        """Return whether one caller may keep more memories and bytes."""
        return _fits(usage, memories, size, self.caller_memories, self.caller_mb)

    @property
    def caller_memories(self) -> int:
        """The most memories of one caller with a login."""
        return max(1, self.memories // 10)


def _fits(usage: StorageUsage, memories: int, size: int, most: int, most_mb: float) -> bool:
    return usage.memories + memories <= most and usage.size + size <= most_mb * 1_000_000


class Transaction(Protocol):
    """What one transaction reads and writes. Rows that are damaged are never returned, nor deleted.

    Every method may raise `InvalidSource` where a row that it needs is damaged, and `BackendError`.
    """

    @property
    def now(self) -> float:
        """When it began, in seconds since 1970 by the clock that all processes on this storage share."""
        ...

    def find(self, digest: bytes, owner: str) -> MemoryRecord | None:
        """Return an owner's memory whose handle has this digest, or None where there is certainly none."""
        ...

    def save(self, memory: MemoryRecord) -> None:
        """Write a record, in place of the one with its number."""
        ...

    def read(self, memory: MemoryRecord) -> Contents:
        """Return the facts of a memory, and the numbers of those that are damaged."""
        ...

    def holds(self, memory: MemoryRecord, fact: KeptFact) -> bool:
        """Return whether a memory has a fact, verified or not."""
        ...

    def add(self, memory: MemoryRecord, position: int, fact: KeptFact) -> Place:
        """Write a fact that is not there, at the end of the first path that ends in its head or else of a new one."""
        ...

    def usage(self, owner: str | None = None) -> StorageUsage:
        """Return how much the storage holds, of one owner or of all."""
        ...

    def drop(self, *, touched: float, single_used: float, used: float, owner: str, most: int, spared: int = 0) -> int:
        """Delete memories and return how many: those with a single append first, the longest unused first.

        Args:
            touched: Those that were last appended to before this may go.
            single_used: Of those with a single append, those that were last used before this may go.
            used: Of the owner's, those that were last used before this may go.
            owner: Whose memories give way to others.
            most: How many.
            spared: The number of one that stays; 0 for none.
        """
        ...


class Storage(Protocol):
    """Where memories are kept; several processes may use it at once."""

    @property
    def at_once(self) -> int:
        """How many transactions one process runs at once at most."""
        ...

    def transaction(self, *, write: bool) -> AbstractContextManager[Transaction]:
        """Run a block in one transaction, in a thread: all of it happens, or the block fails.

        Raises:
            BackendError: The storage failed to answer.
            InvalidSource: It is damaged, or of another version.
        """
        ...

    def close(self) -> None:
        """Release what is held between transactions, in a thread."""
        ...


class MemoryStore:
    """Keeps networks of facts by handle, each bound to the graphs that its facts are of.

    An append that was answered is never lost, nor kept twice, and the network depends on nothing but the order in
    which appends were committed. Handles are kept as digests: the storage gives none away.

    Args:
        storage: Where they are kept.
        limits: How much is kept, and for how long.
    """

    def __init__(self, storage: Storage, limits: MemoryLimits) -> None:
        self._storage = storage
        self._limits = limits
        # Others need the threads too.
        self._turn = anyio.CapacityLimiter(storage.at_once)

    async def check(self) -> None:
        """Return if memories can be read now.

        Raises:
            BackendError: The storage failed to answer.
            InvalidSource: It is damaged, or of another version.
        """

        def read() -> None:
            with self._storage.transaction(write=False):
                pass

        await self._run(read)

    async def aclose(self) -> None:
        """Release what the storage holds between transactions; the store may be used again."""
        await self._run(self._storage.close)

    async def append(
        self,
        handle: str | None,
        graph: str,
        facts: Sequence[KeptFact],
        *,
        others: Collection[str] = (),
        owner: str = "",
        whole: int = 0,
    ) -> Appended:
        """Append facts in order, all or none. To make room, the owner's memories of an hour without use are deleted.

        Args:
            handle: The memory; None begins one.
            graph: The graph that is served, or the first of several: that of facts without one.
            facts: What is appended.
            others: The other graphs that are served.
            owner: Who appends: the subject of a caller.
            whole: How many facts it may hold for all of it to be returned.

        Raises:
            InvalidRequest: The owner has no memory with this handle, it has facts of a graph that is not served, it
                would grow too large, or the store is full and nothing can be deleted.
            BackendError: The storage failed to answer.
            InvalidSource: It is damaged where the append would need it.
        """
        return await self._run(lambda: self._append(handle, (graph, *others), facts, owner, whole))

    async def read(self, handle: str, graph: str, *, others: Collection[str] = (), owner: str = "") -> Contents:
        """Return what a memory holds; where several graphs are served, each fact names its own.

        Raises:
            InvalidRequest: The owner has no memory with this handle, or it has facts of a graph that is not served.
            BackendError: The storage failed to answer.
            InvalidSource: It is damaged, or what it says of the memory as a whole.
        """
        return await self._run(lambda: self._read(handle, (graph, *others), owner))

    async def _run(self, work: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(work, limiter=self._turn)

    def _append(
        self, handle: str | None, served: Sequence[str], facts: Sequence[KeptFact], owner: str, whole: int
    ) -> Appended:
        with self._storage.transaction(write=True) as transaction:
            now = transaction.now
            if handle is None:
                handle = HANDLE_PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
                number = self._with_room(transaction, owner, memories=1).highest + 1
                graph = next((fact.graph for fact in facts if fact.graph), served[0])
                memory = MemoryRecord(number, _digest(handle), graph, now, now, owner=owner)
            else:
                memory = self._memory(transaction, handle, served, owner)
            grown, added = memory, list[Place]()
            for each in facts:
                name = each.graph or served[0]
                fact = replace(each, graph="" if name == memory.graphs[0] else name)
                if not transaction.holds(grown, fact):
                    added.append(transaction.add(grown, grown.facts, fact))
                    grown = grown.with_fact(added[-1])
            if added:
                self._refuse_growth(memory, grown)
                self._with_room(transaction, owner, size=grown.size - memory.size, spared=memory.number)
            # Where the clock was set back, this would else expire too early once it is right again.
            touched = max(now, transaction.usage().touched)
            grown = grown._replace(touched=touched, used=now, appends=memory.appends + 1)
            transaction.save(grown)
            contents = transaction.read(grown) if grown.facts <= whole else None
        shown = None if contents is None else contents.of(served)
        return Appended(handle, grown, tuple(grown.shown(place, served) for place in added), shown)

    def _read(self, handle: str, served: Sequence[str], owner: str) -> Contents:
        with self._storage.transaction(write=False) as transaction:
            contents = transaction.read(self._memory(transaction, handle, served, owner))
            unnoted_s = transaction.now - contents.memory.used
        if unnoted_s > NOTED_S:
            # Where that fails, the memory was read all the same.
            with suppress(BackendError), self._storage.transaction(write=True) as transaction:
                memory = self._memory(transaction, handle, served, owner)
                transaction.save(memory._replace(used=transaction.now))
        return contents.of(served)

    def _memory(self, transaction: Transaction, handle: str, served: Sequence[str], owner: str) -> MemoryRecord:
        memory = transaction.find(_digest(handle), owner)
        if memory is None or memory.touched < self._oldest(transaction):
            raise InvalidRequest(
                f"No memory has this handle, or its last append is more than {self._limits.age_days:g} days ago, or it "
                "was deleted to make room. Pass the handle unchanged as memory-append gave it, or call memory-append "
                "without one to begin a new memory."
            )
        unserved = [name for name in memory.graphs if name not in served]
        if unserved:
            raise InvalidRequest(
                f"This memory belongs to the graph {in_quotes(unserved[0])}; this server answers from "
                f"{', '.join(map(in_quotes, served))}. Call memory-append without a handle to begin a memory here."
            )
        return memory

    def _refuse_growth(self, memory: MemoryRecord, grown: MemoryRecord) -> None:
        limits, begin = self._limits, "Call memory-append without a handle to begin another memory."
        if grown.facts > limits.facts:
            raise InvalidRequest(
                f"This memory holds {memory.facts:,} of at most {limits.facts:,} facts: "
                f"{grown.facts - memory.facts:,} more do not fit, and nothing was stored. {begin}"
            )
        if grown.size > limits.memory_bytes:
            raise InvalidRequest(
                f"The texts of this memory take {memory.size:,} of at most {limits.memory_bytes:,} bytes: "
                f"{grown.size - memory.size:,} more do not fit, and nothing was stored. {begin}"
            )

    def _with_room(
        self, transaction: Transaction, owner: str, *, memories: int = 0, size: int = 0, spared: int = 0
    ) -> StorageUsage:
        """Delete what expired, and what its owner does not use until there is room; return what is left."""
        limits, now = self._limits, transaction.now
        idle, most = 0.0, _AT_ONCE
        while True:
            dropped = transaction.drop(
                touched=self._oldest(transaction),
                single_used=now - limits.abandoned_days * _DAY_S,
                used=idle,
                owner=owner,
                most=most,
                spared=spared,
            )
            usage = transaction.usage()
            fits = limits.has_room(usage, memories, size)
            if fits and (not owner or limits.has_room_of_caller(transaction.usage(owner), memories, size)):
                return usage
            if idle and not dropped:
                raise self._no_room(owner, full=not fits)
            idle, most = now - IN_USE_S, 1

    def _no_room(self, owner: str, *, full: bool) -> InvalidRequest:
        limits = self._limits
        if full:
            kept = (
                f"This server keeps at most {limits.memories:,} memories (memory.memories) in "
                f"{limits.store_mb:,.10g} MB (memory.store_mb)"
            )
        else:
            kept = (
                f"This server keeps at most {limits.caller_memories:,} memories of one caller (a tenth of "
                f"memory.memories) in {limits.caller_mb:,.10g} MB (hosting.memory_mb)"
            )
        return InvalidRequest(
            f"{kept}, and all {'of yours ' if owner else ''}were used within the last hour. Continue with a memory "
            "that you have, or come back in an hour: the oldest that is not used is deleted."
        )

    def _oldest(self, transaction: Transaction) -> float:
        """Return when a memory must have been appended to that has not expired."""
        return transaction.now - self._limits.age_days * _DAY_S


def _digest(handle: str) -> bytes:
    """Return 32 bytes for a handle, which take as long to find whatever it has in common with one that exists."""
    return hashlib.sha256(handle.strip().encode(errors="surrogatepass")).digest()
