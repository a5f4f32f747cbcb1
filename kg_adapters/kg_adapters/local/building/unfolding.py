"""Lists and containers unfolded: what leads to one leads to its members instead, in one hop."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from kg_adapters.local.building.collections import Collections, IllFormed, Item, Structure, find_collections
from kg_adapters.local.building.statements import Chosen, Numbered
from kg_adapters.local.index import Ints, Longs, StringTable
from kg_adapters.terms import XSD

_MOST_NEW: Final = 4
"""How many edges may come of lists for each statement that was read, and how many cells are walked for it."""
_NUMBERS: Final = frozenset(
    XSD + name for name in ("integer", "decimal", "double", "float", "long", "int", "short", "nonNegativeInteger")
)
Orders: TypeAlias = Mapping[tuple[int, int], Sequence[int]]
"""For a head and a relation, the tails that came of lists, in their order."""


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
