"""What GetNeighbor answers: its first line, its lines of facts, and its rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kg_adapters.models import Degree, Direction, NeighborPage
from kg_adapters.terms import Attribute, Fact, Iri, Node, Triple
from kg_server.intermediates import Opened
from kg_server.inverses import OPPOSITE, Walked
from kg_server.names import Names
from kg_server.relation_counts import ADJECTIVES, RelationTable, by_direction
from kg_server.relation_resolution import Chosen
from kg_server.results import Answer, Knowledge, NeighborsResult


@dataclass(frozen=True, slots=True)
class Query:
    """One call of GetNeighbor, with terms in place of ids."""

    entity: Node
    chosen: Chosen | None
    direction: Direction
    limit: int
    position: str | None
    instead_of: Chosen | None = None
    walked: Walked | None = None

    @property
    def relation(self) -> Iri | None:
        """The relation, where one is named."""
        return None if self.chosen is None else self.chosen.relation

    @property
    def read(self) -> Sequence[Iri]:
        """What is shown with its label of the relation that was asked for."""
        chosen = (each for each in (self.chosen, self.instead_of) if each is not None)
        terms = [term for each in chosen for term in each.terms]
        return terms if self.walked is None or self.walked.inverse is None else [*terms, self.walked.inverse]

    def said(self, names: Names) -> str:
        """Return what the relation was read as; nothing where that need not be said."""
        if self.chosen is None or self.instead_of is None:
            return "" if self.chosen is None else self.chosen.said(names)
        asked, stored = names.relation(self.instead_of.relation), names.relation(self.chosen.relation)
        return f"{self.instead_of.said(names)}{asked} is stored here as {stored}, its inverse. "


def neighbor_answer(query: Query, page: NeighborPage, table: RelationTable, opened: Opened) -> Answer:
    """Return the answer that shows a page, with what its intermediate nodes hold."""
    names = opened.names
    grouped = sorted(page.facts, key=lambda fact: (fact.head != query.entity, fact.relation))
    held = opened.held(grouped)
    outgoing, incoming = by_direction(table.counts)
    result = NeighborsResult(
        status="truncated" if page.truncated else "ok",
        summary=_summary(query, page, table.relations, names) + _elsewhere(query, names) + opened.said,
        triples=[_row(each, names) for each in grouped if isinstance(each, Triple)],
        values=[_row(each, names) for each in grouped if isinstance(each, Attribute)],
        held=[_row(each, names) for each in held] or None,
        labels=names.entity_labels(dict.fromkeys(_ends((*grouped, *held)))),
        relations=names.relation_labels(dict.fromkeys(fact.relation for fact in (*grouped, *held))),
        outgoing=names.counts(outgoing),
        incoming=names.counts(incoming),
        total=page.total.value,
        cursor=page.cursor,
    )
    return Answer(result, (*table.lines, *map(names.fact, grouped)))


def _row(fact: Fact, names: Names) -> list[str]:
    tail = names.entity_id(fact.tail) if isinstance(fact, Triple) else names.value(fact.tail)
    return [names.entity_id(fact.head), names.relation_id(fact.relation), tail]


def _ends(facts: Sequence[Fact]) -> Iterator[Node]:
    for fact in facts:
        yield fact.head
        if isinstance(fact, Triple):
            yield fact.tail


def _summary(query: Query, page: NeighborPage, relations: int, names: Names) -> str:
    noun = "triple" if len(page.triples) == len(page.facts) else "fact"
    noun += "" if page.total.value == 1 else "s"
    subject = f"{query.said(names)}{names.entity(query.entity)} has {page.total} {ADJECTIVES[query.direction]} {noun}"
    if query.relation is not None:
        subject += f" with {names.relation(query.relation)}"
    elif relations > 1:
        subject += f" over {relations:,} relations"
    if page.cursor is not None:
        return f'{subject}; {len(page.facts)} here, sampled across relations. Next page: cursor="{page.cursor}".'
    if query.position is not None:
        return f"{subject}; the last {len(page.facts)} here."
    return f"{subject}, all here."


def _elsewhere(query: Query, names: Names) -> str:
    """Return a sentence on the facts that are stored over the inverse relation only; nothing where there are none."""
    if query.walked is None or query.walked.inverse is None or query.position is not None:
        return ""
    back = OPPOSITE[query.direction]
    inverse = names.relation_id(query.walked.inverse)
    return f'{query.walked.said(names)} The others: relation="{inverse}", direction="{back}".'


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
