"""Brackets are counted where they open something, however a text is cut into parts."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_adapters.files.nesting import Nesting
from kg_adapters.reading_limits import MAX_DEPTH, Refused

TURTLE = b'''@prefix e: <http://e/[x> . # it's [[[ ("
e:a e:p """ [[ " "" \\""" ((( """, "[[", '((', \'\'\' {{{ ' '' \'\'\', e:it\\'s\\(x, "", '' ; e:q [ e:r ( 1 2 [ ] ) ] .
e:a e:p << e:a e:b e:c >> ; <= <http://x> , "a\\"[[[" .
e:z e:z <<( e:a e:b """x
[[[[(((
y""" )>> .
'''
WORDS = st.lists(st.text(alphabet='[]{}"\\a', max_size=8), max_size=8)


def follow(text: bytes, step: int, *, turtle: bool) -> None:
    nesting = Nesting(turtle=turtle)
    for start in range(0, len(text), step):
        nesting.feed(text[start : start + step])
    nesting.feed(b"")


def is_too_deep(text: bytes, step: int, *, turtle: bool) -> bool:
    try:
        follow(text, step, turtle=turtle)
    except Refused:
        return True
    return False


@pytest.mark.parametrize("step", [1, 2, 3, 7, 64, 100_000])
def test_the_last_bracket_that_may_open_is_the_256th(step: int) -> None:
    # What stands before is balanced, but for brackets in strings, IRIs, names and comments.
    for before, opening, turtle in ((TURTLE * 3, b"[", True), (TURTLE, b"(", True), (b'["]", "\\"]"],', b"{", False)):
        assert not is_too_deep(before + opening * MAX_DEPTH, step, turtle=turtle)
        assert is_too_deep(before + opening * (MAX_DEPTH + 1), step, turtle=turtle)


@pytest.mark.parametrize("quote", [b'"', b"'"])
def test_a_string_that_is_longer_than_what_is_looked_at_is_still_a_string(quote: bytes) -> None:
    text = b"<http://e/a> <http://e/p> " + quote + b"( " * 100_000 + quote + b" ."
    assert not is_too_deep(text, 1 << 16, turtle=True)
    assert is_too_deep(text + b"(" * 257, 1 << 16, turtle=True)


def test_a_term_within_a_term_counts() -> None:
    assert is_too_deep(b"<http://e/a> <http://e/p> <<( " * 129, 1 << 16, turtle=True)


def test_after_an_error_nothing_is_open() -> None:
    nesting = Nesting(turtle=True)
    for _ in range(3):
        nesting.feed(b"[ " * 200 + b"\n")
        nesting.restart()


@settings(deadline=None, max_examples=30)
@given(WORDS, st.integers(1, 9))
def test_json_is_as_deep_as_it_is_whatever_its_parts(words: list[str], step: int) -> None:
    value: object = words
    for _ in range(MAX_DEPTH - 1):
        value = [*words, value]
    assert not is_too_deep(json.dumps(value).encode(), step, turtle=False)
    assert is_too_deep(json.dumps({"a": value}).encode(), step, turtle=False)
