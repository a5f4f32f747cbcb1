"""The patterns of a query: the one place here that knows rdflib's algebra."""

# rdflib's algebra is untyped; nothing untyped leaves this file.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.parserutils import CompValue

# What a filter or MINUS looks at is not what the answer rests on.
_ASIDE: Final = {"Filter": ("expr",), "Minus": ("p2",), "LeftJoin": ("expr",), "Extend": ("expr",)}


@dataclass(frozen=True, slots=True)
class Pattern:
    """A triple pattern, of rdflib's terms; its relation may be a property path."""

    head: object
    relation: object
    tail: object


def read_patterns(sparql: str) -> tuple[tuple[Pattern, ...], tuple[object, ...]]:
    """Return the patterns that an answer rests on, and the terms that VALUES lists."""
    algebra = translateQuery(parseQuery(sparql)).algebra
    return tuple(_patterns(algebra)), tuple(_compared(algebra))


def _patterns(node: object) -> Iterator[Pattern]:
    if not isinstance(node, CompValue):
        return
    if node.name == "BGP":
        for head, relation, tail in node["triples"]:
            yield Pattern(head, relation, tail)
    for key in node:
        if key not in _ASIDE.get(node.name, ()):
            yield from _patterns(node[key])


def _compared(node: object) -> Iterator[object]:
    """Yield the terms that VALUES lists."""
    if isinstance(node, CompValue):
        for row in node.get("res") or () if node.name == "values" else ():
            yield from row.values()
        for key in node:
            yield from _compared(node[key])
