"""The one writer of what is shown: nothing unseen gets through, nothing seen is changed, and nothing is lost."""

import io
import json
import logging
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

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
