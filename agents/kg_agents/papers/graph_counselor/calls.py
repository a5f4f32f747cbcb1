"""Where the calls of a reply begin and end, amid prose, lists, code fences and marks of emphasis."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

FUNCTIONS: Final = {
    **{
        name.lower(): name
        for name in (
            *("Retrieve", "Feature", "Neighbor", "Degree", "Count", "Union", "Intersect", "Minus", "Type", "Where"),
            *("Top", "Bottom", "Sum", "Mean", "Min", "Max", "Group", "Share", "Table"),
        )
    },
    **dict.fromkeys(("neighbour", "getneighbor", "getneighbour"), "Neighbor"),
}
"""The functions of a compound expression by their names in lower case."""

FINISH: Final = "Finish"
FOUR: Final = ("Retrieve", "Feature", "Degree", "Neighbor")
"""The functions of the paper."""

_CALL: Final = re.compile(rf"(?<![\w.-])({'|'.join((*FUNCTIONS, FINISH.lower()))})[ \t]*\[", re.IGNORECASE)
_LINE_LEAD: Final = re.compile(r"^[ \t>*+`-]*(?:\d+[.)][ \t]*)?[ \t*`]*", re.MULTILINE)
_BETWEEN: Final = re.compile(r"[\s,;*`]*(?:and\b|&|[+-]|\d+[.)])?[\s*`]*")
_FENCE: Final = re.compile(r"```[\w-]*\n?(.*?)```", re.DOTALL)
_QUOTES: Final = "\"'"


@dataclass(frozen=True, slots=True)
class Written:
    """One call as it was written.

    Args:
        name: The function in its usual spelling, or `Finish`.
        text: The whole call.
        inside: What stands in its brackets.
        closed: Whether they are closed; where not, the call runs to the end of its line.
    """

    name: str
    text: str
    inside: str
    closed: bool


def calls_in(text: str) -> tuple[Written, ...]:
    """Return the outermost calls that a text makes.

    Where a line begins with a call, these are that call and those that follow with nothing but commas, line breaks or
    list marks between, and what else the text says is taken for talk. Otherwise they are all calls in it. Code fences
    that hold calls hide what stands outside them.
    """
    text = _fenced(text)
    first = _line_start(text)
    if first is None:
        return tuple(_all(text))
    return tuple(_run(text, first))


def nests(call: str) -> bool:
    """Return whether a function stands inside a call."""
    return _CALL.search(call, call.index("[")) is not None


def functions_in(text: str) -> tuple[str, ...]:
    """Return all functions that a call names, also those inside it."""
    return tuple(dict.fromkeys(_name(found) for found in _CALL.finditer(text)))


def canonical(call: str) -> str:
    """Return a call with functions in one spelling and no needless blanks: equal for calls that ask the same."""
    tight = re.sub(r" ?([\[\],]) ?", r"\1", " ".join(call.split()))
    return _CALL.sub(lambda found: _name(found) + "[", tight)


def _fenced(text: str) -> str:
    fenced = "\n".join(match.group(1) for match in _FENCE.finditer(text))
    return fenced if _CALL.search(fenced) else text


def _line_start(text: str) -> re.Match[str] | None:
    """Return the first call that begins a line."""
    for line in _LINE_LEAD.finditer(text):
        if call := _CALL.match(text, line.end()):
            return call
    return None


def _run(text: str, call: re.Match[str] | None) -> Iterator[Written]:
    while call is not None:
        written, end = _written(text, call)
        yield written
        between = _BETWEEN.match(text, end)
        call = _CALL.match(text, between.end() if between else end)


def _all(text: str) -> Iterator[Written]:
    end = 0
    while call := _CALL.search(text, end):
        written, end = _written(text, call)
        yield written


def _written(text: str, call: re.Match[str]) -> tuple[Written, int]:
    """Return a call, and the index behind it."""
    close = _close(text, call.end() - 1)
    if close is not None:
        return Written(
            _name(call), text[call.start() : close], text[call.end() : close - 1].strip(), closed=True
        ), close
    newline = text.find("\n", call.end())
    end = newline if newline >= 0 else len(text)
    whole = text[call.start() : end].rstrip("`* \t\r")
    return Written(_name(call), whole, text[call.end() : end].strip(), closed=False), end


def _name(call: re.Match[str]) -> str:
    return FUNCTIONS.get(call.group(1).lower(), FINISH)


def _close(text: str, bracket: int) -> int | None:
    """Return the index behind the bracket that closes one; brackets in quoted arguments do not count."""
    depth, at, begins = 0, bracket, False
    while at < len(text):
        mark = text[at]
        if begins and mark in _QUOTES and (end := _quote_end(text, at)) is not None:
            at, begins = end, False
            continue
        depth += (mark == "[") - (mark == "]")
        at += 1
        if depth == 0:
            return at
        if not mark.isspace():
            begins = mark in "[,-"
    return None


def _quote_end(text: str, at: int) -> int | None:
    """Return the index behind the mark that ends a quoted argument, or None where none is quoted."""
    place = at + 1
    while place < len(text) and text[place] != text[at]:
        place += 2 if text[place] == "\\" else 1
    behind = place + 1
    while behind < len(text) and text[behind].isspace():
        behind += 1
    return place + 1 if behind < len(text) and text[behind] in ",]" else None
