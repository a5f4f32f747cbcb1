"""Turns, and the cursors that continue them."""

import pytest

from kg_adapters.errors import InvalidRequest
from kg_adapters.paging import NeighborQuery, in_turns
from kg_adapters.terms import Node
from kg_adapters.testing import iri

QUERY = NeighborQuery("both", frozenset({iri("near"), iri("twin")}), 3, 10)


def test_turns_take_the_first_of_every_group_then_the_second() -> None:
    assert list(in_turns(["abc", "", "d", "ef"])) == list("adebfc")
    assert list(in_turns(["", ""])) == []


def test_a_cursor_carries_how_many_were_shown() -> None:
    assert QUERY.offset([iri("a")], QUERY.cursor(iri("a"), 40)) == 40
    assert QUERY.offset([iri("a")], None) == 0


def test_the_size_of_the_page_may_change_between_pages_and_nothing_else() -> None:
    cursor = QUERY.cursor(iri("a"), 40)
    assert NeighborQuery("both", frozenset({iri("twin"), iri("near")}), 3, 99).offset([iri("a")], cursor) == 40
    others = [
        NeighborQuery("out", QUERY.relations, 3, 10),
        NeighborQuery("both", None, 3, 10),
        NeighborQuery("both", frozenset(), 3, 10),
        NeighborQuery("both", QUERY.relations, None, 10),
    ]
    for query in others:
        with pytest.raises(InvalidRequest, match="does not continue this question"):
            query.offset([iri("a")], cursor)


@pytest.mark.parametrize("entities", [[], [iri("a"), iri("b")]])
def test_a_cursor_belongs_to_one_entity(entities: list[Node]) -> None:
    with pytest.raises(InvalidRequest, match="Ask for that entity alone"):
        QUERY.offset(entities, QUERY.cursor(iri("a"), 40))


@pytest.mark.parametrize(("limit", "limit_per_relation"), [(0, None), (-1, None), (5, 0)])
def test_limits_are_at_least_one(limit: int, limit_per_relation: int | None) -> None:
    with pytest.raises(InvalidRequest, match="at least 1"):
        NeighborQuery("out", None, limit_per_relation, limit)
