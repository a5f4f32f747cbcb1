"""What every peer answers, and the query that those who speak SPARQL find paths with."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final, Protocol, TypeAlias, runtime_checkable

Row: TypeAlias = tuple[str, str, str]
Degrees: TypeAlias = Counter[tuple[str, str]]

LABEL: Final = "http://www.w3.org/2000/01/rdf-schema#label"
MOST_PATHS: Final = 100
"""How many paths are counted; more are not looked for."""


class PeerGraph(Protocol):
    """A graph in the hands of another library; entities and relations are IRIs."""

    @property
    def name(self) -> str:
        """What people call the library."""
        ...

    def rows(self, entity: str, limit: int) -> int:
        """Return how many triples around an entity it lists, at most `limit`, reading the labels of all terms."""
        ...

    def degrees(self, entity: str) -> Degrees:
        """Return the number of neighbours by relation and direction; an edge to itself counts as outgoing."""
        ...

    def paths(self, source: str, target: str, max_hops: int) -> int:
        """Return how many simple paths there are, walked in either direction, at most `MOST_PATHS`."""
        ...


@runtime_checkable
class GivesNodes(Protocol):
    """A graph in the hands of a library that hands out nodes."""

    @property
    def name(self) -> str:
        """What people call the library."""
        ...

    def heads(self, relation: str, tails: Sequence[str]) -> set[object]:
        """Return the nodes that a relation leads from to any of some others."""
        ...

    def tails(self, head: object, relation: str) -> set[object]:
        """Return what a relation leads to from a node."""
        ...


@runtime_checkable
class AnswersSparql(Protocol):
    """A graph in the hands of a library that answers SPARQL in reasonable time."""

    @property
    def name(self) -> str:
        """What people call the library."""
        ...

    def numbers(self, query: str) -> list[int]:
        """Return the numbers that a query selects as its only column."""
        ...


def paths_query(source: str, target: str, max_hops: int) -> str:
    """Return the SPARQL query for all simple paths: one pattern for each length and each way to point the edges."""
    patterns = [
        _pattern(source, target, ways)
        for hops in range(1, max_hops + 1)
        for ways in product((True, False), repeat=hops)
    ]
    return f"SELECT * WHERE {{ {' UNION '.join(patterns)} }} LIMIT {MOST_PATHS}"


def _pattern(source: str, target: str, ways: tuple[bool, ...]) -> str:
    inner = [f"?n{number}" for number in range(1, len(ways))]
    nodes = [f"<{source}>", *inner, f"<{target}>"]
    triples = [
        f"{nodes[step]} ?r{step} {nodes[step + 1]} ." if forward else f"{nodes[step + 1]} ?r{step} {nodes[step]} ."
        for step, forward in enumerate(ways)
    ]
    return f"{{ {' '.join(triples)} {' '.join(_conditions(nodes))} }}"


def _conditions(nodes: list[str]) -> Iterator[str]:
    for place, node in enumerate(nodes[1:-1], start=1):
        yield f"FILTER(!isLiteral({node}))"
        for other in (*nodes[:place], nodes[-1]):
            yield f"FILTER({node} != {other})"
