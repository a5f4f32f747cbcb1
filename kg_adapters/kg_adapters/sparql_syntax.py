"""Where SPARQL text stops making sense, and what was expected there."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyoxigraph

from kg_boundary.shown import in_quotes, visible_line

_PLACE: Final = re.compile(r"error at (\d+):(\d+): expected (?:one of )?")
_TOKEN: Final = re.compile(r'"((?:[^"\\]|\\.)+)"|\b([A-Z]{2,})\b')
_CHARACTERS: Final = re.compile(r"\[[^\]]*\]")
_NOTES: Final[Mapping[str, str]] = {
    "Prefix not found": "a prefix is not declared: add PREFIX name: <http://…>",
    "IRI parsing failed": "an IRI is not absolute or holds a character that IRIs cannot: write <http://…>",
}
_UNBOUND: Final = "The SELECT contains a variable that is unbound"
_GROUPING: Final = (
    "with GROUP BY or an aggregate, SELECT may name only grouped variables and aggregates, "
    "as in SELECT ?x (COUNT(?y) AS ?n) … GROUP BY ?x"
)
_MAX_EXPECTED: Final = 8
_MAX_SHOWN: Final = 120


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """What is wrong with a text, and where, counted from 0; None where it is the text as a whole."""

    at: int | None
    what: str

    def describe(self, text: str) -> str:
        """Return what is wrong, with line and column and the line with a caret under the place."""
        if self.at is None:
            return f": {self.what}."
        start = text.rfind("\n", 0, self.at) + 1
        end = text.find("\n", self.at)
        line = text[start : len(text) if end < 0 else end].replace("\t", " ")
        column = self.at - start
        cut = max(0, column - _MAX_SHOWN // 2)
        number = text.count("\n", 0, start) + 1
        before, behind = visible_line(line[cut:column]), visible_line(line[column : cut + _MAX_SHOWN])
        return f" at line {number}, column {column + 1}: {self.what}\n{before}{behind}\n{' ' * len(before)}^"


def engine_problem(text: str, namespaces: Mapping[str, str]) -> SyntaxProblem | None:
    """Return why Oxigraph cannot read a query, or None where it can.

    The query is run on an empty graph to learn that, so the text must hold no SERVICE keyword, and the caller must be
    a process that may be killed.
    """
    try:
        pyoxigraph.Store().query(text, prefixes=dict(namespaces))
    except SyntaxError as error:
        return read_engine_error(text, str(error))
    return None


def read_engine_error(text: str, message: str) -> SyntaxProblem:
    """Translate Oxigraph's message about a query that it cannot read."""
    place = _PLACE.match(message)
    if place is None:
        return SyntaxProblem(None, message.partition("\n")[0][:_MAX_SHOWN])
    expected = message[place.end() :]
    at = _offset(text, int(place[1]), int(place[2]))
    if _UNBOUND in expected:
        return SyntaxProblem(None, _GROUPING)
    note = next((note for sign, note in _NOTES.items() if sign in expected), None)
    if note is not None:
        return SyntaxProblem(at, note)
    symbols, keywords = _tokens(expected)
    if keywords and not symbols:
        # Oxigraph reports the end of the longest keyword that it tried; people look for the start.
        at = max(0, at - max(map(len, keywords)))
    return SyntaxProblem(at, _expected(text, at, symbols, keywords))


def _offset(text: str, line: int, column: int) -> int:
    lines = text.split("\n")
    return min(len(text), sum(len(earlier) + 1 for earlier in lines[: line - 1]) + column - 1)


def _tokens(expected: str) -> tuple[list[str], list[str]]:
    symbols: list[str] = []
    keywords: list[str] = []
    for symbol, keyword in _TOKEN.findall(_CHARACTERS.sub("", expected)):
        if symbol:
            symbols.append(symbol.replace('\\"', '"'))
        else:
            keywords.append(keyword)
    return symbols, keywords


def _expected(text: str, at: int, symbols: list[str], keywords: list[str]) -> str:
    found = unexpected(text, at).what
    if not symbols:
        return found
    wanted = [*symbols, *keywords]
    more = " …" if len(wanted) > _MAX_EXPECTED else ""
    return f"{found}; expected one of {' '.join(wanted[:_MAX_EXPECTED])}{more}"


def unexpected(text: str, at: int) -> SyntaxProblem:
    """Return the problem that what stands in a place does not belong there."""
    word = re.match(r"\s*([?$]?\w+|\S)", text[at : at + _MAX_SHOWN])
    return SyntaxProblem(at, f"unexpected {'end of the query' if word is None else in_quotes(word[1], 40)}")
