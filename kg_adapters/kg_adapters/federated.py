"""Several graphs as one, for the time of one call: linked terms are one node, and every fact knows its graphs."""
# ruff: noqa: D102 - what an adapter's methods do is documented on the protocol

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from typing import Final, Self, TypeAlias, TypeVar

from kg_adapters.joined_answers import (
    GraphFacts,
    JoinedFacts,
    counted_degree,
    joined_degree,
    joined_features,
    joined_links,
    joined_schema,
    joined_uses,
    joined_vocabulary,
)
from kg_adapters.labels import Vocabulary
from kg_adapters.links import LinkedNodes, LinkRules, answers, ask_each
from kg_adapters.models import (
    Candidate,
    Count,
    Degree,
    Description,
    Direction,
    FeaturePage,
    GraphSchema,
    NeighborPage,
    RelationCandidate,
    Role,
    ValueUse,
)
from kg_adapters.prefixes import JoinedPrefixes, Position
from kg_adapters.profile import GraphProfile, unknown_profile
from kg_adapters.protocol import KGAdapter, SupportsLearning, SupportsValueSearch, known_profile
from kg_adapters.requests import (
    FeatureRequest,
    NeighborRequest,
    cursor_at,
    in_turns,
    offset_of,
    past_the_end,
    question_about,
)
from kg_adapters.terms import Attribute, Fact, Iri, Literal, Node, Triple, node_key

_POSITIONS: Final[tuple[Position, ...]] = ("entity", "relation")
_COUNTED: Final = 5_000
"""Up to how many facts around a node in several graphs its neighbours are counted one by one."""
_COUNTED_IN_ALL: Final = 20_000
_FIRST_READ: Final = 200
"""How many facts around a node in several graphs are read at least: of few facts the total is known."""

T = TypeVar("T")
S = TypeVar("S")
N = TypeVar("N", Node, Iri)
_Group: TypeAlias = tuple[bool, Iri, bool]
_Key: TypeAlias = tuple[str, str, str]


class FederatedGraph:
    """Some graphs as one, as far as the core protocol goes: made for one call, and asked side by side.

    A graph that fails, or that does not answer before the call's deadline, fails the request, by its name.

    Args:
        graphs: The graphs by name; whoever made them closes them.
        rules: What links them; the usual rules for a graph without any.
        links: How their relations belong together; nothing is known of it when None.
        timeouts_s: How many seconds a request may take each graph; as long as the call where it is not named.
    """

    def __init__(
        self,
        graphs: Mapping[str, KGAdapter],
        rules: Mapping[str, LinkRules] | None = None,
        links: GraphProfile | None = None,
        timeouts_s: Mapping[str, float] | None = None,
    ) -> None:
        self._graphs = dict(graphs)
        self._rules = {name: (rules or {}).get(name, LinkRules()) for name in graphs}
        self._profile = links or unknown_profile()
        self._timeouts_s = dict(timeouts_s or {})
        self._nodes = LinkedNodes(self._graphs, self._rules, self._timeouts_s)
        self._relations: dict[Iri, int] = {}
        self._places = {name: place for place, name in enumerate(graphs)}
        self._links = frozenset(chain.from_iterable(rule.relations for rule in self._rules.values()))
        self._around: dict[object, JoinedFacts] = {}
        self._unclear = set[str]()
        self.origins: dict[Fact, tuple[str, ...]] = {}

    @classmethod
    async def over(
        cls,
        graphs: Mapping[str, KGAdapter],
        rules: Mapping[str, LinkRules] | None = None,
        timeouts_s: Mapping[str, float] | None = None,
    ) -> Self:
        """Return some graphs as one, with what is known of how their relations belong together."""
        profiles = answers(await ask_each(graphs, lambda _, graph: known_profile(graph), timeouts_s))
        return cls(graphs, rules, joined_links(list(profiles.values())), timeouts_s)

    @property
    def members(self) -> Sequence[KGAdapter]:
        """The graphs, in order."""
        return list(self._graphs.values())

    @property
    def name(self) -> str:
        return " + ".join(self._graphs)

    @property
    def prefixes(self) -> JoinedPrefixes:
        parts = tuple(graph.prefixes for graph in self._graphs.values())
        return JoinedPrefixes(
            namespaces={prefix: space for part in reversed(parts) for prefix, space in part.namespaces.items()},
            blank_nodes=all(part.blank_nodes for part in parts),
            parts=parts,
            owner=self._owner,
            unclear=self._unclear,
        )

    @property
    def vocabulary(self) -> Vocabulary:
        return joined_vocabulary([graph.vocabulary for graph in self._graphs.values()])

    @property
    def remote(self) -> bool:
        return any(graph.remote for graph in self._graphs.values())

    async def known(self, texts: Collection[str], position: Position = "entity") -> dict[str, tuple[Node, ...]]:
        """Return what texts stand for that are ids: several nodes where graphs read one differently, and have both."""
        prefixes = self.prefixes
        readings = {text: prefixes.readings(text, position) for text in texts}
        described = await self.describe(list(chain.from_iterable(readings.values())))
        have = {node for node, each in described.items() if position in each.roles}
        found = {text: [node for node in nodes if node in have] for text, nodes in readings.items()}
        if position == "entity":
            found = {text: list(map(self._nodes.one, nodes)) for text, nodes in found.items()}
        known = {text: tuple(dict.fromkeys(nodes)) for text, nodes in found.items() if nodes}
        self._unclear.update(text for text, nodes in known.items() if len(nodes) > 1)
        return known

    async def tell_apart(self, nodes: Collection[Node]) -> None:
        """Ask for what else the short forms of nodes may mean, so that `prefixes` shows none that means several."""
        prefixes = self.prefixes
        for position in _POSITIONS:
            texts = {prefixes.shorten(node, position) for node in nodes}
            if several := [text for text in texts if len(prefixes.readings(text, position)) > 1]:
                await self.known(several, position)

    async def labels(self, terms: Collection[Node]) -> Mapping[Node, str]:
        found = await self._asked(terms, lambda graph, own: graph.labels(own), anywhere=True)
        return {term: found[one][0][2] for term in terms if (one := self._nodes.one(term)) in found}

    async def describe(self, terms: Collection[Node]) -> Mapping[Node, Description]:
        await self._nodes.learn(terms)
        found = await self._asked(terms, lambda graph, own: graph.describe(own), anywhere=True)
        return {term: self._described(found[one]) for term in terms if (one := self._nodes.one(term)) in found}

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        entities = tuple(dict.fromkeys(request.entities))
        await self._nodes.learn(entities)
        if request.cursor is not None:
            return {entities[0]: await self._next(entities[0], request)}
        pages = await self._asked(entities, lambda graph, own: graph.neighbors(replace(request, entities=own)))
        await self._learn_ends(page for of in pages.values() for _, _, page in of)
        found: dict[Node, NeighborPage] = {}
        for entity in entities:
            sources = [GraphFacts(*each) for each in pages.get(self._nodes.one(entity), ())]
            if len(sources) == 1:
                found[entity] = self._page_of_one(sources[0])
            elif sources:
                found[entity] = await self._page(entity, request, JoinedFacts(sources), 0)
        return found

    async def degrees(
        self, entities: Sequence[Node], *, direction: Direction = "both", relations: Collection[Iri] | None = None
    ) -> Mapping[Node, Degree]:
        await self._nodes.learn(entities)
        found = await self._asked(
            entities, lambda graph, own: graph.degrees(own, direction=direction, relations=relations)
        )
        wanted = None if relations is None else frozenset(relations)
        degrees = {one: joined_degree([degree for _, _, degree in of]) for one, of in found.items()}
        left = _COUNTED_IN_ALL
        again: list[Node] = []
        for one, of in found.items():
            most = sum(each.count.value for _, _, degree in of for each in degree.relations)
            linked = any(each.relation in self._links for _, _, degree in of for each in degree.relations)
            if (len(of) > 1 or linked) and most <= min(_COUNTED, left):
                left -= most
                again.append(one)
        if again:
            request = NeighborRequest(tuple(again), direction, wanted, limit=_COUNTED)
            for one, page in (await self.neighbors(request)).items():
                degrees[one] = counted_degree(one, page, direction) if not page.truncated else degrees[one]
        return {entity: degrees[one] for entity in entities if (one := self._nodes.one(entity)) in degrees}

    async def contains(self, facts: Collection[Fact]) -> frozenset[Fact]:
        ends = (end for fact in facts for end in (fact.head, fact.tail) if not isinstance(end, Literal))
        await self._nodes.learn(ends)

        async def ask(name: str, graph: KGAdapter) -> set[Fact]:
            own = {each: fact for fact in facts for each in self._own(name, fact)}
            held = await graph.contains(list(own)) if own else frozenset[Fact]()
            return {own[each] for each in held if self._noted(name, each) is not None}

        return frozenset(chain.from_iterable((await self._each(ask)).values()))

    async def features(self, request: FeatureRequest) -> Mapping[Node, FeaturePage]:
        await self._nodes.learn(request.entities)
        found = await self._asked(request.entities, lambda graph, own: graph.features(replace(request, entities=own)))
        for name, term, page in chain.from_iterable(found.values()):
            for each in page.features:
                self._noted(name, Attribute(term, each.relation, each.value))
        return {
            entity: joined_features([page for _, _, page in found[one]], request.limit)
            for entity in request.entities
            if (one := self._nodes.one(entity)) in found
        }

    async def search(self, text: str, *, limit: int, type: Node | None = None) -> Sequence[Candidate]:
        if type is not None:
            await self._nodes.learn([type])

        async def ask(name: str, graph: KGAdapter) -> list[Candidate]:
            types = () if type is None else self._nodes.of(name, type)
            found = [each for own in types for each in await graph.search(text, limit=limit, type=own)]
            certain.update(self._nodes.seen(name, each.entity) for each in found)
            # What one graph has by this name another may have of this type.
            found += await graph.search(text, limit=limit)
            return [replace(each, entity=self._nodes.seen(name, each.entity)) for each in found]

        certain = set[Node]()
        pools = list((await self._each(ask)).values())
        nodes = dict.fromkeys(each.entity for each in chain.from_iterable(pools))
        await self._nodes.learn(nodes)
        fitting = nodes.keys() if type is None else certain | await self._instances(nodes.keys() - certain, type)
        ranked = sorted(in_turns(pools), key=lambda each: -each.score)
        best: dict[Node, Candidate] = {}
        for each in ranked:
            if each.entity in fitting:
                best.setdefault(self._nodes.one(each.entity), replace(each, entity=self._nodes.one(each.entity)))
        return list(best.values())[:limit]

    async def uses_of_values(self, texts: Collection[str], *, limit: int) -> Mapping[str, Sequence[ValueUse]]:
        async def ask(name: str, graph: KGAdapter) -> Mapping[str, Sequence[ValueUse]]:
            if not isinstance(graph, SupportsValueSearch):
                return {}
            found = await graph.uses_of_values(texts, limit=limit)
            await self._nodes.learn(node for uses in found.values() for use in uses for node in use.bearers)
            return {text: [self._used(name, each) for each in uses] for text, uses in found.items()}

        pools = list((await self._each(ask)).values())
        found = {text: [use for pool in pools for use in pool.get(text, ())] for text in texts}
        return {text: joined_uses(uses, limit) for text, uses in found.items() if uses}

    def _used(self, name: str, use: ValueUse) -> ValueUse:
        return replace(use, bearers=tuple(self._nodes.seen(name, node) for node in use.bearers))

    async def find_relations(self, text: str, *, limit: int) -> Sequence[RelationCandidate]:
        pools = await self._each(lambda _, graph: graph.find_relations(text, limit=limit))
        order = ("id", "label", "alias", "text", "meaning")
        ranked = sorted(in_turns(list(pools.values())), key=lambda each: (-each.score, order.index(each.matched_by)))
        best: dict[Iri, RelationCandidate] = {}
        for each in ranked:
            best.setdefault(each.relation, each)
        return list(best.values())[:limit]

    async def schema(self) -> GraphSchema:
        parts = await self._each(lambda _, graph: graph.schema())
        return joined_schema(list(parts.values()), self.prefixes, self._nodes.one)

    async def profile(self) -> GraphProfile:
        return self.known_profile()

    async def learn_profile(self, *, when_asked: bool = False) -> None:
        learning = {name: graph for name, graph in self._graphs.items() if isinstance(graph, SupportsLearning)}
        answers(await ask_each(learning, lambda name, _: learning[name].learn_profile(when_asked=when_asked)))

    def known_profile(self) -> GraphProfile:
        return self._profile

    async def aclose(self) -> None:
        self._around.clear()

    async def _each(self, ask: Callable[[str, KGAdapter], Awaitable[T]]) -> dict[str, T]:
        return answers(await ask_each(self._graphs, ask, self._timeouts_s))

    async def _asked(
        self,
        nodes: Collection[Node],
        ask: Callable[[KGAdapter, tuple[Node, ...]], Awaitable[Mapping[Node, T]]],
        *,
        anywhere: bool = False,
    ) -> dict[Node, list[tuple[str, Node, T]]]:
        """Ask each graph about its own terms of nodes; return by node the graphs, their terms and what they say.

        With `anywhere` a graph that has no term of it is asked about the node itself, which may be a relation there.
        """
        ones = dict.fromkeys(map(self._nodes.one, nodes))
        terms: dict[str, dict[Node, Node]] = {name: {} for name in self._graphs}
        for name, one in product(self._graphs, ones):
            own = self._nodes.of(name, one)
            terms[name] |= dict.fromkeys((one,) if anywhere and not own and isinstance(one, Iri) else own, one)
        graphs = {name: graph for name, graph in self._graphs.items() if terms[name]}
        answered = answers(await ask_each(graphs, lambda name, graph: ask(graph, tuple(terms[name])), self._timeouts_s))
        found: defaultdict[Node, list[tuple[str, Node, T]]] = defaultdict(list)
        for name, of in answered.items():
            for term, one in terms[name].items():
                if term in of:
                    found[one].append((name, term, of[term]))
        return dict(found)

    def _owner(self, node: Node, position: Position) -> int | None:
        if position == "relation" and isinstance(node, Iri) and node in self._relations:
            return self._relations[node]
        return self._nodes.place(node)

    def _described(self, found: Sequence[tuple[str, Node, Description]]) -> Description:
        each = [description for _, _, description in found]
        roles = frozenset[Role]().union(*(one.roles for one in each))
        types = {self._nodes.seen(name, kind) for name, _, description in found for kind in description.types}
        return Description(
            next((one.label for one in each if one.label is not None), None),
            next((one.description for one in each if one.description is not None), None),
            tuple(sorted(types, key=node_key)),
            roles,
        )

    async def _instances(self, nodes: Collection[Node], type: Node) -> set[Node]:
        """Return those of some nodes that a graph says to have a type."""
        described = await self.describe(nodes)
        return {node for node, found in described.items() if self._nodes.one(type) in found.types}

    async def _learn_ends(self, pages: Iterable[NeighborPage]) -> None:
        triples = chain.from_iterable(page.triples for page in pages)
        await self._nodes.learn(end for triple in triples for end in (triple.head, triple.tail))

    def _noted(self, name: str, fact: Fact) -> Fact | None:
        """Return a fact of a graph between nodes, and note whose it is; None of a link between terms of one node."""
        head = self._nodes.seen(name, fact.head)
        if isinstance(fact, Attribute):
            one: Fact = fact if head is fact.head else replace(fact, head=head)
        else:
            tail = self._nodes.seen(name, fact.tail)
            if head == tail and fact.relation in self._links:
                return None
            one = fact if head is fact.head and tail is fact.tail else Triple(head, fact.relation, tail)
        graphs = self.origins.get(one, ())
        if name not in graphs:
            self.origins[one] = tuple(sorted((*graphs, name), key=self._places.__getitem__))
            place = self._relations.get(fact.relation, len(self._places))
            self._relations[fact.relation] = min(place, self._places[name])
        return one

    def _own(self, name: str, fact: Fact) -> list[Fact]:
        """Return the facts that one between nodes may be in a graph."""
        heads = self._nodes.of(name, self._nodes.one(fact.head))
        if isinstance(fact, Attribute):
            return [replace(fact, head=head) for head in heads]
        tails = self._nodes.of(name, self._nodes.one(fact.tail))
        return [Triple(head, fact.relation, tail) for head in heads for tail in tails]

    def _page_of_one(self, source: GraphFacts) -> NeighborPage:
        """Return the page around a node that one graph has under one term, with the graph's own cursor."""
        page = source.page
        kept = {each: None for fact in page.facts if (each := self._noted(source.name, fact)) is not None}
        if len(kept) == len(page.facts):
            return replace(page, facts=tuple(kept))
        whole = not page.truncated
        return replace(page, facts=tuple(kept), total=Count(len(kept), exact=whole))

    async def _next(self, entity: Node, request: NeighborRequest) -> NeighborPage:
        """Return a page behind the first."""
        one = self._nodes.one(entity)
        terms = [(name, term) for name in self._graphs for term in self._nodes.of(name, one)]
        if len(terms) == 1:
            pages = await self._asked([one], lambda graph, own: graph.neighbors(replace(request, entities=own)))
            ((name, term, page),) = pages[one]
            await self._learn_ends([page])
            return self._page_of_one(GraphFacts(name, term, page))
        offset = offset_of(request, self.name)
        around = self._around.get(question_about(entity, request))
        if around is None:
            first = replace(request, cursor=None)
            pages = await self._asked([one], lambda graph, own: graph.neighbors(replace(first, entities=own)))
            around = JoinedFacts([GraphFacts(*each) for each in pages.get(one, ())])
        return await self._page(entity, request, around, offset)

    async def _page(self, entity: Node, request: NeighborRequest, around: JoinedFacts, offset: int) -> NeighborPage:
        """Return the page of a node in several graphs, or under several terms, that begins behind `offset` facts."""
        end = offset + request.limit
        async with around.lock:
            if around.ready < end and not (around.turns and around.ended):
                await self._read(request, around, max(end, 2 * around.ready, _FIRST_READ))
        if offset > len(around.turns):
            raise past_the_end()
        more = len(around.turns) > end or not around.ended
        if more:
            self._around[question_about(entity, request)] = around
        return NeighborPage(
            tuple(chain.from_iterable(around.turns[offset:end])),
            around.total,
            truncated=more or around.sampled,
            cursor=cursor_at(end, request, entity, self.name) if more else None,
        )

    async def _read(self, request: NeighborRequest, around: JoinedFacts, most: int) -> None:
        """Read the first `most` facts of every source, as far as there are so many."""

        async def ask(name: str, graph: KGAdapter) -> None:
            for source in around.sources:
                while source.name == name and source.page.cursor is not None and len(source.facts) < most:
                    further = replace(
                        request, entities=(source.term,), cursor=source.page.cursor, limit=most - len(source.facts)
                    )
                    source.add((await graph.neighbors(further)).get(source.term))

        await self._each(ask)
        await self._nodes.learn(
            end
            for source in around.sources
            for fact in source.facts
            for end in (fact.head, fact.tail)
            if not isinstance(end, Literal)
        )
        around.order(most, request, lambda name, node: node_key(self._nodes.apart(name, node)), self._noted)
