"""What GetNeighbor answers: its first line, its lines of facts, and its rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kg_adapters.models import Degree, Direction, NeighborPage, RelationCount
from kg_adapters.terms import Attribute, Fact, Iri, Node, Triple
from kg_server.intermediates import Opened, ends_of
from kg_server.inverses import OPPOSITE, BothWays
from kg_server.names import Names
from kg_server.relation_counts import ADJECTIVES, RelationTable, by_direction
from kg_server.relation_resolution import Chosen
from kg_server.results import Answer, Knowledge, NeighborsResult

MOST_INCOMING: Final = 6
"""Of how many relations that lead to an entity it is said how often they do, where they are not shown."""


@dataclass(frozen=True, slots=True)
class Query:
    """One call of GetNeighbor, with terms in place of ids."""

    entity: Node
    chosen: Chosen | None
    direction: Direction
    limit: int
    position: str | None
    both: BothWays | None = None

    @property
    def relation(self) -> Iri | None:
        """The relation, where one is named."""
        return None if self.chosen is None else self.chosen.relation

    @property
    def read(self) -> Sequence[Iri]:
        """What is shown with its label of the relation that was asked for."""
        read = () if self.chosen is None else self.chosen.terms
        return read if self.both is None else (*read, self.both.inverse)

    def said(self, names: Names) -> str:
        """Return what the relation was read as; nothing where that need not be said."""
        return "" if self.chosen is None else self.chosen.said(names)


def neighbor_answer(
    query: Query,
    page: NeighborPage,
    table: RelationTable,
    opened: Opened,
    incoming: Sequence[RelationCount] | None = None,
) -> Answer:
    """Return the answer that shows a page, with what its intermediate nodes hold.

    Args:
        query: What was asked.
        page: The facts.
        table: Of which relations how many there are.
        opened: The names of all, and what intermediate nodes hold.
        incoming: How much leads to the entity, where that is known.
    """
    names = opened.names
    grouped = sorted(page.facts, key=lambda fact: (fact.head != query.entity, fact.relation))
    held = opened.held(grouped)
    outgoing, ahead = by_direction(table.counts)
    result = NeighborsResult(
        status="truncated" if page.truncated else "ok",
        summary=_summary(query, page, table.relations, names, incoming) + opened.said,
        triples=[names.row(each) for each in grouped if isinstance(each, Triple)],
        values=[names.row(each) for each in grouped if isinstance(each, Attribute)],
        held=[names.row(each) for each in held] or None,
        labels=names.entity_labels(dict.fromkeys(ends_of((*grouped, *held)))),
        relations=names.relation_labels(dict.fromkeys(fact.relation for fact in (*grouped, *held))),
        outgoing=names.counts(outgoing),
        incoming=names.counts(ahead),
        total=page.total.value,
        cursor=page.cursor,
    )
    return Answer(result, () if _is_only(query, page) else (*table.lines, *_lines(query, grouped, names)))


def _is_only(query: Query, page: NeighborPage) -> bool:
    """Say whether a page is the only fact over a relation that was named: then the first line tells it."""
    return query.relation is not None and page.total.value == len(page.facts) == 1 and not page.truncated


def _lines(query: Query, facts: Sequence[Fact], names: Names) -> Iterator[str]:
    """Yield a line for each fact: its relation where it is another one, `-` before it where it leads to the entity."""
    groups = [(fact.relation, fact.head != query.entity) for fact in facts]
    alone = query.relation is not None and len(set(groups)) == 1
    for place, (fact, (relation, backwards)) in enumerate(zip(facts, groups, strict=True)):
        far = names.entity(fact.head) if backwards else names.term(fact.tail, relation=relation)
        repeated = place and groups[place - 1] == groups[place]
        over = "" if repeated else f"{'-' if backwards else ''}{names.relation(relation)} "
        yield far if alone else f"{over}| {far}"


def _summary(
    query: Query, page: NeighborPage, relations: int, names: Names, incoming: Sequence[RelationCount] | None
) -> str:
    said, subject = query.said(names), names.entity(query.entity)
    if query.relation is None and query.direction == "out" and not page.truncated:
        total = f"{page.total} outgoing {_noun(page)}"
        return f"{said}{subject} has {total}, all here; {_incoming(incoming, names)}."
    if _is_only(query, page):
        return f"{said}{names.fact(page.facts[0])}{_how(query, names)}.{_elsewhere(query, names)}"
    side = "" if query.direction == "out" and query.relation is not None else f" {ADJECTIVES[query.direction]}"
    if query.relation is not None:
        extent = f"{said}{subject} has {page.total}{side} {names.relation(query.relation)}{_how(query, names)}"
    else:
        over = f" over {relations:,} relations" if relations > 1 else ""
        extent = f"{said}{subject} has {page.total}{side} {_noun(page)}{over}"
    return f"{extent}{_shown(query, page)}{_elsewhere(query, names)}"


def _noun(page: NeighborPage) -> str:
    noun = "triple" if len(page.triples) == len(page.facts) else "fact"
    return noun if page.total.value == 1 else f"{noun}s"


def _shown(query: Query, page: NeighborPage) -> str:
    if page.cursor is not None:
        sampled = ", sampled across relations" if query.relation is None else ""
        return f'; {len(page.facts)} here{sampled}. Next page: cursor="{page.cursor}".'
    if query.position is not None:
        return f"; the last {len(page.facts)} here."
    return ":" if query.relation is not None else ", all here."


def _how(query: Query, names: Names) -> str:
    return "" if query.both is None else query.both.said(names)


def _incoming(counts: Sequence[RelationCount] | None, names: Names) -> str:
    """Return half a sentence on what leads to an entity, and is not shown; None where nobody asked."""
    if counts is None:
        return 'direction="in" shows what leads to it'
    if not counts:
        return "nothing leads to it"
    ordered = sorted(counts, key=lambda each: (-each.count.value, each.relation))
    parts = [f"{names.shown_label(each.relation)} {each.count}" for each in ordered[:MOST_INCOMING]]
    more = f" and {len(ordered) - MOST_INCOMING} more relations" if len(ordered) > MOST_INCOMING else ""
    return f'direction="in" shows {sum(each.count.value for each in counts):,} more: {", ".join(parts)}{more}'


def _elsewhere(query: Query, names: Names) -> str:
    """Return a sentence on the inverse relation of a hub, which is not walked with it; nothing where it was."""
    if query.both is None or query.both.complete:
        return ""
    inverse, back = names.relation(query.both.inverse), OPPOSITE[query.direction]
    return f' More may be stored the other way, as {inverse}: direction="{back}".'


def no_neighbors(summary: str, knowledge: Knowledge = "unknown") -> NeighborsResult:
    """Return the answer without any facts."""
    return NeighborsResult(
        status="empty",
        knowledge=knowledge,
        summary=summary,
        triples=[],
        labels={},
        relations={},
        outgoing={},
        incoming={},
        total=0,
    )


def absence_said(query: Query, degree: Degree, names: Names, coverage: str) -> str:
    """Return the first line of an answer that finds nothing."""
    subject = (
        f"{query.said(names)}{names.entity(query.entity)} is known, but has no {ADJECTIVES[query.direction]} triples"
    )
    if query.relation is not None:
        side = "" if query.direction == "out" else f"{ADJECTIVES[query.direction]} "
        lacks = f"has no {side}{names.relation(query.relation)} here{coverage}"
        subject = f"{query.said(names)}{names.entity(query.entity)} {lacks}"
    if not degree.relations:
        return f"{subject}. It has no neighbours at all; Feature shows its values."
    elsewhere = [each for each in degree.relations if each.relation == query.relation]
    if elsewhere:
        other = elsewhere[0].direction
        return f'{subject}. It has {elsewhere[0].count} in the other direction: direction="{other}".'
    return f"{subject}. It has these:"
