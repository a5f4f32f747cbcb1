"""None"""

import base64
import html
import json
import logging
import re
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kg_boundary.secrets import RedactingFormatter, Redactor

SECRET = 'p@ss "w/rd+ä\\%41&<x>'
LARGE = 20_000
USER = "us er"
LONG = (SECRET, "correct-horse-battery-staple")
REDACTOR = Redactor(frozenset({SECRET}), frozenset({USER}))


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def urlsafe(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


def json_of(text: str) -> str:
    return json.dumps(text)[1:-1]


WRITTEN: dict[str, Callable[[str], str]] = {
    "plain": str,
    "quoted": quote,
    "quoted with the slash": lambda secret: quote(secret, safe=""),
    "quoted in lower case": lambda secret: re.sub("%..", lambda found: found[0].lower(), quote(secret, safe="")),
    "quoted like a form": quote_plus,
    "quoted in Latin-1": lambda secret: quote(secret, encoding="latin-1"),
    "quoted twice": lambda secret: quote(quote(secret)),
    "JSON": json_of,
    "JSON in UTF-8": lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1],
    "JSON in JSON": lambda secret: json_of(json_of(secret)),
    "JSON as PHP writes it": lambda secret: json_of(secret).replace("/", "\\/"),
    "HTML": html.escape,
    "HTML twice": lambda secret: html.escape(html.escape(secret)),
    "JSON in HTML": lambda secret: html.escape(json_of(secret)),
    "JSON in a URL": lambda secret: quote(json_of(secret)),
    "Python": lambda secret: repr(secret)[1:-1],
    "bytes of Python": lambda secret: repr(secret.encode())[2:-1],
    "read as Latin-1": lambda secret: secret.encode().decode("latin-1"),
    "with its user": lambda secret: f"{USER}:{secret}",
    "base64": b64,
    "base64 behind one letter": lambda secret: b64("x" + secret),
    "base64 behind two letters": lambda secret: b64("xy" + secret),
    "base64 before more": lambda secret: b64("xyz" + secret + "z"),
    "base64 for URLs": lambda secret: urlsafe("?" + secret + "ÿ?"),
    "base64 without padding": lambda secret: b64("x" + secret).rstrip("="),
    "base64 in a URL": lambda secret: quote(b64("??" + secret), safe=""),
    "base64 in JSON": lambda secret: b64("??" + secret).replace("/", "\\/"),
    "base64 with its user": lambda secret: b64(f"{USER}:{secret}"),
}


@pytest.mark.parametrize("form", list(WRITTEN))
def test_a_secret_is_found_in_every_form(form: str) -> None:
    written = WRITTEN[form](SECRET)
    shown = [REDACTOR.message(f"before {written} behind"), REDACTOR.data(f"before {written} behind".encode()).decode()]
    assert [text for text in shown if text not in {"before … behind", f"before {USER}:… behind"}] == []


def test_a_secret_with_a_character_beyond_the_first_plane_is_found_as_a_pair() -> None:
    redactor = Redactor(frozenset({"key-😀-value"}))
    assert redactor.message(json.dumps("key-😀-value")) == '"…"'
    assert redactor.message(r"key-\U0001f600-value") == "…"


@given(st.text(min_size=8, max_size=40), st.sampled_from(list(WRITTEN)), st.text(alphabet="xyz \n", max_size=5))
def test_no_form_of_any_secret_is_left(secret: str, form: str, around: str) -> None:
    assume(secret.encode("utf-8", "ignore").decode() == secret and secret.strip("xyz \n…") == secret)
    try:
        written = WRITTEN[form](secret)
    except UnicodeEncodeError:
        return
    shown = Redactor(frozenset({secret})).message(f"{around} {written} {around}")
    assert written not in shown


@pytest.mark.parametrize("form", ["plain", "quoted", "JSON", "HTML", "base64", "base64 with its user"])
def test_a_secret_that_is_cut_leaves_nothing_that_helps(form: str) -> None:
    secret = "correct-horse-battery-staple"
    redactor = Redactor(frozenset({secret}), frozenset({"ann"}))
    written = WRITTEN[form](secret).replace(b64(f"{USER}:{secret}"), b64(f"ann:{secret}"))
    for length in range(len(written) * 2 // 3, len(written)):
        for end in ("", "…", "...", "**", " […9 characters left out]"):
            assert redactor.message(f"Key: {written[:length]}{end}") == f"Key: …{end}"


def test_a_secret_of_few_characters_does_not_make_texts_unreadable() -> None:
    redactor = Redactor(frozenset({"a"}), frozenset({"ann"}))
    assert redactor.message("A cat has a tail.") == "A cat has a tail."
    shown = [f"Bearer a|ann:a|{b64('ann:a')}|http://ann:a@host|Ann: a cat"]
    assert [redactor.message(each) for each in shown] == ["…|…|…|http://…@host|Ann: a cat"]


def test_a_secret_of_some_characters_is_hidden_as_a_word_and_never_in_answers() -> None:
    redactor = Redactor(frozenset({"city"}))
    assert (
        redactor.message("The city's capacity is city, city_x and 'city'.") == "The …'s capacity is …, city_x and '…'."
    )
    assert redactor.data(b'{"label": "city"}') == b'{"label": "city"}'
    assert redactor.message(f"It is {b64('city')}") == "It is …"


def test_credentials_that_are_echoed_are_hidden_whoever_has_them() -> None:
    echoed = 'headers: {"Authorization": "Basic YW5uOmE=", "Proxy-Authorization": "Bearer tok.en"}, x=1'
    shown = 'headers: {"Authorization": "Basic …", "Proxy-Authorization": "Bearer …"}, x=1'
    assert Redactor().message(echoed) == shown


def test_what_surrounds_a_secret_stays_readable_to_a_parser() -> None:
    secret = "correct-horse-battery-staple"
    content = json.dumps({"a": f"x\n{b64(secret)}", "b": f'"{secret}"\\', "c": "\u00e4" + b64("u:" + secret)})
    assert json.loads(Redactor(frozenset({secret})).data(content.encode())) == {"a": "x\n…", "b": '"…"\\', "c": "ä…"}


@pytest.mark.parametrize(
    ("form", "secret"),
    [
        *((form, secret) for form in WRITTEN for secret in LONG),
        *((form, "%&/()=?!") for form in ("plain", "quoted with the slash", "base64")),
    ],
)
def test_a_secret_is_found_in_a_large_answer(form: str, secret: str) -> None:
    written = WRITTEN[form](secret)
    filling = "y " * LARGE
    shown = Redactor(frozenset({secret}), frozenset({USER})).data(f"{filling}{written} {filling}".encode()).decode()
    assert shown.replace(f"{USER}:", "") == f"{filling}… {filling}"


def test_a_secret_at_the_end_of_a_large_message_is_found_where_it_is_cut() -> None:
    filling = "y " * LARGE
    assert Redactor(frozenset({"correct-horse"})).message(f"{filling}correct") == f"{filling}…"


def test_more_secrets_are_added_and_empty_ones_are_none() -> None:
    both = Redactor().also(["first-secret", ""], ["ann", ""]).also(["second-secret"])
    assert both == Redactor(frozenset({"first-secret", "second-secret"}), frozenset({"ann"}))
    assert both.also(["first-secret"]) is both
    assert Redactor().also([""]).message("as it is") == "as it is"


def test_a_line_of_the_log_holds_no_secret_nor_does_its_traceback() -> None:
    formatter = RedactingFormatter(REDACTOR.message, "%(levelname)s %(message)s")
    with pytest.raises(ValueError, match="p@ss") as raised:
        int(SECRET)
    info = (raised.type, raised.value, raised.tb)
    record = logging.LogRecord("x", logging.INFO, "", 1, "asked %s", (quote(SECRET),), info)
    assert formatter.format(record).startswith("INFO asked …\n    Traceback")
    assert formatter.format(record).endswith("with base 10: '…'")


@pytest.mark.parametrize("end", [*" \n\t\"'<>,;&"])
def test_credentials_that_nobody_told_of_end_where_a_value_ends(end: str) -> None:
    said = Redactor().text(f"Authorization: Basic dXNlcjpwYXNz{end}and more")
    assert said == f"Authorization: Basic …{end}and more"


@pytest.mark.parametrize("scheme", ["Basic", "BEARER", "digest", "Negotiate", "token", "ApiKey"])
@pytest.mark.parametrize("gap", [" ", "\n", "+", "%20", "  "])
def test_credentials_of_every_scheme_are_taken_out(scheme: str, gap: str) -> None:
    assert Redactor().text(f"proxy-authorization={scheme}{gap}abc.def") == f"proxy-authorization={scheme}{gap}…"


def hiding(secret: str, *users: str) -> Redactor:
    return Redactor(frozenset({secret}), frozenset(users))


@pytest.mark.parametrize(
    ("secret", "text", "shown"),
    [
        # Three characters behind a scheme alone, four as a word, six in the middle of one.
        ("abc", "abc, Bearer abcd", "abc, Bearer abcd"),
        ("abc", "Basic abc, Bearer abc, Digest abc", "…, …, …"),
        ("abcd", "abcd, xabcd, abcdx", "…, xabcd, abcdx"),
        ("abcde", "abcde, xabcdex", "…, xabcdex"),
        ("abcdef", "xabcdefx", "x…x"),
        # Where a text is cut, from six characters on, three of which tell; of long ones eight.
        ("abcde", "Key: abcd", "Key: abcd"),
        ("abcdef", "Key: abc", "Key: …"),
        ("abcdef", "Key: ab", "Key: ab"),
        ("tok-en-with-more-than-thirty-characters", "Key: tok-en-w", "Key: …"),
        ("tok-en-with-more-than-thirty-characters", "Key: tok-en-", "Key: tok-en-"),
        # Where it is not, half of it or twelve characters, whichever is more.
        ("correct-horse-battery-staple", "correct-horse-, so", "…, so"),
        ("correct-horse-battery-staple", "correct-horse, so", "correct-horse, so"),
        ("abcdefghijklmnopqr", "abcdefghijkl, so", "…, so"),
        ("abcdefghijklmnopqr", "abcdefghijk, so", "abcdefghijk, so"),
        # A beginning that comes to nothing does not hide the one behind its first character.
        ("aaab-cdef", "aaaab-cdef", "a…"),
    ],
)
def test_how_much_of_a_secret_is_hidden_depends_on_its_length(secret: str, text: str, shown: str) -> None:
    assert hiding(secret).message(text) == shown


@pytest.mark.parametrize("before", ["", "x", "xy", "xyz"])
def test_a_secret_of_four_characters_is_hidden_in_base64_wherever_it_begins(before: str) -> None:
    assert hiding("city").message(f"Got {b64(before + 'city')}") == "Got …"


def test_base64_of_a_short_secret_with_its_user_is_hidden_to_its_last_character() -> None:
    whole = b64("annemarie:abc")
    assert hiding("abc", "annemarie").message(f"Got {whole}") == "Got …"


def test_base64_is_hidden_from_the_first_character_that_a_password_decides() -> None:
    redactor, whole = hiding("hunter2-hunter2", "ann"), b64("ann:hunter2-hunter2")
    assert [redactor.message(f"Got {whole[:length]}") for length in (5, 6)] == [f"Got {whole[:5]}", "Got …"]


def test_a_secret_of_eight_characters_is_found_in_escapes_of_latin_1() -> None:
    assert hiding("pässwörd").message(f"Got {quote('pässwörd', encoding='latin-1')}") == "Got …"


def test_answers_lose_whole_secrets_of_eight_characters_and_nothing_else() -> None:
    assert hiding("abcdefgh").data(b"abcdefgh, abcdef") == "…, abcdef".encode()
    assert hiding("abcdefg").data(b"abcdefg") == b"abcdefg"


def test_a_key_is_hidden_with_what_addresses_hold() -> None:
    address = "http://ann:p1@h/x"
    assert Redactor().also_in(address, key="k1") == Redactor(frozenset({"p1", "k1"}), frozenset({"ann"}))
    assert Redactor().also_in(address) == hiding("p1", "ann")


def test_a_secret_at_the_beginning_of_a_large_answer_is_found() -> None:
    filling = "y " * 20_000
    assert hiding("correct-horse").data(f"correct-horse {filling}".encode()).decode() == f"… {filling}"


@pytest.mark.parametrize("secret", ["p&ss-word/then", "&first%then-last&", "first\nsecond"])
def test_marks_between_letters_may_be_escaped_or_not_in_a_large_answer(secret: str) -> None:
    filling = "y " * 20_000
    for written in (secret, quote(secret, safe="")):
        assert hiding(secret).data(f"{filling}{written} {filling}".encode()).decode() == f"{filling}… {filling}"


def test_secrets_that_share_letters_touch_or_hold_one_another_are_hidden_as_one() -> None:
    redactor = Redactor(frozenset({"correct-horse-battery", "horse-battery-staple", "rse-bat", "=and=so=on"}))
    assert redactor.message("First correct-horse-battery, then a word.") == "First …, then a word."
    assert redactor.message("First correct-horse-battery-staple, then a word.") == "First …, then a word."
    assert redactor.message("Last rse-bat, correct-horse-battery=and=so=on, now.") == "Last …, …, now."


def test_a_redactor_is_written_without_what_it_hides() -> None:
    assert repr(hiding("correct-horse", "ann")) == "Redactor()"
