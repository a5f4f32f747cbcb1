"""Where a secret of a length ends to be a word: what is hidden, and what stays readable, one character apart."""

import base64
from urllib.parse import quote

import pytest

from kg_boundary.secrets import Redactor


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


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
