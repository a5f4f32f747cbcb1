"""Calls to a server that serves several graphs: which graph a call is about, and whose the ids of its answer are."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Self

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from kg_agents.evidence.matching import fold
from kg_agents.evidence.values import EntityMatch, IdLabels, in_graph, split_graph
from kg_agents.llm import Function

GRAPH: Final = "graph"
"""The argument that names the graph of a call, or a list of graphs."""
_OVER_ALL: Final = frozenset({"Retrieve", "memory-append", "memory-read", "Recall"})
"""The tools that ask all graphs where the argument is missing; all others ask the first."""
_ABOUT: Final = ("entity", "source", "target", "entities", "text")
_NAMES: Final = TypeAdapter(list[str])


class _Names(BaseModel):
    enum: tuple[str, ...] = ()


class _Graph(_Names):
    items: _Names = _Names()
    any_of: tuple[_Names, ...] = Field(default=(), alias="anyOf")

    @property
    def names(self) -> tuple[str, ...]:
        """The names that it may hold, one or a list of them."""
        return next((each.enum for each in (self, self.items, *self.any_of) if each.enum), ())


class _Arguments(BaseModel):
    graph: _Graph = _Graph()


class _Schema(BaseModel):
    properties: _Arguments = _Arguments()


def graphs_of(tools: Iterable[Function]) -> tuple[str, ...]:
    """Return the names of the graphs that tools can be asked about, the default first; none where it is one."""
    for tool in tools:
        try:
            argument = _Schema.model_validate(tool.parameters).properties.graph
        except ValidationError:
            continue
        if argument.names:
            return argument.names
    return ()


def by_graph(ids: Sequence[str], graphs: Sequence[str]) -> list[list[str]]:
    """Return ids or texts in groups of one graph each, those that carry none in a group of their own; at least one."""
    groups: dict[str, list[str]] = {}
    for each in ids:
        graph = split_graph(each)[1]
        groups.setdefault(graph if graph in graphs else "", []).append(each)
    return list(groups.values()) or [[]]


def best_of(text: str, match: str, candidates: Iterable[EntityMatch]) -> tuple[EntityMatch, ...]:
    """Return the candidates of the graphs for which the verdict on a text holds; all where they are of one graph.

    Args:
        text: The text.
        match: The verdict, which is the best that any graph gives.
        candidates: What all graphs found.
    """
    found = tuple(candidates)
    if len({split_graph(each.id)[1] for each in found}) < 2 or match not in {"exact", "close"}:
        return found
    named = {split_graph(each.id)[1] for each in found if fold(text) == fold(each.matched.partition(" ")[2])}
    best = {split_graph(max(found, key=lambda each: each.score).id)[1]}
    return tuple(each for each in found if split_graph(each.id)[1] in (named if match == "exact" and named else best))


def without_graphs(arguments: Mapping[str, object], graphs: Sequence[str]) -> dict[str, object]:
    """Return the arguments of a call with ids as the server knows them, and with the graphs that these carried.

    Args:
        arguments: The arguments, whose ids may carry their graphs.
        graphs: The graphs of the server.
    """
    found: dict[str, object] = {**arguments}
    named: list[str] = []

    def bare(value: object) -> object:
        if isinstance(value, list | tuple):
            return [bare(each) for each in _OBJECTS.validate_python(value)]
        short, graph = split_graph(value) if isinstance(value, str) else ("", "")
        if graph not in graphs:
            return value
        named.append(graph)
        return short

    for name in (*_ABOUT, "relation"):
        if name in found and (name != "relation" or not named):
            found[name] = bare(found[name])
        elif name in found:
            found[name] = split_graph(str(found[name]))[0]
    chosen = list(dict.fromkeys(named))
    if chosen and GRAPH not in found:
        # What the first is called counts first where an id stands for something in several.
        found[GRAPH] = chosen[0] if len(chosen) == 1 else chosen
    return found


def about_graphs(expression: str, labels: IdLabels, graphs: Sequence[str]) -> tuple[str, str | Sequence[str] | None]:
    """Return an expression with ids as the server knows them, and the graphs of the things that it names.

    Args:
        expression: The expression.
        labels: What was shown so far.
        graphs: The graphs of the server.
    """
    if not graphs:
        return expression, None
    named: set[str] = set()
    of: dict[str, set[str]] = {}
    for each, label in labels.nodes.items():
        bare, graph = split_graph(each)
        of.setdefault(bare, set()).add(graph)
        of.setdefault(label, set()).add(graph)
    for each in (*labels.nodes, *labels.relations):
        bare, graph = split_graph(each)
        for written, plain in ((each, bare), (in_graph(f"({bare})", graph), f"({bare})")):
            if graph and written in expression:
                expression = expression.replace(written, plain)
                named.add(graph)
    # What is named by an id or a label that only one graph has shown is meant there.
    for part in () if named else map(_unquoted, _PARTS.split(expression)):
        named |= of[part] if len(of.get(part, ())) == 1 else set()
    chosen = [graph for graph in graphs if graph in named]
    return expression, chosen if len(chosen) > 1 else next(iter(chosen), None)


_OBJECTS: Final = TypeAdapter(list[object])
_PARTS: Final = re.compile(r"[\[\],]")
_WITH_ID: Final = re.compile(r".+ \(([^()\s]+)\)")


def _unquoted(part: str) -> str:
    text = part.strip().strip("\"'")
    named = _WITH_ID.fullmatch(text)
    return text if named is None else named[1]


def _names(given: object) -> list[str]:
    """Return names of graphs, one or several, as the server reads them; none of what is neither."""
    parts = given.strip().removeprefix("[").removesuffix("]").split(",") if isinstance(given, str) else given
    try:
        return [each.strip(" \t\n\"'").lower() for each in _NAMES.validate_python(parts)]
    except ValidationError:
        return []


class Owners:
    """Whose the ids of one answer are.

    Args:
        graphs: The graphs of the server, in order.
        graph: The graph of all ids; "" where rows name theirs.

    Attributes:
        subject: What the entity that was asked about was read as, where it is an id.
    """

    def __init__(self, graphs: Sequence[str], graph: str) -> None:
        self._graphs = tuple(graphs)
        self.graph = graph
        self.subject: dict[str, str] = {}
        self._of: dict[str, str] = {}
        self._relations: dict[str, dict[str, None]] = {}

    @classmethod
    def of(cls, tool: str, arguments: Mapping[str, object], graphs: Sequence[str]) -> Self:
        """Return whose the ids of the answer to a call are."""
        named = [each for each in dict.fromkeys(_names(arguments.get(GRAPH))) if each in graphs]
        if not named:
            return cls(graphs, "" if tool in _OVER_ALL else graphs[0])
        return cls(graphs, named[0] if len(named) == 1 else "")

    def note(self, node: str, row: Sequence[str] = ()) -> None:
        """Take note of a node, which may stand in a row that ends with its graph; of several, the first counts."""
        graph, before = self._named(row), self._of.get(node)
        if node and (before is None or (row and self._graphs.index(graph) < self._graphs.index(before))):
            self._of[node] = graph

    def ask_about(self, entity: str, read: Mapping[str, str]) -> None:
        """Take note of the entity that was asked about, which is a node unless it was read as one."""
        if entity and entity not in read:
            self.note(entity)
            self.subject = {entity: self.node(entity)}

    def node(self, id: str) -> str:
        """Return a node with its graph."""
        return in_graph(id, self._of.get(id) or self._named(()))

    def far(self, id: str) -> str:
        """Return the end of a fact with its graph, or a value as it is."""
        return in_graph(id, self._of.get(id, ""))

    def of_row(self, id: str, row: Sequence[str]) -> str:
        """Return an id with the graph of its row."""
        return in_graph(id, self._named(row))

    def of_card(self, key: str) -> str:
        """Return the node of a card, whose key may carry its graph already."""
        return key if split_graph(key)[1] in self._graphs else self.node(key)

    def relation(self, id: str, row: Sequence[str] = ()) -> str:
        """Return a relation with the graph of its row."""
        return in_graph(id, self._named(row)) if id else id

    def walk(self, relation: str, row: Sequence[str]) -> None:
        """Take note of a relation in a row that may end with its graph."""
        self._relations.setdefault(relation.removeprefix("-"), {})[self._named(row)] = None

    def relations(self, relation: str) -> list[str]:
        """Return a relation with each of the graphs in which it stands in a row, or else with that of the answer."""
        return [in_graph(relation, graph) for graph in self._relations.get(relation, (self._named(()),))]

    def _named(self, row: Sequence[str]) -> str:
        """Return the graph of the answer, or that which a row ends with, or else the first."""
        return self.graph or (row[-1] if row and row[-1] in self._graphs else self._graphs[0])
