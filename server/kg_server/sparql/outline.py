"""What a query asks, as patterns."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from kg_adapters.errors import InvalidRequest
from kg_server.sparql.syntax import (
    Brackets,
    Element,
    ElementKind,
    Form,
    NamePlace,
    Outline,
    Role,
    Select,
    Span,
    Statement,
    Token,
    tokens_of,
)

MAX_DEPTH: Final = 60
"""How deep brackets may be nested here; the guard allows fewer."""

_END: Final = Token("mark", "", 0)
_NO_NODE: Final = frozenset({"", ".", ";", ",", "}", "]", ")", "{"})
_STATEMENT_ENDS: Final = (".", "}", "]", ")", "{")
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}


_BLOCKS: Final[dict[str, ElementKind]] = {
    "OPTIONAL": "optional",
    "MINUS": "minus",
    "GRAPH": "group",
    "SERVICE": "group",
}


@lru_cache(maxsize=8)
def outline_of(query: str) -> Outline:
    """Return the outline of a query; of what is no SPARQL, as much as can be made out.

    Raises:
        MisreadExpression: A name is not written as one.
        InvalidRequest: Brackets are nested too deep.
    """
    reader = _Reader(tokens_of(query))
    namespaces = reader.prologue()
    prologue = (0, reader.at)
    main = reader.query()
    return Outline(
        reader.tokens,
        prologue,
        namespaces,
        main,
        tuple(reader.selects),
        tuple(reader.places),
        tuple(reader.statements),
    )


class _Reader:
    """Reads tokens from left to right.

    Attributes:
        tokens: All of them.
        at: The index of the next one.
        places: Where the names stand that were read.
        statements: The statements that were read.
        selects: The queries that were read.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.places: list[NamePlace] = []
        self.statements: list[Statement] = []
        self.selects: list[Select] = []
        self._groups: list[int] = []
        self._depth = 0

    @property
    def _next(self) -> Token:
        """The next token; an empty one at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else _END

    def _take(self) -> Token:
        """Return the next token, and go past it."""
        token = self._next
        self.at += 1
        return token

    def _ends(self, *texts: str) -> bool:
        """Say whether the query ends here, or one of some tokens comes next."""
        return self.at >= len(self.tokens) or self._next.text in texts

    def prologue(self) -> dict[str, str]:
        namespaces: dict[str, str] = {}
        while self._next.keyword in {"PREFIX", "BASE"}:
            if self._take().keyword == "PREFIX":
                namespaces[self._take().text.removesuffix(":")] = self._next.text[1:-1]
            self._take()
        return namespaces

    def query(self) -> Select:
        form = self._take().keyword
        first = self.at
        if form == "CONSTRUCT" and self._next.text == "{":
            self._template()
        self._expressions("{", form="list" if form == "DESCRIBE" else "single")
        projection = (first, self.at)
        where = None if self._ends() else self.group()
        modifiers = self.at
        self._modifiers()
        select = Select(form, projection, where, (modifiers, self.at))
        self.selects.append(select)
        return select

    def group(self) -> Brackets:
        first = self.at
        self._groups.append(first)
        self._deeper()
        self._take()
        elements: list[Element] = []
        if self._next.keyword == "SELECT":
            self.query()
            elements.append(Element("group", (first + 1, self.at)))
        while not self._ends("}"):
            self._element(elements)
        self._take()
        self._groups.pop()
        self._depth -= 1
        return Brackets((first, self.at), tuple(elements))

    def _element(self, elements: list[Element]) -> None:
        first, word = self.at, self._next.keyword
        kind: ElementKind = _BLOCKS.get(word, "group")
        if self._next.text == ".":
            self._take()
            return
        if word in {"FILTER", "BIND"}:
            kind = "filter" if word == "FILTER" else "bind"
            self._take()
            self._constraint()
        elif word == "VALUES":
            kind = "values"
            self._values()
        elif word in _BLOCKS:
            self._take()
            self._expressions("{", "}", form="single")
            self._group_if_any()
        elif self._next.text == "{":
            self._union()
        else:
            elements.extend(self._triples())
            return
        elements.append(Element(kind, (first, self.at)))

    def _union(self) -> None:
        self.group()
        while self._next.keyword == "UNION":
            self._take()
            self._group_if_any()

    def _group_if_any(self) -> None:
        if self._next.text == "{":
            self.group()

    def _template(self) -> None:
        """Read what CONSTRUCT makes, where only one id can stand for a name."""
        places, statements = len(self.places), len(self.statements)
        self._take()
        while not self._ends("}"):
            if self._next.text == ".":
                self._take()
            else:
                self._triples()
        self._take()
        self.places[places:] = [replace(each, form="single") for each in self.places[places:]]
        del self.statements[statements:]

    def _modifiers(self) -> None:
        while not self._ends("}"):
            if self._next.keyword == "VALUES":
                self._values()
            else:
                self._expression_token()

    def _triples(self) -> list[Element]:
        """Read the statements about one subject: one element each, or one for all where they hang together."""
        first, known = self.at, len(self.statements)
        subject = self._node(None)
        self._properties(subject)
        if self.at == first:
            # Whatever this is, the guard says it better.
            self._take()
        made = self.statements[known:]
        if subject[1] - subject[0] == 1 and all(each.subject == subject for each in made):
            return [Element("triple", (first, self.at), each) for each in made]
        return [Element("triples", (first, self.at))]

    def _constraint(self) -> None:
        """Read what stands behind FILTER and BIND: an expression in brackets, a call, or a group that must exist."""
        while not self._ends("(", "{", "}", "."):
            self._expression_token()
        if self._next.text == "(":
            self._expression_token()
        elif self._next.text == "{":
            self.group()

    def _expressions(self, *ends: str, form: Form = "single") -> None:
        """Read expressions up to one of some tokens."""
        while not self._ends(*ends):
            self._expression_token(form)

    def _expression_token(self, form: Form = "single", variable: str = "") -> str:
        """Read one token of an expression, or all that stands in brackets; return the variable that was last read."""
        token = self._next
        if token.text == "{":
            self.group()
        elif token.text in {"(", "["}:
            variable = self._bracketed(variable)
        else:
            self._take()
            if token.kind == "name":
                self._place("free", self._form_behind(self.at - 2, form), variable)
        return token.text[1:] if token.kind == "variable" else variable

    def _values(self) -> None:
        """Read a block of VALUES."""
        self._take()
        several = self._next.text == "("
        first = self.at
        while not self._ends("{", "}"):
            self._take()
        variables = [token.text[1:] for token in self.tokens[first : self.at] if token.kind == "variable"]
        column = 0
        if self._next.text == "{":
            self._take()
        while not self._ends("}"):
            token = self._take()
            column = 0 if token.text == "(" else column
            if token.kind == "name":
                variable = variables[column] if column < len(variables) else ""
                self._place("free", "single" if several else "list", variable)
            column += several and token.kind not in {"mark", "tag"}
        self._take()

    def _bracketed(self, variable: str) -> str:
        """Read an expression in brackets; in a list for IN, several ids may stand for a name."""
        before = self.tokens[self.at - 1].keyword if self.at else ""
        closing = _CLOSING[self._take().text]
        self._deeper()
        while not self._ends(closing, "}"):
            variable = self._expression_token("commas" if before == "IN" else "single", variable)
        self._take()
        self._depth -= 1
        return variable

    def _form_behind(self, before: int, form: Form) -> Form:
        text = self.tokens[before].text if before >= 0 else ""
        return "equal" if text == "=" else "unequal" if text == "!=" else form

    def _properties(self, subject: Span) -> None:
        while not self._ends(*_STATEMENT_ENDS):
            if self._next.text == ";":
                self._take()
                continue
            before = self.at
            verb = self._path()
            self._tell_subject(subject, verb)
            self.statements.append(Statement(subject, verb, self._node(verb)))
            while self._next.text == ",":
                self._take()
                self.statements.append(Statement(subject, verb, self._node(verb)))
            if self.at == before or self._next.text != ";":
                return

    def _tell_subject(self, subject: Span, verb: Span) -> None:
        """Say of a name that is a subject, of which statement it is the subject first."""
        for number in range(len(self.places) - 1, -1, -1):
            place = self.places[number]
            if place.token == subject[0] and place.verb is None:
                self.places[number] = replace(place, verb=verb)
            if place.token <= subject[0]:
                return

    def _node(self, verb: Span | None) -> Span:
        first, token = self.at, self._next
        if token.text in {"[", "("}:
            self._deeper()
            self._take()
            if token.text == "[":
                self._properties((first, first + 1))
            while not self._ends(_CLOSING[token.text], "}"):
                before = self.at
                self._node(verb)
                self.at += self.at == before
            self._take()
            self._depth -= 1
        elif token.text in {"+", "-"}:
            self.at += 2
        elif token.text not in _NO_NODE:
            self._take()
            if token.kind == "name":
                self._place("node", "pattern", verb=verb, ahead=verb is not None)
            elif token.kind == "text":
                self._behind_text()
        return (first, self.at)

    def _behind_text(self) -> None:
        if self._next.kind == "tag":
            self._take()
        elif self._next.text == "^^":
            self.at += 2

    def _path(self) -> Span:
        first = self.at
        self._alternatives(negated=False)
        return (first, self.at)

    def _alternatives(self, *, negated: bool) -> None:
        while True:
            before = self.at
            self._step(negated=negated)
            while self._next.text in {"*", "+", "?"} and not negated:
                self._take()
            if self.at == before or self._next.text not in {"/", "|"}:
                return
            self._take()

    def _step(self, *, negated: bool) -> None:
        inverse = False
        while self._next.text in {"^", "!"}:
            negated = negated or self._next.text == "!"
            inverse = self._take().text == "^"
        if self._next.text == "(":
            self._deeper()
            self._take()
            self._alternatives(negated=negated)
            if self._ends(")"):
                self._take()
            self._depth -= 1
        elif self._next.text not in _NO_NODE and self._take().kind == "name":
            self._place("verb", ("single" if inverse else "negated") if negated else "pattern")

    def _place(
        self, role: Role, form: Form, variable: str = "", *, verb: Span | None = None, ahead: bool = False
    ) -> None:
        group = self._groups[-1] if self._groups else None
        self.places.append(NamePlace(self.at - 1, role, form, group, verb, ahead, variable))

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise InvalidRequest(f"The query nests brackets more than {MAX_DEPTH} deep. Simplify it.")
