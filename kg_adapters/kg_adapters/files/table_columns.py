"""Decide what the columns of a table become: the kind of their values, their relations, and IRIs."""

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final
from urllib.parse import quote

import pyoxigraph as ox

from kg_adapters.labels import RDF_TYPE
from kg_adapters.prefixes import WELL_KNOWN
from kg_adapters.terms import XSD, XSD_STRING
from kg_boundary.shown import listed

MISSING: Final = frozenset({"", "na", "n/a", "nan", "null", "none", "-"})
"""What stands in lower case for no value among numbers, dates and truth values; in texts only nothing does."""

_INTEGER: Final = re.compile(r"[+-]?(?:0|[1-9]\d{0,17})")

_DECIMAL: Final = re.compile(r"[+-]?(?:0|[1-9]\d{0,17})(?:\.\d{1,18})?")

_DOUBLE: Final = re.compile(r"[+-]?\d{1,18}(?:\.\d{1,18})?(?:[eE][+-]?\d{1,3})?")

_DATE: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)")

_MONTH: Final = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])")

_MOMENT: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ]([01]\d|2[0-3]):([0-5]\d)(:[0-5]\d(?:\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?"
)

_YEAR: Final = re.compile(r"\d{4}")

_ADDRESS: Final = re.compile(r"https?://[^\s<>\"{}|^`\\]+")

_FORMS: Final = {"integer": _INTEGER, "decimal": _DECIMAL, "gYearMonth": _MONTH, "anyURI": _ADDRESS, "gYear": _YEAR}

_SAID_IN_YEARS: Final = re.compile(
    r"(?:^|[_\s-])(?:year|yr|since)$|^(?:founded|established|born|died|built|opened)$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of values.

    Args:
        datatype: Its IRI.
        name: What people call it.
    """

    datatype: str
    name: str


TEXT: Final = Kind(XSD_STRING.value, "text")

YEAR: Final = Kind(XSD + "gYear", "year")

_KINDS: Final = (
    Kind(XSD + "boolean", "true or false"),
    Kind(XSD + "integer", "whole number"),
    Kind(XSD + "decimal", "number"),
    Kind(XSD + "double", "number"),
    Kind(XSD + "date", "date"),
    Kind(XSD + "gYearMonth", "month"),
    Kind(XSD + "dateTime", "date and time"),
    Kind(XSD + "anyURI", "address"),
)


def kind_of(header: str, values: Iterable[str]) -> Kind:
    """Return the kind that all values of a column have, blank ones left out; text where they have none in common."""
    said = {value for value in set(values) if value.lower() not in MISSING}
    if not said:
        return TEXT
    if _SAID_IN_YEARS.search(header) is not None and all(_YEAR.fullmatch(value) for value in said):
        return YEAR
    return next((kind for kind in _KINDS if all(written(value, kind) is not None for value in said)), TEXT)


def written(value: str, kind: Kind) -> str | None:
    """Return a value as its datatype writes it, or None where it is of another kind."""
    match kind.datatype.removeprefix(XSD):
        case "boolean":
            return value.lower() if value.lower() in {"true", "false"} else None
        case "double":
            return value if _DOUBLE.fullmatch(value) is not None and not _has_zero_first(value) else None
        case "date":
            return value if _is_date(value) else None
        case "dateTime":
            return _moment(value)
        case name:
            form = _FORMS.get(name)
            return value if form is None or form.fullmatch(value) is not None else None


def is_address(value: str) -> bool:
    """Say whether a value is an IRI of the web."""
    return _ADDRESS.fullmatch(value) is not None


def _has_zero_first(value: str) -> bool:
    """Say whether it is a code such as 007."""
    return re.match(r"[+-]?0\d", value) is not None


def _is_date(value: str) -> bool:
    parts = _DATE.fullmatch(value)
    if parts is None:
        return False
    try:
        date(int(parts[1]), int(parts[2]), int(parts[3]))
    except ValueError:
        return False
    return True


def _moment(value: str) -> str | None:
    parts = _MOMENT.fullmatch(value)
    if parts is None or not _is_date(parts[1]):
        return None
    return f"{parts[1]}T{parts[2]}:{parts[3]}{parts[4] or ':00'}{parts[5] or ''}"


_BASE: Final = "urn:table:"

ENTITY, RELATION, CLASS = (f"{_BASE}{part}:" for part in ("entity", "relation", "type"))

TABLE_PREFIXES: Final = {"entity": ENTITY, "relation": RELATION, "type": CLASS}
"""The prefixes of a graph that came of tables."""

_TYPE: Final = ox.NamedNode(RDF_TYPE.value)

_LABEL: Final = ox.NamedNode(WELL_KNOWN["rdfs"] + "label")

_COMMENT: Final = ox.NamedNode(WELL_KNOWN["rdfs"] + "comment")

_IDS: Final = ("id", "identifier", "iri", "uri", "key", "code", "qid", "ident", "geonameid")

_NAMES: Final = ("name", "label", "title", "fullname", "displayname", "preflabel", "rdfslabel")

_DESCRIPTIONS: Final = frozenset({"description", "summary", "abstract", "comment"})

_REFERS: Final = re.compile(r"(?:^|[^a-z])(?:id|ids|parent|ref|manager|boss)$|Id$")

_SEPARATORS: Final = (";", "|")

_LEAST_DISTINCT: Final = 0.8

_LONGEST_NAME: Final = 80

_MOST_SHARED: Final = 1 << 12


class Column:
    """The cells of one column that are not empty.

    Attributes:
        rows: The numbers of their rows, from 0.
        values: Their texts.
    """

    def __init__(self) -> None:
        self.rows = array("I")
        self.values: list[str] = []
        self._shared: dict[str, str] = {}

    def add(self, row: int, value: str) -> None:
        """Add a cell that is not empty."""
        # Cells that repeat share one text in memory, unless too many differ.
        if len(self._shared) < _MOST_SHARED:
            value = self._shared.setdefault(value, value)
        else:
            value = self._shared.get(value, value)
        self.rows.append(row)
        self.values.append(value)


class TableContent:
    """What a table holds.

    Args:
        line: The line that the first row ends in.
        first: The cells of the first row.

    Attributes:
        names: The headers, none twice.
        columns: The cells below each of them.
        lines: The line that each row below the first ends in.
        even: Whether all rows have as many cells as the first.
    """

    def __init__(self, line: int, first: list[str]) -> None:
        self.line = line
        self.first = first
        self.names: list[str] = []
        known: set[str] = set()
        for place, cell in enumerate(first, start=1):
            name = cell or f"column {place}"
            self.names.append(name if name not in known else f"{name} {place}")
            known.add(self.names[-1])
        self.columns = [Column() for _ in first]
        self.lines = array("Q")
        self.even = True

    def add(self, line: int, cells: Sequence[str]) -> None:
        """Add a row; what it has beyond the last column is left out."""
        row = len(self.lines)
        self.lines.append(line)
        for column, cell in zip(self.columns, cells, strict=False):
            if cell:
                column.add(row, cell)

    def cells(self, place: int, *, first: bool = False) -> list[str]:
        """Return the cells of a column, empty ones included, and that of the first row only where `first` says so."""
        cells = [""] * len(self.lines)
        for row, value in zip(self.columns[place].rows, self.columns[place].values, strict=True):
            cells[row] = value
        return [self.first[place], *cells] if first else cells


class TablePlan:
    """What becomes of the columns of a table of entities.

    Args:
        table: The table.
        key: The column with the ids of rows; None where rows are numbered.
        stem: What the table is called.

    Attributes:
        keys: The id of each row, empty where it has none.
    """

    def __init__(self, table: TableContent, key: int | None, stem: str) -> None:
        names = table.names
        ids = [] if key is None else table.columns[key].values
        self._table = table
        self._stem = stem
        self._key = key
        self._ids = set(ids)
        self._counted = key is None or kind_of("", ids).name == "whole number"
        # Numbers are given anew in every table; other ids say what they mean.
        self._space = f"{_BASE}{quote(stem, safe='')}:" if self._counted else ENTITY
        self._meanings: dict[int, tuple[Kind, str | None]] = {}
        self.keys = list(map(str, range(1, len(table.lines) + 1))) if key is None else table.cells(key)
        others = [place for place in range(len(names)) if place != key]
        plain = {place: plain_header(names[place]) for place in others}
        self._label = next((place for name in _NAMES for place in others if plain[place] == name), None)
        if self._label is None and not (key is not None and _are_names(names[key], ids)):
            # Names stand first, or behind the id; further on, what is said of a row may be distinct too.
            self._label = next((place for place in others[:1] if self._names_rows(place)), None)
        self._description = next((place for place in others if plain[place] in _DESCRIPTIONS), None)
        self._stated = [place for place in others if place not in {self._label, self._description}]

    def _meaning(self, place: int) -> tuple[Kind, str | None]:
        """Return the kind of a column's values, and what separates ids of rows in it; None where it has others."""
        if place not in self._meanings:
            name, values = self._table.names[place], self._table.columns[place].values
            self._meanings[place] = kind_of(name, values), _leads(name, values, self._ids, counted=self._counted)
        return self._meanings[place]

    def _names_rows(self, place: int) -> bool:
        values = self._table.columns[place].values
        fits = self._meaning(place) == (TEXT, None) and len(values) * 2 > len(self.keys)
        if not fits or len(set(values)) < _LEAST_DISTINCT * len(values):
            return False
        return sum(map(len, values)) <= _LONGEST_NAME * len(values)

    @property
    def told(self) -> str:
        """What was guessed, in words."""
        parts = ["numbered" if self._key is None else f"known by {self._table.names[self._key]}"]
        if self._label is not None:
            parts.append(f"named by {self._table.names[self._label]}")
        meanings = ((self._table.names[place], *self._meaning(place)) for place in self._stated)
        told = (f"{name}: {kind.name if leads is None else 'leads to rows'}" for name, kind, leads in meanings)
        return f"They are {listed((*parts, *told), '; ')}."

    def statements(self) -> Iterator[ox.Quad]:
        """Yield what all rows with an id say, column by column."""
        kind = ox.NamedNode(CLASS + quote(self._stem, safe=""))
        yield label_of(kind, self._stem)
        nodes = [self._node(key) if key else None for key in self.keys]
        labels = [""] * len(nodes) if self._label is None else self._table.cells(self._label)
        for node, key, label in zip(nodes, self.keys, labels, strict=True):
            if node is not None:
                yield ox.Quad(node, _TYPE, kind)
                if label or not is_address(key):
                    yield label_of(node, label or key)
        if self._description is not None:
            for node, value in self._said(nodes, self._description):
                yield ox.Quad(node, _COMMENT, ox.Literal(value))
        for place in self._stated:
            relation = relation_of(self._table.names[place])
            yield label_of(relation, self._table.names[place])
            yield from self._values(nodes, place, relation)

    def _values(self, nodes: Sequence[ox.NamedNode | None], place: int, relation: ox.NamedNode) -> Iterator[ox.Quad]:
        """Yield the statements of a column, of which nodes[i] is the entity of row i."""
        kind, separator = self._meaning(place)
        if separator is not None:
            for node, value in self._said(nodes, place):
                ends = value.split(separator) if separator else [value]
                yield from (ox.Quad(node, relation, self._node(end.strip())) for end in ends if end.strip())
        else:
            for node, value in self._said(nodes, place):
                if kind == TEXT or value.lower() not in MISSING:
                    yield ox.Quad(node, relation, literal_of(value, kind))

    def _said(self, nodes: Sequence[ox.NamedNode | None], place: int) -> Iterator[tuple[ox.NamedNode, str]]:
        column = self._table.columns[place]
        for row, value in zip(column.rows, column.values, strict=True):
            if (node := nodes[row]) is not None:
                yield node, value

    def _node(self, key: str) -> ox.NamedNode:
        return ox.NamedNode(key if is_address(key) else self._space + quote(key, safe=""))


def guessed_id(table: TableContent) -> int | None:
    """Return the column with ids: one that is called so, else the first whose values are all there and distinct."""
    plain = [plain_header(name) for name in table.names]
    said = (column.values for column in table.columns)
    unique = [place for place, values in enumerate(said) if len(table.lines) == len(values) == len(set(values))]
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
    said = set(values)
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
