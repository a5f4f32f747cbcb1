"""The rows of an answer: ids with labels, values as people write them."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from kg_adapters.prefixes import Prefixes
from kg_adapters.terms import Iri, Literal, Node, Term
from kg_server.lines import Line, Over, Piece, in_columns, labels_of_entities, labels_of_relations
from kg_server.names import Names
from kg_server.plain_values import plain_value

Row = Sequence[Term | None]

_MANY_ROWS: Final = 4


def terms_of_rows(rows: Sequence[Row]) -> Iterator[Node]:
    """Yield what rows name, with repeats."""
    return (term for row in rows for term in row if term is not None and not isinstance(term, Literal))


def line_of(row: Row, names: Names, max_value: int, left_out: Collection[int] = ()) -> Line:
    """Return a row as one line, with values of at most so many characters, and without the text of some columns."""
    pieces = [_piece(term, names.prefixes) for term in row]
    shown = (piece for place, piece in enumerate(pieces) if place not in left_out)
    text = (_value(piece, names, max_value) if isinstance(piece, Literal) else piece for piece in shown)
    return Line(in_columns(text), tuple(pieces))


def alike_columns(rows: Sequence[Row]) -> list[int]:
    """Return the columns that hold the same in every one of many rows, which need be told only once; never all."""
    if len(rows) < _MANY_ROWS:
        return []
    first, *others = rows
    alike = [place for place, term in enumerate(first) if term and all(row[place] == term for row in others)]
    return alike if len(alike) < len(first) else alike[:-1]


def told_once(row: Row, variables: Sequence[str], columns: Sequence[int], names: Names, max_value: int) -> str:
    """Return a sentence on the columns that are alike; nothing where none is."""
    if not columns:
        return ""
    cells = [line_of((row[place],), names, max_value).shown(names, max_value) for place in columns]
    parts = [f"?{variables[place]} is {cell}" for place, cell in zip(columns, cells, strict=True)]
    return f"In every row {', '.join(parts)}."


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
