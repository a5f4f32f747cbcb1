"""What GetNeighbor answers: its first line, its lines of facts, and its rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kg_adapters.models import Degree, Direction, NeighborPage
from kg_adapters.terms import Attribute, Fact, Iri, Node, Triple
from kg_server.intermediates import Opened
from kg_server.inverses import OPPOSITE, BothWays
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
    tail = names.entity_id(fact.tail) if isinstance(fact, Triple) else names.value(fact.tail, relation=fact.relation)
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
        how = "" if query.both is None else query.both.said(names)
        subject += f" with {names.relation(query.relation)}{how}"
    elif relations > 1:
        subject += f" over {relations:,} relations"
    if page.cursor is not None:
        return f'{subject}; {len(page.facts)} here, sampled across relations. Next page: cursor="{page.cursor}".'
    if query.position is not None:
        return f"{subject}; the last {len(page.facts)} here."
    return f"{subject}; all here." if query.both is not None and query.both.turned else f"{subject}, all here."


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
