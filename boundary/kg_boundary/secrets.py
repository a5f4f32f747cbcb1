"""Takes secrets out of what leaves the process, in every form that a service may repeat them in.

A message is redacted first, then its control characters are escaped, then it is shortened: a secret that is cut before
is not found as a whole, and one that is escaped before is found only because escapes are undone here as well.
"""

import base64
import html
import logging
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import Final, TypeAlias
from urllib.parse import quote

from kg_boundary.addresses import MASK, credentials_in, masked
from kg_boundary.shown import LogLines

DEPTH: Final = 3
"""How often escapes are undone: JSON in HTML in a URL."""
_MOST: Final = 40
_PERCENT: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
_ENTITY: Final = re.compile(rb"&(?:#([0-9]{1,7})|#[xX]([0-9A-Fa-f]{1,6})|[A-Za-z][A-Za-z0-9]{1,30});?")
_BACKSLASH: Final = re.compile(
    rb"\\(?:u([dD][89abAB][0-9A-Fa-f]{2})\\u([dD][c-fC-F][0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})"
    rb"|x([0-9A-Fa-f]{2})|(.))",
    re.DOTALL,
)
_LETTERS: Final = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"f": b"\f"}
_Meaning: TypeAlias = Callable[[re.Match[bytes]], bytes]


@dataclass(frozen=True, slots=True)
class Reading:
    """A text as it can be read.

    Args:
        text: What it says.
        starts: Where in the original each byte of it begins.
        ends: Where in the original each byte of it ends.
    """

    text: bytes
    starts: Sequence[int]
    ends: Sequence[int]


def readings(original: bytes) -> Iterator[Reading]:
    """Yield a text as it stands, then with each kind of escapes undone, in every order, up to three times."""
    left = [(Reading(original, range(len(original)), range(1, len(original) + 1)), 0)]
    seen = {original}
    while left and len(seen) <= _MOST:
        reading, depth = left.pop(0)
        yield reading
        if depth == DEPTH:
            continue
        for escape, meaning in _KINDS:
            undone = _undone(reading, escape, meaning)
            if undone.text not in seen:
                seen.add(undone.text)
                left.append((undone, depth + 1))


def _undone(reading: Reading, escape: re.Pattern[bytes], meaning: _Meaning) -> Reading:
    said, starts, ends = bytearray(), list[int](), list[int]()
    last = 0
    for found in escape.finditer(reading.text):
        first, end = found.span()
        said += reading.text[last:first]
        starts += reading.starts[last:first]
        ends += reading.ends[last:first]
        meant = meaning(found)
        said += meant
        starts += [reading.starts[first]] * len(meant)
        ends += [reading.ends[end - 1]] * len(meant)
        last = end
    return Reading(bytes(said) + reading.text[last:], [*starts, *reading.starts[last:]], [*ends, *reading.ends[last:]])


def _of_percent(found: re.Match[bytes]) -> bytes:
    return bytes([int(found[1], 16)])


def _of_entity(found: re.Match[bytes]) -> bytes:
    decimal, hexadecimal = found.groups()
    if decimal is None and hexadecimal is None:
        return html.unescape(found[0].decode()).encode("utf-8", "replace")
    point = int(decimal) if decimal is not None else int(hexadecimal, 16)
    return chr(point).encode("utf-8", "replace") if point < 0x110000 else bytes(found[0])


def _of_backslash(found: re.Match[bytes]) -> bytes:
    high, low, short, long, byte, letter = found.groups()
    if letter is not None:
        return _LETTERS.get(letter, letter)
    if byte is not None:
        return bytes([int(byte, 16)])
    return _of_code_point(high, low, short or long) or bytes(found[0])


def _of_backslash_in_text(found: re.Match[bytes]) -> bytes:
    """Return what an escape means in a text of Python, where a byte in hexadecimal digits is a character."""
    return _of_backslash(found) if found[5] is None else chr(int(found[5], 16)).encode()


def _of_code_point(high: bytes | None, low: bytes | None, number: bytes) -> bytes:
    point = int(number or b"0", 16)
    if high is not None and low is not None:
        point = 0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00
    return chr(point).encode("utf-8", "replace") if point < 0x110000 else b""


_KINDS: Final[tuple[tuple[re.Pattern[bytes], _Meaning], ...]] = (
    (_PERCENT, _of_percent),
    (_ENTITY, _of_entity),
    (_BACKSLASH, _of_backslash),
    (_BACKSLASH, _of_backslash_in_text),
)
LONG: Final = 6
"""A secret of so many characters is hidden wherever it stands, in the middle of a word too."""
STRONG: Final = 8
"""One of so many is hidden in answers too; one of fewer may be a word that graphs are full of."""
SHORT: Final = 4
"""One of fewer is hidden only where a text says what it is: behind its user or the name of a scheme."""
_SCHEMES: Final = ("Basic", "Bearer", "Digest")
_BASE64: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")
_WORD: Final = re.compile(rb"[A-Za-z0-9_\x80-\xff]")
_CUT_HERE: Final = re.compile(
    rb"\s*(?:\xe2\x80\xa6|\.\.|\*\*|\[|(?:%[0-9A-Fa-f]?|\\(?:[uU][0-9A-Fa-f]*|x[0-9A-Fa-f]?)?|&[#A-Za-z0-9]*)?\Z)"
)
"""An ellipsis, or the end of the text, perhaps in the middle of an escape."""
_REST_OF_ESCAPE: Final = re.compile(rb"(?<=\\)(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|.)|(?<=%)[0-9A-Fa-f]{2}", re.DOTALL)
_FIRST_WHOLE: Final = (0, 2, 3)
"""Which character of base64 is the first that a value alone decides, by how many bytes stand before it."""


@dataclass(frozen=True, slots=True)
class Form:
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


def forms_of(secrets: Iterable[str], users: Iterable[str]) -> tuple[Form, ...]:
    """Return the forms of all secrets, which any of the users may have.

    A secret of one to three characters is nobody's secret: it has the forms that come with a user or a scheme, since
    texts would be unreadable without every `a`. One of four or five characters is searched for as a whole word.
    """
    found = {form: None for secret in secrets if secret for form in _forms(secret, tuple(users))}
    return tuple(found)


def places(text: bytes, form: Form, *, cut: bool) -> Iterator[tuple[int, int]]:
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


def _forms(secret: str, users: tuple[str, ...]) -> Iterator[Form]:
    for value in _written(secret):
        if len(secret) >= SHORT:
            yield Form(value, alone=len(secret) < LONG, telling=_telling(len(value)) if len(secret) >= LONG else 0)
            yield from _cores(value)
        else:
            yield from (Form(scheme.encode() + b" " + value, alone=True) for scheme in _SCHEMES)
        for user in users:
            yield Form(user.encode() + b":" + value, alone=True)
    for user in users:
        for pair in _written(f"{user}:{secret}"):
            telling = len(_whole(f"{user}:".encode())) + 1
            if len(pair) < STRONG:
                yield Form(base64.b64encode(pair).rstrip(b"="), alone=True, packed=True)
            else:
                yield from (Form(each, packed=True, telling=telling) for each in _base64(pair))


def _written(secret: str) -> Iterator[bytes]:
    """Yield a secret in bytes: in UTF-8, with `+` for blanks, read as Latin-1 by mistake, and in Latin-1."""
    text = secret.encode("utf-8", "surrogatepass")
    yield text
    if b" " in text:
        yield text.replace(b" ", b"+")
    if not secret.isascii():
        yield text.decode("latin-1").encode()
        # In a text that is UTF-8, the bytes of Latin-1 stand behind escapes alone.
        if len(secret) >= STRONG and secret.encode("latin-1", "ignore").decode("latin-1") == secret:
            yield secret.encode("latin-1")


def _telling(length: int) -> int:
    return min(8, max(3, length // 3))


def _cores(value: bytes) -> Iterator[Form]:
    """Yield the part of base64 that a value alone decides, behind no byte, one or two."""
    for before, first in enumerate(_FIRST_WHOLE):
        for written in _base64(b"\0" * before + value, drop=first):
            if len(written) >= SHORT:
                yield Form(written, packed=True, telling=max(SHORT, _telling(len(written))))


def _base64(value: bytes, drop: int = 0) -> frozenset[bytes]:
    """Return base64 in both alphabets, without the first characters and without what later bytes have a say in."""
    whole = _whole(value)[drop:]
    return frozenset({whole, whole.translate(bytes.maketrans(b"+/", b"-_"))})


def _whole(value: bytes) -> bytes:
    return base64.b64encode(value)[: len(value) * 8 // 6]


def _same(text: bytes, at: int, value: bytes) -> int:
    pairs = zip(text[at : at + len(value)], value, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _is_cut(text: bytes, at: int, end: int, value: bytes) -> bool:
    """Say whether a text is cut here, or holds so much of a value that the rest hardly matters."""
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
    while end < len(text) and text[end : end + 1] == b"=":
        end += 1
    return start, end


_MASK_BYTES: Final = MASK.encode()
# Whose credentials they are, a service may know better than the settings: a proxy's, or those of a cookie.
_CREDENTIALS: Final = re.compile(
    r"(authorization.{1,24}?\b(?:basic|bearer|digest|negotiate|token|apikey)(?:\s|\+|%20)+)[^\s\"'<>,;&]+",
    re.IGNORECASE | re.DOTALL,
)
_PLAIN_RUN: Final = re.compile(rb"([A-Za-z0-9]+)")
_LEAST_PLAIN: Final = 2
_WIDTH: Final = 12
"""How many characters an escape of one may take."""
_MARGIN: Final = 1_000
"""How much of a large text is read around the trace of a secret."""
LARGE: Final = 20_000
"""Of texts with more bytes only what stands near a trace of a secret is read closely."""


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

        Secrets of fewer than eight characters stay: they are words, which answers are made of. In large answers so do
        those in escapes that nobody needs, as of letters.
        """
        without = self._without(content, self._strong_forms, cut=False)
        return content if without is None else without

    async def in_slices(self, slices: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        """Yield an answer like `data`, while it comes; a secret that two slices share is found as well."""
        forms = self._strong_forms
        held = b""
        kept = _WIDTH * max((len(form.value) for form in forms), default=0)
        async with aclosing(slices):
            async for part in slices:
                content = held + part
                end = max(0, len(content) - kept)
                spans = _spans(content, forms, cut=False)
                # What begins before the end of what is given out, and ends behind it, waits as a whole.
                end = min((start for start, last in spans if start < end < last), default=end)
                held = content[end:]
                if shown := _replaced(content[:end], [span for span in spans if span[1] <= end]):
                    yield shown
        if held:
            yield self.data(held)

    @cached_property
    def _forms(self) -> tuple[Form, ...]:
        return forms_of(sorted(self.secrets), sorted(self.users))

    @cached_property
    def _strong_forms(self) -> tuple[Form, ...]:
        return forms_of(sorted(each for each in self.secrets if len(each) >= STRONG), sorted(self.users))

    def _without(self, content: bytes, forms: tuple[Form, ...], *, cut: bool) -> bytes | None:
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


def _spans(content: bytes, forms: tuple[Form, ...], *, cut: bool) -> list[tuple[int, int]]:
    """Return where the forms stand, in their order; no two of these places touch."""
    found: set[tuple[int, int]] = set()
    if not forms:
        return []
    for start, end in _near(content, forms, cut=cut) if len(content) > LARGE else [(0, len(content))]:
        found.update((start + first, start + last) for first, last in _found(content[start:end], forms, cut=cut))
    return _merged(sorted(found))


def _found(content: bytes, forms: tuple[Form, ...], *, cut: bool) -> Iterator[tuple[int, int]]:
    for reading in readings(content):
        for form in forms:
            for start, end in places(reading.text, form, cut=cut):
                yield reading.starts[start], reading.ends[end - 1]


def _near(content: bytes, forms: tuple[Form, ...], *, cut: bool) -> list[tuple[int, int]]:
    """Return the parts of a large content in which a form may stand: where its letters and digits come in a row."""
    parts = [(len(content) - _MARGIN, len(content))] if cut else []
    for form in forms:
        spans = (found.span() for found in _trace(form.value).finditer(content))
        parts.extend((max(0, start - _MARGIN), end + _MARGIN) for start, end in spans)
    return _merged(sorted(parts))


def _trace(value: bytes) -> re.Pattern[bytes]:
    """Return what finds a value where all but its letters and digits may be escaped."""
    parts = _PLAIN_RUN.split(value)
    if sum(map(len, parts[1::2])) < _LEAST_PLAIN:
        return re.compile(b"|".join(re.escape(each) for each in (value, quote(value, safe="").encode())))
    # What stands before the first letter and behind the last is looked at closely anyway.
    between = enumerate(parts[1:-1])
    wide = (each if not place % 2 else b".{%d,%d}" % (len(each), _WIDTH * len(each)) for place, each in between)
    return re.compile(b"".join(wide), re.DOTALL)


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
