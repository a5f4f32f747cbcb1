"""Turns, and the cursors that continue them."""

from dataclasses import replace

import pytest

from kg_adapters.errors import InvalidRequest
from kg_adapters.requests import NeighborRequest, cursor_at, in_turns, offset_of
from kg_adapters.testing import iri

A = iri("a")
REQUEST = NeighborRequest((A,), relations=frozenset({iri("near"), iri("twin")}), limit=10, limit_per_relation=3)
CURSOR = cursor_at(40, REQUEST, A, "map")


def test_turns_take_the_first_of_every_group_then_the_second() -> None:
    assert list(in_turns(["abc", "", "d", "ef"])) == list("adebfc")
    assert list(in_turns(["", ""])) == []


def test_a_cursor_carries_how_many_were_shown() -> None:
    assert offset_of(replace(REQUEST, cursor=CURSOR), "map") == 40
    assert offset_of(REQUEST, "map") == 0


def test_the_size_of_the_page_may_change_between_pages_and_nothing_else() -> None:
    again = replace(REQUEST, cursor=CURSOR, limit=99, relations=frozenset({iri("twin"), iri("near")}))
    assert offset_of(again, "map") == 40
    others = [
        replace(again, entities=(iri("b"),)),
        replace(again, direction="out"),
        replace(again, relations=None),
        replace(again, relations=frozenset()),
        replace(again, limit_per_relation=None),
        replace(again, values=True),
    ]
    for request in others:
        with pytest.raises(InvalidRequest, match="belongs to another question"):
            offset_of(request, "map")
    with pytest.raises(InvalidRequest, match="goes with another graph"):
        offset_of(again, "country")
