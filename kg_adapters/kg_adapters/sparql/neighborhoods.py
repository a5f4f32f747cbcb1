"""The facts around entities, asked for in as few requests as can be.

One request brings the counts of all groups and every far end of the small ones. Only a page that shows far ends of
a large group needs a second one, which names the places it wants; the hub itself is never read.
"""

import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, Self

from kg_adapters.models import Count, Degree, Feature, FeaturePage, NeighborPage, RelationCount
from kg_adapters.requests import (
    FeatureRequest,
    NeighborRequest,
    SurroundingsRequest,
    cursor_at,
    offset_of,
    past_the_end,
)
from kg_adapters.sparql.asking import QueryAsker, part_of_an_answer
from kg_adapters.sparql.queries.edges import MOST_HELD_ROWS, EdgeQueries, Fill, GroupKey, GroupSpan, Scope
from kg_adapters.sparql.rows import FactsAround, Texts, ValueRows, read_around, rows
from kg_adapters.sparql.solutions import Solutions
from kg_adapters.surroundings import Surroundings, surroundings_of
from kg_adapters.terms import Attribute, BlankNode, Fact, Iri, Literal, Node, Term, Triple, literal_key, node_key

MOST_NODES: Final = 20_000

_ROWS_OF_A_FACT: Final = 2


@dataclass(frozen=True, slots=True)
class _Opened:
    """What one node holds, and what its terms are called."""

    members: Mapping[GroupKey, Set[Term]]
    texts: Mapping[Node, Texts]


class OpenedNodes:
    """Caches the facts of blank nodes; the oldest are evicted first.

    Args:
        unspoken: The relations to names and descriptions, which are no facts unless they are asked for.
        most: How many nodes to cache.
    """

    def __init__(self, unspoken: Collection[Iri], most: int = MOST_NODES) -> None:
        self._unspoken = unspoken
        self._most = most
        self._nodes: OrderedDict[BlankNode, _Opened] = OrderedDict()

    def learn(self, found: FactsAround) -> None:
        """Cache the blank nodes whose facts an answer includes, unless some of these may be missing."""
        opened: defaultdict[BlankNode, dict[GroupKey, Set[Term]]] = defaultdict(dict)
        for (entity, group), members in found.members.items():
            if isinstance(entity, BlankNode):
                opened[entity][group] = members
        facts = sum(len(members) for groups in opened.values() for members in groups.values())
        if not found.complete or facts * _ROWS_OF_A_FACT >= MOST_HELD_ROWS:
            return
        for node, groups in opened.items():
            terms = (term for group, members in groups.items() for term in (group.relation, *members))
            nodes = {term for term in terms if not isinstance(term, Literal) and term in found.texts}
            self._nodes[node] = _Opened(groups, {term: found.texts[term] for term in nodes})
        while len(self._nodes) > self._most:
            self._nodes.popitem(last=False)

    def recall(self, nodes: Collection[Node], scope: Scope) -> FactsAround:
        """Return what some nodes hold of what is asked for, as an answer about them would; of others nothing."""
        found = FactsAround()
        for node in nodes:
            opened = self._nodes.get(node) if isinstance(node, BlankNode) else None
            if opened is not None:
                found.known.add(node)
                found.texts.update(opened.texts)
                for group, members in opened.members.items():
                    if self._counts(group, scope):
                        found.members[node, group].update(members)
                        found.counts[node][group] = len(members)
        return found

    def _counts(self, group: GroupKey, scope: Scope) -> bool:
        if scope.relations is None:
            return group.side in scope.sides and not (group.literal and group.relation in self._unspoken)
        return group.side in scope.sides and group.relation in scope.relations


@dataclass(frozen=True, slots=True)
class Held:
    """Some far ends of a group in their order, from the place `start` on."""

    ends: Sequence[Term]
    start: int = 0

    @classmethod
    def of(cls, ends: Iterable[Term], start: int = 0) -> Self:
        """Return far ends as the protocol orders them."""
        return cls(sorted(ends, key=_order), start)

    def at(self, place: int) -> Term | None:
        """Return the far end in a place; None where it is not held."""
        inside = 0 <= place - self.start < len(self.ends)
        return self.ends[place - self.start] if inside else None


@dataclass(frozen=True)
class PagePlan:
    """What one page of an entity shows.

    Args:
        entity: Whose facts.
        counts: How many far ends each group has.
        sizes: How many of them are listed.
        query: What was asked.
        graph: What people call the graph.
        offset: How many facts the pages before showed.

    Raises:
        InvalidRequest: There are no more than `offset`.
    """

    entity: Node
    counts: Mapping[GroupKey, int]
    sizes: Mapping[GroupKey, int]
    query: NeighborRequest
    graph: str
    offset: int = 0
    places: Sequence[tuple[GroupKey, int]] = field(init=False)

    def __post_init__(self) -> None:
        if self.offset and self.offset >= self.listed:
            raise past_the_end()
        shown = islice(_in_turns(self.sizes), self.offset, self.offset + self.query.limit)
        object.__setattr__(self, "places", tuple(shown))

    @property
    def listed(self) -> int:
        """How many facts all pages show together."""
        return sum(self.sizes.values())

    def spans(self) -> Iterator[GroupSpan]:
        """Yield the part of each group that the page shows."""
        first: dict[GroupKey, int] = {}
        last: dict[GroupKey, int] = {}
        for group, place in self.places:
            first.setdefault(group, place)
            last[group] = place
        for group, start in first.items():
            yield GroupSpan(self.entity, group, start, last[group] + 1)

    def page(self, held: Mapping[GroupKey, Held], *, exact: bool) -> NeighborPage:
        """Return the page; a fact whose far end is not held, because it vanished meanwhile, is left out.

        Args:
            held: The far ends by group.
            exact: Whether the counts are all there is.
        """
        nothing = Held(())
        found = ((group, held.get(group, nothing).at(place)) for group, place in self.places)
        facts = tuple(self._fact(group, far) for group, far in found if far is not None)
        total, end = sum(self.counts.values()), self.offset + self.query.limit
        missing = end < self.listed or self.listed < total or len(facts) < len(self.places) or not exact
        cursor = cursor_at(end, self.query, self.entity, self.graph) if end < self.listed else None
        return NeighborPage(facts, Count(total, exact=exact), truncated=missing, cursor=cursor)

    def _fact(self, group: GroupKey, far: Term) -> Fact:
        if isinstance(far, Literal):
            return Attribute(self.entity, group.relation, far)
        if group.inverse:
            return Triple(far, group.relation, self.entity)
        return Triple(self.entity, group.relation, far)


def _in_turns(sizes: Mapping[GroupKey, int]) -> Iterator[tuple[GroupKey, int]]:
    """Yield the first place of every group, then the second of those that have one, and so on."""
    going, place = sorted(group for group, size in sizes.items() if size), 0
    while going:
        for group in going:
            yield group, place
        place += 1
        going = [group for group in going if sizes[group] > place]


def _order(term: Term) -> tuple[str, str, str]:
    return literal_key(term) if isinstance(term, Literal) else (node_key(term), "", "")


MAX_LABELS: Final = 100_000

EXPIRY_S: Final = 600.0


class LabelMemory:
    """Caches labels, and which terms have none, for a while; the least recently added is evicted first.

    Args:
        max_labels: How many terms to cache.
        expiry_s: After how many seconds a label expires.
        clock: Returns the time, in seconds.
    """

    def __init__(
        self,
        max_labels: int = MAX_LABELS,
        expiry_s: float = EXPIRY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_labels = max_labels
        self._expiry_s = expiry_s
        self._clock = clock
        self._labels: OrderedDict[Node, tuple[float, str | None]] = OrderedDict()

    def learn(self, labels: Mapping[Node, str | None]) -> None:
        """Add labels."""
        end = self._clock() + self._expiry_s
        for term, label in labels.items():
            self._labels[term] = (end, label)
            self._labels.move_to_end(term)
        while len(self._labels) > self._max_labels:
            self._labels.popitem(last=False)

    def clear(self) -> None:
        """Evict all labels."""
        self._labels.clear()

    def recall(self, terms: Collection[Node]) -> dict[Node, str | None]:
        """Return the cached labels of terms; None for a term that is known to have no label."""
        now = self._clock()
        found: dict[Node, str | None] = {}
        for term in terms:
            end, label = self._labels.get(term, (now, None))
            if end > now:
                found[term] = label
        return found


BATCH: Final = 1_000
"""About how many entities one request may be."""

FEWEST_ROWS, MAX_ROWS = 5_000, 50_000
"""Between which bounds the neighbours of one request lie."""

LABELLED_EDGES: Final = 1_000
"""Up to how many edges an answer includes labels: callers that show so few show their labels."""

WHOLE_GROUP: Final = 50
"""Groups of up to so many neighbours are fetched whole, even where a page shows fewer."""

SPANS: Final = 25
"""How many parts of groups one request may want; engines take some milliseconds to plan each."""

STATED: Final = 50
"""About how many triples one request may ask whether they are there."""

NAMED_GROUPS: Final = 12
"""Up to how many groups are asked for by their places at once, when their relations are named."""

SAMPLED_GROUPS: Final = 8
"""Of how many large groups the surroundings of a frontier show as many neighbours as were wished for, about."""

_Holdings = dict[Node, dict[GroupKey, Held]]


class EdgeReader:
    """Reads edges.

    Args:
        asker: What asks the endpoint.
        queries: What writes the queries.
        memory: Caches the labels that answers include.
        graph: Returns what tells the graph, as it is now, from others.
        value_rows: What makes a reader for the rows about values, where they are not read as they are.
    """

    def __init__(
        self,
        asker: QueryAsker,
        queries: EdgeQueries,
        memory: LabelMemory,
        graph: Callable[[], str],
        value_rows: Callable[[], ValueRows] | None = None,
    ) -> None:
        self._asker = asker
        self._queries = replace(queries, blank_nodes=False)
        self._memory = memory
        self._graph = graph
        self._value_rows = value_rows
        self._opened = OpenedNodes(queries.texts.vocabulary.texts)

    async def neighbors(self, request: NeighborRequest) -> dict[Node, NeighborPage]:
        """Return a page for each entity that the graph mentions, as `KGAdapter.neighbors` does."""
        offset = offset_of(request, self._graph())
        opened = self._opened.recall(request.entities, _scope(request))
        held = _holdings(opened, Fill())
        plans = (_plan(opened, node, request, self._graph(), offset) for node in sorted(opened.known, key=node_key))
        pages = {plan.entity: plan.page(held.get(plan.entity, {}), exact=True) for plan in plans}
        for batch in self._batches(dict.fromkeys(request.entities)):
            pages |= await self._pages(batch, request, offset)
        return pages

    async def opened_features(self, request: FeatureRequest) -> dict[Node, FeaturePage]:
        """Return the values of those entities that no query can be about, as far as an answer included them."""
        nodes = tuple(each for each in request.entities if not self._asker.can_name(each))
        if not nodes:
            return {}
        wanted = NeighborRequest(nodes, "out", request.relations, request.limit, values=True)
        return {node: _values_of(page) for node, page in (await self.neighbors(wanted)).items()}

    async def degrees(self, entities: Iterable[Node], scope: Scope) -> dict[Node, Degree]:
        """Return the degree of each entity that the graph mentions, as `KGAdapter.degrees` does."""
        degrees: dict[Node, Degree] = {}
        for batch in self._batches(dict.fromkeys(entities)):
            answer = await self._asker.ask(self._queries.degrees(batch, scope))
            found = await read_around(answer, batch, self._queries)
            _check_silence(answer, found, batch)
            degrees |= {entity: _degree(found, entity, scope) for entity in batch if _is_known(found, entity)}
        return degrees

    async def contains(self, facts: Iterable[Fact]) -> frozenset[Fact]:
        """Return the facts that the graph holds, as `KGAdapter.contains` does; one request for `STATED` of them."""
        asked = [each for each in dict.fromkeys(facts) if self._can_ask_for(each)]
        found: list[Fact] = []
        for first in range(0, len(asked), STATED):
            batch = asked[first : first + STATED]
            answer = await self._asker.ask_whole(self._queries.stated(batch))
            held = {(row.text("n"), row.term("v")) for row in rows(answer)}
            found += (fact for place, fact in enumerate(batch) if (str(place), _stated(fact)) in held)
        return frozenset(found)

    async def surroundings(self, request: SurroundingsRequest) -> Surroundings:
        """Return facts with their labels by one request for a batch of entities.

        Of the groups with more than `per_relation` neighbours it shows those that sort first among all such neighbours,
        so that one hub beside another may show fewer than it could.
        """
        asked, most = tuple(dict.fromkeys(request.entities)), request.per_relation
        query = NeighborRequest(asked, limit_per_relation=most, limit=request.per_entity, values=request.values)
        found = self._opened.recall(asked, _scope(query))
        for batch in self._batches(asked):
            fill = Fill(most, _row_limit(len(batch), query.limit), SAMPLED_GROUPS * most)
            found = found.merged(await self._around(batch, _scope(query), fill, labelled=True))
        pages = {entity: _sample(found, entity, query) for entity in asked if _is_known(found, entity)}
        labels = {term: label for term, label in self._labels(found).items() if label is not None}
        return surroundings_of(asked, pages, labels)

    async def _pages(self, batch: Sequence[Node], query: NeighborRequest, offset: int) -> dict[Node, NeighborPage]:
        scope = _scope(query)
        labelled = len(batch) * query.limit <= LABELLED_EDGES
        fill = _fill(batch, scope, query, offset, whole_values=self._queries.whole_values)
        found = await self._around(batch, scope, fill, labelled=labelled)
        plans = [_plan(found, entity, query, self._graph(), offset) for entity in batch if _is_known(found, entity)]
        held = _holdings(found, fill)
        missing = [span for plan in plans for span in plan.spans() if not _holds(held, span)]
        for first in range(0, len(missing), SPANS):
            wanted = missing[first : first + SPANS]
            more = await self._spans(wanted, batch, scope, labelled=labelled)
            for entity, groups in _holdings(more, Fill(spans=tuple(wanted))).items():
                held.setdefault(entity, {}).update(groups)
        return {
            plan.entity: plan.page(held.get(plan.entity, {}), exact=found.is_exact(plan.entity, scope.sides))
            for plan in plans
        }

    async def _spans(
        self, wanted: Sequence[GroupSpan], batch: Sequence[Node], scope: Scope, *, labelled: bool
    ) -> FactsAround:
        def write(queries: EdgeQueries) -> str:
            return queries.spans(wanted, scope, labelled=labelled)

        return await self._read(write, batch, labelled=labelled)

    async def _around(self, batch: Sequence[Node], scope: Scope, fill: Fill, *, labelled: bool) -> FactsAround:
        def write(queries: EdgeQueries) -> str:
            return queries.around(batch, scope, fill, labelled=labelled)

        return await self._read(write, batch, labelled=labelled, about_all=True)

    async def _read(
        self, write: Callable[[EdgeQueries], str], batch: Sequence[Node], *, labelled: bool, about_all: bool = False
    ) -> FactsAround:
        """Ask a query; once an answer has a blank node, this query and all later ones ask for their facts too."""
        answer = await self._asker.ask(write(self._queries))
        values = None if self._value_rows is None else self._value_rows()
        found = await read_around(answer, batch, self._queries, values)
        opening = replace(self._queries, blank_nodes=True)
        if opening.opens_blank_nodes and not self._queries.opens_blank_nodes and _has_blank_nodes(found):
            self._queries = opening
            return await self._read(write, batch, labelled=labelled, about_all=about_all)
        self._opened.learn(found)
        if about_all:
            _check_silence(answer, found, batch)
        if labelled:
            labels = self._labels(found)
            self._memory.learn({term: label for term, label in labels.items() if label is not None or found.complete})
        return found

    def _labels(self, found: FactsAround) -> dict[Node, str | None]:
        return {term: self._queries.texts.label(texts) for term, texts in found.texts.items()}

    def _can_ask_for(self, fact: Fact) -> bool:
        ends = (fact.head, fact.tail)
        named = all(isinstance(end, Literal) or self._asker.can_name(end) for end in ends)
        return named and self._queries.may_hold(fact)

    def _batches(self, entities: Iterable[Node]) -> Iterable[Sequence[Node]]:
        nodes = iter([node for node in entities if self._asker.can_name(node)])
        return iter(lambda: tuple(islice(nodes, BATCH)), ())


def _scope(query: NeighborRequest) -> Scope:
    return Scope(query.direction, query.relations, query.values)


def _values_of(page: NeighborPage) -> FeaturePage:
    features = tuple(Feature(each.relation, each.tail) for each in page.facts if isinstance(each, Attribute))
    return FeaturePage(features, Count(len(features), exact=not page.truncated))


def _stated(fact: Fact) -> Literal | None:
    """Return what an answer holds beside the place of a fact that is stated."""
    return fact.tail if isinstance(fact, Attribute) else None


def _fill(batch: Sequence[Node], scope: Scope, query: NeighborRequest, offset: int, *, whole_values: bool) -> Fill:
    """Return what to fetch with the counts: the wanted places where the groups are named, else small groups."""
    most = min(query.limit, query.limit_per_relation or query.limit)
    sides = scope.edges if whole_values else scope.sides
    groups = [GroupKey.on(side, relation) for relation in sorted(scope.relations or ()) for side in sides]
    if groups and len(batch) * len(groups) <= NAMED_GROUPS and (len(groups) == 1 or not offset):
        return Fill(
            spans=tuple(GroupSpan(entity, group, offset, offset + most) for entity in batch for group in groups)
        )
    return Fill(max(most, WHOLE_GROUP), _row_limit(len(batch), query.limit))


def _row_limit(entities: int, limit: int) -> int:
    return min(MAX_ROWS, max(FEWEST_ROWS, 2 * entities * max(limit, WHOLE_GROUP)))


def _has_blank_nodes(found: FactsAround) -> bool:
    return any(isinstance(far, BlankNode) for members in found.members.values() for far in members)


def _check_silence(answer: Solutions, found: FactsAround, batch: Sequence[Node]) -> None:
    # An entity may stand in the part that is missing.
    if answer.cut and not all(_is_known(found, entity) for entity in batch):
        raise part_of_an_answer()


def _is_known(found: FactsAround, entity: Node) -> bool:
    return entity in found.known or entity in found.counts


def _plan(found: FactsAround, entity: Node, query: NeighborRequest, graph: str, offset: int) -> PagePlan:
    counts = found.counts.get(entity, {})
    sizes = {group: min(count, query.limit_per_relation or count) for group, count in counts.items()}
    return PagePlan(entity, counts, sizes, query, graph, offset)


def _sample(found: FactsAround, entity: Node, query: NeighborRequest) -> NeighborPage:
    counts = found.counts.get(entity, {})
    held = {
        group: Held(Held.of(found.members.get((entity, group), ())).ends[: query.limit_per_relation])
        for group in counts
    }
    plan = PagePlan(entity, counts, {group: len(each.ends) for group, each in held.items()}, query, "")
    return plan.page(held, exact=found.is_exact(entity, _scope(query).sides))


def _holdings(found: FactsAround, fill: Fill) -> _Holdings:
    """Return what came along and in which places it stands: the spans, or the groups that came whole."""
    starts = {(span.entity, span.group): span.start for span in fill.spans}
    held: _Holdings = {}
    for (entity, group), members in found.members.items():
        start = starts.get((entity, group))
        if start is not None or len(members) >= found.counts[entity].get(group, 0):
            held.setdefault(entity, {})[group] = Held.of(members, start or 0)
    return held


def _holds(held: Mapping[Node, Mapping[GroupKey, Held]], span: GroupSpan) -> bool:
    part = held.get(span.entity, {}).get(span.group)
    return part is not None and part.start <= span.start and part.start + len(part.ends) >= span.stop


def _degree(found: FactsAround, entity: Node, scope: Scope) -> Degree:
    counts = sorted(found.counts.get(entity, {}).items())
    relations = tuple(
        RelationCount(group.relation, group.direction, Count(n, found.is_exact(entity, [group.side])))
        for group, n in counts
    )
    return Degree(Count(found.neighbors.get(entity, 0), found.is_exact(entity, scope.sides)), relations)
