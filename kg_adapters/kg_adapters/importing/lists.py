"""Find RDF lists and containers, and replace edges to a list by edges to its members."""

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from kg_adapters.files.rows import Row
from kg_adapters.index.graph_index import Ints, Longs, StringTable
from kg_adapters.index.statements import Chosen, Numbered
from kg_adapters.index.tables import Orders
from kg_adapters.local.written_lists import WrittenLists
from kg_adapters.terms import XSD

RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_MEMBER: Final = re.compile(re.escape(RDF) + "_([1-9][0-9]{0,8})")
_KINDS: Final = tuple(RDF + name for name in ("List", "Bag", "Seq", "Alt"))
_NOWHERE: Final = -1
Item: TypeAlias = int
"""A member: the number of a node, or, where it is a literal, its row below zero: -1 is row 0."""


@dataclass(frozen=True, slots=True)
class Structure:
    """The numbers of what lists and containers are written with; -1 where the graph has it not.

    Args:
        first: `rdf:first`.
        rest: `rdf:rest`.
        nil: `rdf:nil`.
        type: `rdf:type`.
        kinds: `rdf:List` and the classes of containers.
        places: The place that each of the relations `rdf:_1`, `rdf:_2` … stands for.
    """

    first: int
    rest: int
    nil: int
    type: int
    kinds: Ints
    places: Mapping[int, int]

    @classmethod
    def of(cls, find_node: Callable[[str], int | None], relations: Mapping[str, int]) -> "Structure | None":
        """Return the structure of a graph, or None where it can hold neither lists nor containers.

        Args:
            find_node: Returns the number of a node, or None.
            relations: The number of each relation.
        """
        found = ((number, _MEMBER.fullmatch(relation)) for relation, number in relations.items())
        places = {number: int(match[1]) for number, match in found if match is not None}
        first, rest, kind = (relations.get(RDF + name, _NOWHERE) for name in ("first", "rest", "type"))
        if rest == _NOWHERE and not places:
            return None
        kinds = [node for each in _KINDS if (node := find_node(each)) is not None]
        nil = find_node(RDF + "nil")
        return cls(first, rest, _NOWHERE if nil is None else nil, kind, np.array(kinds, dtype=np.int32), places)

    @property
    def relations(self) -> Ints:
        """All relations that lists and containers are written with."""
        return np.array([self.first, self.rest, *self.places], dtype=np.int32)


@dataclass
class _Node:
    """The statements about one node that may be a cell or a container."""

    firsts: set[Item] = field(default_factory=set[Item])
    rests: set[Item] = field(default_factory=set[Item])
    placed: dict[int, set[Item]] = field(default_factory=dict[int, set[Item]])

    @property
    def cell(self) -> tuple[Item, int] | None:
        """Its member and the next cell; None where it is no cell."""
        if self.placed or len(self.firsts) != 1 or len(self.rests) != 1 or min(self.rests) < 0:
            return None
        return min(self.firsts), min(self.rests)

    @property
    def members(self) -> list[Item] | None:
        """Its members in order; None where it is no container."""
        if self.firsts or self.rests or any(len(items) != 1 for items in self.placed.values()):
            return None
        return [min(self.placed[place]) for place in sorted(self.placed)]


@dataclass(frozen=True, slots=True)
class Collections:
    """The cells and containers of a graph.

    Args:
        nil: The number of `rdf:nil`.
        cells: For each cell its member and the next cell.
        containers: The members of each container, in order.
    """

    nil: int
    cells: Mapping[int, tuple[Item, int]]
    containers: Mapping[int, Sequence[Item]]

    def holds(self, node: int) -> bool:
        """Say whether a node is a cell or a container."""
        return node in self.cells or node in self.containers

    @property
    def nodes(self) -> Ints:
        """All cells and containers."""
        return np.array(sorted((*self.cells, *self.containers)), dtype=np.int32)

    def walk(self, start: int) -> Iterator[tuple[int, Item]]:
        """Yield the nodes that a list or container is made of, each with a member.

        Raises:
            IllFormed: What follows is no cell, or was met before.
        """
        if start in self.containers:
            yield from ((start, item) for item in self.containers[start])
            return
        at, met = start, set[int]()
        while at != self.nil:
            if at not in self.cells or at in met:
                raise IllFormed
            met.add(at)
            item, following = self.cells[at]
            yield at, item
            at = following

    def below(self, node: int) -> Iterator[int]:
        """Yield the cells and containers that a cell or container leads to at once."""
        item, following = self.cells.get(node, (_NOWHERE, _NOWHERE))
        yield from filter(self.holds, (*self.containers.get(node, ()), item, following))


class IllFormed(Exception):
    """What looks like a list is none, or may not be unfolded."""


def find_collections(
    structure: Structure, keys: StringTable, edges: tuple[Ints, Ints, Ints], features: tuple[Ints, Ints]
) -> Collections:
    """Return the cells and containers of a graph.

    Args:
        structure: What they are written with.
        keys: The `node_key` of each number.
        edges: Heads, relations and tails; shape [e] each.
        features: Heads and relations of literals; shape [f] each.
    """
    heads, relations, tails = edges
    parts, literal_parts = np.isin(relations, structure.relations), np.isin(features[1], structure.relations)
    typed = (relations == structure.type) & np.isin(tails, structure.kinds)
    candidates = np.zeros(len(keys), dtype=np.bool_)
    candidates[heads[parts]] = candidates[features[0][literal_parts]] = True
    candidates[heads[~parts & ~typed]] = candidates[features[0][~literal_parts]] = False
    numbers: list[int] = np.flatnonzero(candidates).tolist()
    known = {node: _Node() for node in numbers if keys[node].startswith("_:")}
    for row in np.flatnonzero(parts).tolist():
        _take(known, structure, int(heads[row]), int(relations[row]), int(tails[row]))
    for row in np.flatnonzero(literal_parts).tolist():
        _take(known, structure, int(features[0][row]), int(features[1][row]), -1 - row)
    cells = ((node, said.cell) for node, said in known.items())
    containers = ((node, said.members) for node, said in known.items())
    return Collections(
        structure.nil,
        {node: cell for node, cell in cells if cell is not None},
        {node: members for node, members in containers if members},
    )


def _take(known: Mapping[int, _Node], structure: Structure, head: int, relation: int, item: Item) -> None:
    said = known.get(head)
    if said is None:
        return
    if relation == structure.first:
        said.firsts.add(item)
    elif relation == structure.rest:
        said.rests.add(item)
    else:
        said.placed.setdefault(structure.places[relation], set()).add(item)


_MOST_NEW: Final = 4
"""How many edges may come of lists for each statement that was read, and how many cells are walked for it."""
_NUMBERS: Final = frozenset(
    XSD + name for name in ("integer", "decimal", "double", "float", "long", "int", "short", "nonNegativeInteger")
)


@dataclass(frozen=True, slots=True)
class Texts:
    """What numbers stand for.

    Args:
        nodes: Each `node_key`.
        values: The texts of literals.
        datatypes: The IRIs of their datatypes.
    """

    nodes: StringTable
    values: StringTable
    datatypes: Sequence[str]


@dataclass(frozen=True, slots=True)
class Unfolded:
    """Statements with members in the place of lists.

    Args:
        edges: Which of the edges there were are still said; shape [e].
        features: The same for literals; shape [f].
        new: What is said in the place of others, but for the texts.
        texts: Heads, relations and plain texts that came of lists of numbers.
        orders: The order of the members.
    """

    edges: Chosen
    features: Chosen
    new: Numbered
    texts: Sequence[tuple[int, int, str]]
    orders: Orders

    def joined(self, statements: Numbered) -> Numbered:
        """Return what is said of the statements there were, and what is new."""
        head, relation, tail = _appended(statements.edges, self.edges, self.new.edges)
        owner, about, value, datatype, language = _appended(statements.features, self.features, self.new.features)
        return Numbered((head, relation, tail), (owner, about, value, datatype, language))


@dataclass(frozen=True, slots=True)
class _Flat:
    """The members of one list, those of lists in it too.

    Args:
        items: Its members.
        nodes: The cells and containers that it is made of.
        text: Its numbers as one text, where it has nothing else.
    """

    items: list[Item]
    nodes: set[int]
    text: str | None


@dataclass
class _New:
    """What comes in the place of lists."""

    edges: tuple["array[int]", ...] = field(default_factory=lambda: tuple(array("i") for _ in range(3)))
    features: tuple["array[int]", ...] = field(default_factory=lambda: tuple(array("i") for _ in range(5)))
    texts: list[tuple[int, int, str]] = field(default_factory=list[tuple[int, int, str]])
    orders: dict[tuple[int, int], dict[int, None]] = field(default_factory=dict[tuple[int, int], dict[int, None]])

    def numbered(self) -> Numbered:
        """Return all but the texts."""
        columns = (*self.edges, *self.features)
        head, relation, tail, *rest = (np.frombuffer(each, dtype=np.intc).astype(np.int32) for each in columns)
        owner, about, value, datatype, language = rest
        return Numbered((head, relation, tail), (owner, about, value, datatype, language))

    def add(self, columns: tuple["array[int]", ...], *row: int) -> None:
        for column, number in zip(columns, row, strict=True):
            column.append(number)


def unfolded(statements: Numbered, structure: Structure, texts: Texts) -> Unfolded | None:
    """Return the statements with members in the place of lists, or None where there are no lists.

    A list that is ill-formed, holds itself, or is shared so often that unfolding it would multiply the graph stays as
    it is. Numbers alone stay one text, since places and shapes are written like this.
    """
    found = find_collections(structure, texts.nodes, statements.edges, statements.features[:2])
    if not (found.cells or found.containers):
        return None
    return _Unfolding(statements, structure, texts, found).run()


class _Unfolding:
    """One run over a graph that has lists."""

    def __init__(self, statements: Numbered, structure: Structure, texts: Texts, found: Collections) -> None:
        self._statements = statements
        self._structure = structure
        self._texts = texts
        self._found = found
        self._left = _MOST_NEW * (len(statements.edges[0]) + len(statements.features[0]))
        self._new = _New()
        self._replaced = array("q")
        self._gone: set[int] = set()

    def run(self) -> Unfolded:
        heads, relations, tails = self._statements.edges
        inside = np.isin(heads, self._found.nodes)
        structural = np.isin(relations, np.array([self._structure.first, self._structure.rest]))
        leading = np.flatnonzero(np.isin(tails, self._found.nodes) & ~inside & ~structural)
        leading = leading[np.argsort(tails[leading], kind="stable")]
        for rows in np.split(leading, np.flatnonzero(np.diff(tails[leading])) + 1):
            if len(rows):
                self._unfold(rows)
        self._keep_what_is_led_to()
        orders = {group: list(members) for group, members in self._new.orders.items() if len(members) > 1}
        gone = np.array(sorted(self._gone), dtype=np.int32)
        kept = ~np.isin(heads, gone)
        kept[np.frombuffer(self._replaced, dtype=np.int64)] = False
        stated = ~np.isin(self._statements.features[0], gone)
        return Unfolded(kept, stated, self._new.numbered(), self._new.texts, orders)

    def _unfold(self, rows: Longs) -> None:
        heads, relations, tails = self._statements.edges
        try:
            flat = self._flat(int(tails[rows[0]]))
        except IllFormed:
            return
        if len(rows) * len(flat.items) > self._left:
            return
        self._left -= len(rows) * len(flat.items)
        self._gone |= flat.nodes
        self._replaced.extend(rows.tolist())
        for row in rows.tolist():
            self._say(int(heads[row]), int(relations[row]), flat)

    def _say(self, head: int, relation: int, flat: _Flat) -> None:
        new, features = self._new, self._statements.features
        if flat.text is not None:
            new.texts.append((head, relation, flat.text))
            return
        for item in flat.items:
            if item < 0:
                new.add(new.features, head, relation, *(int(column[-1 - item]) for column in features[2:]))
            else:
                new.add(new.edges, head, relation, item)
                new.orders.setdefault((head, relation), {})[item] = None

    def _flat(self, start: int) -> _Flat:
        """Return the members of a list and of the lists in it.

        Raises:
            IllFormed: It is no list, holds itself, or is longer than may be walked.
        """
        items, nodes, open_, spelled = list[Item](), set[int](), [start], list[str]()
        walks = [self._found.walk(start)]
        while walks:
            step = next(walks[-1], None)
            if step is None:
                walks.pop()
                open_.pop()
                spelled.append(")")
                continue
            self._left -= 1
            if self._left < 0:
                raise IllFormed
            node, item = step
            nodes.add(node)
            if self._found.holds(item):
                if item in open_:
                    raise IllFormed
                walks.append(self._found.walk(item))
                open_.append(item)
                spelled.append("(")
            elif item != self._structure.nil:
                items.append(item)
                spelled.append(self._number(item) or "")
        return _Flat(items, nodes, _text_of(spelled[:-1]) if len(items) > 1 else None)

    def _number(self, item: Item) -> str | None:
        """Return a member as text if it is a number."""
        _, _, values, datatypes, _ = self._statements.features
        if item >= 0 or self._texts.datatypes[int(datatypes[-1 - item])] not in _NUMBERS:
            return None
        return self._texts.values[int(values[-1 - item])].strip()

    def _keep_what_is_led_to(self) -> None:
        """Keep the cells that a statement outside of them still leads to, and those behind them."""
        heads, _, tails = self._statements.edges
        gone = np.array(sorted(self._gone), dtype=np.int32)
        leads = np.isin(tails, gone) & ~np.isin(heads, gone)
        leads[np.frombuffer(self._replaced, dtype=np.int64)] = False
        waiting = np.unique(tails[leads]).tolist()
        while waiting:
            node = waiting.pop()
            if node in self._gone:
                self._gone.remove(node)
                waiting.extend(self._found.below(node))


def _appended(columns: Sequence[Ints], kept: Chosen, new: Sequence[Ints]) -> Iterator[Ints]:
    for column, more in zip(columns, new, strict=True):
        yield np.concatenate((column[kept], more))


def _text_of(spelled: Sequence[str]) -> str | None:
    """Return numbers in brackets as one text; None where something else is among them."""
    if "" in spelled:
        return None
    return " ".join(spelled).replace("( ", "(").replace(" )", ")")


def unfolded_lists(
    said: Numbered, found: Unfolded, texts: Iterable[Row], rows_of: Callable[[Numbered], Iterator[Row]]
) -> WrittenLists:
    """Return the triples as written before lists were unfolded, and the triples in their place.

    Args:
        said: All statements, before.
        found: What became of them.
        texts: What lists of numbers became.
        rows_of: Returns statements as rows.
    """
    written = frozenset(rows_of(said.chosen(~found.edges, ~found.features)))
    heads = np.concatenate((found.new.edges[0], found.new.features[0], [head for head, _, _ in found.texts]))
    about = said.about(np.unique(heads).astype(np.int32))
    stated = rows_of(said.chosen(found.edges & about[0], found.features & about[1]))
    return WrittenLists(written, frozenset((*rows_of(found.new), *texts)).difference(stated))
