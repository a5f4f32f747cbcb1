"""What an observation starts from, how far it looks, and what it found."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kg_adapters.terms import Fact, Iri, Node
from kg_server.observation.groups import Group
from kg_server.observation.wording import Inquiry

MAX_EXPANDED: Final = 400
"""How many entities one hop expands at most, all seeds together."""


@dataclass(frozen=True, slots=True)
class Seed:
    """An entity to start from, what is asked about it, and whether it has a label."""

    entity: Node
    asked: Inquiry
    labelled: bool = False


@dataclass(frozen=True, slots=True)
class Reach:
    """How far and how wide to look.

    Args:
        hops: How many turns to take; D in the paper.
        top_n: How many triples of each turn and seed to keep; N in the paper.
        top_percent: From what share of these the next turn goes on; P in the paper.
        to_the_letter: Whether to search as the paper does: on from the best triples, whatever led there, and through
            hubs.
        timeout_s: After how many seconds to stop with what was found.
    """

    hops: int = 3
    top_n: int = 50
    top_percent: float = 10.0
    to_the_letter: bool = False
    timeout_s: float = 10.0

    def width(self, seeds: int) -> int:
        """Return from how many triples of one seed the next turn goes on."""
        return max(1, min(int(self.top_n * self.top_percent / 100), MAX_EXPANDED // seeds))


@dataclass(frozen=True, slots=True)
class Observed:
    """A triple, how like the question it and what led there are, and at which hop from a seed it was found."""

    fact: Fact
    score: float
    hop: int


@dataclass(frozen=True, slots=True)
class Observation:
    """What a search found.

    Args:
        found: The triples, best first; equal ones by their ids.
        groups: The groups that these are of, and every group of a seed, the best first.
        labels: The labels of what the triples mention, but those of the seeds.
        held: What nodes hold that have no name and only hold facts together.
        sampled: The entities of which not every edge was looked at.
        edges: How many edges were looked at.
        hops: How many turns were finished.
        stopped: Whether time ran out.
    """

    found: tuple[Observed, ...]
    groups: tuple[Group, ...]
    labels: Mapping[Node, str]
    held: Mapping[Node, tuple[Fact, ...]]
    sampled: tuple[Node, ...]
    edges: int
    hops: int
    stopped: bool

    @property
    def stated(self) -> frozenset[Iri]:
        """The relations of what is stated around the seeds, in either direction."""
        return frozenset(group.relation for group in self.groups if group.hop == 1)
