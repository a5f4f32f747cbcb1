"""What becomes of the columns of a table in which each row is an entity, and the IRIs of what tables name."""

import re
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import quote

import pyoxigraph as ox

from kg_adapters.local.reading.table_values import MISSING, TEXT, Kind, is_address, kind_of, written
from kg_adapters.prefixes import WELL_KNOWN
from kg_boundary.shown import listed

_BASE: Final = "urn:table:"
ENTITY, RELATION, CLASS = (f"{_BASE}{part}:" for part in ("entity", "relation", "type"))
TABLE_PREFIXES: Final = {"entity": ENTITY, "relation": RELATION, "type": CLASS}
"""The prefixes of a graph that came of tables."""
_LABEL: Final = ox.NamedNode(WELL_KNOWN["rdfs"] + "label")
_COMMENT: Final = ox.NamedNode(WELL_KNOWN["rdfs"] + "comment")
_IDS: Final = ("id", "identifier", "iri", "uri", "key", "code", "qid", "ident", "geonameid")
_NAMES: Final = ("name", "label", "title", "fullname", "displayname", "preflabel", "rdfslabel")
_DESCRIPTIONS: Final = frozenset({"description", "summary", "abstract", "comment"})
_REFERS: Final = re.compile(r"(?:^|[^a-z])(?:id|ids|parent|ref|manager|boss)$|Id$")
_SEPARATORS: Final = (";", "|")
_LEAST_DISTINCT: Final = 0.8
_LONGEST_NAME: Final = 80


class TablePlan:
    """What becomes of the columns of a table of entities.

    Args:
        names: The headers.
        columns: The values of each.
        key: The column with the ids of rows; None where rows are numbered.
        stem: What the table is called.
    """

    def __init__(self, names: Sequence[str], columns: Sequence[Sequence[str]], key: int | None, stem: str) -> None:
        self.key = key
        self._names = names
        ids = set(columns[key]) - {""} if key is not None else set[str]()
        counted = key is None or kind_of("", columns[key]).name == "whole number"
        # Numbers are given anew in every table; other ids say what they mean.
        self._space = f"{_BASE}{quote(stem, safe='')}:" if counted else ENTITY
        others = [place for place in range(len(names)) if place != key]
        self._kinds = {place: kind_of(names[place], columns[place]) for place in others}
        self._edges = {
            place: separator
            for place in others
            if (separator := _leads(names[place], columns[place], ids, counted=counted)) is not None
        }
        plain = {place: plain_header(names[place]) for place in others}
        self._label = next((place for name in _NAMES for place in others if plain[place] == name), None)
        if self._label is None and not (key is not None and _are_names(names[key], columns[key])):
            # Names stand first, or behind the id; further on, what is said of a row may be distinct too.
            self._label = next((place for place in others[:1] if self._names_rows(place, columns[place])), None)
        self._description = next((place for place in others if plain[place] in _DESCRIPTIONS), None)
        self.stated = [place for place in others if place not in {self._label, self._description}]
        self.relations = {place: relation_of(names[place]) for place in self.stated}

    def _names_rows(self, place: int, values: Sequence[str]) -> bool:
        said = [value for value in values if value]
        fits = self._kinds[place] == TEXT and place not in self._edges and len(said) * 2 > len(values)
        if not fits or len(set(said)) < _LEAST_DISTINCT * len(said):
            return False
        return sum(map(len, said)) <= _LONGEST_NAME * len(said)

    @property
    def told(self) -> str:
        """What was guessed, in words."""
        parts = ["numbered" if self.key is None else f"known by {self._names[self.key]}"]
        if self._label is not None:
            parts.append(f"named by {self._names[self._label]}")
        kinds = ("leads to rows" if place in self._edges else self._kinds[place].name for place in self.stated)
        told = (f"{self._names[place]}: {kind}" for place, kind in zip(self.stated, kinds, strict=True))
        return f"They are {listed((*parts, *told), '; ')}."

    def node(self, key: str) -> ox.NamedNode:
        """Return the entity with this id."""
        return ox.NamedNode(key if is_address(key) else self._space + quote(key, safe=""))

    def statements(self, node: ox.NamedNode, key: str, cells: Sequence[str]) -> Iterator[ox.Quad]:
        """Yield what a row says, but its type."""
        label = cells[self._label] if self._label is not None else ""
        if label or not is_address(key):
            yield label_of(node, label or key)
        if self._description is not None and cells[self._description]:
            yield ox.Quad(node, _COMMENT, ox.Literal(cells[self._description]))
        for place in self.stated:
            value, relation = cells[place], self.relations[place]
            kind = self._kinds[place]
            if place in self._edges:
                separator = self._edges[place]
                ends = value.split(separator) if separator else [value]
                yield from (ox.Quad(node, relation, self.node(end.strip())) for end in ends if end.strip())
            elif value and (kind == TEXT or value.lower() not in MISSING):
                yield ox.Quad(node, relation, literal_of(value, kind))


def guessed_id(names: Sequence[str], columns: Sequence[Sequence[str]]) -> int | None:
    """Return the column with ids: one that is called so, else the first whose values are all there and distinct."""
    plain = [plain_header(name) for name in names]
    unique = [place for place, values in enumerate(columns) if all(values) and len(set(values)) == len(values)]
    for name in _IDS:
        if name in plain and plain.index(name) in unique:
            return plain.index(name)
    if unique and (unique[0] == 0 or plain[unique[0]].endswith("id")):
        return unique[0]
    return None


def named_id(names: Sequence[str]) -> int | None:
    """Return the first column that is called as ids are, or None."""
    return next((place for place, name in enumerate(names) if plain_header(name) in _IDS[:4]), None)


def _leads(name: str, values: Sequence[str], ids: set[str], *, counted: bool) -> str | None:
    """Return what separates ids of rows in a column's cells, nothing for one each; None where it has others."""
    said = [value for value in values if value]
    if not said or not ids or (counted and _REFERS.search(name) is None):
        return None
    if all(value in ids for value in said):
        return ""
    for separator in _SEPARATORS:
        if all(part.strip() in ids for value in said for part in value.split(separator)):
            return separator
    return None


def _are_names(header: str, ids: Sequence[str]) -> bool:
    """Say whether ids are what people call the rows: words, not codes or numbers."""
    if plain_header(header) in _IDS:
        return False
    return plain_header(header) in _NAMES or sum(map(_is_worded, ids)) * 2 > len(ids)


def _is_worded(text: str) -> bool:
    if is_address(text) or text.isupper():
        return False
    return any(map(str.isalpha, text)) and not any(map(str.isdigit, text))


def plain_header(name: str) -> str:
    """Return a header as it is compared: letters and digits in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def entity_of(text: str) -> ox.NamedNode:
    """Return the entity that a text stands for."""
    return ox.NamedNode(text if is_address(text) else ENTITY + quote(text, safe=""))


def relation_of(text: str) -> ox.NamedNode:
    """Return the relation that a text stands for."""
    return ox.NamedNode(text if is_address(text) else RELATION + quote(text, safe=""))


def label_of(node: ox.NamedNode, text: str) -> ox.Quad:
    """Return the statement of a name."""
    return ox.Quad(node, _LABEL, ox.Literal(text))


def literal_of(value: str, kind: Kind) -> ox.Literal:
    """Return a value with its datatype."""
    return ox.Literal(written(value, kind) or value, datatype=ox.NamedNode(kind.datatype))
