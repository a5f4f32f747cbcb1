import pytest

from kg_adapters.errors import InvalidRequest
from kg_server.cursors import pack, unpack


def test_a_cursor_gives_its_position_back_to_the_question_it_belongs_to() -> None:
    for position in ("12:3", "0-2-c7de00fbb29c81e8", "http://e.org/\u6771?a=b&c=%20 d"):
        assert unpack(pack(position, "graph", "Q1"), "graph", "Q1") == position


def test_a_cursor_is_short_enough_to_be_copied() -> None:
    assert len(pack("0-2-c7de00fbb29c81e8", "graph", "Q1")) == 33


def test_a_cursor_of_another_question_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="another question"):
        unpack(pack("12:3", "graph", "Q1"), "graph", "Q2")


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "\u00e9", "!!!!", "a" * 5_000, "642fdc43af54", "642fdc43af54.", "642fdc43af54.1 2"],
    ids=["empty", "short", "accent", "marks", "long", "bare", "open", "spaced"],
)
def test_a_damaged_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidRequest, match="damaged"):
        unpack(cursor, "graph")
