"""Errors that point at a place in a text: an expression or a query."""

import unicodedata
from typing import Final

from kg_adapters.errors import InvalidRequest
from kg_boundary.shown import visible_line

_SIDE: Final = 50
"""How many characters of the line are shown on either side of the place."""


class MisreadExpression(InvalidRequest):
    """Something in an expression or a query cannot be read, or does not mean what it must.

    Args:
        text: The expression or query.
        position: The index of the character that is at fault; the length of the text stands for its end.
        problem: What is wrong, and what was expected, in full sentences.
        named: What of the text the problem quotes: where it stands there once, nothing points at it as well.
    """

    def __init__(self, text: str, position: int, problem: str, named: str = "") -> None:
        self.position = position
        self.problem = problem
        self.named = named
        plain = named and text.count(named) == 1
        super().__init__(problem if plain else f"{problem}\n{pointed(text, position)}")

    def within(self, start: int, end: int, text: str) -> str:
        """Return the message about a stretch of the text, with the caret below its own characters."""
        return str(MisreadExpression(text[start:end], self.position - start, self.problem, self.named))


def pointed(text: str, position: int) -> str:
    """Return the line of `text` that holds a position, with a caret below the character.

    Of several lines it is told which one that is; a long line is shortened.
    """
    before, line_start = text[:position], text.rfind("\n", 0, position) + 1
    line_end = text.find("\n", position)
    line = text[line_start : line_end if line_end >= 0 else len(text)]
    column = position - line_start
    first, last = max(0, column - _SIDE), column + _SIDE
    lead = "…" if first else ""
    before_it, behind = visible_line(line[first:column]), visible_line(line[column:last])
    rest = "…" if last < len(line) else ""
    blank = "".join(_blank(mark) for mark in lead + before_it)
    where = f"line {before.count(chr(10)) + 1}, column {column + 1}: " if "\n" in text else ""
    return f"{where}{lead}{before_it}{behind}{rest}\n{' ' * len(where)}{blank}^"


def _blank(mark: str) -> str:
    """Return the blank that is as wide as a character."""
    if unicodedata.combining(mark):
        return ""
    return "\N{IDEOGRAPHIC SPACE}" if unicodedata.east_asian_width(mark) in {"W", "F"} else " "
