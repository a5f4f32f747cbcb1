import base64

import pytest

from kg_adapters.errors import InvalidRequest
from kg_server.cursors import pack, unpack


def test_a_cursor_gives_its_position_back_to_the_question_it_belongs_to() -> None:
    assert unpack(pack("12:3", "graph", "Q1"), "graph", "Q1") == "12:3"


def test_a_cursor_of_another_question_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="another question"):
        unpack(pack("12:3", "graph", "Q1"), "graph", "Q2")


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "\u00e9", "!!!!", "a" * 5_000, base64.urlsafe_b64encode(b'{"question": 1}').decode()],
    ids=["empty", "short", "accent", "marks", "long", "shape"],
)
def test_a_damaged_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidRequest, match="damaged"):
        unpack(cursor, "graph")
