"""The contract of a graph: one small protocol, and optional abilities beside it.

An adapter is asynchronous and batched: a hop of a search costs one call however many entities it is about. Terms that
the graph does not mention are left out of a mapping; they are never an error here. Every answer is bounded.
`kg_adapters.testing.KGAdapterContract` checks all of this.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from kg_adapters.labels import Vocabulary
from kg_adapters.models import (
    Candidate,
    Count,
    Degree,
    Description,
    Direction,
    FeaturePage,
    GraphSchema,
    Joined,
    NeighborPage,
    PathRequest,
    PathsFound,
    RelationCandidate,
    SparqlAnswer,
    ValueUse,
)
from kg_adapters.prefixes import Prefixes
from kg_adapters.profile import GraphProfile, unknown_profile
from kg_adapters.requests import FeatureRequest, NeighborRequest
from kg_adapters.terms import Fact, Iri, Node

if TYPE_CHECKING:
    from kg_adapters.set_requests import Computed, SetRequest


@runtime_checkable
class KGAdapter(Protocol):
    """A knowledge graph that can be read."""

    @property
    def name(self) -> str:
        """What people call this graph."""
        ...

    @property
    def prefixes(self) -> Prefixes:
        """The short forms of its IRIs."""
        ...

    @property
    def vocabulary(self) -> Vocabulary:
        """The relations that name, describe and type its entities."""
        ...

    @property
    def remote(self) -> bool:
        """Whether answers come over a network and may change between two calls."""
        ...

    async def labels(self, terms: Collection[Node]) -> Mapping[Node, str]:
        """Return the labels of entities and relations; terms without a label are left out."""
        ...

    async def describe(self, terms: Collection[Node]) -> Mapping[Node, Description]:
        """Return label, description, types and roles of entities and relations that the graph mentions.

        A term has the role `entity` when it is the head or tail of any statement, `relation` when it stands between.
        Types are sorted by id.
        """
        ...

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        """Return up to `limit` facts around each entity, one page for every entity that the graph mentions.

        The order is total and never changes. A group is a direction, a relation and a kind: outgoing groups before
        incoming, relations by IRI, the edges of a relation before its values. Inside a group the neighbours are sorted
        by `node_key`, values by `literal_key`. A page takes the first of every group, then the second of every group,
        and so on, so that a rare relation is seen beside one with a million edges. With `both`, a triple from an entity
        to itself is listed once, as outgoing.

        Raises:
            InvalidRequest: The cursor is damaged, or belongs to another question or graph.
        """
        ...

    async def degrees(
        self, entities: Sequence[Node], *, direction: Direction = "both", relations: Collection[Iri] | None = None
    ) -> Mapping[Node, Degree]:
        """Return the number of distinct neighbours of each entity that the graph mentions, in all and by relation.

        The relations come in the order of the groups of `neighbors`; only those with neighbours are listed.
        """
        ...

    async def contains(self, facts: Collection[Fact]) -> frozenset[Fact]:
        """Return those of some facts that the graph holds, however many neighbours their ends have.

        Raises:
            BackendError: The graph answered only a part, which leaves others open.
        """
        ...

    async def features(self, request: FeatureRequest) -> Mapping[Node, FeaturePage]:
        """Return the literal-valued attributes of entities, one page for every entity that has any of those asked for.

        They are sorted by relation, then value, then language and datatype.
        """
        ...

    async def search(self, text: str, *, limit: int, type: Node | None = None) -> Sequence[Candidate]:
        """Return the entities that `text` may name, best first, at most `limit`, only instances of `type` if given."""
        ...

    async def find_relations(self, text: str, *, limit: int) -> Sequence[RelationCandidate]:
        """Return the relations and features that `text` may name, best first, each once, at most `limit`.

        Names are labels, aliases and the local part of the IRI. They match as a whole, but for case, accents, blanks
        and punctuation, or else word by word: some words of the name, in any order, long ones even a little misspelt,
        but never by letters that different words share. Of the same name labels come before aliases.
        """
        ...

    async def schema(self) -> GraphSchema:
        """Return the definition of the graph."""
        ...

    async def profile(self) -> GraphProfile:
        """Return which facts the classes of the graph have and how often, and which relations are inverse.

        Every adapter counts alike: an instance of a class is one of its subclasses too, and has a relation in one
        direction where at least one edge or value says so. Where less is known, the profile says so by `complete`.
        """
        ...

    async def aclose(self) -> None:
        """Give back everything that the adapter holds; calling it twice is harmless."""
        ...


@runtime_checkable
class SupportsLearning(Protocol):
    """A graph whose profile takes too long to wait for."""

    async def learn_profile(self, *, when_asked: bool = False) -> None:
        """Learn what `profile` then tells, as far as it can be learned, which may take minutes.

        Args:
            when_asked: Whether to wait until somebody asks for the profile, and to try again later where the graph
                does not answer.

        Raises:
            BackendUnavailable: The graph cannot be reached; never with `when_asked`.
        """
        ...

    def known_profile(self) -> GraphProfile:
        """Return what is known of the profile now, without asking the graph; it counts as asked for."""
        ...


async def known_profile(graph: KGAdapter) -> GraphProfile:
    """Return the profile of a graph, or what is known of it now where a request would tell more."""
    if isinstance(graph, SupportsLearning):
        return graph.known_profile()
    return unknown_profile() if graph.remote else await graph.profile()


@runtime_checkable
class SupportsPaths(Protocol):
    """A graph with a path search of its own, faster than the generic one and equal to it."""

    async def paths(self, request: PathRequest) -> PathsFound:
        """Return the best simple paths between two entities.

        Paths walk edges in either direction and visit no node twice; two edges between the same nodes make two paths,
        unless they say the same over the request's inverses. An entity that the graph does not mention has none.

        Raises:
            InvalidRequest: `max_hops` is not 1 to 4, `limit` is below 1, or source and target are the same.
        """
        ...


@runtime_checkable
class SupportsJoins(Protocol):
    """A graph that finds what links two nodes without sending all that is around them."""

    async def joined(self, source: Node, target: Node, hops: int, *, without: Collection[Iri] = ()) -> Joined:
        """Return the facts on simple paths of exactly so many edges, in either direction, as many as it can find.

        Args:
            source: One end.
            target: The other end.
            hops: How many edges, from 1 to 3.
            without: Relations over which none leads.

        Raises:
            BackendError: There is no answer.
        """
        ...

    async def neighbor_counts(self, entities: Collection[Node]) -> Mapping[Node, Count]:
        """Return how many distinct neighbours entities have, as `KGAdapter.degrees` counts them; none of the unlinked.

        Raises:
            BackendError: There is no answer.
        """
        ...


@runtime_checkable
class SupportsSparql(Protocol):
    """A graph that answers read-only SPARQL 1.1."""

    async def select(self, query: str, *, timeout_s: float, max_rows: int) -> SparqlAnswer:
        """Run a SELECT, ASK, CONSTRUCT or DESCRIBE query.

        Raises:
            InvalidRequest: The query is not SPARQL, or does more than read this graph.
            BackendTimeout: It was stopped after `timeout_s` seconds.
        """
        ...


@runtime_checkable
class SupportsSets(Protocol):
    """A graph that works out expressions over sets by itself, exactly and in as few requests as it can."""

    async def compute(self, request: "SetRequest") -> "Computed":
        """Return what is asked about sets, as `kg_adapters.algebra` and `kg_adapters.set_requests` define it.

        Raises:
            Unsupported: The graph cannot work out this expression.
            BackendTimeout: It took longer than `timeout_s`.
        """
        ...


@runtime_checkable
class SupportsValueSearch(Protocol):
    """A graph that finds entities by a whole value of theirs."""

    async def uses_of_values(self, texts: Collection[str], *, limit: int) -> Mapping[str, Sequence[ValueUse]]:
        """Return which relations have texts as values, those that most entities have first; names are no values.

        Texts match as a whole and without regard to case, as far as the graph can tell, and only where nothing does
        without accents. Those that are no value are left out, as are all of them where there is no answer in time.

        Args:
            texts: The texts.
            limit: The most entities that are named for each relation.
        """
        ...


@runtime_checkable
class SupportsSearchNote(Protocol):
    """A graph whose search has limits that those who read its results should know."""

    @property
    def search_note(self) -> str:
        """How `search` finds entities, and what it may miss: a full sentence."""
        ...


@runtime_checkable
class SupportsFeatureNote(Protocol):
    """A graph whose features have limits that those who read them should know."""

    @property
    def feature_note(self) -> str:
        """What `features` leaves out where no relation is named: a full sentence, or nothing."""
        ...


@runtime_checkable
class SupportsEngineNote(Protocol):
    """A graph in an engine that is recognised when it is opened."""

    @property
    def engine_note(self) -> str:
        """As which engine it is asked, and which full-text index is used: a clause for its owner, or nothing."""
        ...


@runtime_checkable
class SupportsRevision(Protocol):
    """A graph whose engine reports when another index has taken the place of the one that it served."""

    async def revision(self) -> str:
        """Return what tells the graph, as it is now, from what it was before; it is read anew now and then."""
        ...


@runtime_checkable
class SupportsSnapshots(Protocol):
    """A graph whose content another one may take the place of while it is open."""

    def snapshot(self, *, newest: bool = False) -> AbstractAsyncContextManager[None]:
        """Have everything that is asked inside answered by one and the same state of the graph.

        What the replaced state has not read yet and cannot read any more raises `GraphReplaced`; then everything that
        was asked belongs asked again, in another snapshot.

        Args:
            newest: Whether to wait for the state that is taking the place of the present one.
        """
        ...
