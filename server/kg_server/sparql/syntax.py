"""What a query is made of, as far as names and the search for a pattern without a match need to know.

Tokens are told by their index; a span is the first of them and the one behind the last.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, get_args
from typing import Literal as Choice

from kg_adapters.errors import InvalidRequest
from kg_adapters.prefixes import WELL_KNOWN, Prefixes
from kg_adapters.terms import XSD, Iri
from kg_adapters.values import held_form
from kg_server.naming.refusals import MisreadExpression

Kind: TypeAlias = Choice[
    "name", "iri", "text", "tag", "variable", "blank", "prefixed", "number", "word", "mark"  # in the order of trial
]

_CODED: Final = r"%[0-9A-Fa-f]{2}|\\."

_IRI: Final = r"<[^<>\"{}|^`\s]*>"

_TEXT: Final = (
    r'"""(?:"{0,2}(?:[^"\\]|\\.))*"""'
    r"|'''(?:'{0,2}(?:[^'\\]|\\.))*'''"
    r'|"(?:[^"\\\n\r]|\\.)*"'
    r"|'(?:[^'\\\n\r]|\\.)*'"
)

_PATTERNS: Final[dict[Kind, str]] = {
    "name": r'@"(?:[^"\\\n\r]|\\.)*"|@\'(?:[^\'\\\n\r]|\\.)*\'',
    "iri": _IRI,
    "text": _TEXT,
    "tag": r"@[A-Za-z]+(?:-[A-Za-z0-9]+)*",
    "variable": r"[?$]\w+",
    "blank": r"_:(?:[\w.-]*\w)?",
    "prefixed": rf"(?:[^\W\d_](?:[\w.-]{{0,60}}[\w-])?)?:(?:(?:[\w:.-]|{_CODED})*(?:[\w:-]|{_CODED}))?",
    "number": r"(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?",
    "word": r"[^\W\d]\w*",
    "mark": r"\^\^|&&|\|\||[!<>]=|\S",
}

_TOKEN: Final = re.compile(
    r"\s+|#[^\n\r]*|" + "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _PATTERNS.items()), re.DOTALL
)

_KINDS: Final[dict[str, Kind]] = {kind: kind for kind in get_args(Kind)}

_ESCAPED: Final = re.compile(r"\\(.)")
_INFINITE: Final = "INF"


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a query that cannot be divided, and where it begins."""

    kind: Kind
    text: str
    at: int

    @property
    def end(self) -> int:
        """Where the token ends."""
        return self.at + len(self.text)

    @property
    def keyword(self) -> str:
        """The word in capitals, or nothing where it is none."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def name(self) -> str:
        """What stands between the quotation marks of a name."""
        return _ESCAPED.sub(r"\1", self.text[2:-1]).strip()


def tokens_of(query: str) -> tuple[Token, ...]:
    """Return the tokens of a query, without blanks and comments.

    Raises:
        MisreadExpression: A name is blank, has no end, or stands where only the tag of a language may.
    """
    matches = ((match, match.lastgroup) for match in _TOKEN.finditer(query))
    found = [Token(_KINDS[kind], match[0], match.start()) for match, kind in matches if kind is not None]
    for before, token in zip((None, *found), found, strict=False):
        _check_name(query, before, token)
    return tuple(found)


def _check_name(query: str, before: Token | None, token: Token) -> None:
    if token.kind == "mark" and token.text == "@":
        raise MisreadExpression(query, token.at, 'A name is written @"…" on one line, with both quotation marks.')
    if token.kind != "name":
        return
    if not token.name:
        raise MisreadExpression(query, token.at, 'The name is blank. Write one such as @"Tokyo".')
    if before is not None and before.kind == "text" and before.end == token.at:
        raise MisreadExpression(
            query,
            token.at,
            'A name cannot follow a text. The tag of a language has no quotation marks: "Tokyo"@en.',
        )


_CONDITIONS: Final = frozenset({"EXISTS", "MINUS"})


def either(ways: Sequence[str]) -> str:
    """Return some paths as alternatives of one."""
    return ways[0] if len(ways) == 1 else f"({'|'.join(ways)})"


Span: TypeAlias = tuple[int, int]

Role: TypeAlias = Choice["node", "verb", "free"]
"""Where an id stands: at the end of a statement, between its ends, or in an expression or list."""

Form: TypeAlias = Choice["pattern", "negated", "list", "commas", "equal", "unequal", "single"]
"""How several ids can take the place of one: by a variable or path, in a list, by IN, by NOT IN, or not at all."""

ElementKind: TypeAlias = Choice["triple", "triples", "filter", "optional", "bind", "values", "group", "minus"]


@dataclass(frozen=True, slots=True)
class NamePlace:
    """Where a name stands.

    Args:
        token: The token.
        role: What it is there.
        form: How several ids can stand for it.
        group: The opening bracket of the innermost group around it.
        verb: The path of the statement that it is an end of.
        ahead: Whether it is the object of that statement.
        variable: The variable that it is compared with, or that it is a value of.
    """

    token: int
    role: Role
    form: Form
    group: int | None = None
    verb: Span | None = None
    ahead: bool = False
    variable: str = ""


@dataclass(frozen=True, slots=True)
class Statement:
    """Subject, path and object of a pattern."""

    subject: Span
    verb: Span
    tail: Span


@dataclass(frozen=True, slots=True)
class Element:
    """A part of a group that narrows what is found, or adds to it; a statement has parts of its own."""

    kind: ElementKind
    span: Span
    statement: Statement | None = None


@dataclass(frozen=True, slots=True)
class Brackets:
    """What stands between two brackets."""

    span: Span
    elements: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class Select:
    """A query or subquery: what it asks for, where, and what it does with the rows."""

    form: str
    projection: Span
    where: Brackets | None
    modifiers: Span


@dataclass(frozen=True, slots=True)
class Nesting:
    """Which curly brackets are around what.

    Args:
        opening: For each token the innermost opening bracket around it, or -1.
        closing: The bracket that closes an opening one, where one does.
    """

    opening: Sequence[int]
    closing: Mapping[int, int]

    @classmethod
    def of(cls, tokens: Sequence[Token]) -> "Nesting":
        """Return that of the tokens of a query."""
        opening, closing = list[int](), dict[int, int]()
        opened = list[int]()
        for number, token in enumerate(tokens):
            if token.text == "}" and opened:
                closing[opened.pop()] = number
            opening.append(opened[-1] if opened else -1)
            if token.text == "{":
                opened.append(number)
        return cls(opening, closing)


@dataclass(frozen=True, slots=True)
class Outline:
    """The structure of a whole query.

    Args:
        tokens: All its tokens.
        prologue: Its prefixes and base.
        namespaces: What its prefixes stand for.
        main: The query itself.
        selects: It and all its subqueries.
        places: Where its names stand.
        statements: All statements of its patterns.
        nesting: Which curly brackets are around what.
    """

    tokens: Sequence[Token]
    prologue: Span
    namespaces: Mapping[str, str]
    main: Select
    selects: tuple[Select, ...] = ()
    places: tuple[NamePlace, ...] = ()
    statements: tuple[Statement, ...] = field(default=(), repr=False)
    nesting: "Nesting" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nesting", Nesting.of(self.tokens))

    @property
    def is_short_construct(self) -> bool:
        """Whether the query is `CONSTRUCT WHERE`, which takes neither paths nor groups."""
        first = self.main.projection[0]
        return self.main.form == "CONSTRUCT" and first < len(self.tokens) and self.tokens[first].text != "{"

    def within(self, span: Span) -> Sequence[Token]:
        """Return the tokens of a span."""
        return self.tokens[slice(*span)]

    def iri(self, token: Token, prefixes: Prefixes) -> Iri | None:
        """Return the IRI that a token is, by the prefixes of the query, of its graph, or that everyone knows."""
        value = token.text[1:-1] if token.kind == "iri" else ""
        if token.kind == "prefixed":
            prefix, _, local = token.text.partition(":")
            namespaces = {**WELL_KNOWN, **prefixes.namespaces, **self.namespaces}
            value = f"{namespaces.get(prefix, '')}{local}"
        try:
            return Iri(value)
        except InvalidRequest:
            return None

    def variables(self, span: Span) -> Iterator[str]:
        """Yield the names of the variables in a span, with repeats."""
        return (token.text[1:] for token in self.within(span) if token.kind == "variable")

    def brackets_around(self, at: int) -> Span | None:
        """Return the innermost curly brackets around a token."""
        first = self.nesting.opening[at]
        while first >= 0 and first not in self.nesting.closing:
            first = self.nesting.opening[first]
        return None if first < 0 else (first, self.nesting.closing[first])

    def openings(self, at: int) -> Iterator[int]:
        """Yield the curly brackets that are open at a token, the innermost first."""
        around = self.brackets_around(at)
        while around is not None:
            yield around[0]
            around = self.brackets_around(around[0])

    def in_condition(self, at: int) -> bool:
        """Say whether a token stands in EXISTS or MINUS, where it does not matter how often something matches."""
        return any(first > 0 and self.tokens[first - 1].keyword in _CONDITIONS for first in self.openings(at))

    def text(self, span: Span, instead: Mapping[int, str] | None = None) -> str:
        """Return a span on one line, without comments, with other texts in place of some tokens."""
        pieces: list[str] = []
        end: int | None = None
        for number in range(*span):
            token = self.tokens[number]
            # Some engines do not read a language or datatype that is apart from its text.
            pieces.append(" " if end is not None and end != token.at else "")
            pieces.append((instead or {}).get(number, token.text))
            end = token.end
        return "".join(pieces)


@dataclass
class Edits:
    """What changes in a query: texts in place of tokens, and behind them.

    Attributes:
        instead: What stands in place of a token.
        behind: What is put behind a token.
        added: The variables that are not the query's own.
        parts: The first and last tokens of statements that become subqueries, which have each row once.
    """

    instead: dict[int, str] = field(default_factory=dict[int, str])
    behind: defaultdict[int, list[str]] = field(default_factory=lambda: defaultdict[int, list[str]](list))
    added: list[str] = field(default_factory=list[str])
    parts: list[Span] = field(default_factory=list[Span])

    def drop(self, span: Span) -> None:
        """Leave tokens out."""
        self.instead.update(dict.fromkeys(range(*span), ""))

    def applied(self, query: str, outline: Outline) -> str:
        """Return the query with all changes, each of its lines where it was."""
        pieces: list[str] = []
        end = 0
        before = {first: "{ SELECT DISTINCT * { " for first, _ in self.parts}
        after = {last: " } }" for _, last in self.parts}
        for number, token in enumerate(outline.tokens):
            text = f"{before.get(number, '')}{self.instead.get(number, token.text)}{after.get(number, '')}"
            pieces += [query[end : token.at], text, *self.behind.get(number, ())]
            end = token.end
        return "".join((*pieces, query[end:]))

    def restate(self, outline: Outline, prefixes: Prefixes) -> None:
        """Write numbers and years as the engine of a local graph holds them (`values.held_form`)."""
        for at, token in enumerate(outline.tokens):
            if token.kind == "number":
                name = "double" if "e" in token.text.lower() else "decimal" if "." in token.text else "integer"
                text, datatype = held_form(token.text, XSD + name)
                if datatype != XSD + name and text != _INFINITE:
                    self.instead[at] = text if "E" in text else f"{text}E0"
            elif token.text == "^^" and 0 < at < len(outline.tokens) - 1:
                value, named = outline.tokens[at - 1].text, outline.iri(outline.tokens[at + 1], prefixes)
                held = None if named is None else held_form(value[1:-1], named.value)
                if held is not None and named is not None and held != (value[1:-1], named.value):
                    self.instead |= {at - 1: f'"{held[0]}"', at + 1: f"<{held[1]}>"}

    def texts(self, outline: Outline) -> Mapping[int, str]:
        """Return what stands in place of each token that changes, with what is put behind it."""
        changed = {*self.instead, *self.behind}
        return {
            number: "".join((self.instead.get(number, outline.tokens[number].text), *self.behind.get(number, ())))
            for number in changed
        }
