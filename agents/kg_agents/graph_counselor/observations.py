"""What actions observe: text for the model, and statements for the evidence."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import anyio

from kg_agents.dialogue import RunEnded
from kg_agents.graph_counselor.actions import Query
from kg_agents.graph_counselor.scratchpad import Step
from kg_agents.graph_values import Composed, Labels, Triple
from kg_agents.knowledge import KnowledgeGraph
from kg_agents.parts_seen import PartSeen, size_in
from kg_agents.support import Read, Worked, is_worked_out
from kg_agents.tool_calls import ToolError, ToolRefusal

_NO_STATEMENT: Final = frozenset({"error", "none", "at least"})
_RESULT: Final = 5
_TRIPLE: Final = 3
_DENIED: Final = ("false", "no")
_NEAR: Final = 2
"""How far around the entities of a question is looked before the first step."""

_HINT: Final = 500
LONG: Final = 8_000
"""How long an answer may be where a usual one leaves results out."""
LONG_TEXT: Final = 16_000
"""How many characters of it the model may be shown."""
_NOTHING_LIKE: Final = "No class or relation matches"
_UNKNOWN: Final = re.compile(r"No (?:relation|feature) of this graph is called '(?P<name>[^'\n]{1,80})'")


@dataclass(frozen=True, slots=True)
class Observation:
    """What a step observed.

    Args:
        text: What the model reads.
        read: What was read of the graph.
        labels: What ids are called.
        listed: All that it lists, by id or as values; nothing where something is left out.
    """

    text: str
    read: Read = field(default_factory=Read)
    labels: Labels = field(default_factory=Labels)
    listed: tuple[str, ...] = ()


async def definition_of(graph: KnowledgeGraph, max_tokens: int) -> str:
    """Return the definition of a graph.

    Raises:
        RunEnded: The graph gives none.
    """
    try:
        return await graph.schema(max_tokens=max_tokens)
    except ToolError as error:
        raise RunEnded("graph", f"The definition of the graph cannot be had: {error}") from error


async def definition_in(file: str) -> str:
    """Return the definition of a graph that a file holds.

    Raises:
        RunEnded: It cannot be read.
    """
    try:
        return await anyio.Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RunEnded("graph", f"The definition in {file!r} cannot be read: {error}") from error


async def surroundings_of(
    graph: KnowledgeGraph, question: str, entities: Sequence[str], max_tokens: int
) -> Observation:
    """Return what lies around entities and is like a question, and what relations they have.

    Raises:
        RunEnded: The graph cannot be observed.
    """
    try:
        near = await graph.observe(question, entities, hops=_NEAR, max_tokens=max_tokens)
    except ToolError as error:
        raise RunEnded("graph", f"The graph cannot be observed: {error}") from error
    return Observation(near.text.partition("\n")[2], labels=near.labels)


async def perform_to_the_end(graph: KnowledgeGraph, query: Query) -> Observation:
    """Perform functions on a graph, and again with more room where a list is cut that has an end.

    Where the graph knows no relation of a name, what is like it is observed as well.

    Raises:
        RunEnded: The graph does not answer, or in no form that is known.
    """
    observation = await _performed(graph, query, longer=True)
    unknown = _UNKNOWN.search(observation.text) if not observation.read.facts else None
    if unknown is None:
        return observation
    try:
        like = await graph.schema(about=unknown["name"], max_tokens=_HINT)
    except ToolError:
        # It is a hint: without it, what was observed stands.
        return observation
    found = not like.startswith(_NOTHING_LIKE)
    return replace(observation, text=f"{observation.text}\n{like}") if found else observation


async def perform(graph: KnowledgeGraph, query: Query) -> Observation:
    """Perform functions on a graph; what it refuses is observed in its own words.

    Raises:
        RunEnded: The graph does not answer, or in no form that is known.
    """
    return await _performed(graph, query)


async def _performed(graph: KnowledgeGraph, query: Query, *, longer: bool = False) -> Observation:
    try:
        composed = await graph.compose(query.written)
        if longer and not composed.whole:
            long = await graph.compose(query.written, max_tokens=LONG)
            composed = long if long.whole and len(long.text) <= LONG_TEXT else composed
    except ToolRefusal as refusal:
        # For instance, an expression is wrong.
        return Observation(str(refusal))
    except ToolError as error:
        raise RunEnded("graph", str(error)) from error
    listed, read = _listed(composed, query), _read(composed, query)
    labels = Labels(composed.labels, composed.relations)
    if composed.whole:
        return Observation(composed.text, read, labels, listed)
    total = size_in(composed.parts[0][-1]) if composed.parts and composed.parts[0] else 0
    part = PartSeen(frozenset(listed), total)
    return Observation(composed.text, replace(read, parts=(part,)), labels)


def repeated(steps: Sequence[Step]) -> Observation:
    """Return what is observed of an action that earlier steps have performed: nothing new."""
    numbers = " and ".join(str(step.number) for step in steps)
    again = "\n".join(step.observation or "" for step in steps)
    return Observation(
        f"This was performed in step {numbers} already and is not performed again. Answer, or ask for something else. "
        f"It gave:\n{again}"
    )


def _listed(composed: Composed, query: Query) -> tuple[str, ...]:
    """Return what an expression lists: of a table or ranking the nodes, otherwise the results."""
    plain = not is_worked_out(query.written)
    rows = (row for row in composed.results if len(row) >= _RESULT and row[4] not in _NO_STATEMENT)
    found = (row[3] if row[4] == "node" or not row[1] or plain else row[1] for row in rows)
    return tuple(dict.fromkeys(found)) if len(query.parts) == 1 else ()


def _read(composed: Composed, query: Query) -> Read:
    """Return what the rows `[part, node, relation, result, kind, …]` state, and what they give without stating it."""
    expressions = {str(number): part for number, part in enumerate(query.parts, start=1)}
    evidence = tuple((row[0], row[1], row[2]) for row in composed.evidence if len(row) == _TRIPLE)
    facts: dict[Triple, None] = {}
    worked: list[Worked] = []
    for part, node, relation, result, kind in (row[:_RESULT] for row in composed.results if len(row) >= _RESULT):
        expression = expressions.get(part, part)
        if kind in _NO_STATEMENT:
            continue
        if kind == "number" and node:
            worked.append(Worked(f"Degree[{node}, {relation}]", result))
        elif kind == "number" or is_worked_out(expression):
            worked.append(Worked(expression, result, evidence))
            if node and kind not in {"number", "node"}:
                worked.append(Worked(f"{expression}: {result}", node, evidence, relation))
        elif relation.startswith("-"):
            facts[result, relation[1:], node] = None
        elif relation:
            facts[node, relation, result if kind == "node" else f'"{result}"'] = None
    if composed.denied and len(query.parts) == 1:
        worked += (Worked(query.written, answer) for answer in _DENIED)
    return Read(tuple(dict.fromkeys((*facts, *evidence))), tuple(worked))
