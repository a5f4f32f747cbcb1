"""Parse trees of SPARQL queries, as plain values: the one place that knows rdflib's parser."""

# rdflib's parse results and pyparsing's keyword arguments are untyped; nothing untyped leaves this file.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from pyparsing import ParseBaseException, ParseResults, one_of, rest_of_line
from rdflib import URIRef
from rdflib.plugins.sparql.parser import Prologue, parseQuery
from rdflib.plugins.sparql.parserutils import CompValue

from kg_adapters.errors import InvalidRequest

_UPDATES: Final = "INSERT DELETE LOAD CLEAR DROP CREATE ADD MOVE COPY WITH"


@dataclass(frozen=True, slots=True)
class IriLeaf:
    """An IRI as it is written, absolute or not."""

    text: str


@dataclass(frozen=True, slots=True)
class Branch:
    """A piece of a query, named by rdflib's grammar (`SelectQuery`, `Filter`, `pname`), and its parts by name."""

    name: str
    parts: tuple[tuple[str, "Tree"], ...]

    def part(self, key: str) -> "Tree":
        """Return one part, an empty text where there is none."""
        return next((part for name, part in self.parts if name == key), "")


Tree: TypeAlias = Branch | IriLeaf | str | tuple["Tree", ...]


class UnreadableQuery(Exception):
    """The text is no SPARQL query; `at` is about where, counted from 0."""

    def __init__(self, at: int) -> None:
        self.at = at
        super().__init__(at)


def read_query(text: str) -> tuple[Tree, Branch]:
    """Return the prologue and the query of a SPARQL 1.1 text.

    Raises:
        UnreadableQuery: The text is not a query.
        InvalidRequest: It is too deep or long for the parser.
    """
    try:
        # pyparsing would expand tabs, and its columns with them.
        prologue, query = (_tree(part) for part in parseQuery(text.replace("\t", " ")))
    except ParseBaseException as error:
        raise UnreadableQuery(error.loc) from None
    except RecursionError:
        raise InvalidRequest(
            "The query is nested too deeply or too long to be checked. Split it, or list values with VALUES."
        ) from None
    if not isinstance(query, Branch):
        raise UnreadableQuery(0)
    return prologue, query


def starts_an_update(text: str) -> bool:
    """Say whether what follows the prologue is the first word of a SPARQL update."""
    keyword = one_of(_UPDATES, caseless=True, as_keyword=True).ignore("#" + rest_of_line)
    try:
        (Prologue + keyword).parse_string(text)
    except ParseBaseException:
        return False
    return True


def walk(tree: Tree, *, without: frozenset[tuple[str, str]] = frozenset()) -> Iterator[Branch | IriLeaf]:
    """Yield every branch and IRI in the order of the text, leaving out some parts of some branches."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting.extend(reversed(node))
        elif not isinstance(node, str):
            yield node
        if isinstance(node, Branch):
            waiting.extend(part for key, part in reversed(node.parts) if (node.name, key) not in without)


def _tree(value: object) -> Tree:
    if isinstance(value, CompValue):
        return Branch(value.name, tuple((str(key), _tree(part)) for key, part in value.items()))
    if isinstance(value, URIRef):
        return IriLeaf(str(value))
    if value is None or isinstance(value, (str, bool)):
        return str(value or "")
    if isinstance(value, (ParseResults, list)):
        return tuple(_tree(part) for part in value)
    raise InvalidRequest(f"The query holds a {type(value).__name__}, which cannot be checked. Simplify it.")
