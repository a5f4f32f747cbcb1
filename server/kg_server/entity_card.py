"""The card of an entity: its values, and its relations with their counts and a few neighbours each."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from kg_adapters.models import Count, EdgeDirection
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Attribute, Fact, Iri, Literal, Node, Term
from kg_server.budget import fitting, token_count
from kg_server.intermediates import Opened, with_intermediates
from kg_server.inverses import both_ways
from kg_server.names import Names, names_of, terms_of

CARD_TOKENS: Final = 220
OTHERS_TOKENS: Final = 60
"""Of these, how many the relations take that are only counted."""
SHOWN: Final = 3
"""How many neighbours a relation is shown with."""
_MOST_FACTS: Final = 160
_LONGEST_VALUE: Final = 80

_Group: TypeAlias = tuple[EdgeDirection, Iri]
_Groups: TypeAlias = Mapping[_Group, Sequence[Fact]]
_Sizes: TypeAlias = dict[_Group, Count]


@dataclass(frozen=True, slots=True)
class Card:
    """What is known around one entity, shortened.

    Args:
        lines: A line for each relation that fits, and one that counts the others.
        rows: The relations that have a line: direction, id, count, and the ids and values shown.
        labels: The labels of the entities and relations in `rows`, by short id.
    """

    lines: tuple[str, ...]
    rows: list[list[str]]
    labels: dict[str, str]


NO_CARD: Final = Card((), [], {})


async def entity_card(graph: KGAdapter, node: Node) -> Card:
    """Return the card of an entity, types and names left out; without lines where nothing else is stated."""
    # One more than is shown tells which relations have more, and only those need to be counted.
    request = NeighborRequest((node,), "both", limit=_MOST_FACTS, limit_per_relation=SHOWN + 1, values=True)
    page = (await graph.neighbors(request)).get(node)
    if page is None:
        return NO_CARD
    kept = [fact for fact in page.facts if fact.relation not in graph.vocabulary.unwalked]
    groups, sizes = await _once_each(graph, node, *await _counted(graph, node, kept, cut=page.cursor is not None))
    shown = [fact for facts in groups.values() for fact in facts[:SHOWN]]
    named = await names_of(graph, (node, *terms_of(shown), *(relation for _, relation in sizes)))
    opened = await with_intermediates(graph, shown, named, (node,))
    return _card(node, groups, sizes, opened)


def _grouped(node: Node, facts: Sequence[Fact]) -> _Groups:
    """Return facts by direction and relation: values first, then what the entity leads to, then what leads to it."""
    groups: dict[_Group, list[Fact]] = {}
    for fact in sorted(facts, key=lambda each: (each.head != node, not isinstance(each, Attribute))):
        groups.setdefault(("out" if fact.head == node else "in", fact.relation), []).append(fact)
    return groups


async def _counted(graph: KGAdapter, node: Node, facts: Sequence[Fact], *, cut: bool) -> tuple[_Groups, _Sizes]:
    """Return a sample of facts by relation, and how many there are of each, those without a sample too.

    A page takes the first of every relation, then the second: where it is cut, the last round may lack some.
    """
    groups = _grouped(node, facts)
    rounds = Counter((fact.head == node, fact.relation, isinstance(fact, Attribute)) for fact in facts)
    whole = max(rounds.values(), default=0) - 2 if cut else SHOWN
    sizes: _Sizes = {group: Count(len(found), exact=len(found) <= whole) for group, found in groups.items()}
    if all(size.exact for size in sizes.values()) and not cut:
        return groups, sizes
    for each in (await graph.degrees([node]))[node].relations:
        found = groups.get((each.direction, each.relation), ())
        # Values are no neighbours.
        if each.relation not in graph.vocabulary.unwalked and not any(isinstance(fact, Attribute) for fact in found):
            sizes[each.direction, each.relation] = each.count
    return groups, sizes


async def _once_each(graph: KGAdapter, node: Node, groups: _Groups, sizes: _Sizes) -> tuple[_Groups, _Sizes]:
    """Leave out what leads to an entity and says what leads from it over the inverse relation says already."""
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
        elif (found := await both_ways(graph, node, ahead[1], "out")) is not None and found.complete:
            straight, turned = found.straight, found.turned
        else:
            continue
        kept |= {ahead: straight, group: turned}
        counts |= {ahead: Count(len(straight)), group: Count(len(turned))}
    left = {group: size for group, size in counts.items() if size.value}
    return {group: facts for group, facts in kept.items() if group in left}, left


def _card(node: Node, groups: _Groups, sizes: _Sizes, opened: Opened) -> Card:
    names = opened.names
    room = CARD_TOKENS - OTHERS_TOKENS
    lines: dict[_Group, tuple[str, Sequence[Term]]] = {}
    for group, facts in groups.items():
        for most in (SHOWN, 1):
            far = [fact.tail if fact.head == node else fact.head for fact in facts[:most]]
            line = _line(group, far, _shown(sizes[group]), names)
            # A relation with long lines leaves room for the others.
            if token_count(line) <= (room if most == 1 else min(room, CARD_TOKENS // 4)):
                lines[group] = line, far
                room -= token_count(line)
                break
    left = {group: size for group, size in sizes.items() if group not in lines}
    terms = [term for _, far in lines.values() for term in far if not isinstance(term, Literal)]
    return Card(
        (*(line for line, _ in lines.values()), *([_others(left, names)] if left else ())),
        [_row(group, far, _shown(sizes[group]), names) for group, (_, far) in lines.items()],
        names.entity_labels(terms) | names.relation_labels(relation for _, relation in lines),
    )


def _line(group: _Group, far: Sequence[Term], size: str, names: Names) -> str:
    """Return `occupation (P106) | 15: writer (Q36180), actor (Q33999), …`; with `-` before it what leads to it."""
    direction, relation = group
    shown = ", ".join(names.term(term, _LONGEST_VALUE, relation=relation) for term in far)
    listed = shown if size == "1" else f"{size}: {shown}{'' if size == str(len(far)) else ', …'}"
    return f"{'-' if direction == 'in' else ''}{names.relation(relation)} | {listed}"


def _row(group: _Group, far: Sequence[Term], size: str, names: Names) -> list[str]:
    shown = [
        names.value(term, relation=group[1]) if isinstance(term, Literal) else names.entity_id(term) for term in far
    ]
    return [group[0], names.relation_id(group[1]), size, *shown]


def _others(left: _Sizes, names: Names) -> str:
    """Return the relations that have no line of their own, with their counts, as far as they fit."""
    parts = [
        f"{'-' if direction == 'in' else ''}{names.shown_label(relation)} {_shown(size)}"
        for (direction, relation), size in left.items()
    ]
    fits = max(1, fitting(parts, OTHERS_TOKENS))
    more = f"; and {len(parts) - fits} more" if fits < len(parts) else ""
    return f"also | {'; '.join(parts[:fits])}{more}"


def _shown(size: Count) -> str:
    return f"{size.value:,}{'' if size.exact else '+'}"
