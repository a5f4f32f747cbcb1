"""Requests, pages, cursors and the values of answers."""

from dataclasses import replace

import pytest

from kg_adapters.errors import InvalidRequest
from kg_adapters.models import Count, Path, PathsFound
from kg_adapters.requests import (
    FeatureRequest,
    NeighborRequest,
    Position,
    SurroundingsRequest,
    cursor_at,
    in_turns,
    offset_of,
    read_cursor,
    write_cursor,
)
from kg_adapters.terms import BlankNode, Iri, Triple
from kg_adapters.testing import edges, iri
from path_reference import path_order

TOKYO, PARIS = Iri("http://example.org/tokyo"), Iri("http://example.org/paris")


@pytest.mark.parametrize(("limit", "limit_per_relation"), [(0, None), (-1, 5), (5, 0)])
def test_neighbors_are_asked_for_with_limits_of_at_least_one(limit: int, limit_per_relation: int | None) -> None:
    with pytest.raises(InvalidRequest, match="at least 1"):
        NeighborRequest((TOKYO,), limit=limit, limit_per_relation=limit_per_relation)


def test_a_cursor_goes_with_one_entity_however_often_it_is_named() -> None:
    assert NeighborRequest((TOKYO, TOKYO), cursor="1").cursor == "1"
    for several in ((), (TOKYO, PARIS), (TOKYO, BlankNode("b0"))):
        with pytest.raises(InvalidRequest, match="one entity"):
            NeighborRequest(several, cursor="1")


def test_features_and_surroundings_are_asked_for_with_limits_of_at_least_one() -> None:
    with pytest.raises(InvalidRequest, match="it is 0"):
        FeatureRequest((TOKYO,), limit=0)
    for per_relation, per_entity in ((0, 1), (1, 0)):
        with pytest.raises(InvalidRequest, match="it is 0"):
            SurroundingsRequest((TOKYO,), per_relation=per_relation, per_entity=per_entity)


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


QUESTION = ("Q1", "out")
SEAL = "c7de00fb29c81e81"


@pytest.mark.parametrize("position", [(0,), (12, 3), (999_999_999_999, 0, 7)])
def test_a_cursor_gives_its_position_back_to_the_question_it_belongs_to(position: Position) -> None:
    cursor = write_cursor(position, QUESTION, "graph")
    assert read_cursor(cursor, len(position), QUESTION, "graph") == position


def test_a_cursor_is_short_enough_to_be_copied() -> None:
    assert len(write_cursor((0, 2), QUESTION, "graph")) == 20


def test_a_cursor_of_another_question_or_graph_is_refused() -> None:
    cursor = write_cursor((12,), QUESTION, "graph")
    with pytest.raises(InvalidRequest, match="another question"):
        read_cursor(cursor, 1, ("Q2", "out"), "graph")
    with pytest.raises(InvalidRequest, match="another graph"):
        read_cursor(cursor, 1, QUESTION, "map")


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "\u00e9",
        "!!!!",
        "1" * 5_000,
        SEAL,
        SEAL + ".",
        SEAL + ".1 2",
        SEAL + ".-1",
        SEAL + ".\u0663",
        SEAL[1:] + ".1",
    ],
    ids=["empty", "letter", "accent", "marks", "long", "bare", "open", "spaced", "negative", "digits", "cut"],
)
def test_a_damaged_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidRequest, match="damaged"):
        read_cursor(cursor, 1, QUESTION, "graph")


def test_a_cursor_with_fewer_or_more_numbers_is_damaged() -> None:
    with pytest.raises(InvalidRequest, match="damaged"):
        read_cursor(write_cursor((1, 2), QUESTION, "graph"), 1, QUESTION, "graph")


def test_a_count_says_whether_it_is_exact() -> None:
    assert (str(Count(1234567)), str(Count(1000, exact=False))) == ("1,234,567", "at least 1,000")


def test_a_count_that_found_nothing_in_its_time_says_no_number() -> None:
    assert (str(Count(0)), str(Count(0, exact=False))) == ("0", "uncounted")


@pytest.mark.parametrize(
    ("found", "exhaustive"),
    [
        (PathsFound((), Count(0), None, ()), True),
        (PathsFound((), Count(0, exact=False), "time", ()), False),
        (PathsFound((), Count(0, exact=False), "expansions", ()), False),
        (PathsFound((), Count(0), None, (iri("hub"),)), False),
    ],
)
def test_a_search_is_exhaustive_when_nothing_stopped_it_and_no_hub_was_skipped(
    found: PathsFound, exhaustive: bool
) -> None:
    assert found.exhaustive is exhaustive


def test_paths_are_sorted_by_hops_then_inner_degree_then_ids() -> None:
    blank = BlankNode("b")
    in_order = [
        Path((iri("a"), iri("z")), edges("a near z"), 0),
        Path((iri("a"), iri("z")), edges("z near a"), 0),
        Path((iri("a"), iri("y"), iri("z")), edges("a near y", "y near z"), 2),
        Path(
            (iri("a"), blank, iri("z")), (Triple(iri("a"), iri("near"), blank), Triple(blank, iri("near"), iri("z"))), 3
        ),
        Path((iri("a"), iri("m"), iri("z")), edges("a near m", "m near z"), 3),
        Path((iri("a"), iri("m"), iri("z")), edges("a near m", "m nearer z"), 3),
        Path((iri("a"), iri("c"), iri("d"), iri("z")), edges("a near c", "c near d", "d near z"), 1),
    ]
    assert sorted(in_order[3:] + in_order[:3], key=path_order) == in_order
