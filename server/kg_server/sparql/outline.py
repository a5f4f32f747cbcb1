"""Reads the outline of a query: tolerant, since the guard that checks queries comes after it, and in one pass."""

from dataclasses import replace
from typing import Final

from kg_server.sparql.patterns import PatternReader
from kg_server.sparql.syntax import Element, ElementKind, Group, Outline, Select
from kg_server.sparql.tokens import tokens_of

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

    def group(self) -> Group:
        first = self.at
        self.open_group()
        elements: list[Element] = []
        if self.next.keyword == "SELECT":
            self.query()
            elements.append(Element("group", (first + 1, self.at)))
        while not self.ends("}"):
            self._element(elements)
        self.close_group()
        return Group((first, self.at), tuple(elements))

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
