"""What a query asks, as patterns."""

from collections.abc import Sequence
from dataclasses import replace
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


class PatternReader:
    """Reads tokens from left to right.

    Attributes:
        tokens: All of them.
        at: The index of the next one.
        places: Where the names stand that were read.
        statements: The statements that were read.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.places: list[NamePlace] = []
        self.statements: list[Statement] = []
        self._groups: list[int] = []
        self._depth = 0

    @property
    def next(self) -> Token:
        """The next token; an empty one at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else _END

    def take(self) -> Token:
        """Return the next token, and go past it."""
        token = self.next
        self.at += 1
        return token

    def ends(self, *texts: str) -> bool:
        """Say whether the query ends here, or one of some tokens comes next."""
        return self.at >= len(self.tokens) or self.next.text in texts

    def group(self) -> Brackets:
        """Read a group."""
        raise NotImplementedError

    def open_group(self) -> None:
        """Go past the opening bracket of a group."""
        self._groups.append(self.at)
        self._deeper()
        self.take()

    def close_group(self) -> None:
        """Go past the closing bracket of a group."""
        self.take()
        self._groups.pop()
        self._depth -= 1

    def triples(self) -> list[Element]:
        """Read the statements about one subject: one element each, or one for all where they hang together."""
        first, known = self.at, len(self.statements)
        subject = self._node(None)
        self._properties(subject)
        if self.at == first:
            # Whatever this is, the guard says it better.
            self.take()
        made = self.statements[known:]
        if subject[1] - subject[0] == 1 and all(each.subject == subject for each in made):
            return [Element("triple", (first, self.at), each) for each in made]
        return [Element("triples", (first, self.at))]

    def constraint(self) -> None:
        """Read what stands behind FILTER and BIND: an expression in brackets, a call, or a group that must exist."""
        while not self.ends("(", "{", "}", "."):
            self.expression_token()
        if self.next.text == "(":
            self.expression_token()
        elif self.next.text == "{":
            self.group()

    def expressions(self, *ends: str, form: Form = "single") -> None:
        """Read expressions up to one of some tokens."""
        while not self.ends(*ends):
            self.expression_token(form)

    def expression_token(self, form: Form = "single", variable: str = "") -> str:
        """Read one token of an expression, or all that stands in brackets; return the variable that was last read."""
        token = self.next
        if token.text == "{":
            self.group()
        elif token.text in {"(", "["}:
            variable = self._bracketed(variable)
        else:
            self.take()
            if token.kind == "name":
                self._place("free", self._form_behind(self.at - 2, form), variable)
        return token.text[1:] if token.kind == "variable" else variable

    def values(self) -> None:
        """Read a block of VALUES."""
        self.take()
        several = self.next.text == "("
        first = self.at
        while not self.ends("{", "}"):
            self.take()
        variables = [token.text[1:] for token in self.tokens[first : self.at] if token.kind == "variable"]
        column = 0
        if self.next.text == "{":
            self.take()
        while not self.ends("}"):
            token = self.take()
            column = 0 if token.text == "(" else column
            if token.kind == "name":
                variable = variables[column] if column < len(variables) else ""
                self._place("free", "single" if several else "list", variable)
            column += several and token.kind not in {"mark", "tag"}
        self.take()

    def _bracketed(self, variable: str) -> str:
        """Read an expression in brackets; in a list for IN, several ids may stand for a name."""
        before = self.tokens[self.at - 1].keyword if self.at else ""
        closing = _CLOSING[self.take().text]
        self._deeper()
        while not self.ends(closing, "}"):
            variable = self.expression_token("commas" if before == "IN" else "single", variable)
        self.take()
        self._depth -= 1
        return variable

    def _form_behind(self, before: int, form: Form) -> Form:
        text = self.tokens[before].text if before >= 0 else ""
        return "equal" if text == "=" else "unequal" if text == "!=" else form

    def _properties(self, subject: Span) -> None:
        while not self.ends(*_STATEMENT_ENDS):
            if self.next.text == ";":
                self.take()
                continue
            before = self.at
            verb = self._path()
            self._tell_subject(subject, verb)
            self.statements.append(Statement(subject, verb, self._node(verb)))
            while self.next.text == ",":
                self.take()
                self.statements.append(Statement(subject, verb, self._node(verb)))
            if self.at == before or self.next.text != ";":
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
        first, token = self.at, self.next
        if token.text in {"[", "("}:
            self._deeper()
            self.take()
            if token.text == "[":
                self._properties((first, first + 1))
            while not self.ends(_CLOSING[token.text], "}"):
                before = self.at
                self._node(verb)
                self.at += self.at == before
            self.take()
            self._depth -= 1
        elif token.text in {"+", "-"}:
            self.at += 2
        elif token.text not in _NO_NODE:
            self.take()
            if token.kind == "name":
                self._place("node", "pattern", verb=verb, ahead=verb is not None)
            elif token.kind == "text":
                self._behind_text()
        return (first, self.at)

    def _behind_text(self) -> None:
        if self.next.kind == "tag":
            self.take()
        elif self.next.text == "^^":
            self.at += 2

    def _path(self) -> Span:
        first = self.at
        self._alternatives(negated=False)
        return (first, self.at)

    def _alternatives(self, *, negated: bool) -> None:
        while True:
            before = self.at
            self._step(negated=negated)
            while self.next.text in {"*", "+", "?"} and not negated:
                self.take()
            if self.at == before or self.next.text not in {"/", "|"}:
                return
            self.take()

    def _step(self, *, negated: bool) -> None:
        inverse = False
        while self.next.text in {"^", "!"}:
            negated = negated or self.next.text == "!"
            inverse = self.take().text == "^"
        if self.next.text == "(":
            self._deeper()
            self.take()
            self._alternatives(negated=negated)
            if self.ends(")"):
                self.take()
            self._depth -= 1
        elif self.next.text not in _NO_NODE and self.take().kind == "name":
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


_BLOCKS: Final[dict[str, ElementKind]] = {
    "OPTIONAL": "optional",
    "MINUS": "minus",
    "GRAPH": "group",
    "SERVICE": "group",
}


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


class _Reader(PatternReader):
    """Reads groups and queries.

    Attributes:
        selects: The queries that were read.
    """

    selects: list[Select]

    def prologue(self) -> dict[str, str]:
        self.selects = []
        namespaces: dict[str, str] = {}
        while self.next.keyword in {"PREFIX", "BASE"}:
            if self.take().keyword == "PREFIX":
                namespaces[self.take().text.removesuffix(":")] = self.next.text[1:-1]
            self.take()
        return namespaces

    def query(self) -> Select:
        form = self.take().keyword
        first = self.at
        if form == "CONSTRUCT" and self.next.text == "{":
            self._template()
        self.expressions("{", form="list" if form == "DESCRIBE" else "single")
        projection = (first, self.at)
        where = None if self.ends() else self.group()
        modifiers = self.at
        self._modifiers()
        select = Select(form, projection, where, (modifiers, self.at))
        self.selects.append(select)
        return select

    def group(self) -> Brackets:
        first = self.at
        self.open_group()
        elements: list[Element] = []
        if self.next.keyword == "SELECT":
            self.query()
            elements.append(Element("group", (first + 1, self.at)))
        while not self.ends("}"):
            self._element(elements)
        self.close_group()
        return Brackets((first, self.at), tuple(elements))

    def _element(self, elements: list[Element]) -> None:
        first, word = self.at, self.next.keyword
        kind: ElementKind = _BLOCKS.get(word, "group")
        if self.next.text == ".":
            self.take()
            return
        if word in {"FILTER", "BIND"}:
            kind = "filter" if word == "FILTER" else "bind"
            self.take()
            self.constraint()
        elif word == "VALUES":
            kind = "values"
            self.values()
        elif word in _BLOCKS:
            self.take()
            self.expressions("{", "}", form="single")
            self._group_if_any()
        elif self.next.text == "{":
            self._union()
        else:
            elements.extend(self.triples())
            return
        elements.append(Element(kind, (first, self.at)))

    def _union(self) -> None:
        self.group()
        while self.next.keyword == "UNION":
            self.take()
            self._group_if_any()

    def _group_if_any(self) -> None:
        if self.next.text == "{":
            self.group()

    def _template(self) -> None:
        """Read what CONSTRUCT makes, where only one id can stand for a name."""
        places, statements = len(self.places), len(self.statements)
        self.take()
        while not self.ends("}"):
            if self.next.text == ".":
                self.take()
            else:
                self.triples()
        self.take()
        self.places[places:] = [replace(each, form="single") for each in self.places[places:]]
        del self.statements[statements:]

    def _modifiers(self) -> None:
        while not self.ends("}"):
            if self.next.keyword == "VALUES":
                self.values()
            else:
                self.expression_token()
