"""Positions that clients carry, sealed to what they are about."""

import pytest

from kg_adapters.errors import InvalidRequest
from kg_adapters.requests import Position, read_cursor, write_cursor

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
