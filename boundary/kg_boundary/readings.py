"""What a text says once its escapes are undone, and where in the text each byte of it stands."""

import html
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

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
