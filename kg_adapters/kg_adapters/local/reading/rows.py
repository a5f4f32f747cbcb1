"""Statements as plain rows of texts, between the files that they are read from and the store that they go to."""

import re
from collections.abc import Iterable
from typing import Final, TypeAlias

import pyoxigraph as ox

from kg_adapters.terms import XSD_STRING

Row: TypeAlias = tuple[str, str, str, str | None, str | None]
"""A statement: head, relation, tail or text; of a text also its datatype and its language, else None.

Nodes are `node_key`s. A language may have a direction of writing behind it, `en--ltr`.
"""

_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
_ESCAPED: Final = re.compile(r'[\\"\n\r]')


def row_of(head: str, relation: str, tail: str | ox.Literal) -> Row:
    """Return a statement about a node, given as its `node_key`, or about a literal."""
    if isinstance(tail, str):
        return head, relation, tail, None, None
    language = tail.language
    if language is not None and tail.direction is not None:
        language = f"{language}--{tail.direction.value}"
    return head, relation, tail.value, tail.datatype.value, language


def tag_of(language: str) -> str:
    """Return a row's language without the direction of writing."""
    return language.partition("--")[0]


def line_of(row: Row) -> str:
    """Return a statement as a line of N-Triples."""
    head, relation, tail, datatype, language = row
    start = f"{_node(head)} <{relation}> "
    if datatype is None:
        return f"{start}{_node(tail)} .\n"
    text = tail if _ESCAPED.search(tail) is None else tail.translate(_ESCAPES)
    if language is not None:
        return f'{start}"{text}"@{language} .\n'
    return f'{start}"{text}" .\n' if datatype == XSD_STRING.value else f'{start}"{text}"^^<{datatype}> .\n'


def quad_of(row: Row) -> ox.Quad:
    """Return a statement for a store of Oxigraph."""
    head, relation, tail, datatype, language = row
    if datatype is None:
        return ox.Quad(_term(head), ox.NamedNode(relation), _term(tail))
    if language is None:
        return ox.Quad(_term(head), ox.NamedNode(relation), ox.Literal(tail, datatype=ox.NamedNode(datatype)))
    tag, _, direction = language.partition("--")
    literal = ox.Literal(tail, language=tag, direction=ox.BaseDirection(direction) if direction else None)
    return ox.Quad(_term(head), ox.NamedNode(relation), literal)


def load_lines(store: ox.Store, lines: Iterable[str]) -> None:
    """Add lines of N-Triples with one statement each to a store of Oxigraph."""
    plain, labelled = list[str](), list[str]()
    for line in lines:
        (labelled if "_:" in line else plain).append(line)
    # bulk_load is fast and leaves the interpreter to others, but gives blank nodes new labels.
    store.bulk_load("".join(plain), ox.RdfFormat.N_TRIPLES, lenient=True)
    store.bulk_extend(ox.parse("".join(labelled), ox.RdfFormat.N_QUADS, lenient=True))


def _node(key: str) -> str:
    return key if key.startswith("_:") else f"<{key}>"


def _term(key: str) -> ox.NamedNode | ox.BlankNode:
    return ox.BlankNode(key[2:]) if key.startswith("_:") else ox.NamedNode(key)
