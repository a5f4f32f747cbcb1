"""How the answers of several graphs about one node become one."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeAlias, TypeVar

import anyio

from kg_adapters.labels import Vocabulary
from kg_adapters.models import (
    Count,
    Degree,
    Direction,
    EdgeDirection,
    FeaturePage,
    GraphSchema,
    NeighborPage,
    RelationCount,
    ValueUse,
)
from kg_adapters.prefixes import Prefixes
from kg_adapters.profile import GraphProfile, InverseRelations, Subproperties, unknown_profile
from kg_adapters.requests import NeighborRequest, in_turns
from kg_adapters.terms import Fact, Iri, Literal, Node, literal_key, node_key

_Group: TypeAlias = tuple[bool, Iri, bool]
_Key: TypeAlias = tuple[str, str, str]

T = TypeVar("T")
S = TypeVar("S")
N = TypeVar("N", Node, Iri)


@dataclass(slots=True)
class GraphFacts:
    """What one graph says around one of its terms, as far as it was asked: the last page, and all facts so far."""

    name: str
    term: Node
    page: NeighborPage
    facts: list[Fact] = field(init=False)

    def __post_init__(self) -> None:
        self.facts = [*self.page.facts]

    def add(self, page: NeighborPage | None) -> None:
        """Take in the next page; None or an empty one where the graph has no more after all."""
        if page is None or not page.facts:
            self.page = replace(self.page, cursor=None)
        else:
            self.page = page
            self.facts += page.facts


class JoinedFacts:
    """The facts around one node that several graphs or terms have, in the order of `KGAdapter.neighbors`.

    A fact is never further ahead in the common order than in that of its graph, so that the first so many of all are
    among the first so many of each.

    Attributes:
        sources: What was read.
        turns: The facts in order: in each place those that are one fact by their graphs, and none that came before.
        ready: How many places will not change when more is read.
    """

    def __init__(self, sources: Sequence[GraphFacts]) -> None:
        self.sources = sources
        self.lock = anyio.Lock()
        self.turns: list[tuple[Fact, ...]] = []
        self.ready = 0
        self._overlaps = False

    @property
    def ended(self) -> bool:
        """Whether everything was read."""
        return all(source.page.cursor is None for source in self.sources)

    @property
    def sampled(self) -> bool:
        """Whether graphs left out some of the facts."""
        return self.ended and any(source.page.truncated for source in self.sources)

    @property
    def total(self) -> Count:
        """How many facts there are in all: exact where all were read, or none of one graph can be another's."""
        totals = [source.page.total for source in self.sources]
        if self.ended and not self.sampled:
            return Count(sum(map(len, self.turns)))
        if self.ended and not self._overlaps and all(total.exact for total in totals):
            return Count(sum(total.value for total in totals))
        return _most(totals)

    def order(
        self,
        ready: int,
        request: NeighborRequest,
        key: Callable[[str, Node], str],
        noted: Callable[[str, Fact], Fact | None],
    ) -> None:
        """Put what was read into order.

        Args:
            ready: How many facts of each source were read, or all of it.
            request: What was asked.
            key: What orders a term of a graph.
            noted: Returns a fact of a graph as it is shown, or None for what is not.
        """
        groups: defaultdict[_Group, dict[_Key, list[tuple[str, Fact]]]] = defaultdict(dict)
        owners: Counter[_Group] = Counter()
        for source in self.sources:
            own = set[_Group]()
            for fact in source.facts:
                incoming = request.direction == "in" or fact.head != source.term
                far = fact.head if incoming else fact.tail
                place = literal_key(far) if isinstance(far, Literal) else (key(source.name, far), "", "")
                group = incoming, fact.relation, isinstance(far, Literal)
                groups[group].setdefault(place, []).append((source.name, fact))
                own.add(group)
            owners.update(own)
        self._overlaps = any(number > 1 for number in owners.values())
        sampled = [
            [facts for _, facts in sorted(groups[group].items(), key=_first)][: request.limit_per_relation]
            for group in sorted(groups)
        ]
        seen: set[Fact | None] = {None}
        self.turns = []
        for facts in in_turns(sampled):
            shown = dict.fromkeys(noted(name, fact) for name, fact in facts)
            self.turns.append(tuple(fact for fact in shown if fact is not None and fact not in seen))
            seen.update(shown)
        self.ready = ready


def _first(item: tuple[_Key, object]) -> _Key:
    return item[0]


def _joined(parts: Iterable[Sequence[T]]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(parts)))


def joined_vocabulary(parts: Sequence[Vocabulary]) -> Vocabulary:
    """Return the relations that name, describe and type in any of some graphs, and the languages of all."""
    return Vocabulary(
        labels=_joined(part.labels for part in parts),
        descriptions=_joined(part.descriptions for part in parts),
        aliases=_joined(part.aliases for part in parts),
        languages=_joined(part.languages for part in parts),
        types=_joined(part.types for part in parts),
        subclasses=_joined(part.subclasses for part in parts),
    )


def joined_schema(parts: Sequence[GraphSchema], prefixes: Prefixes, one: Callable[[Node], Node]) -> GraphSchema:
    """Return the definition of several graphs together, in which `one` returns the node that stands for a class."""
    classes = _largest((one(each.iri), each, each.instances) for part in parts for each in part.classes)
    relations = _largest((each.iri, each, each.triples) for part in parts for each in part.relations)
    features = _largest((each.iri, each, each.statements) for part in parts for each in part.features)
    return GraphSchema(
        entities=_most(part.entities for part in parts),
        triples=_most(part.triples for part in parts),
        classes=tuple(replace(each, iri=node, instances=count) for node, each, count in classes),
        relations=tuple(replace(each, triples=count) for _, each, count in relations),
        features=tuple(replace(each, statements=count) for _, each, count in features),
        prefixes=prefixes,
        complete=False,
        note="What several of the graphs have is counted in the one that has most of it.",
    )


def _most(counts: Iterable[Count]) -> Count:
    return Count(max((count.value for count in counts), default=0), exact=False)


def _largest(items: Iterable[tuple[N, S, Count]]) -> list[tuple[N, S, Count]]:
    """Return of each node the summary with the largest count, which there are at least, the largest first."""
    best: dict[N, tuple[S, Count]] = {}
    for node, each, count in items:
        if node not in best or best[node][1].value < count.value:
            best[node] = each, Count(count.value, exact=False)
    found = [(node, each, count) for node, (each, count) in best.items()]
    return sorted(found, key=lambda item: (-item[2].value, node_key(item[0])))


def joined_degree(degrees: Sequence[Degree]) -> Degree:
    """Return the degree of a node by those that several graphs know: what more than one counts is a lower bound."""
    having = [each for each in degrees if not each.is_none]
    if len(having) <= 1:
        return next(iter(having or degrees))
    # A graph that counted only a part may have more over any relation.
    whole = all(degree.exact for degree in degrees)
    counts: dict[tuple[bool, Iri], list[Count]] = {}
    for each in chain.from_iterable(degree.relations for degree in degrees):
        counts.setdefault((each.direction == "in", each.relation), []).append(each.count)
    return Degree(
        _most(degree.neighbors for degree in degrees),
        tuple(
            _number(group, of[0] if len(of) == 1 and whole else _most(of))
            for group, of in sorted(counts.items(), key=_group)
        ),
    )


def counted_degree(node: Node, page: NeighborPage, direction: Direction) -> Degree:
    """Return the degree of a node by all that is stated around it."""
    ends: defaultdict[tuple[bool, Iri], set[Node]] = defaultdict(set)
    for triple in page.triples:
        if triple.head == node and direction != "in":
            ends[False, triple.relation].add(triple.tail)
        # An edge from a node to itself is listed once, as outgoing.
        if triple.tail == node and (direction == "in" or (direction == "both" and triple.head != node)):
            ends[True, triple.relation].add(triple.head)
    others = set[Node]().union(*ends.values()) - {node}
    return Degree(
        Count(len(others)), tuple(_number(group, Count(len(of))) for group, of in sorted(ends.items(), key=_group))
    )


def _group(item: tuple[tuple[bool, Iri], object]) -> tuple[bool, Iri]:
    return item[0]


def _number(group: tuple[bool, Iri], count: Count) -> RelationCount:
    way: EdgeDirection = "in" if group[0] else "out"
    return RelationCount(group[1], way, count)


def joined_features(pages: Sequence[FeaturePage], limit: int) -> FeaturePage:
    """Return the features that several graphs have of one entity, each once."""
    if len(pages) == 1:
        return pages[0]
    features = sorted(set(chain.from_iterable(page.features for page in pages)), key=lambda each: each.order)
    whole = all(page.total == Count(len(page.features)) for page in pages)
    return FeaturePage(tuple(features[:limit]), Count(len(features)) if whole else _most(page.total for page in pages))


def joined_uses(uses: Iterable[ValueUse], limit: int) -> Sequence[ValueUse]:
    """Return who has a value in several graphs, each relation once."""
    by_relation: defaultdict[Iri, list[ValueUse]] = defaultdict(list)
    for use in uses:
        by_relation[use.relation].append(use)
    joined: list[ValueUse] = []
    for relation, same in by_relation.items():
        bearers = sorted({node for use in same for node in use.bearers}, key=node_key)
        whole = all(use.count.at_most(len(use.bearers)) for use in same)
        most = _most([Count(len(bearers)), *(use.count for use in same)])
        count = Count(len(bearers)) if whole else same[0].count if len(same) == 1 else most
        joined.append(ValueUse(relation, same[0].value, tuple(bearers[:limit]), count))
    return sorted(joined, key=lambda use: (-use.count.value, use.relation))


def joined_links(profiles: Iterable[GraphProfile]) -> GraphProfile:
    """Return what several graphs know of how relations belong together, and nothing else of their profiles.

    Where they differ on the inverse of a relation, the first counts.
    """
    pairs, taken = dict[tuple[Iri, Iri], InverseRelations](), set[Iri]()
    along, behind = dict[tuple[Iri, Iri], None](), dict[tuple[Iri, Iri], None]()
    for profile in profiles:
        along |= dict.fromkeys(profile.subproperties.along)
        behind |= dict.fromkeys(profile.subproperties.behind)
        for each in profile.inverses:
            key = each.relation, each.inverse
            if (known := pairs.get(key)) is not None:
                pairs[key] = replace(
                    known,
                    both=known.both + each.both,
                    only_relation=known.only_relation + each.only_relation,
                    only_inverse=known.only_inverse + each.only_inverse,
                )
            elif not taken.intersection(key):
                pairs[key] = each
                taken.update(key)
    subproperties = Subproperties(tuple(along), tuple(behind))
    return replace(unknown_profile(), inverses=tuple(pairs.values()), subproperties=subproperties)
