"""The characters of an expression: blanks, names, quoted texts, and texts that run to a bracket."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from kg_boundary.shown import read_back

OPEN: Final = "["
CLOSE: Final = "]"
QUOTES: Final = "\"'"
_ESCAPED: Final = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[nrt])")


@dataclass(frozen=True, slots=True)
class Scanned:
    """A text that was read, where it begins in the source, and where the next character stands."""

    text: str
    start: int
    end: int


def skip_blanks(source: str, at: int) -> int:
    """Return the index of the first character at or after `at` that is no blank."""
    while at < len(source) and source[at].isspace():
        at += 1
    return at


def name_at(source: str, at: int) -> str:
    """Return the letters, digits and underscores that stand at an index; empty where there are none."""
    end = at
    while end < len(source) and (source[end].isalnum() or source[end] == "_"):
        end += 1
    return source[at:end]


def opens_call(source: str, at: int) -> bool:
    """Say whether a name and an opening bracket stand at an index, with or without blanks between them."""
    name = name_at(source, at)
    return bool(name) and source.startswith(OPEN, skip_blanks(source, at + len(name)))


def end_of_part(source: str, at: int) -> int:
    """Return the index of the next comma outside brackets and quotation marks that a call follows, or of the end."""
    depth = 0
    while at < len(source):
        argument = quoted(source, at, (",", CLOSE)) if depth and source[at] in QUOTES else None
        if argument is not None:
            at = argument.end
            continue
        depth = max(0, depth + (source[at] == OPEN) - (source[at] == CLOSE))
        if not depth and source[at] == "," and opens_call(source, skip_blanks(source, at + 1)):
            return at
        at += 1
    return at


def quoted(source: str, at: int, ends: Collection[str]) -> Scanned | None:
    """Read a text in quotation marks, or return None where none stands that one of `ends` follows."""
    if at >= len(source) or source[at] not in QUOTES:
        return None
    mark, place, read = source[at], at + 1, list[str]()
    while place < len(source) and source[place] != mark:
        if (escape := _ESCAPED.match(source, place)) is not None:
            read.append(read_back(escape.group()))
            place = escape.end() - 1
        elif source[place] == "\\" and place + 1 < len(source):
            place += 1
            read.append(source[place])
        else:
            read.append(source[place])
        place += 1
    behind = skip_blanks(source, place + 1)
    if place >= len(source) or behind >= len(source) or source[behind] not in ends:
        return None
    return Scanned("".join(read), at, behind)


def angled(source: str, at: int, ends: Collection[str]) -> Scanned | None:
    """Read an IRI in angle brackets, or return None where none stands that one of `ends` follows."""
    close = source.find(">", at) if source.startswith("<", at) else -1
    if close < 0 or any(mark.isspace() for mark in source[at:close]):
        return None
    behind = skip_blanks(source, close + 1)
    if behind >= len(source) or source[behind] not in ends:
        return None
    return Scanned(source[at : close + 1], at, behind)


def plain(source: str, at: int, ends: Collection[str]) -> Scanned | None:
    """Read a text up to one of `ends` outside its own brackets, or return None where the source ends before."""
    place, depth = at, 0
    while place < len(source):
        mark = source[place]
        if depth == 0 and mark in ends:
            return Scanned(source[at:place].strip(), at, place)
        depth += (mark == OPEN) - (mark == CLOSE)
        place += 1
    return None
