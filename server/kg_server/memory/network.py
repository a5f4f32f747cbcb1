"""The network of paths that a memory is (ODA, section 2.3): a pure value that facts are appended to."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias

from kg_adapters.terms import Iri, Literal, Node, Term

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


FactPath: TypeAlias = tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Network:
    """Paths of facts, each fact's head being the tail of the fact before it; no statement stands in it twice."""

    paths: tuple[FactPath, ...] = ()

    def places(self) -> Iterator[Place]:
        """Give every fact with its place, path by path."""
        for number, path in enumerate(self.paths):
            for offset, fact in enumerate(path):
                yield Place(number, offset, fact)

    def ends(self) -> Iterator[Place]:
        """Give the last fact of every path that may go on: a value ends its path for good."""
        for number, path in enumerate(self.paths):
            if not isinstance(path[-1].tail, Literal):
                yield Place(number, len(path) - 1, path[-1])

    def extended(self, facts: Iterable[Fact]) -> "Network":
        """Return the network with facts appended, one after the other (ODA, section 2.3).

        The first path whose last tail is a fact's head gets it; where there is none, it starts a new path. A statement
        that the network holds changes nothing. What stands in a path never moves.
        """
        grown = _Growth(self.paths)
        for fact in facts:
            grown.add(fact)
        return grown.network()


class _Growth:
    """A network in the making, with the paths that end in each node at hand."""

    def __init__(self, paths: Iterable[FactPath]) -> None:
        self._paths = [list(path) for path in paths]
        self._held = {fact.statement for path in self._paths for fact in path}
        self._ends: dict[Node, list[int]] = {}
        for number, path in enumerate(self._paths):
            self._end(number, path[-1])

    def add(self, fact: Fact) -> None:
        if fact.statement in self._held:
            return
        self._held.add(fact.statement)
        open_here = self._ends.get(fact.head)
        if open_here:
            number = heappop(open_here)
            self._paths[number].append(fact)
        else:
            number = len(self._paths)
            self._paths.append([fact])
        self._end(number, fact)

    def network(self) -> Network:
        return Network(tuple(map(tuple, self._paths)))

    def _end(self, number: int, last: Fact) -> None:
        if not isinstance(last.tail, Literal):
            heappush(self._ends.setdefault(last.tail, []), number)
