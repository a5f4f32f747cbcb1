"""What statements of files become in the one graph that they are merged into."""

import re
from collections.abc import Sequence
from typing import Final

import pyoxigraph as ox

from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.local.index import StringTable
from kg_adapters.local.reading.plain_lines import Terms, unescaped
from kg_adapters.local.reading.rows import Row, row_of
from kg_adapters.terms import RDF_LANG_STRING, XSD_STRING, BlankNode

# What the parser calls nodes without a name is random; numbers make an import repeatable.
_NAMELESS: Final = re.compile(r"[a-f][0-9a-f]{15,31}|anon-.*", re.DOTALL)
_NUMBERED: Final = "_:f"
_KEPT_GRAPHS: Final = 1_000


class ChosenGraphs:
    """The named graphs that were chosen, and those that were met."""

    def __init__(self, chosen: Sequence[str]) -> None:
        self._chosen = frozenset(chosen)
        self._met: set[str] = set()

    @property
    def chosen(self) -> bool:
        """Whether there is a choice at all."""
        return bool(self._chosen)

    def wants(self, graph: str | None) -> bool:
        """Say whether statements of a graph are to be read, given its IRI, or None where it has none."""
        if not self._chosen:
            return True
        if graph is None:
            return False
        if graph in self._chosen or len(self._met) < _KEPT_GRAPHS:
            self._met.add(graph)
        return graph in self._chosen

    def check(self) -> None:
        """Make sure that every chosen graph was met.

        Raises:
            InvalidSource: One of them was not.
        """
        for missing in sorted(self._chosen - self._met):
            there = ", ".join(f"<{graph}>" for graph in sorted(self._met)[:10]) or "none"
            raise InvalidSource(f"No statement is in a graph <{missing}>. Named graphs that were read: {there}.")


class FileTerms:
    """Makes the terms of one file those of the whole graph: its blank nodes are its own.

    Args:
        first_file: The number that labels of the first file's blank nodes begin with; None where there is one file.
    """

    def __init__(self, *, first_file: int | None) -> None:
        self._numbered = first_file is not None
        self._file = (first_file or 0) - 1
        self._nameless = 0
        self._blank: dict[str, str] = {}
        self._kinds: dict[str, tuple[str, str | None]] = {"": (XSD_STRING.value, None)}

    def start_file(self) -> None:
        """Forget the blank nodes of the file before."""
        self._file += 1
        self._blank.clear()

    def row(self, quad: ox.Quad) -> Row:
        """Return a statement of the parser.

        Raises:
            InvalidRequest: It is about a triple term.
        """
        head, tail = quad.subject, quad.object
        if isinstance(head, ox.Triple) or isinstance(tail, ox.Triple):
            raise InvalidRequest("There is a triple where a node is expected (RDF 1.2 triple terms are not supported).")
        key = self._node(head)
        return row_of(key, quad.predicate.value, tail if isinstance(tail, ox.Literal) else self._node(tail))

    def plain_row(self, terms: Terms) -> Row:
        """Return the statement of a plain line."""
        head, blank, relation, tail, blank_tail, text, kind, _, _ = terms
        key = head or self._label(blank)
        if tail:
            return key, relation, tail, None, None
        if blank_tail:
            return key, relation, self._label(blank_tail), None, None
        if kind not in self._kinds:
            self._kinds[kind] = _kind(kind)
        return key, relation, unescaped(text), *self._kinds[kind]

    def _node(self, node: ox.NamedNode | ox.BlankNode) -> str:
        return node.value if isinstance(node, ox.NamedNode) else self._label(node.value)

    def _label(self, label: str) -> str:
        if label not in self._blank:
            self._blank[label] = self._renamed(label)
        return self._blank[label]

    def _renamed(self, label: str) -> str:
        if _NAMELESS.fullmatch(label) is not None or not _is_label(label):
            label = f"anon-{self._nameless}"
            self._nameless += 1
        return f"{_NUMBERED}{self._file}-{label}" if self._numbered else f"_:{label}"


def file_number_after(nodes: StringTable) -> int:
    """Return the least number above those that labels of blank nodes in a sorted table begin with."""
    number, place = 0, nodes.lower_bound(_NUMBERED.encode())
    while place < len(nodes) and nodes[place].startswith(_NUMBERED):
        digits, _, _ = nodes[place].removeprefix(_NUMBERED).partition("-")
        if digits.isdecimal():
            number = max(number, int(digits))
        # What begins alike comes at once.
        place = max(place + 1, nodes.lower_bound(f"{_NUMBERED}{digits}.".encode()))
    return number + 1


def graph_of(quad: ox.Quad, form: ox.RdfFormat | None) -> str | None:
    """Return the IRI of a statement's graph, if it is in one that has an IRI.

    Raises:
        InvalidRequest: It is in a formula of N3, whose statements are quoted, not stated.
    """
    graph = quad.graph_name
    if isinstance(graph, ox.BlankNode) and form == ox.RdfFormat.N3:
        raise InvalidRequest("A formula in { } states no facts, so it cannot be imported.")
    return graph.value if isinstance(graph, ox.NamedNode) else None


def _kind(behind: str) -> tuple[str, str | None]:
    if behind.startswith("@"):
        return RDF_LANG_STRING.value, behind[1:].lower()
    return behind.removeprefix("^^")[1:-1], None


def _is_label(label: str) -> bool:
    try:
        return bool(BlankNode(label).label)
    except InvalidRequest:
        return False
