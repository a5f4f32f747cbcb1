"""The rows of an answer: ids with labels, values as people write them."""

from collections.abc import Iterator, Sequence

from kg_adapters.prefixes import Prefixes
from kg_adapters.terms import Iri, Literal, Node, Term
from kg_server.lines import Line, Over, Piece, in_columns, labels_of_entities, labels_of_relations
from kg_server.names import Names
from kg_server.plain_values import plain_value

Row = Sequence[Term | None]


def terms_of_rows(rows: Sequence[Row]) -> Iterator[Node]:
    """Yield what rows name, with repeats."""
    return (term for row in rows for term in row if term is not None and not isinstance(term, Literal))


def line_of(row: Row, names: Names, max_value: int) -> Line:
    """Return a row as one line, with values of at most so many characters."""
    pieces = [_piece(term, names.prefixes) for term in row]
    text = (_value(piece, names, max_value) if isinstance(piece, Literal) else piece for piece in pieces)
    return Line(in_columns(text), tuple(pieces))


def labels_of(lines: Sequence[Line], names: Names) -> dict[str, str]:
    """Return the labels of all that lines name, by short id."""
    return {**labels_of_entities(lines, names), **labels_of_relations(lines, names)}


def _piece(term: Term | None, prefixes: Prefixes) -> Piece:
    if term is None:
        return ""
    return Over(term) if isinstance(term, Iri) and _is_relation(term, prefixes) else term


def _is_relation(iri: Iri, prefixes: Prefixes) -> bool:
    """Say whether an IRI has a bare id as a relation and none as an entity, as `wdt:P106` has."""
    if prefixes.relations is None or prefixes.relations.shorten(iri) is None:
        return False
    return prefixes.entities is None or prefixes.entities.shorten(iri) is None


def _value(literal: Literal, names: Names, max_value: int) -> str:
    """Return a value plainly; numbers without commas, as a query takes them."""
    plain = plain_value(literal)
    return names.value(literal, max_value) if plain is None else plain.replace(",", "")
