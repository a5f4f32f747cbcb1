"""What a query is made of, as far as names and the search for a pattern without a match need to know.

Tokens are told by their index; a span is the first of them and the one behind the last.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal as Choice
from typing import TypeAlias

from kg_adapters.errors import InvalidRequest
from kg_adapters.prefixes import WELL_KNOWN, Prefixes
from kg_adapters.terms import Iri
from kg_server.sparql.tokens import Token

Span: TypeAlias = tuple[int, int]

Role: TypeAlias = Choice["node", "verb", "free"]
"""Where an id stands: at the end of a statement, between its ends, or in an expression or list."""

Form: TypeAlias = Choice["pattern", "negated", "list", "commas", "equal", "unequal", "single"]
"""How several ids can take the place of one: by a variable or path, in a list, by IN, by NOT IN, or not at all."""

ElementKind: TypeAlias = Choice["triple", "triples", "filter", "optional", "bind", "values", "group", "minus"]


@dataclass(frozen=True, slots=True)
class Place:
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
class Group:
    """What stands between two brackets."""

    span: Span
    elements: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class Select:
    """A query or subquery: what it asks for, where, and what it does with the rows."""

    form: str
    projection: Span
    where: Group | None
    modifiers: Span


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
    """

    tokens: Sequence[Token]
    prologue: Span
    namespaces: Mapping[str, str]
    main: Select
    selects: tuple[Select, ...] = ()
    places: tuple[Place, ...] = ()
    statements: tuple[Statement, ...] = field(default=(), repr=False)

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
        opened: list[int] = []
        for number, token in enumerate(self.tokens):
            if token.text == "{":
                opened.append(number)
            elif token.text == "}" and opened and (first := opened.pop()) < at < number:
                return first, number
        return None

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
