"""Entity cards: what tells an entity from others, and from its namesakes."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, TypeAlias

from kg_adapters.models import Count, Description, EdgeDirection, NeighborPage
from kg_adapters.profile import kind_of
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Attribute, BlankNode, Fact, Iri, Literal, Node, Term, Triple
from kg_boundary.shown import listed, set_apart, shown_within
from kg_server.answers.coverage import both_ways
from kg_server.answers.intermediates import with_intermediates
from kg_server.answers.results import AnswerRows, Line, Over, Piece, fitting, token_count
from kg_server.names import MAX_LABEL, Names, names_of, terms_of

MAX_NAMESAKES: Final = 20
"""How many namesakes are looked at, in one batch."""

_PER_RELATION: Final = 2
_PER_ENTITY: Final = 60
_LONGEST_VALUE: Final = 60

_Facts: TypeAlias = Mapping[Iri, Mapping[Node, tuple[Term, ...]]]


@dataclass(frozen=True, slots=True)
class Distinction:
    """One fact of an entity that its namesakes do not share."""

    relation: Iri
    value: Term

    @property
    def terms(self) -> tuple[Node, ...]:
        """What is shown with its label."""
        return (self.relation,) if isinstance(self.value, Literal) else (self.relation, self.value)


async def distinguishing_facts(graph: KGAdapter, groups: Collection[Sequence[Node]]) -> dict[Node, Distinction]:
    """Return for groups of namesakes a fact of each that tells it from the others, where there is one.

    Of all relations the one counts in which most namesakes have something of their own.
    """
    wanted = list(dict.fromkeys(node for group in groups if len(group) > 1 for node in group))[:MAX_NAMESAKES]
    if not wanted:
        return {}
    facts = await _facts(graph, wanted)
    found: dict[Node, Distinction] = {}
    for group in groups:
        best = max(facts, key=lambda relation: _difference(facts[relation], group), default=None)
        if len(group) > 1 and best is not None and _difference(facts[best], group)[0] > 1:
            found.update({node: Distinction(best, facts[best][node][0]) for node in group if node in facts[best]})
    return found


async def _facts(graph: KGAdapter, nodes: Sequence[Node]) -> _Facts:
    """Return some of what entities have over each relation, and of their values; not names, descriptions and types."""
    skipped = graph.vocabulary.unwalked
    found: defaultdict[Iri, defaultdict[Node, list[Term]]] = defaultdict(lambda: defaultdict(list))
    around = NeighborRequest(
        tuple(nodes), direction="out", limit=_PER_ENTITY, limit_per_relation=_PER_RELATION, values=True
    )
    for page in (await graph.neighbors(around)).values():
        for fact in page.facts:
            # A blank node says nothing to those who read it.
            if not isinstance(fact.tail, BlankNode) and (
                isinstance(fact, Triple) or len(fact.tail.value) <= _LONGEST_VALUE
            ):
                found[fact.relation][fact.head].append(fact.tail)
    return {
        relation: {node: tuple(terms) for node, terms in of.items()}
        for relation, of in found.items()
        if relation not in skipped
    }


def _difference(facts: Mapping[Node, tuple[Term, ...]], group: Sequence[Node]) -> tuple[int, int, bool, int]:
    """Return how well a relation tells namesakes apart.

    By distinct facts, how many have one, whether it is a date, as that of a birth, and how few they have.
    """
    have = [facts[node] for node in group if node in facts]
    dated = all(isinstance(each, Literal) and kind_of(each.datatype) == "date" for each in chain.from_iterable(have))
    # Having something where others have nothing is a difference as well.
    return len(set(have)) + (len(have) < len(group)), len(have), dated, -sum(map(len, have))


MAX_TYPES: Final = 3


@dataclass(frozen=True, slots=True)
class Sketches:
    """What distinguishes some entities: their descriptions, types and a fact that namesakes do not share."""

    descriptions: Mapping[Node, Description]
    facts: Mapping[Node, Distinction]
    names: Names

    def of(self, node: Node, marks: str | None = None) -> Iterator[str]:
        """Yield the entity with its label and id, and what there is to say of it; `marks` are those of a list."""
        yield self.names.entity(node, marks)
        # Only the fact that tells namesakes apart has a colon.
        described = set_apart(self.description(node), marks or ":")
        yield from filter(None, (described, self.kinds(node), self.fact(node)))

    def description(self, node: Node) -> str:
        """Return an entity's description on one line, or nothing."""
        described = self.descriptions.get(node)
        return shown_within((described.description if described is not None else None) or "", MAX_LABEL)

    def types(self, node: Node) -> str:
        """Return the first of its types, with their ids."""
        return ", ".join(self.names.entity(each, ",") for each in self._types(node))

    def kinds(self, node: Node) -> str:
        """Return the labels of the first of its types, which serve as ids."""
        return ", ".join(self.names.alone(each, ",:") for each in self._types(node))

    def _types(self, node: Node) -> Sequence[Node]:
        described = self.descriptions.get(node)
        return () if described is None else described.types[:MAX_TYPES]

    def fact(self, node: Node) -> str:
        """Return what its namesakes do not share with it, or nothing."""
        fact = self.facts.get(node)
        if fact is None:
            return ""
        value = self.names.term(fact.value, MAX_LABEL, relation=fact.relation)
        return f"{self.names.relation(fact.relation, ':')}: {value}"


async def sketches_of(
    graph: KGAdapter, nodes: Collection[Node], namesakes: Collection[Sequence[Node]], others: Collection[Node] = ()
) -> Sketches:
    """Return what distinguishes entities.

    Args:
        graph: Where they are.
        nodes: The entities.
        namesakes: Groups of them that have one name.
        others: What else is shown with its label.
    """
    descriptions = await graph.describe(nodes)
    facts = await distinguishing_facts(graph, namesakes)
    types = chain.from_iterable(described.types[:MAX_TYPES] for described in descriptions.values())
    told = chain.from_iterable(fact.terms for fact in facts.values())
    return Sketches(descriptions, facts, await names_of(graph, (*nodes, *types, *told, *others)))


CARD_TOKENS: Final = 220
OTHERS_TOKENS: Final = 60
"""Of these, how many the relations take that are only counted."""
SHOWN: Final = 3
"""How many neighbours a relation is shown with."""
_MOST_FACTS: Final = 160
_LONGEST_VALUE_IN_FULL: Final = 80

_Group: TypeAlias = tuple[EdgeDirection, Iri]
_Groups: TypeAlias = Mapping[_Group, Sequence[Fact]]
_Sizes: TypeAlias = dict[_Group, Count]


@dataclass(frozen=True, slots=True)
class Card:
    """What is known around one entity, shortened.

    Args:
        rows: A line for each relation that fits: direction, id, count, and the ids and values shown.
        others: The line that counts the other relations, if there are any.
    """

    rows: AnswerRows[Line]
    others: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """All lines."""
        return (*self.rows.texts(), *self.others)


async def entity_card(graph: KGAdapter, node: Node) -> Card | None:
    """Return the card of an entity, types and names left out, or None where the graph does not mention it."""
    # One more than is shown tells which relations have more, and only those need to be counted.
    request = NeighborRequest((node,), "both", limit=_MOST_FACTS, limit_per_relation=SHOWN + 1, values=True)
    page = (await graph.neighbors(request)).get(node)
    if page is None:
        return None
    kept = [fact for fact in page.facts if fact.relation not in graph.vocabulary.unwalked]
    groups, sizes = await _once_each(graph, node, *await _counted(graph, node, kept, page))
    shown = [fact for facts in groups.values() for fact in facts[:SHOWN]]
    stored = {fact.relation for facts in groups.values() for fact in facts}
    named = await names_of(graph, (node, *terms_of(shown), *stored, *(relation for _, relation in sizes)))
    return _card(node, groups, sizes, await with_intermediates(graph, shown, named, (node,)))


def _grouped(node: Node, facts: Sequence[Fact]) -> _Groups:
    """Return facts by direction and relation: values first, then what the entity leads to, then what leads to it."""
    groups: dict[_Group, list[Fact]] = {}
    for fact in sorted(facts, key=lambda each: (each.head != node, not isinstance(each, Attribute))):
        groups.setdefault(("out" if fact.head == node else "in", fact.relation), []).append(fact)
    return groups


async def _counted(graph: KGAdapter, node: Node, facts: Sequence[Fact], page: NeighborPage) -> tuple[_Groups, _Sizes]:
    """Return a sample of facts by relation, and how many there are of each, those without a sample too.

    The facts are those of a page that are shown. It takes the first of every relation, then the second: where it is
    cut, the last round may lack some.
    """
    groups = _grouped(node, facts)
    rounds = Counter((fact.head == node, fact.relation, isinstance(fact, Attribute)) for fact in facts)
    cut = page.cursor is not None
    whole = max(rounds.values(), default=0) - 2 if cut else SHOWN
    sizes: _Sizes = {group: Count(len(found), exact=len(found) <= whole) for group, found in groups.items()}
    if all(size.exact for size in sizes.values()) and not cut and page.total.exact:
        return groups, sizes
    for each in (await graph.degrees([node]))[node].relations:
        found = groups.get((each.direction, each.relation), ())
        # Values are no neighbours.
        if each.relation not in graph.vocabulary.unwalked and not any(isinstance(fact, Attribute) for fact in found):
            sizes[each.direction, each.relation] = each.count
    return groups, sizes


async def _once_each(graph: KGAdapter, node: Node, groups: _Groups, sizes: _Sizes) -> tuple[_Groups, _Sizes]:
    """Count what leads to an entity with what leads from it over the inverse relation, each neighbour once."""
    profile = await graph.profile()
    kept, counts = dict(groups), dict(sizes)
    for group, facts in groups.items():
        inverse = profile.inverse_of(group[1]) if group[0] == "in" else None
        ahead: _Group | None = None if inverse is None else ("out", inverse)
        if ahead is None or ahead not in groups:
            continue
        straight: Sequence[Fact] = groups[ahead]
        turned: Sequence[Fact] = facts
        if all(sizes[each] == Count(len(groups[each])) for each in (ahead, group)):
            said = {fact.tail for fact in straight}
            turned = [fact for fact in facts if fact.head not in said]
        elif (found := await both_ways(graph, node, (ahead[1],), "out")) is not None and found.complete:
            straight, turned = found.straight, found.turned
        else:
            continue
        kept[ahead] = (*straight, *turned)
        counts[ahead] = Count(len(kept[ahead]))
        del kept[group], counts[group]
    return kept, counts


def _card(node: Node, groups: _Groups, sizes: _Sizes, names: Names) -> Card:
    room = CARD_TOKENS - OTHERS_TOKENS
    lines: dict[_Group, Line] = {}
    for group, facts in groups.items():
        for most in (SHOWN, 1):
            line = _line(node, group, facts, most, _shown(sizes[group]), names)
            tokens = token_count(line.shown(names))
            # A relation with long lines leaves room for the others.
            if tokens <= (room if most == 1 else min(room, CARD_TOKENS // 4)):
                lines[group] = line
                room -= tokens
                break
    left = {group: size for group, size in sizes.items() if group not in lines}
    return Card(AnswerRows(list(lines.values()), names), (_others(left, names),) if left else ())


@dataclass(frozen=True, slots=True)
class _CardLine(Line):
    """What an entity has over one relation, with a row more for what is stored over its inverse."""

    turned: tuple[Piece, ...] = field(default=(), kw_only=True)

    @property
    def rows(self) -> tuple[tuple[Piece, ...], ...]:
        """See `Line`."""
        return tuple(filter(None, (self.row, self.turned)))


def _line(node: Node, group: _Group, every: Sequence[Fact], most: int, size: str, names: Names) -> Line:
    """Return `occupation (P106) | 15: writer (Q36180), actor (Q33999), …`; with `-` before it what leads to it.

    Of `every` fact the first `most` are shown.
    """
    direction, relation = group
    facts = every[:most]
    marks = "" if size == "1" else ","
    far = [fact.tail if fact.head == node else fact.head for fact in facts]
    shown = ", ".join(names.term(term, _LONGEST_VALUE_IN_FULL, relation=relation, marks=marks) for term in far)
    rows: dict[bool, list[Piece]] = {True: [], False: []}
    for fact, end in zip(facts, far, strict=True):
        rows[fact.relation == relation].append(names.row(fact)[2 if end == fact.tail else 0])
    inverse = next((fact.relation for fact in every if fact.relation != relation), None)
    stored, turned = "", tuple[Piece, ...]()
    if inverse is not None:
        number = sum(fact.relation == inverse for fact in every)
        stored = f", {number:,} as {'' if direction == 'in' else '-'}{names.relation(inverse, ',:')}"
        other: EdgeDirection = "out" if direction == "in" else "in"
        turned = (other, Over(inverse), size, *rows[False]) if rows[False] else ()
    listed = shown if size == "1" else f"{size}{stored}: {shown}{'' if size == str(len(facts)) else ', …'}"
    text = Over(relation, direction == "in"), " | ", listed
    return _CardLine(text, (direction, Over(relation), size, *rows[True]), tuple(facts), turned=turned)


def _others(left: _Sizes, names: Names) -> str:
    """Return the relations that have no line of their own, with their counts, as far as they fit."""
    parts = [
        f"{'-' if direction == 'in' else ''}{names.alone(relation, ';', 'relation')} {_shown(size)}"
        for (direction, relation), size in left.items()
    ]
    return f"also | {listed(parts, '; ', max(1, fitting(parts, OTHERS_TOKENS)))}"


def _shown(size: Count) -> str:
    return f"{size.value:,}{'' if size.exact else '+'}"
