"""The facts around entities, asked for in as few requests as can be.

One request brings the counts of all groups and every far end of the small ones. Only a page that shows far ends of
a large group needs a second one, which names the places it wants; the hub itself is never read.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from kg_adapters.models import Count, Degree, NeighborPage, RelationCount
from kg_adapters.requests import NeighborRequest, SurroundingsRequest, offset_of
from kg_adapters.sparql.asking import Asker, part_of_an_answer
from kg_adapters.sparql.label_memory import LabelMemory
from kg_adapters.sparql.opened_nodes import OpenedNodes
from kg_adapters.sparql.pages import Held, PagePlan
from kg_adapters.sparql.queries.edges import EdgeQueries
from kg_adapters.sparql.queries.groups import Fill, Group, Scope, Span
from kg_adapters.sparql.rows import Around, ValueRows, read_around, rows
from kg_adapters.sparql.solutions import Solutions
from kg_adapters.surroundings import Surroundings, surroundings_of
from kg_adapters.terms import Attribute, Fact, Literal, Node, node_key

BATCH: Final = 1_000
"""About how many entities one request may be."""
FEWEST_ROWS, MAX_ROWS = 5_000, 50_000
"""Between which bounds the neighbours of one request lie."""
LABELLED_EDGES: Final = 1_000
"""Up to how many edges labels come along: whoever shows so few will show their labels."""
WHOLE_GROUP: Final = 50
"""Groups of up to so many neighbours come along whole, even where a page shows fewer."""
SPANS: Final = 25
"""How many parts of groups one request may want; engines take some milliseconds to plan each."""
STATED: Final = 50
"""About how many triples one request may ask whether they are there."""
NAMED_GROUPS: Final = 12
"""Up to how many groups are asked for by their places at once, when their relations are named."""
SAMPLED_GROUPS: Final = 8
"""Of how many large groups the surroundings of a frontier show as many neighbours as were wished for, about."""

_Holdings = dict[Node, dict[Group, Held]]


class EdgeReader:
    """Reads edges.

    Args:
        asker: What asks the endpoint.
        queries: What writes the queries.
        memory: Where labels go that come along.
        graph: What people call the graph.
        value_rows: What makes a reader for the rows about values, where they are not read as they are.
    """

    def __init__(
        self,
        asker: Asker,
        queries: EdgeQueries,
        memory: LabelMemory,
        graph: str,
        value_rows: Callable[[], ValueRows] | None = None,
    ) -> None:
        self._asker = asker
        self._queries = queries
        self._memory = memory
        self._graph = graph
        self._value_rows = value_rows
        self._opened = OpenedNodes(queries.texts.vocabulary.texts)

    async def neighbors(self, request: NeighborRequest) -> dict[Node, NeighborPage]:
        """Return a page for each entity that the graph mentions, as `KGAdapter.neighbors` does."""
        offset = offset_of(request, self._graph)
        opened = self._opened.recall(request.entities, _scope(request))
        held = _holdings(opened, Fill())
        plans = (_plan(opened, node, request, self._graph, offset) for node in sorted(opened.known, key=node_key))
        pages = {plan.entity: plan.page(held.get(plan.entity, {}), exact=True) for plan in plans}
        for batch in self._batches(dict.fromkeys(request.entities)):
            pages |= await self._pages(batch, request, offset)
        return pages

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
        labels = {term: self._queries.texts.label(texts) for term, texts in found.texts.items()}
        return surroundings_of(asked, pages, {term: label for term, label in labels.items() if label is not None})

    async def _pages(self, batch: Sequence[Node], query: NeighborRequest, offset: int) -> dict[Node, NeighborPage]:
        scope = _scope(query)
        labelled = len(batch) * query.limit <= LABELLED_EDGES
        fill = _fill(batch, scope, query, offset, whole_values=self._queries.whole_values)
        found = await self._around(batch, scope, fill, labelled=labelled)
        plans = [_plan(found, entity, query, self._graph, offset) for entity in batch if _is_known(found, entity)]
        held = _holdings(found, fill)
        missing = [span for plan in plans for span in plan.spans() if not _holds(held, span)]
        for first in range(0, len(missing), SPANS):
            wanted = missing[first : first + SPANS]
            more = await self._read(self._queries.spans(wanted, scope, labelled=labelled), batch, labelled=labelled)
            for entity, groups in _holdings(more, Fill(spans=tuple(wanted))).items():
                held.setdefault(entity, {}).update(groups)
        return {
            plan.entity: plan.page(held.get(plan.entity, {}), exact=found.is_exact(plan.entity, scope.sides))
            for plan in plans
        }

    async def _around(self, batch: Sequence[Node], scope: Scope, fill: Fill, *, labelled: bool) -> Around:
        query = self._queries.around(batch, scope, fill, labelled=labelled)
        return await self._read(query, batch, labelled=labelled, about_all=True)

    async def _read(self, query: str, batch: Sequence[Node], *, labelled: bool, about_all: bool = False) -> Around:
        answer = await self._asker.ask(query)
        values = None if self._value_rows is None else self._value_rows()
        found = await read_around(answer, batch, self._queries, values)
        self._opened.learn(found)
        if about_all:
            _check_silence(answer, found, batch)
        if labelled:
            labels = {term: self._queries.texts.label(texts) for term, texts in found.texts.items()}
            self._memory.learn({term: label for term, label in labels.items() if label is not None or found.complete})
        return found

    def _can_ask_for(self, fact: Fact) -> bool:
        ends = (fact.head, fact.tail)
        named = all(isinstance(end, Literal) or self._asker.can_name(end) for end in ends)
        return named and self._queries.may_hold(fact)

    def _batches(self, entities: Iterable[Node]) -> Iterable[Sequence[Node]]:
        nodes = iter([node for node in entities if self._asker.can_name(node)])
        return iter(lambda: tuple(islice(nodes, BATCH)), ())


def _scope(query: NeighborRequest) -> Scope:
    return Scope(query.direction, query.relations, query.values)


def _stated(fact: Fact) -> Literal | None:
    """Return what an answer holds beside the place of a fact that is stated."""
    return fact.tail if isinstance(fact, Attribute) else None


def _fill(batch: Sequence[Node], scope: Scope, query: NeighborRequest, offset: int, *, whole_values: bool) -> Fill:
    """Return what to fetch with the counts: the wanted places where the groups are named, else small groups."""
    most = min(query.limit, query.limit_per_relation or query.limit)
    sides = scope.edges if whole_values else scope.sides
    groups = [Group.on(side, relation) for relation in sorted(scope.relations or ()) for side in sides]
    if groups and len(batch) * len(groups) <= NAMED_GROUPS and (len(groups) == 1 or not offset):
        return Fill(spans=tuple(Span(entity, group, offset, offset + most) for entity in batch for group in groups))
    return Fill(max(most, WHOLE_GROUP), _row_limit(len(batch), query.limit))


def _row_limit(entities: int, limit: int) -> int:
    return min(MAX_ROWS, max(FEWEST_ROWS, 2 * entities * max(limit, WHOLE_GROUP)))


def _check_silence(answer: Solutions, found: Around, batch: Sequence[Node]) -> None:
    # An entity may stand in the part that is missing.
    if answer.cut and not all(_is_known(found, entity) for entity in batch):
        raise part_of_an_answer()


def _is_known(found: Around, entity: Node) -> bool:
    return entity in found.known or entity in found.counts


def _plan(found: Around, entity: Node, query: NeighborRequest, graph: str, offset: int) -> PagePlan:
    counts = found.counts.get(entity, {})
    sizes = {group: min(count, query.limit_per_relation or count) for group, count in counts.items()}
    return PagePlan(entity, counts, sizes, query, graph, offset)


def _sample(found: Around, entity: Node, query: NeighborRequest) -> NeighborPage:
    counts = found.counts.get(entity, {})
    held = {
        group: Held(Held.of(found.members.get((entity, group), ())).ends[: query.limit_per_relation])
        for group in counts
    }
    plan = PagePlan(entity, counts, {group: len(each.ends) for group, each in held.items()}, query, "")
    return plan.page(held, exact=found.is_exact(entity, _scope(query).sides))


def _holdings(found: Around, fill: Fill) -> _Holdings:
    """Return what came along and in which places it stands: the spans, or the groups that came whole."""
    starts = {(span.entity, span.group): span.start for span in fill.spans}
    held: _Holdings = {}
    for (entity, group), members in found.members.items():
        start = starts.get((entity, group))
        if start is not None or len(members) >= found.counts[entity].get(group, 0):
            held.setdefault(entity, {})[group] = Held.of(members, start or 0)
    return held


def _holds(held: Mapping[Node, Mapping[Group, Held]], span: Span) -> bool:
    part = held.get(span.entity, {}).get(span.group)
    return part is not None and part.start <= span.start and part.start + len(part.ends) >= span.stop


def _degree(found: Around, entity: Node, scope: Scope) -> Degree:
    counts = sorted(found.counts.get(entity, {}).items())
    relations = tuple(
        RelationCount(group.relation, group.direction, Count(n, found.is_exact(entity, [group.side])))
        for group, n in counts
    )
    return Degree(Count(found.neighbors.get(entity, 0), found.is_exact(entity, scope.sides)), relations)
