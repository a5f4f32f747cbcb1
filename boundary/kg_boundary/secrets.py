"""Takes secrets out of what leaves the process, in the forms in which services repeat them.

These are: as it is, in UTF-8 or in Latin-1, URL-encoded, escaped as in JSON, HTML or Python, all of these up to twice
(JSON in a URL), and in base64, alone or behind a user.

A message is redacted first, then its control characters are escaped, then it is shortened: a secret that is cut before
is not found as a whole.
"""

import base64
import html
import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import Final
from urllib.parse import quote, quote_plus

from kg_boundary.addresses import MASK, credentials_in, masked
from kg_boundary.shown import LogLines

LONG: Final = 6
"""A secret of so many characters is hidden wherever it stands, in the middle of a word too."""
STRONG: Final = 8
"""One of so many is hidden in answers too; one of fewer may be a word that graphs are full of."""
SHORT: Final = 4
"""One of fewer is hidden only behind its user or the name of a scheme."""
_SCHEMES: Final = ("Basic", "Bearer", "Digest")
_BASE64: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")
_WORD: Final = re.compile(rb"[A-Za-z0-9_\x80-\xff]")
_CUT_HERE: Final = re.compile(rb"\s*(?:\xe2\x80\xa6|\.\.|\*\*|\[|\Z)")
"""An ellipsis, or the end of the text."""
_PADDING: Final = re.compile(rb"(?:=|%3[Dd])*")
_ESCAPED_BYTE: Final = re.compile("%[0-9A-F]{2}")
_REST_OF_ESCAPE: Final = re.compile(rb"(?<=\\)(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|.)|(?<=%)[0-9A-Fa-f]{2}", re.DOTALL)
_FIRST_WHOLE: Final = (0, 2, 3)
"""Which character of base64 is the first that a value alone decides, by how many bytes stand before it."""


@dataclass(frozen=True, slots=True)
class SecretForm:
    """Bytes that must not be shown.

    Args:
        value: The bytes.
        alone: Whether they are meant only as a word of their own.
        packed: Whether they are part of base64, all of which is meant then.
        telling: How many of the first bytes are hidden too where the text is cut behind them; 0 for none.
    """

    value: bytes
    alone: bool = False
    packed: bool = False
    telling: int = 0


def forms_of(secrets: Iterable[str], users: Iterable[str]) -> tuple[SecretForm, ...]:
    """Return the forms of all secrets, which any of the users may have.

    A secret of one to three characters is nobody's secret: it has the forms that come with a user or a scheme, since
    texts would be unreadable without every `a`. One of four or five characters is searched for as a whole word.
    """
    found = {form: None for secret in secrets if secret for form in _forms(secret, tuple(users))}
    return tuple(found)


def places(text: bytes, form: SecretForm, *, cut: bool) -> Iterator[tuple[int, int]]:
    """Yield where a form stands in a text; with `cut`, also where the text ends in the middle of it."""
    value = form.value
    head = value[: form.telling] if cut and form.telling else value
    at = text.find(head)
    while at >= 0:
        end = at + _same(text, at, value)
        whole = end - at == len(value)
        if (whole and not (form.alone and _inside_word(text, at, end))) or (
            not whole and _is_cut(text, at, end, value)
        ):
            start, end = _packed(text, at, end) if form.packed else (at, end)
            yield start, end
            at = text.find(head, end)
        else:
            at = text.find(head, at + 1)


def _forms(secret: str, users: tuple[str, ...]) -> Iterator[SecretForm]:
    for value in _written(secret):
        if len(secret) >= SHORT:
            yield SecretForm(
                value, alone=len(secret) < LONG, telling=_telling(len(value)) if len(secret) >= LONG else 0
            )
        else:
            yield from (SecretForm(scheme.encode() + b" " + value, alone=True) for scheme in _SCHEMES)
        for user in users:
            yield SecretForm(user.encode() + b":" + value, alone=True)
    for value in _encoded(secret) if len(secret) >= SHORT else ():
        yield from _cores(value)
    for user in users:
        for pair in _encoded(f"{user}:{secret}"):
            telling = len(_whole(f"{user}:".encode())) + 1
            if len(pair) < STRONG:
                yield SecretForm(base64.b64encode(pair).rstrip(b"="), alone=True, packed=True)
            else:
                yield from (SecretForm(each, packed=True, telling=telling) for each in _base64(pair))


def _encoded(text: str) -> Iterator[bytes]:
    """Yield a text in UTF-8, and in Latin-1 where it is long enough not to be a part of other characters."""
    yield text.encode("utf-8", "surrogatepass")
    if len(text) >= STRONG:
        with suppress(UnicodeEncodeError):
            yield text.encode("latin-1")


def _written(secret: str) -> frozenset[bytes]:
    """Return how a secret may be written: plainly, and escaped once or twice."""
    plain = {secret, secret.encode("utf-8", "surrogatepass").decode("latin-1")}
    once = {written for text in plain for written in _escaped(text)}
    twice = {written for text in once for written in _escaped(text)}
    found = {text.encode("utf-8", "surrogatepass") for text in plain | once | twice}
    return frozenset({*found, *_encoded(secret)})


def _escaped(text: str) -> Iterator[str]:
    for content in {text.encode("utf-8", "surrogatepass"), *_encoded(text)}:
        for quoted in (quote(content), quote(content, safe=""), quote_plus(content)):
            yield quoted
            yield _ESCAPED_BYTE.sub(lambda found: found[0].lower(), quoted)
        yield repr(content)[2:-1]
    for written in (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
        yield written
        yield written.replace("/", "\\/")
    yield from (html.escape(text), repr(text)[1:-1], ascii(text)[1:-1], text.replace(" ", "+"))


def _telling(length: int) -> int:
    return min(8, max(3, length // 3))


def _cores(value: bytes) -> Iterator[SecretForm]:
    """Yield the part of base64 that a value alone decides, behind no byte, one or two."""
    for before, first in enumerate(_FIRST_WHOLE):
        for written in _base64(b"\0" * before + value, drop=first):
            if len(written) >= SHORT:
                yield SecretForm(written, packed=True, telling=max(SHORT, _telling(len(written))))


def _base64(value: bytes, drop: int = 0) -> frozenset[bytes]:
    """Return base64 in both alphabets, without the first characters and without those that later bytes change."""
    whole = _whole(value)[drop:]
    in_url = quote(whole, safe="").encode()
    return frozenset({whole, whole.translate(bytes.maketrans(b"+/", b"-_")), in_url, whole.replace(b"/", b"\\/")})


def _whole(value: bytes) -> bytes:
    return base64.b64encode(value)[: len(value) * 8 // 6]


def _same(text: bytes, at: int, value: bytes) -> int:
    pairs = zip(text[at : at + len(value)], value, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _is_cut(text: bytes, at: int, end: int, value: bytes) -> bool:
    """Return whether a text is cut here, or holds so much of a value that the rest hardly matters."""
    return _CUT_HERE.match(text, end) is not None or end - at >= max(12, len(value) // 2)


def _inside_word(text: bytes, start: int, end: int) -> bool:
    before, behind = text[max(0, start - 1) : start], text[end : end + 1]
    return _WORD.match(before) is not None or _WORD.match(behind) is not None


def _packed(text: bytes, start: int, end: int) -> tuple[int, int]:
    """Return where the base64 around a place begins and ends."""
    first = start
    while first > 0 and text[first - 1] in _BASE64:
        first -= 1
    escape = _REST_OF_ESCAPE.match(text, first)
    # What belongs to an escape before it is no base64, and is needed by whoever parses the text.
    start = min(start, escape.end()) if escape else first
    while end < len(text) and text[end] in _BASE64:
        end += 1
    padding = _PADDING.match(text, end)
    return start, end if padding is None else padding.end()


_MASK_BYTES: Final = MASK.encode()
# Whose credentials they are, a service may know better than the settings: a proxy's, or those of a cookie.
_CREDENTIALS: Final = re.compile(
    r"(authorization.{1,24}?\b(?:basic|bearer|digest|negotiate|token|apikey)(?:\s|\+|%20)+)[^\s\"'<>,;&]+",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class Redactor:
    """Takes secrets out of texts.

    Args:
        secrets: Passwords, tokens and keys; empty ones are ignored.
        users: Who has them.
    """

    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    users: frozenset[str] = field(default=frozenset(), repr=False)

    def also(self, secrets: Iterable[str] = (), users: Iterable[str] = ()) -> "Redactor":
        """Return one that takes out these too."""
        more = Redactor(self.secrets | {*secrets} - {""}, self.users | {*users} - {""})
        return self if more == self else more

    def also_in(self, *addresses: str, key: str | None = None) -> "Redactor":
        """Return one that takes out what addresses hold that may be secret too, and a key."""
        found = [each for address in addresses for each in credentials_in(address)]
        return self.also([key or "", *(secret for _, secret in found)], [user for user, _ in found])

    def message(self, text: str) -> str:
        """Return a text for people or models without secrets, echoed credentials and what addresses may hide.

        Of a secret that is cut by the end of the text, or by an ellipsis, the beginning is taken out too.
        """
        return masked(self.text(text))

    def text(self, text: str) -> str:
        """Return a text like `message`, with its addresses as they are: those of a graph are its names."""
        # A lone half of a character, which cannot be written, becomes a question mark.
        without = self._without(text.encode("utf-8", "replace"), self._forms, cut=True)
        shown = text if without is None else without.decode("utf-8", "replace")
        return _CREDENTIALS.sub(rf"\1{MASK}", shown)

    def data(self, content: bytes) -> bytes:
        """Return what a service answered without the secrets that it repeats; everything else stays as it is.

        Secrets of fewer than eight characters stay: they are words, which answers are made of.
        """
        without = self._without(content, self._strong_forms, cut=False)
        return content if without is None else without

    @cached_property
    def _forms(self) -> tuple[SecretForm, ...]:
        return forms_of(sorted(self.secrets), sorted(self.users))

    @cached_property
    def _strong_forms(self) -> tuple[SecretForm, ...]:
        return forms_of(sorted(each for each in self.secrets if len(each) >= STRONG), sorted(self.users))

    def _without(self, content: bytes, forms: tuple[SecretForm, ...], *, cut: bool) -> bytes | None:
        """Return content without the forms; None where it has none of them."""
        if not forms:
            return None
        found = _spans(content, forms, cut=cut)
        return _replaced(content, found) if found else None


class RedactingFormatter(LogLines):
    """Formats a line of the log, with its traceback, as `LogLines` does, and takes the secrets out.

    Args:
        redacted: Takes them out, as `Redactor.message` does.
        form: The form of a line, as of `logging.Formatter`.
    """

    def __init__(self, redacted: Callable[[str], str], form: str) -> None:
        super().__init__(form)
        self._redacted = redacted

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return self._redacted(super().format(record))


def _spans(content: bytes, forms: tuple[SecretForm, ...], *, cut: bool) -> list[tuple[int, int]]:
    """Return where the forms stand, in their order; no two of these places touch."""
    return _merged(sorted({span for form in forms for span in places(content, form, cut=cut)}))


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _replaced(content: bytes, spans: list[tuple[int, int]]) -> bytes:
    parts: list[bytes] = []
    last = 0
    for start, end in spans:
        parts += content[last:start], _MASK_BYTES
        last = end
    return b"".join((*parts, content[last:]))
