"""What adapters answer: frozen values, every one bounded and honest about what it leaves out."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self, TypeAlias, TypeGuard
from typing import Literal as Choice

from kg_adapters.prefixes import Prefixes
from kg_adapters.terms import Attribute, Fact, Iri, Literal, Node, Term, Triple, literal_key
from kg_boundary.shown import counted

EdgeDirection: TypeAlias = Choice["out", "in"]
Direction: TypeAlias = Choice["out", "in", "both"]
Match: TypeAlias = Choice["id", "label", "alias", "text", "meaning", "value"]
Role: TypeAlias = Choice["entity", "relation"]


@dataclass(frozen=True, slots=True)
class Count:
    """A number of things: exact, or known only to be at least `value`."""

    value: int
    exact: bool = True

    @classmethod
    def sum(cls, counts: Iterable[Self]) -> Self:
        """Return how many some counts are together: exact where each of them is."""
        every = tuple(counts)
        return cls(sum(each.value for each in every), all(each.exact for each in every))

    def at_most(self, number: int) -> bool:
        """Return whether there are certainly no more than a number."""
        return self.exact and self.value <= number

    def __str__(self) -> str:
        if self.exact:
            return f"{self.value:,}"
        return f"at least {self.value:,}" if self.value else "uncounted"

    def of(self, one: str, many: str | None = None) -> str:
        """Return it with its noun, as in `1 triple`, `at least 2 triples` and `an unknown number of triples`."""
        if not self.exact and not self.value:
            return f"an unknown number of {many or one + 's'}"
        return f"{'' if self.exact else 'at least '}{counted(self.value, one, many)}"


@dataclass(frozen=True, slots=True)
class Description:
    """What a term is: its chosen label and description, its types, and whether it serves as entity or relation."""

    label: str | None
    description: str | None
    types: tuple[Node, ...]
    roles: frozenset[Role]


@dataclass(frozen=True, slots=True)
class NeighborPage:
    """The facts around one entity, in the order that `KGAdapter.neighbors` promises.

    `total` counts every fact that was asked for, shown or not. `cursor` continues behind the last one; it is None at
    the end. `truncated` is true when facts are missing from this page, behind a cursor or by sampling.
    """

    facts: tuple[Fact, ...]
    total: Count
    truncated: bool
    cursor: str | None = None

    @property
    def triples(self) -> tuple[Triple, ...]:
        """The edges among the facts."""
        if _are_edges(self.facts):
            return self.facts
        return tuple(fact for fact in self.facts if isinstance(fact, Triple))


@dataclass(frozen=True, slots=True)
class RelationCount:
    """How many distinct neighbours an entity has over one relation, in one direction."""

    relation: Iri
    direction: EdgeDirection
    count: Count


@dataclass(frozen=True, slots=True)
class Degree:
    """How connected an entity is: distinct neighbours over everything asked for, and the same by relation."""

    neighbors: Count
    relations: tuple[RelationCount, ...]

    @property
    def exact(self) -> bool:
        """Whether nothing is missing: no relation, and no neighbour of any."""
        return self.neighbors.exact and all(each.count.exact for each in self.relations)

    @property
    def is_none(self) -> bool:
        """Whether there is certainly no neighbour."""
        return not self.relations and self.neighbors.at_most(0)


@dataclass(frozen=True, slots=True)
class Feature:
    """A literal-valued attribute of an entity."""

    relation: Iri
    value: Literal

    @property
    def order(self) -> tuple[Iri, tuple[str, str, str]]:
        """What features are sorted by: relation, then value."""
        return self.relation, literal_key(self.value)


@dataclass(frozen=True, slots=True)
class FeaturePage:
    """An entity's features, by relation and then by value, and how many there are in all."""

    features: tuple[Feature, ...]
    total: Count


NO_FEATURES: Final = FeaturePage((), Count(0))


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entity that a search found: `score` from 0 to 1, and which text matched in what way."""

    entity: Node
    score: float
    matched_by: Match
    matched_text: str


@dataclass(frozen=True, slots=True)
class ValueUse:
    """Which entities have a value over one relation.

    Args:
        relation: The relation.
        value: The value as the graph writes it, for one of them.
        bearers: Those that have it, as many as were asked for, by id.
        count: How many there are.
    """

    relation: Iri
    value: Literal
    bearers: tuple[Node, ...]
    count: Count


@dataclass(frozen=True, slots=True)
class RelationCandidate:
    """A relation or feature that a text may name: `score` from 0 to 1, and which of its names matched in what way.

    It is matched by `label` or `alias` where the text is exactly this name, and by `text` where it is like it. The
    local part of its IRI counts as an alias.
    """

    relation: Iri
    score: float
    matched_by: Match
    matched_text: str


@dataclass(frozen=True, slots=True)
class ClassSummary:
    """A class, with the number of its instances and one of them."""

    iri: Node
    label: str | None
    instances: Count
    example: Node | None


@dataclass(frozen=True, slots=True)
class RelationSummary:
    """A relation between entities, with the number of its triples and one of them."""

    iri: Iri
    label: str | None
    triples: Count
    example: Triple | None


@dataclass(frozen=True, slots=True)
class FeatureSummary:
    """A relation to literals, with the number of its statements and one value."""

    iri: Iri
    label: str | None
    statements: Count
    example: Literal | None


@dataclass(frozen=True, slots=True)
class GraphSchema:
    """The definition of a graph. Each list is sorted by count, the largest first, then by IRI.

    `complete` is false where the graph is too large to list everything; `note` says what else it lacks, in full
    sentences.
    """

    entities: Count
    triples: Count
    classes: tuple[ClassSummary, ...]
    relations: tuple[RelationSummary, ...]
    features: tuple[FeatureSummary, ...]
    prefixes: Prefixes
    complete: bool = True
    note: str = ""


@dataclass(frozen=True, slots=True)
class PathRequest:
    """A question for the paths between two entities.

    Args:
        source: Where the paths start.
        target: Where they end; not the source.
        max_hops: The most edges a path may have, 1 to 4.
        limit: The most paths to return.
        avoid_hubs: Do not pass through an inner node with more than `hub_degree` distinct neighbours, nor over the
            graph's type relations. A direct edge between source and target always counts.
        hub_degree: The most distinct neighbours that a node may have without being a hub.
        max_expansions: How many edges may be looked at before the search stops.
        timeout_s: How many seconds it may take before the search stops.
        inverses: Pairs of relations that say the same in opposite directions; a symmetric one is paired with itself.
            Of paths that differ only in which of the two they walk, the first is returned.
    """

    source: Node
    target: Node
    max_hops: int = 3
    limit: int = 10
    avoid_hubs: bool = True
    hub_degree: int = 1_000
    max_expansions: int = 2_000_000
    timeout_s: float = 10.0
    inverses: tuple[tuple[Iri, Iri], ...] = ()


@dataclass(frozen=True, slots=True)
class Path:
    """A walk that visits no node twice: `nodes[i]` and `nodes[i + 1]` are the ends of `triples[i]`, in either order.

    `inner_degree` is the sum of the distinct neighbours of the inner nodes: the smaller, the more telling the path.
    """

    nodes: tuple[Node, ...]
    triples: tuple[Triple, ...]
    inner_degree: int


@dataclass(frozen=True, slots=True)
class PathsFound:
    """The best paths: fewer hops first, then the smaller `inner_degree`, then the ids along the path.

    `total` counts every path within the request's rules, `stopped` says what ended the search early,
    `skipped_hubs` which nodes were not passed through (the first 20, by degree, largest first), `unnamed` whether
    blank nodes were met that the graph cannot be asked about, `twins` how many more paths of `total` say the same
    as these over inverse relations, and `uncounted` whether some may pass through hubs whose neighbours were not all
    counted.
    """

    paths: tuple[Path, ...]
    total: Count
    stopped: Choice["expansions", "time"] | None
    skipped_hubs: tuple[Node, ...]
    unnamed: bool = False
    twins: int = 0
    uncounted: bool = False

    @property
    def exhaustive(self) -> bool:
        """Whether every path that exists was counted: nothing stopped the search and all nodes were passed through."""
        return self.stopped is None and not self.skipped_hubs and not self.unnamed and not self.uncounted


@dataclass(frozen=True, slots=True)
class Joined:
    """The facts on the simple paths of one length between two nodes.

    Args:
        facts: Each once.
        whole: Whether they are those of every such path.
    """

    facts: tuple[Triple, ...]
    whole: bool


@dataclass(frozen=True, slots=True)
class SparqlAnswer:
    """The answer to a SPARQL query.

    SELECT gives `variables` and rows with None where a variable is unbound; ASK gives `truth`; CONSTRUCT and DESCRIBE
    give the rows subject, predicate, object under those three names. `named` holds the IRIs that the query's patterns
    name, `note` a sentence on what this graph cannot answer of the query, if anything, and `rounded` the relations that
    it may have read of which the engine holds numbers of too many digits as doubles.
    """

    form: Choice["SELECT", "ASK", "CONSTRUCT", "DESCRIBE"]
    variables: tuple[str, ...]
    rows: tuple[tuple[Term | None, ...], ...]
    truncated: bool
    truth: bool | None = None
    named: tuple[Iri, ...] = ()
    note: str = ""
    rounded: tuple[Iri, ...] = ()


def _are_edges(facts: tuple[Fact, ...]) -> TypeGuard[tuple[Triple, ...]]:
    return Attribute not in map(type, facts)
