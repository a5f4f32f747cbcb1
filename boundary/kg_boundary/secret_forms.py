"""The forms that a secret takes in a text whose escapes are undone, and where it stands there."""

import base64
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

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
    texts would be unreadable without every `a`. One of four or five is looked for as a word of its own.
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
