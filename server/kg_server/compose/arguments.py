"""The arguments of a call, read from left to right."""

import re
from typing import Final

from kg_server.compose.routes import read_route
from kg_server.compose.scanner import CLOSE, Scanned, angled, name_at, opens_call, plain, quoted, skip_blanks
from kg_server.compose.syntax import FUNCTIONS, Function, Route, Span, Words
from kg_server.compose.wording import FORMS, second, unclosed
from kg_server.pointing import MisreadExpression

ID_ENDS: Final = (",", CLOSE)
MAX_BEST: Final = 10_000
MAX_RELATIONS: Final = 64
_DIGITS_OF_BEST: Final = len(str(MAX_BEST))
_THOUSANDS: Final = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?![\d,])")


class ArgumentReader:
    """Reads one text from left to right; `_at` is the next character.

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._relations = 0

    def _next(self) -> str:
        """Return the next character that is no blank, and go to it; empty at the end."""
        self._at = skip_blanks(self._text, self._at)
        return self._text[self._at : self._at + 1]

    def _misread(self, at: int, problem: str) -> MisreadExpression:
        return MisreadExpression(self._text, at, problem)

    def _route(self, function: Function, bracket: int, ends: tuple[str, ...], *, condition: bool = False) -> Route:
        """Read a comma and the relations behind it."""
        mark = self._next()
        if mark != ",":
            if not mark:
                raise self._misread(bracket, unclosed(function))
            raise self._misread(self._at, f"{FORMS[function]} Expected a comma and {second(function)}.")
        behind = skip_blanks(self._text, self._at + 1)
        if FUNCTIONS.get(name_at(self._text, behind).lower()) and opens_call(self._text, behind):
            raise self._misread(
                behind,
                f"{function} takes no call here. Expected {second(function)}; one that looks like a "
                "call is put in quotation marks.",
            )
        read = read_route(self._text, self._at + 1, ends, before_operator=condition)
        if read.end >= len(self._text):
            raise self._misread(bracket, unclosed(function))
        if read.problem:
            raise self._misread(read.end, f"{FORMS[function]} {read.problem}")
        self._relations += len(read.route.legs)
        if self._relations > MAX_RELATIONS:
            raise self._misread(behind, f"An expression names at most {MAX_RELATIONS} relations. Ask in two.")
        self._at = read.end
        return read.route

    def _number(self, function: Function, bracket: int) -> int:
        self._at = skip_blanks(self._text, self._at + 1)
        found = self._argument(bracket, function, ID_ENDS)
        number = int(found.text) if found.text.isdecimal() and len(found.text) <= _DIGITS_OF_BEST else 0
        if not 1 <= number <= MAX_BEST:
            raise self._misread(self._at, f"Expected how many, a whole number from 1 to {MAX_BEST:,}.")
        self._passed(found)
        return number

    def _number_with_commas(self) -> Scanned | None:
        """Read a number such as `1,000 m`, whose commas end nothing; None where there is none."""
        number = _THOUSANDS.match(self._text, self._at)
        rest = None if number is None else plain(self._text, number.end(), ID_ENDS)
        return None if rest is None else Scanned(self._text[self._at : rest.end].strip(), self._at, rest.end)

    def _words(self, function: Function, bracket: int, wanted: str) -> Words:
        self._next()
        if FUNCTIONS.get(name_at(self._text, self._at).lower()) and opens_call(self._text, self._at):
            raise self._misread(
                self._at,
                f"{function} takes no call here. Expected {wanted}; one that looks like a call is put in "
                "quotation marks.",
            )
        found = self._argument(bracket, function, (CLOSE,))
        if not found.text.strip():
            raise self._misread(self._at, f"{FORMS[function]} Expected {wanted} here.")
        return Words(found.text, self._passed(found))

    def _argument(self, bracket: int, function: Function, ends: tuple[str, ...]) -> Scanned:
        for read in (quoted, angled, plain):
            found = read(self._text, self._at, ends)
            if found is not None:
                return found
        raise self._misread(bracket, unclosed(function))

    def _passed(self, found: Scanned) -> Span:
        self._at = found.end
        return Span(found.start, found.end)

    def _closed(self, function: Function, start: int, bracket: int) -> Span:
        mark = self._next()
        if not mark:
            raise self._misread(bracket, unclosed(function))
        if mark != CLOSE:
            raise self._misread(self._at, f"{FORMS[function]} Expected {CLOSE} to close it here.")
        self._at += 1
        return Span(start, self._at)
