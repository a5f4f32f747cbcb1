"""Lists of edges: where a table has its heads, relations and tails, and what becomes of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from kg_adapters.files.rdf import Problem
from kg_adapters.files.rows import StatementColumn
from kg_adapters.tables.distinct_texts import DistinctTexts, Hashes
from kg_adapters.tables.iris import ENTITY, LABEL, RELATION, node_of
from kg_adapters.tables.rows import Batch, SourceTable
from kg_adapters.tables.survey import TableSurvey, plain
from kg_adapters.tables.values import ADDRESS, INTEGER, TEXT, Kind, KindSearch, is_address, writer_of
from kg_adapters.terms import XSD_STRING
from kg_boundary.shown import counted, listed

_HEADS: Final = frozenset({"head", "subject", "source", "from", "start", "h", "s", "src", "startid", "entity1"})
_RELATIONS: Final = frozenset(
    {"relation", "predicate", "property", "edge", "relationship", "r", "p", "rel", "label", "type", "kind"}
)
_TAILS: Final = frozenset({"tail", "object", "target", "to", "end", "t", "o", "dst", "endid", "entity2", "destination"})
_FEWEST_EDGES: Final = 3
_NOTHING: Final = np.zeros(0, np.int64)
_BATCH: Final = 4_096
_SHARE_OF_NUMBERS: Final = 0.5
_MOST_NAMED: Final = 1_000_000

Edge: TypeAlias = tuple[str, str, str]
"""The head, the relation and the tail, none of them empty."""


@dataclass(frozen=True, slots=True)
class EdgeColumns:
    """Where a list of edges has what.

    Args:
        head: The column of the heads.
        relation: That of the relations, if there is one.
        tail: That of the tails.
        header: Whether the first row is a header.
        unread: The headers of columns that are ignored.
    """

    head: int
    relation: int | None
    tail: int
    header: bool = True
    unread: tuple[str, ...] = ()


def edge_columns(table: TableSurvey) -> EdgeColumns | None:
    """Return where a table has its edges, or None where it is no list of edges."""
    names = [plain(name) for name in table.names]
    head, tail, relation = (_first(names, known) for known in (_HEADS, _TAILS, _RELATIONS))
    if head is not None and tail is not None:
        said = [place for place, column in enumerate(table.columns) if column.count and place not in {head, tail}]
        if relation is None:
            texts = [place for place in said if table.columns[place].kind == TEXT]
            relation = texts[0] if len(texts) == 1 else None
        return EdgeColumns(head, relation, tail, unread=tuple(table.names[each] for each in said if each != relation))
    if len(names) != 3 or table.rows + 1 < _FEWEST_EDGES or not table.even or not table.repeated:
        return None
    # The header of the second column would not be among its values.
    return EdgeColumns(0, 1, 2, header=False) if table.columns[1].kind == TEXT else None


def _first(names: Sequence[str], known: frozenset[str]) -> int | None:
    return next((place for place, name in enumerate(names) if name in known), None)


@dataclass(frozen=True, slots=True)
class EdgeSurvey:
    """What is known about a list of edges.

    Args:
        table: What their table is called; nothing where they are in none.
        edges: How many there are.
        heads: The distinct heads.
        relations: The kind that all tails of each relation have, and its distinct tails.
    """

    table: str
    edges: int
    heads: Hashes
    relations: Mapping[str, tuple[Kind, Hashes]]

    def kinds(self, ids: Hashes = _NOTHING) -> dict[str, Kind | None]:
        """Return the kind of values that each relation leads to, or None where it leads to entities.

        Args:
            ids: What is known to be an entity, apart from the heads.
        """
        nodes = np.union1d(self.heads, ids)
        return {
            name: None if kind in {TEXT, ADDRESS} or _are_nodes(kind, np.isin(tails, nodes)) else kind
            for name, (kind, tails) in self.relations.items()
        }

    def tails(self, kinds: Mapping[str, Kind | None]) -> Hashes:
        """Return the distinct tails of all relations that lead to entities."""
        tails = (tails for name, (_, tails) in self.relations.items() if kinds[name] is None)
        return np.unique(np.concatenate([_NOTHING, *tails]))


def _are_nodes(kind: Kind, found: npt.NDArray[np.bool_]) -> bool:
    """Return whether the tails of a relation are nodes, given which of them are known to be some."""
    # A number may be an id by chance.
    return bool(found.mean() >= _SHARE_OF_NUMBERS) if kind == INTEGER and len(found) else bool(found.any())


class EdgeRows:
    """Takes edges out of the rows of a table.

    Args:
        at: Where the table has its edges.
        problem: Called for every row that is no edge.
    """

    def __init__(self, at: EdgeColumns, problem: Problem) -> None:
        self._at = at
        self._problem = problem
        self._begun = at.header

    def edges(self, table: SourceTable, batch: Batch) -> list[Edge]:
        """Return the edges in some rows."""
        at, lines = self._at, list(batch.lines)
        columns = [batch.cells(at.head), batch.cells(at.tail)]
        columns += [] if at.relation is None else [batch.cells(at.relation)]
        if not self._begun and table.first is not None:
            self._begun = True
            line, cells = table.first
            places = (at.head, at.tail, at.relation)
            firsts = [cells[place] for place in places if place is not None]
            lines, columns = [line, *lines], [(cell, *column) for cell, column in zip(firsts, columns, strict=True)]
        relations = columns[2] if len(columns) > 2 else [table.name] * len(lines)
        found = list[Edge]()
        for line, head, relation, tail in zip(lines, columns[0], relations, columns[1], strict=True):
            if head and tail:
                found.append((head, relation or table.name, tail))
            else:
                self._problem(f"{table.place(line)}: an edge needs a head and a tail.", ValueError())
        return found


class EdgeSearch:
    """Collects what is known about a list of edges.

    Args:
        table: What its table is called; nothing where it is in none.
    """

    def __init__(self, table: str = "") -> None:
        self._table = table
        self._count = 0
        self._heads = DistinctTexts()
        self._relations: dict[str, tuple[KindSearch, DistinctTexts]] = {}

    def add(self, edges: Sequence[Edge]) -> None:
        """Add edges."""
        self._count += len(edges)
        self._heads.add({head for head, _, _ in edges})
        tails: dict[str, set[str]] = {}
        for _, relation, tail in edges:
            tails.setdefault(relation, set()).add(tail)
        for relation, ends in tails.items():
            search, distinct = self._relations.setdefault(relation, (KindSearch(relation), DistinctTexts()))
            search.add(ends)
            distinct.add(ends)

    def survey(self) -> EdgeSurvey:
        """Return what is known."""
        found = {name: (search.kind, distinct.sorted()) for name, (search, distinct) in self._relations.items()}
        return EdgeSurvey(self._table, self._count, self._heads.sorted(), found)


@dataclass(frozen=True, slots=True)
class EdgePlan:
    """What becomes of a list of edges.

    Args:
        kinds: The kind of values that each relation leads to, or None where it leads to entities.
        spaces: What the IRIs of heads and of tails begin with.
        known: The ids of rows of other tables, which have names already.
        at: Where the table has its edges; None where they are in no table.
    """

    kinds: Mapping[str, Kind | None]
    spaces: tuple[str, str] = (ENTITY, ENTITY)
    known: Hashes = field(default_factory=lambda: _NOTHING, compare=False, repr=False)
    at: EdgeColumns | None = None

    @property
    def told(self) -> str:
        """What the relations lead to, in words."""
        kinds = (f"{name} ({'edges' if kind is None else kind.name})" for name, kind in self.kinds.items())
        return f"Relations: {listed(kinds, ', ') or 'none'}."


class EdgeWriter:
    """Writes the statements of edges, and the names of what has no other.

    Args:
        plan: What becomes of them.
    """

    def __init__(self, plan: EdgePlan) -> None:
        self._plan = plan
        self._named: set[str] = set()

    def statements(self, edges: Sequence[Edge]) -> list[StatementColumn]:
        """Return the statements of some edges."""
        columns: dict[str, tuple[list[str], list[str]]] = {}
        for head, relation, tail in edges:
            heads, tails = columns.setdefault(relation, ([], []))
            heads.append(head)
            tails.append(tail)
        names: dict[str, str] = {}
        found = [_column(relation, *ends, self._plan, names) for relation, ends in columns.items()]
        names = _unnamed(names, self._plan.known)
        names |= {node_of(RELATION, relation): relation for relation in columns if not is_address(relation)}
        fresh = [node for node in names if node not in self._named]
        found.append(StatementColumn(LABEL, fresh, [names[node] for node in fresh], XSD_STRING.value))
        if len(self._named) >= _MOST_NAMED:
            self._named.clear()
        self._named.update(fresh)
        return found


def _column(
    relation: str, heads: list[str], tails: list[str], plan: EdgePlan, names: dict[str, str]
) -> StatementColumn:
    """Return the statements of a relation, and add the nodes that they are about, each with its text."""
    kind = plan.kinds.get(relation)
    about = {head: node_of(plan.spaces[0], head) for head in set(heads)}
    names |= {about[head]: head for head in heads}
    if kind is None:
        ends = {tail: node_of(plan.spaces[1], tail) for tail in set(tails)}
        names |= {ends[tail]: tail for tail in tails}
        said = [ends[tail] for tail in tails]
    else:
        write = writer_of(kind)
        said = tails if write is None else list(map(write, tails))
    datatype = None if kind is None else kind.datatype
    return StatementColumn(node_of(RELATION, relation), [about[head] for head in heads], said, datatype)


def _unnamed(names: Mapping[str, str], known: Hashes) -> dict[str, str]:
    """Return the nodes that no row of a table names."""
    fresh = [(node, text) for node, text in names.items() if not is_address(text)]
    hashes = np.fromiter((hash(text) for _, text in fresh), np.int64, len(fresh))
    return {node: text for (node, text), row in zip(fresh, np.isin(hashes, known).tolist(), strict=True) if not row}


def edge_list(edges: Sequence[Edge]) -> tuple[Iterator[list[StatementColumn]], str]:
    """Return the statements of edges that are in no table, and what they were taken for, in words."""
    search = EdgeSearch()
    search.add(edges)
    plan = EdgePlan(search.survey().kinds())
    writer, waiting = EdgeWriter(plan), iter(edges)
    some = iter(lambda: list(islice(waiting, _BATCH)), [])
    return map(writer.statements, some), f"{counted(len(edges), 'edge')}, each once. {plan.told}"
