"""What the results of tools show, as typed values."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from kg_agents.evidence.values import ComputedResult, Shown, Triple, in_graph, quoted, split_graph, valued
from kg_agents.llm.texts import clipped
from kg_agents.tools.client import ToolCall, UnreadableReply
from kg_agents.tools.results import ROW, VERDICT, ToolResult, triple_of

_COMPOSED: Final = 5
_DETAIL: Final = 7
_NO_STATEMENT: Final = frozenset({"error", "none", "at least"})
_MAX_EXPRESSION: Final = 300
_TELLING: Final = re.compile(r".* \((?P<relation>[^()\s]+)\): (?P<value>.+?(?: \((?P<id>[^()\s]+)\))?)")
_FOUND: Final = re.compile(r"\s*retrieve\s*\[", re.IGNORECASE)
_TELLING_COLUMN: Final = 6
_SIZE: Final = re.compile(r"\d[\d,]*")
_LOOKUPS: Final = frozenset({"retrieve", "feature", "neighbor", "neighbour", "getneighbor", "getneighbour"})
_OF_FACTS: Final = frozenset({"Compose", "Degree", "Feature", "GetNeighbor", "GetPath", "Sparql", "observe"})
_QUOTED: Final = re.compile(r"\"[^\"]*\"|'[^']*'")
_FUNCTION: Final = re.compile(r"(\w+)\s*\[")


def shown_by(call: ToolCall, graphs: Sequence[str] = ()) -> Shown:
    """Return what a result shows; its text alone where it was refused, or has a form that is not known.

    Args:
        call: The call.
        graphs: The graphs of the server; none where it serves one.
    """
    try:
        return read_shown(call, graphs)
    except UnreadableReply:
        return Shown(text=call.text)


def read_shown(call: ToolCall, graphs: Sequence[str] = ()) -> Shown:
    """Return what a result shows; its text alone where it was refused, or comes from another tool.

    Raises:
        UnreadableAnswer: It has a form that is not known.
    """
    read = _READERS.get(call.tool)
    if call.failed or read is None:
        return Shown(text=call.text)
    found, said = ToolResult.of(call, graphs=graphs), asked(call)
    facts, results, listed = read(call, found, said)
    computed = tuple(dict.fromkeys(results))
    return Shown(
        facts=tuple(dict.fromkeys((*facts, *found.held_facts))),
        computed=computed,
        counts=tuple(dict.fromkeys(_counted(call, found))),
        listed=tuple(each for each in dict.fromkeys(listed) if not each.startswith("_:")),
        labels=found.named,
        denied=found.knowledge == "denied",
        whole=found.status != "truncated" and not found.cursor,
        # A definition of data only counts, which is no answer to a question, nor that nothing was found.
        asked="" if call.tool == "Schema" and not computed else said,
        named=found.read,
        page=str(call.arguments.get("cursor") or ""),
        next_page=found.cursor,
        total=_total(found),
        text=call.text,
        looks_up=_looks_up(call, found),
        names_nothing=call.tool == "Retrieve" and found.knowledge == "unnamed",
    )


def _looks_up(call: ToolCall, found: ToolResult) -> bool:
    """Return whether a result is about something that the graph has: a search shows only what it shows all of."""
    if call.tool == "Retrieve":
        return bool(found.card or found.cards)
    return call.tool in _OF_FACTS and found.knowledge != "unnamed"


def is_computed(expression: str) -> bool:
    """Return whether an expression does more than look up: counts, combines, filters or ranks."""
    names = _FUNCTION.findall(_QUOTED.sub("", expression))
    return any(name.lower() not in _LOOKUPS for name in names)


def asked(call: ToolCall) -> str:
    """Return a call in short: what it asks of the graph."""
    written = call.arguments.get("expression") or call.arguments.get("query")
    if isinstance(written, str):
        return clipped(" ".join(written.split()), _MAX_EXPRESSION)
    told = ", ".join(f"{name}={value}" for name, value in call.arguments.items())
    return clipped(f"{call.tool}({told})", _MAX_EXPRESSION)


_Stated: TypeAlias = tuple[Iterable[Triple], Iterable[ComputedResult], Iterable[str]]
"""The facts that a result states, what it computes, and what it lists."""


def _neighbors(call: ToolCall, found: ToolResult, said: str) -> _Stated:
    triples = [*map(triple_of, found.triples), *map(valued, map(triple_of, found.values))]
    near = {*found.read.values(), str(call.arguments.get("entity"))}
    counted = call.arguments.get("relation") and found.total is not None and found.exact
    computed = [ComputedResult(said, str(found.total))] if counted else []
    # A qualifier describes a fact, not the entity, so that fact is its evidence.
    for *fact, kind, _, about, value in (row for row in found.details if len(row) == _DETAIL):
        computed.append(ComputedResult(f"{about or kind} of [{', '.join(fact)}]", value, (triple_of(fact),)))
    return (
        triples,
        computed,
        (head if tail in near else tail for head, _, tail in triples),
    )


def _retrieved(call: ToolCall, found: ToolResult, said: str) -> _Stated:
    """Return the facts of the cards, and those that distinguish namesakes."""
    del call, said
    rows = [row for row in found.candidates if row]
    facts: list[Triple] = []
    for near, (direction, relation, _, *far) in _carded(found):
        facts += ((end, relation, near) if direction == "in" else (near, relation, end) for end in far)
    telling = ((row[0], _TELLING.fullmatch(row[_TELLING_COLUMN])) for row in rows if len(row) > _TELLING_COLUMN)
    for entity, fact in telling:
        if fact is not None:
            _, graph = split_graph(entity)
            end = in_graph(fact["id"], graph) if fact["id"] else quoted(fact["value"])
            facts.append((entity, in_graph(fact["relation"], graph), end))
    return facts, (), (row[0] for row in rows)


def _carded(found: ToolResult) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the rows of cards, each with its entity: the one candidate of a single card."""
    cards = {found.candidates[0][0]: found.card} if found.candidates and found.candidates[0] else {}
    for entity, rows in {**cards, **found.cards}.items():
        yield from ((entity, row) for row in rows if len(row) >= ROW)


def _features(call: ToolCall, found: ToolResult, said: str) -> _Stated:
    del said
    entity = _entity(call, found)
    rows = [row for row in found.features if len(row) > 1] if isinstance(found.features, list) else []
    return ((entity, row[0], quoted(row[1])) for row in rows), (), (row[1] for row in rows)


def _degree(call: ToolCall, found: ToolResult, said: str) -> _Stated:
    del call
    if not found.exact:
        return (), (), ()
    total = "" if found.neighbors is None else str(found.neighbors)
    return (), (ComputedResult(said, total),), (total,)


def _composed(call: ToolCall, found: ToolResult, said: str) -> _Stated:
    """Return what rows `[part, node, relation, result, kind]` state, and what they give without stating it."""
    parts = {row[0]: row[1] for row in found.parts if len(row) > 1}
    # A long part is shortened in the answer.
    expressions = parts if len(parts) > 1 else dict.fromkeys(parts, str(call.arguments.get("expression", said)))
    rows = [row[:_COMPOSED] for row in found.results if len(row) >= _COMPOSED]
    evidence = tuple(triple_of(row) for row in found.evidence if len(row) >= ROW)
    shown = {end for head, _, tail in evidence for end in (head, tail)}
    facts, computed, listed = list[Triple](), list[ComputedResult](), list[str]()
    is_table = any(row[1] for row in rows)
    for part, node, relation, result, kind in rows:
        expression = expressions.get(part, said)
        plain = not is_computed(expression)
        if kind in _NO_STATEMENT:
            continue
        # In a table, the row of a column without a node is its total.
        if node or not (is_table and relation):
            listed.append(result if kind == "node" or not node or plain else node)
        if kind != "number" and plain and relation:
            facts.append(_triple(node, relation, result if kind == "node" else quoted(result)))
        elif kind == "number" and node and (plain or (expression.startswith("Degree") and len(rows) > 1)):
            computed.append(ComputedResult(f"Degree[{node}, {relation}]", result))
        elif not (plain and (result in shown or _FOUND.match(expression))):
            # That a name is known says nothing of what bears it.
            computed.append(ComputedResult(expression, result, evidence))
        if node and kind != "node" and not plain:
            computed.append(ComputedResult(f"{expression}: {result}", node, evidence, relation))
    return (*facts, *evidence), computed, listed if len(parts) < 2 else ()


def _triple(node: str, relation: str, result: str) -> Triple:
    if relation.startswith("-"):
        return result, relation[1:], node
    return node, relation, result


def _queried(call: ToolCall, found: ToolResult, said: str) -> _Stated:
    """Return what a query gives: its rows are computed, whatever they hold."""
    del call
    cells = [cell for row in found.rows for cell in row if cell] if found.truth is None else [str(found.truth).lower()]
    return (), (ComputedResult(said, cell) for cell in cells), (row[0] for row in found.rows if row and row[0])


def _defined(call: ToolCall, found: ToolResult, said: str) -> _Stated:
    """Return the classes and properties of an ontology, of which the rows do not name the relation between them."""
    del call
    computed: list[ComputedResult] = []
    for above, *below in filter(None, found.tree):
        computed += (ComputedResult(f"{said}: below {above}" if above else said, each) for each in below)
        computed += (ComputedResult(f"{said}: above {each}", above) for each in below if above)
    for relation, owner, *ends in (row for row in found.properties if len(row) > 1):
        computed.append(ComputedResult(f"{said}: property of {owner}" if owner else said, relation))
        computed += (ComputedResult(f"{said}: {relation} leads to", each) for each in ends)
        computed += [ComputedResult(f"{said}: {relation} is a property of", owner)] if owner else []
    return (), computed, ()


_READERS: Final[Mapping[str, Callable[[ToolCall, ToolResult, str], _Stated]]] = {
    "GetNeighbor": _neighbors,
    "GetPath": lambda _, found, __: (map(triple_of, (row for path in found.paths for row in path)), (), ()),
    "observe": lambda _, found, __: ((triple for group in found.seen for triple in group.triples), (), ()),
    "Retrieve": _retrieved,
    "Feature": _features,
    "Degree": _degree,
    "Compose": _composed,
    "Sparql": _queried,
    **dict.fromkeys(
        ("memory-append", "memory-read"),
        # What a memory holds and the graph too.
        lambda _, found, __: (
            (triple_of(row[1:]) for row in found.facts if row[VERDICT : VERDICT + 1] == ["verified"]),
            (),
            (),
        ),
    ),
    "Schema": _defined,
}


def _counted(call: ToolCall, found: ToolResult) -> Iterator[ComputedResult]:
    """Yield how many facts there are of relations, and things of classes, as results of all tools tell them."""
    near, ways = _entity(call, found), ((found.outgoing, ""), (found.incoming, "-")) if found.exact else ()
    counts = [(near, mark + relation, str(count)) for of, mark in ways for relation, count in of.items()]
    counts += ((each.entity, "-" * each.incoming + each.relation, str(each.count)) for each in found.seen)
    counts += ((entity, "-" * (row[0] == "in") + row[1], row[2]) for entity, row in _carded(found))
    # Of what ends in a plus there may be more.
    counted = ((entity, over, count) for entity, over, count in counts if not count.endswith("+"))
    yield from (ComputedResult(f"Degree[{entity}, {over}]", count) for entity, over, count in counted)
    features = found.features if isinstance(found.features, dict) else {}
    of_things = (("things of", each, count) for each, count in found.classes.items())
    of_facts = (("facts over", each, count) for each, count in (*found.relations.items(), *features.items()))
    for of, each, count in (*of_things, *of_facts):
        if isinstance(count, int):
            yield ComputedResult(f"{of} {found.labels.get(each, each)}", str(count))


def _total(found: ToolResult) -> int:
    """Return how much a result says that there is."""
    size = _SIZE.match(found.parts[0][-1]) if len(found.parts) == 1 and found.parts[0] else None
    if found.total is not None or size is None:
        return found.total or 0
    return int(size[0].replace(",", ""))


def _entity(call: ToolCall, found: ToolResult) -> str:
    """Return the entity that a call is about, by the id that its name was read as."""
    given = str(call.arguments.get("entity", ""))
    return found.read.get(given, given)
