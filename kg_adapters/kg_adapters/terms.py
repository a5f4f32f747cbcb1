"""The terms of a graph: IRIs, blank nodes and literals, each a type of its own."""

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from kg_adapters.errors import InvalidRequest
from kg_boundary.shown import in_quotes

# IRIREF of the Turtle grammar (no controls, blanks, <>"{}|^` or backslash; no halves of surrogate pairs, which no file
# can hold), and absolute by its scheme.
_IRI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20\x7f<>\"{}|^`\\\ud800-\udfff]*")
_BLANK_LABEL: Final = re.compile(r"\w(?:[\w.·-]*[\w·-])?")


@dataclass(frozen=True, slots=True, order=True)
class Iri:
    """An absolute IRI.

    Raises:
        InvalidRequest: `value` is not an absolute IRI.
    """

    value: str

    def __post_init__(self) -> None:
        if _IRI.fullmatch(self.value) is None:
            raise InvalidRequest(f"{in_quotes(self.value)} is not an absolute IRI such as http://example.org/thing.")

    def __hash__(self) -> int:
        # Hashed again and again; the one that a dataclass has makes a tuple first.
        return hash(self.value)

    def __str__(self) -> str:
        return self.value

    @property
    def local_part(self) -> str:
        """What follows the last `#`, `/` or `:`; the whole IRI where nothing does."""
        return re.split(r"[#/:]", self.value.rstrip("#/:"))[-1] or self.value


@dataclass(frozen=True, slots=True, order=True)
class BlankNode:
    """A node without an IRI, known by a label that is stable within one store.

    Raises:
        InvalidRequest: `label` is not a blank node label.
    """

    label: str

    def __post_init__(self) -> None:
        if _BLANK_LABEL.fullmatch(self.label) is None:
            raise InvalidRequest(f"{in_quotes(self.label)} is not a blank node label such as b0.")

    def __str__(self) -> str:
        return f"_:{self.label}"

    @property
    def local_part(self) -> str:
        """The blank node as written in N-Triples."""
        return str(self)


Node: TypeAlias = Iri | BlankNode

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
XSD_STRING: Final = Iri(XSD + "string")
RDF_LANG_STRING: Final = Iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#langString")


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A value: text with a datatype, and a language tag where the datatype is `rdf:langString`.

    Language tags are kept as written and compared without regard to case, as RDF 1.1 (section 3.3) has it.
    """

    value: str
    datatype: Iri = XSD_STRING
    language: str | None = None

    def __eq__(self, other: object) -> bool:
        return literal_key(self) == literal_key(other) if isinstance(other, Literal) else NotImplemented

    def __hash__(self) -> int:
        return hash(literal_key(self))

    def __str__(self) -> str:
        return self.value


Term: TypeAlias = Node | Literal


@dataclass(frozen=True, slots=True)
class Triple:
    """An edge of the graph: `head` relates to `tail`. A statement with a literal is an `Attribute`."""

    head: Node
    relation: Iri
    tail: Node


@dataclass(frozen=True, slots=True)
class Attribute:
    """A statement about an entity that ends in a value: a date, a number, a text."""

    head: Node
    relation: Iri
    tail: Literal


Fact: TypeAlias = Triple | Attribute
"""Whatever a graph says, be it an edge or a value."""


def node_key(node: Node) -> str:
    """Return the text that orders nodes: the IRI, or `_:label`, which no IRI can start with."""
    return str(node)


def node_from_key(key: str) -> Node:
    """Return the node whose `node_key` is `key`."""
    return BlankNode(key[2:]) if key.startswith("_:") else Iri(key)


def literal_key(literal: Literal) -> tuple[str, str, str]:
    """Return what tells and orders literals: their text, then their language (none first), then their datatype."""
    return literal.value, (literal.language or "").lower(), literal.datatype.value
