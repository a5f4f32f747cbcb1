"""Terms and blocks as SPARQL text; nothing else in this project turns a value into a piece of a query."""

import re
from collections.abc import Iterable
from typing import Final

from kg_adapters.errors import InvalidRequest
from kg_adapters.sparql.dialects import Dialect
from kg_adapters.terms import XSD_STRING, BlankNode, Iri, Literal, Node, Term
from kg_boundary.shown import in_quotes

_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_UNSENDABLE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_LANGUAGE: Final = re.compile(r"[A-Za-z]+(?:-[A-Za-z0-9]+)*")
SAME_AS: Final = "<http://www.w3.org/2002/07/owl#sameAs>"
_NOTHING: Final = "<urn:kg-sextant:nothing>"
_IN_IRI: Final = re.compile(r"[^\x00-\x20<>\"{}|^`\\]+")


def iri(value: Iri) -> str:
    """Return an IRI in its brackets.

    Raises:
        InvalidRequest: It holds what would end them.
    """
    if _IN_IRI.fullmatch(value.value) is None:
        raise InvalidRequest(f"{in_quotes(value.value)} is not an IRI.")
    return f"<{value.value}>"


def node(value: Node, dialect: Dialect) -> str:
    """Return a node.

    Raises:
        InvalidRequest: It is a blank node, and the engine knows it by no name.
    """
    if isinstance(value, Iri):
        return iri(value)
    name = None if dialect.blank_nodes is None else dialect.blank_nodes.iri(value)
    if name is None:
        raise InvalidRequest(f"{value} is a blank node, which SPARQL cannot name here.")
    return f"<{name}>"


def readable(value: str) -> str:
    """Return a text with blanks in place of control characters, which no name has and not every engine reads."""
    return _UNSENDABLE.sub(" ", value)


def text(value: str) -> str:
    """Return a text in its quotes, as far as it is `readable`."""
    return f'"{readable(value).translate(_ESCAPES)}"'


def literal(value: Literal) -> str:
    """Return a literal with its language or datatype.

    Raises:
        InvalidRequest: Its language is not a language tag.
    """
    if value.language is not None:
        if _LANGUAGE.fullmatch(value.language) is None:
            raise InvalidRequest(f"{in_quotes(value.language)} is not a language tag.")
        return f"{text(value.value)}@{value.language}"
    return text(value.value) if value.datatype == XSD_STRING else f"{text(value.value)}^^{iri(value.datatype)}"


def values(variable: str, terms: Iterable[Term], dialect: Dialect) -> str:
    """Return the block that binds a variable to each of some terms."""
    listed = list(terms)
    written = [literal(term) if isinstance(term, Literal) else node(term, dialect) for term in listed]
    if len(listed) == 1 and isinstance(listed[0], BlankNode):
        # Alone it would be compared as the IRI that only stands for it.
        written.append(_NOTHING)
    return f"VALUES ?{variable} {{ {' '.join(written)} }}"


def union(blocks: Iterable[str]) -> str:
    """Return a block that has the solutions of all blocks; at least one."""
    return " UNION ".join(f"{{ {block} }}" for block in blocks)


def names(value: Node, dialect: Dialect) -> tuple[str, ...]:
    """Return the texts by which an answer may name a node that the query named."""
    return (str(value), node(value, dialect)[1:-1])


def is_askable(value: Node, dialect: Dialect) -> bool:
    """Return whether a query can name a node."""
    return isinstance(value, Iri) or (dialect.blank_nodes is not None and dialect.blank_nodes.iri(value) is not None)


def mentioned(name: str, *, as_head: bool) -> str:
    """Return the condition that the graph mentions `?{name}`.

    Args:
        name: The variable.
        as_head: Whether it must have statements of its own; where each entity is a page, one that is only
            pointed at does not exist. One that only states another entity as the same was merged into that one.
    """
    if as_head:
        return f"EXISTS {{ ?{name} ?p1 ?o1 FILTER(?p1 != {SAME_AS}) }}"
    return f"EXISTS {{ ?{name} ?p1 ?o1 }} || EXISTS {{ ?s2 ?p2 ?{name} }}"
