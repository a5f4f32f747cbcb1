"""What an answer says, line by line: one description of each fact, for readers and for programs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from kg_adapters.models import Count
from kg_adapters.prefixes import Prefixes
from kg_adapters.terms import RDF_LANG_STRING, XSD_STRING, BlankNode, Iri, Literal, Node
from kg_boundary.shown import shown, shown_within
from kg_server.budget import fitting
from kg_server.names import MAX_VALUE, Names, shown_datatype
from kg_server.plain_values import unit_of
from kg_server.results import Answer, fitted


@dataclass(frozen=True, slots=True)
class Over:
    """A relation or feature, and whether it is walked from tail to head."""

    relation: Iri
    backwards: bool = False


Piece: TypeAlias = str | Node | Literal | Count | Over


@dataclass(frozen=True, slots=True)
class Line:
    """One fact of an answer: what readers see, as pieces of one line, and what programs see, as cells of one row.

    A text is shown as it is; a node, relation or literal by `Names`, with its label in the line and its id in the row.
    `marks` separate names in the line, beside its columns (`set_apart`).
    """

    text: tuple[Piece, ...]
    row: tuple[Piece, ...]
    marks: str | None = field(default=None, kw_only=True)

    @property
    def nodes(self) -> Iterator[Node]:
        """The entities that the line names."""
        return (piece for piece in (*self.text, *self.row) if isinstance(piece, Iri | BlankNode))

    @property
    def relations(self) -> Iterator[Iri]:
        """The relations and features that the line names."""
        return (piece.relation for piece in (*self.text, *self.row) if isinstance(piece, Over))

    @property
    def units(self) -> Iterator[Iri]:
        """The units of the values that the line names, where they are entities."""
        return (unit for piece in self.text if isinstance(piece, Literal) and (unit := unit_of(piece)) is not None)

    def shown(self, names: Names, max_value: int = MAX_VALUE) -> str:
        """Return the line for readers, with values of at most so many characters."""
        parts: list[str] = []
        over: Iri | None = None
        for piece in self.text:
            over = piece.relation if isinstance(piece, Over) else over
            parts.append(_shown(piece, names, max_value, over, self.marks))
        return "".join(parts)

    def cells(self, names: Names, max_value: int = MAX_VALUE) -> list[str]:
        """Return the row for programs, with values of at most so many characters."""
        return [_cell(piece, names, max_value) for piece in self.row]


L = TypeVar("L", bound=Line)


def fitted_lines(
    lines: Sequence[L],
    names: Names,
    build: Callable[[Sequence[L]], Answer],
    max_tokens: int,
    max_value: int = MAX_VALUE,
) -> Answer:
    """Return the answer with as many of the first lines as its budget allows, at least one.

    Args:
        lines: What may be said, the most important first.
        names: The names of all that they name.
        build: Makes the answer that shows some lines.
        max_tokens: The budget of either form.
        max_value: The most characters of a value.
    """
    possible = lines[: 1 + fitting((line.shown(names, max_value) for line in lines), max_tokens)]
    return fitted(lambda count: build(possible[:count]), len(possible), max_tokens)


def in_columns(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Return pieces as the columns of a line."""
    columns = [part for piece in pieces for part in (" | ", piece)]
    return tuple(columns[1:])


def terms_of_lines(lines: Iterable[Line]) -> Iterator[Node]:
    """Yield all terms that lines name, with repeats."""
    for line in lines:
        yield from line.nodes
        yield from line.relations
        yield from line.units


def labels_of_entities(lines: Iterable[Line], names: Names) -> dict[str, str]:
    """Return the labels of the entities that lines name, by short id."""
    return names.entity_labels(dict.fromkeys(node for line in lines for node in line.nodes))


def labels_of_relations(lines: Iterable[Line], names: Names) -> dict[str, str]:
    """Return the labels of the relations that lines name, by short id."""
    return names.relation_labels(dict.fromkeys(relation for line in lines for relation in line.relations))


def kind_of_value(value: Literal, prefixes: Prefixes) -> str:
    """Return the language of a value, or its datatype; nothing for a plain text."""
    plain = value.datatype in {XSD_STRING, RDF_LANG_STRING}
    return shown(value.language or "") or ("" if plain else shown_datatype(value.datatype, prefixes))


def _shown(piece: Piece, names: Names, max_value: int, over: Iri | None, marks: str | None) -> str:
    match piece:
        case str():
            return piece
        case Over():
            return f"{'-' if piece.backwards else ''}{names.relation(piece.relation, marks)}"
        case Count():
            return str(piece)
        case Literal():
            # A text keeps its language: values that differ in nothing else stay apart.
            return names.plain(piece, over) or names.literal(piece, max_value)
        case _:
            return names.entity(piece, marks)


def _cell(piece: Piece, names: Names, max_value: int) -> str:
    match piece:
        case str():
            return piece
        case Over():
            return f"{'-' if piece.backwards else ''}{names.relation_id(piece.relation)}"
        case Count():
            return str(piece.value)
        case Literal():
            return shown_within(piece.value, max_value)
        case _:
            return names.entity_id(piece)
