"""The answers to CONSTRUCT and DESCRIBE, as terms."""

from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Final, TypeAlias
from typing import Literal as Choice

import pyoxigraph

from kg_adapters.errors import InvalidRequest
from kg_adapters.sparql.solutions import (
    VIRTUOSO_BLANK,
    Row,
    Solutions,
    UnreadableAnswer,
    blank_label,
    solutions_of,
)
from kg_adapters.terms import BlankNode, Iri, Literal, Term

RdfSyntax: TypeAlias = Choice["n-triples", "turtle"]
"""How such an answer is written."""

GRAPH_VARIABLES: Final = ("subject", "predicate", "object")
_FORMATS: Final[Mapping[RdfSyntax, pyoxigraph.RdfFormat]] = {
    "n-triples": pyoxigraph.RdfFormat.N_TRIPLES,
    "turtle": pyoxigraph.RdfFormat.TURTLE,
}
# A prefix stands for an IRI of any length, as often as it is used.
_MOST_CHARACTERS: Final = 200_000_000


def read_graph(body: bytes, syntax: RdfSyntax, *, max_rows: int | None = None) -> Solutions:
    """Return the triples of an RDF document, as rows subject, predicate, object.

    Args:
        body: The document.
        syntax: How it is written.
        max_rows: Rows behind so many are dropped, and `truncated` is set; None keeps all.

    Raises:
        UnreadableAnswer: The document does not have this syntax.
    """
    return solutions_of(GRAPH_VARIABLES, read_triples(body, syntax), max_rows)


class Beginning(BytesIO):
    """The beginning of a document, whose triples are read as far as they go."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes.

        Raises:
            BlockingIOError: There are no more as yet.
        """
        part = super().read(size)
        if not part:
            raise BlockingIOError
        return part


def read_triples(body: bytes | BytesIO, syntax: RdfSyntax) -> Iterator[Row | None]:
    """Yield the triples of an RDF document, or of the `Beginning` of one, None for one that holds what is no RDF term.

    Raises:
        UnreadableAnswer: The document does not have this syntax, or writes few terms out at great length.
    """
    room = _MOST_CHARACTERS
    try:
        # Lenient, so that one IRI with a blank costs its own row and not the answer.
        for triple in pyoxigraph.parse(body, _FORMATS[syntax], lenient=True):
            row = _triple(triple)
            room -= 0 if row is None else sum(len(str(term)) for term in row)
            if room < 0:
                raise UnreadableAnswer(f"written out it has more than {_MOST_CHARACTERS:,} characters")
            yield row
    except BlockingIOError:
        return
    except SyntaxError as error:
        raise UnreadableAnswer(f"it is not {syntax}: {error.msg}") from error


def _triple(triple: pyoxigraph.Quad) -> Row | None:
    try:
        return _from_engine(triple.subject), _from_engine(triple.predicate), _from_engine(triple.object)
    except InvalidRequest:
        return None


def _from_engine(term: pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal | pyoxigraph.Triple) -> Term:
    match term:
        case pyoxigraph.NamedNode():
            is_blank = term.value.startswith(VIRTUOSO_BLANK)
            return BlankNode(blank_label(term.value)) if is_blank else Iri(term.value)
        case pyoxigraph.BlankNode():
            return BlankNode(blank_label(term.value))
        case pyoxigraph.Literal():
            return Literal(term.value, Iri(term.datatype.value), term.language)
        case pyoxigraph.Triple():
            raise InvalidRequest("A quoted triple cannot be an entity or a value here.")
