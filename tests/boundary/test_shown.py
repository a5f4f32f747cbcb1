"""What crosses the edge of the process: shown texts, addresses and streams of JSON."""

import io
import json
import logging
import unicodedata
from io import BytesIO

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kg_boundary.addresses import base_url_problem, credentials_in, credentials_in_command, masked, masked_command
from kg_boundary.json_stream import BrokenJson, Json, JsonStream
from kg_boundary.shown import (
    LogLines,
    clipped,
    in_quotes,
    is_plain,
    json_text,
    read_back,
    shown,
    shown_within,
    visible_line,
    visible_lines,
)

SPECIAL = (
    "\\|[]-><(): \n\r\t\"'nurt0aA…\x00\x7f\x85\u00a0\u00ad\u034f\u061c\u200b\u200d\u2028\u202e\u2066\u3164\ufe0f\ufeff"
)
TEXTS = st.text(
    st.sampled_from(SPECIAL) | st.characters() | st.sampled_from("\ud800\udfff\U000e0041\U000e0100\U0001f600")
)


@settings(deadline=None, derandomize=True, max_examples=500)
@given(TEXTS)
@example("\\u202e")
@example("\\\\n\n")
@example("\ud83d\ude00")
def test_what_is_shown_is_one_line_of_one_column_and_reads_back_as_the_very_text(text: str) -> None:
    line = shown(text)
    assert read_back(line) == text
    assert line.isprintable()
    assert " | " not in f" {line} "
    assert is_plain(text) is (line == text)


@settings(deadline=None, derandomize=True, max_examples=500)
@given(TEXTS, st.integers(3, 40))
@example("\n" * 40, 12)
@example("abc\u202e" * 9, 9)
@example("\u6771" * 40, 10)
def test_a_text_is_cut_between_escapes_and_never_inside_one(text: str, most: int) -> None:
    cut = shown_within(text, most)
    assert len(cut) <= most
    assert len(cut.encode()) <= 2 * most
    assert cut == shown(text) or (cut.endswith("…") and text.startswith(read_back(cut[:-1])))
    assert clipped(cut, most) == cut


@pytest.mark.parametrize("text", ["\u202e" * 9, "\U000e0041" * 9, "\n" * 20, "a\\" * 20])
@pytest.mark.parametrize("most", range(3, 30))
def test_what_is_shown_already_is_cut_between_escapes(text: str, most: int) -> None:
    kept = clipped(shown(text), most).removesuffix("…")
    assert text.startswith(read_back(kept))
    assert kept == shown(read_back(kept))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("b)\nAnn (a) | killed | Bob (b", r"b)\nAnn (a) \| killed \| Bob (b"),
        ("C:\\temp", r"C:\\temp"),
        ("a\r\n\tb", r"a\r\n\tb"),
        ("a\u2028b\u2029c\x85d", r"a\u2028b\u2029c\u0085d"),
        ("\u202aa\u202eb\u2066c\u2069d\u200ee\u200ff\u061c", r"\u202aa\u202eb\u2066c\u2069d\u200ee\u200ff\u061c"),
        ("a\u200bb\u200dc\ufeffd\u00ade", r"a\u200bb\u200dc\ufeffd\u00ade"),
        ("a\U000e0041\U000e0100b", r"a\U000e0041\U000e0100b"),
        ("a\u3164b\u034fc\u00a0d", r"a\u3164b\u034fc\u00a0d"),
        ("\ud800", r"\ud800"),
        ("\x1b[31m", r"\u001b[31m"),
        ("Ann -[killed]-> Bob <-[saw]- Eve", r"Ann -\[killed]\-> Bob <-\[saw]\- Eve"),
        ("-[a]->", r"-\[a]\->"),
        ("A -> B", r"A -\> B"),
        ("\u2764\ufe0f\ufe0f", "\u2764\ufe0f" + r"\ufe0f"),
    ],
)
def test_marks_that_make_form_or_cannot_be_seen_are_escaped(text: str, line: str) -> None:
    assert shown(text) == line


@pytest.mark.parametrize(
    "text",
    [
        "Tokyo",
        "東京都",
        "القاهرة",
        "Ærøskøbing",
        "e\u0301",
        "😀 \u2764\ufe0f",
        "हिन्दी",
        "2-[4-(2-methoxyethyl)phenoxy]-3-ol",
        "a [sic] (b), c: 'd' \"e\" <f> a->b x>y…",
        "",
    ],
)
def test_ordinary_text_of_any_script_is_left_as_it_is(text: str) -> None:
    assert shown(text) == text
    assert visible_line(text) == text


def test_every_invisible_character_of_unicode_is_escaped() -> None:
    unseen = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    marks = [chr(number) for number in range(0x110000) if unicodedata.category(chr(number)) in unseen]
    assert len(marks) > 100_000
    assert set(marks).isdisjoint(shown("".join(marks)))


def test_a_message_repeats_what_it_was_given_in_quotation_marks() -> None:
    assert in_quotes("a\nb") == r"'a\nb'"
    assert in_quotes("it's") == '"it\'s"'
    assert in_quotes("""it's "so\"""") == r"""'it\'s "so"'"""
    assert in_quotes("x" * 100, 10) == f"'{'x' * 9}…'"


@settings(deadline=None, derandomize=True)
@given(TEXTS)
def test_what_is_shown_already_does_not_change_on_its_way_out(text: str) -> None:
    assert visible_line(shown(text)) == shown(text)
    assert visible_line(text).isprintable()
    assert visible_lines(f"{text}\nb").split("\n")[-1] == "b"


@settings(deadline=None, derandomize=True)
@given(TEXTS, st.sampled_from([None, 2]), st.booleans())
def test_json_shows_no_invisible_character_and_keeps_the_text(text: str, indent: int | None, ascii_only: bool) -> None:
    written = json_text({"a": text}, indent=indent, ascii_only=ascii_only)
    assert written.replace("\n", "").isprintable()
    assert json.dumps(json.loads(written)) == json.dumps({"a": text})
    assert indent is not None or "\n" not in written


def test_a_backslash_that_begins_no_escape_stands_for_itself() -> None:
    assert read_back(r"\u202E\U0001F600\U0010FFFF") == "\u202e\U0001f600\U0010ffff"
    assert [read_back("\\" + mark) for mark in "\\|[>-\"'nrt"] == [*"\\|[>-\"'\n\r\t"]
    assert read_back(r"\d+ \U00110000 \u12 \ ") == r"\d+ \U00110000 \u12 " + "\\ "


def logged(message: str, *arguments: object, error: BaseException | None = None) -> list[str]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LogLines("%(levelname)s %(name)s: %(message)s"))
    info = None if error is None else (type(error), error, error.__traceback__)
    handler.handle(logging.LogRecord("kg", logging.WARNING, "here", 1, message, arguments, info))
    return stream.getvalue().split("\n")[:-1]


def test_a_record_stays_on_one_line_whatever_it_says() -> None:
    assert logged("Tool %s failed", "x\nERROR kg: forged\u2028\x1b[2J\u202e") == [
        r"WARNING kg: Tool x\nERROR kg: forged\u2028\u001b[2J\u202e failed"
    ]


def test_a_traceback_is_set_in_so_that_no_line_of_it_passes_for_a_record() -> None:
    first, *rest = logged("It failed", error=ValueError("x\nERROR kg: forged\x9b"))
    assert (first, rest) == ("WARNING kg: It failed", ["    ValueError: x", r"    ERROR kg: forged\u009b"])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://h/x", "http://h/x"),
        ("http://u:p@h/x", "http://…@h/x"),
        ("see http://token@h.", "see http://…@h."),
        ("http://u:p/a?s#s@h/x", "http://…@h/x"),
        ("http://u:p@ss@h/x", "http://…@h/x"),
        ("http://u:it's@h/x", "http://…@h/x"),
        ("http://h/v1?key=k", "http://h/v1?…"),
        ("'https://h/v1?key=k'", "'https://h/v1?…'"),
        ("(https://h/v1?key=k&b=c#d), then", "(https://h/v1?…#d), then"),
        ("http://h/x#access_token=1", "http://h/x#…"),
        ("http://h:8080/a/@home#label", "http://h:8080/a/@home#label"),
        ("<neo4j+s://u:p@h?k> and ftp://u:p@h", "<neo4j+s://…@h?…> and ftp://…@h"),
        ("http://u:p@h/x?k=v http://h", "http://…@h/x?… http://h"),
        ("someone@example.org asks why?", "someone@example.org asks why?"),
        ("http://…@h/x?…", "http://…@h/x?…"),
        # An @ in a query or a fragment ends no user: what stands behind it would be shown.
        ("http://h?mail=a@b&key=k", "http://h?…"),
        ("http://h?at=a:b@c&key=k", "http://h?…"),
        ("http://h:80?mail=a@b&key=k", "http://h:80?…"),
        ("http://h#mail=a@b&key=k", "http://h#…"),
        ("http://h#at=a:b@c&key=k", "http://h#…"),
        ("http://h:80#mail=a@b&key=k", "http://h:80#…"),
        ("http://h/a:b@c", "http://h/a:b@c"),
    ],
)
def test_what_may_be_secret_in_an_address_is_masked(text: str, shown: str) -> None:
    assert masked(text) == shown


@pytest.mark.parametrize("end", [*".,:;)]}", "", ").", "]};", " and", "\n", '"', "'", "<", ">"])
def test_what_stands_behind_an_address_stays(end: str) -> None:
    asked = [f"see http://h?k=v{end}", f"see 'http://h?k=v'{end}"]
    assert [masked(each) for each in asked] == [f"see http://h?…{end}", f"see 'http://h?…'{end}"]


@pytest.mark.parametrize(
    "name",
    ["API-KEY", "token", "client_secret", "passphrase", "pwd", "auth", "credential", "X-Signature", "sig", "cookie"],
)
def test_what_is_secret_by_its_name_is_known(name: str) -> None:
    assert list(credentials_in(f"https://h/x?design=a&{name}=k&b=c")) == [("", "k")]
    assert list(credentials_in_command(f"server --design a --{name} k1 {name}=k2")) == ["k1", "k2"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("https://ann:p%40ss@h/x", [("ann", "p@ss")]),
        ("https://token@h/x", [("", "token")]),
        ("https://h/x?api_key=a+b&other=c", [("", "a b")]),
        ("https://h/x?token", [("", "token")]),
        ("https://h/x#access_token=1", [("", "1")]),
        ("https://h/x#label", []),
        ("https://h:80/x", []),
        ("no address", []),
        ("http://[", []),
        ("/a/path?token=c", []),
        ("//h?token=c", []),
        ("mailto:a?token=c", []),
    ],
)
def test_the_secrets_of_an_address_are_found(text: str, found: list[tuple[str, str]]) -> None:
    assert list(credentials_in(text)) == found


@pytest.mark.parametrize("url", ["https://h/v1?k=x", "https://h/v1#k"])
def test_a_base_url_ends_before_its_query(url: str) -> None:
    problem = base_url_problem(url)
    assert problem is not None
    assert "k=x" not in problem
    assert base_url_problem("https://h/v1") is None


@pytest.mark.parametrize(
    ("line", "shown", "found"),
    [
        ("", "", []),
        ("sleep", "sleep", []),
        ("npx server --api-key k1 --verbose", "npx …", ["k1"]),
        ("npx server --api-key=k1 --token k2", "npx …", ["k1", "k2"]),
        ("env API_TOKEN=k1 HOME=/root server", "env …", ["k1"]),
        ("server --header 'Authorization: Bearer k1' -H 'X-Key: k2'", "server …", ["k1", "k2"]),
        ("server --auth-header 'Bearer k1'", "server …", ["k1"]),
        ("server --url https://ann:k1@host/x?token=k2", "server …", ["k1", "k2"]),
        ("server --url=https://ann:k1@host/x 'not closed --key k2", "server …", ["k1", "k2"]),
        ("https://k1@host/x", "https://…@host/x", ["k1"]),
    ],
)
def test_a_command_line_shows_its_program_and_its_secrets_are_known_by_their_names(
    line: str, shown: str, found: list[str]
) -> None:
    assert (masked_command(line), list(credentials_in_command(line))) == (shown, found)


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
