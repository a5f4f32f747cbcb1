"""Answers about sets with their values as people write them."""

from dataclasses import replace

from kg_adapters.set_requests import Cell, Computed, Row, Witness
from kg_adapters.terms import Attribute, Fact, Literal, Term
from kg_adapters.wikidata.values import plain


def as_people_read(computed: Computed) -> Computed:
    """Return an answer with days without a time, and numbers without a plus.

    Truthy statements do not say how precise a date is: what is known to the year only shows as its first day.
    """
    value = computed.value
    return replace(
        computed,
        members=tuple(map(_read, computed.members)),
        groups=tuple(replace(group, by=_read(group.by)) for group in computed.groups),
        rows=tuple(Row(row.node, tuple(map(_cell, row.cells))) for row in computed.rows),
        shared=tuple(replace(shared, term=_read(shared.term)) for shared in computed.shared),
        value=plain(value) if isinstance(value, Literal) else value,
        witnesses=tuple(Witness(_read(each.result), tuple(map(_fact, each.facts))) for each in computed.witnesses),
    )


def _read(term: Term) -> Term:
    return plain(term) if isinstance(term, Literal) else term


def _cell(cell: Cell) -> Cell:
    return replace(cell, terms=tuple(map(_read, cell.terms)))


def _fact(fact: Fact) -> Fact:
    return replace(fact, tail=plain(fact.tail)) if isinstance(fact, Attribute) else fact
