"""JSON that is walked through while it is read, in pieces of any size."""

import io
import json
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_boundary.json_stream import BrokenJson, Json, JsonStream

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
values = scalars | st.lists(scalars, max_size=3) | st.dictionaries(st.text(max_size=3), scalars, max_size=3)
few = settings(max_examples=60, derandomize=True, deadline=None, database=None)


class InPieces(io.BytesIO):
    """Gives a few bytes at a time, whatever is asked for."""

    def __init__(self, content: bytes, size: int) -> None:
        super().__init__(content)
        self._size = size

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self._size if size != 4 else 4)


def walked(stream: JsonStream) -> list[tuple[str, Json]]:
    found = [(key, stream.value()) for key in stream.members()]
    stream.end()
    return found


@few
@given(
    st.dictionaries(st.text(max_size=5), values, max_size=5),
    st.integers(1, 7),
    st.sampled_from([None, 1]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
)
def test_members_are_those_that_the_whole_text_has(
    content: dict[str, Json], size: int, indent: int | None, encoding: str
) -> None:
    text = json.dumps(content, ensure_ascii=False, indent=indent).encode(encoding)
    assert walked(JsonStream(InPieces(text, size))) == list(content.items())


@few
@given(st.lists(values, max_size=4), st.integers(1, 7))
def test_items_come_with_their_numbers_and_lines(content: list[Json], size: int) -> None:
    text = "[\n" + ",\n".join(json.dumps(each) for each in content) + "]"
    stream = JsonStream(InPieces(text.encode(), size))
    found = [(number, stream.line, stream.value()) for number in stream.items()]
    stream.end()
    assert found == [(place, place + 1, value) for place, value in enumerate(content, start=1)]


@few
@given(st.binary(max_size=20) | st.text('{}[]",:1 \n\\u', max_size=20).map(str.encode), st.integers(1, 7))
def test_what_json_refuses_is_refused(text: bytes, size: int) -> None:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        whole = None
    if isinstance(whole, dict):
        assert dict(walked(JsonStream(InPieces(text, size)))) == whole
    else:
        with pytest.raises(BrokenJson):
            walked(JsonStream(InPieces(text, size)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,\n "b" 2}', "f.json, line 2, column 6: Expecting ':' delimiter"),
        ('{"a": 1\n\n"b": 2}', "f.json, line 3, column 1: Expecting ',' delimiter"),
        ('{"a": 1, }', "f.json, line 1, column 10: Expecting property name enclosed in double quotes"),
        ("{1: 2}", "f.json, line 1, column 2: Expecting property name enclosed in double quotes"),
        ('{"a": tru', "f.json, line 1, column 7: Expecting value"),
        ("{}x", "f.json, line 1, column 3: Extra data"),
        ("", "f.json, line 1, column 1: Expecting an object"),
        ('{"a": ' + "[" * 100_000, "f.json is nested too deeply"),
        ('{"a": ' + "1" * 5_000 + "}", "f.json holds a whole number with more digits than can be read"),
    ],
)
@pytest.mark.parametrize("size", [3, 1 << 20])
def test_an_error_names_the_place(text: str, message: str, size: int) -> None:
    with pytest.raises(BrokenJson) as caught:
        walked(JsonStream(InPieces(text.encode(), size)))
    assert caught.value.told("f.json") == message


def test_only_what_is_walked_is_held() -> None:
    file = BytesIO(b'{"rows": [' + b'{"text": "' + b"x" * 10_000 + b'"},' * 1_000 + b'{"last": 1}]}')
    stream = JsonStream(file)
    assert next(stream.members()) == "rows"
    assert next(stream.items()) == 1
    assert stream.value() == {"text": "x" * 10_000}
    assert file.tell() < 3 << 20


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_constants_that_are_no_json_are_refused_with_their_place_only_where_that_is_asked_for(constant: str) -> None:
    text = f'{{"a": 1,\n "b": {constant}}}'.encode()
    assert [key for key, _ in walked(JsonStream(BytesIO(text)))] == ["a", "b"]
    with pytest.raises(BrokenJson) as refused:
        walked(JsonStream(BytesIO(text), strict=True))
    assert refused.value.told("file") == f"file, line 2, column 7: {constant} is not a JSON value"
