"""Rows that are read while they come are the rows of the whole document, however it was cut."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from kg_adapters.sparql.arrival import JsonRows
from kg_adapters.sparql.solutions import UnreadableAnswer

OBJECT, ARRAY = TypeAdapter(dict[str, object]), TypeAdapter(list[object])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.text().filter(lambda name: name not in {"results", "bindings"})
OTHERS = st.dictionaries(NAMES, VALUES, max_size=3)
CUTS = st.lists(st.integers(min_value=1, max_value=40), min_size=1, max_size=30)


def read(body: bytes, sizes: Sequence[int]) -> tuple[list[object], dict[str, object]]:
    json_rows, rows, at = JsonRows(), list[object](), 0
    for number in range(len(body)):
        size = sizes[number % len(sizes)]
        rows += json_rows.feed(body[at : at + size])
        at += size
        if at >= len(body):
            break
    return [*rows, *json_rows.end()], json_rows.members


ROWS = st.lists(st.dictionaries(st.text(), VALUES, max_size=3), max_size=5)


@given(ROWS, OTHERS, OTHERS, OTHERS, st.sampled_from([None, 2]), st.booleans(), CUTS)
def test_however_a_document_is_cut_it_says_the_same(
    rows: list[dict[str, object]],
    before: dict[str, object],
    behind: dict[str, object],
    beside: dict[str, object],
    indent: int | None,
    ascii_only: bool,
    sizes: list[int],
) -> None:
    document = {**before, "results": {**beside, "bindings": rows}, **behind}
    body = json.dumps(document, indent=indent, ensure_ascii=ascii_only).encode(errors="replace")
    said = json.loads(body)
    found, members = read(body, sizes)
    assert (found, members) == (said["results"]["bindings"], {**said, "results": {**said["results"], "bindings": []}})


@given(st.binary(max_size=200) | st.text('{}[]",:results bindings\\1e-', max_size=60).map(str.encode), CUTS)
def test_what_is_refused_is_no_json_object_and_what_is_read_is_one(body: bytes, sizes: list[int]) -> None:
    try:
        found, members = read(body, sizes)
    except UnreadableAnswer:
        with pytest.raises((ValueError, AssertionError)):
            _whole(body)
    else:
        said = _whole(body)
        assert (found, members.keys()) == (_rows_of(said), said.keys())


def _whole(body: bytes) -> dict[str, object]:
    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        names = [name for name, _ in pairs]
        assert not [name for name in ("results", "bindings") if names.count(name) > 1]
        return dict(pairs)

    return OBJECT.validate_python(json.loads(body.decode(), object_pairs_hook=once))


def _rows_of(said: dict[str, object]) -> list[object]:
    try:
        return ARRAY.validate_python(OBJECT.validate_python(said.get("results")).get("bindings"))
    except ValidationError:
        return []


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        '{"a":1',
        '{"a":1}}',
        '{"a":1,}',
        '{"a" 1}',
        '{"results":{"bindings":[{},]}}',
        '{"results":{"bindings":[1]}}',
        '{"results":{"bindings":[{} {}]}}',
        '{"results":{"bindings":[{}],"bindings":[{}]}}',
        '{"results":{"bindings":[{}]},"results":{}}',
        '{"results":1,"results":{"bindings":[]}}',
        '{"results":{"bindings":[{}]',
        '{"results":{"bindings":[{}}',
        "\ufeff{}",
        "{1:2}",
        '{"n":' + "1" * 5_000 + "}",
        '{"n":' + "[" * 100_000,
    ],
)
def test_what_is_no_such_document_is_refused(body: str) -> None:
    with pytest.raises(UnreadableAnswer):
        read(body.encode(), [10_000])


def test_half_a_character_is_refused() -> None:
    with pytest.raises(UnreadableAnswer, match="not written in UTF-8"):
        read(b'{"a":"\xc3"}', [100])
