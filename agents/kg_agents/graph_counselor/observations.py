"""What actions observe: text for the model, and statements for the evidence."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from kg_agents.dialogue import RunEnded
from kg_agents.graph_counselor.actions import Query
from kg_agents.graph_counselor.scratchpad import Step
from kg_agents.graph_counselor.support import GIVES
from kg_agents.graph_values import Composed, Labels, Triple
from kg_agents.knowledge import KnowledgeGraph
from kg_agents.tool_calls import ToolError, ToolRefusal

_NO_STATEMENT: Final = frozenset({"error", "none", "at least"})
_RESULT: Final = 5
_TRIPLE: Final = 3


@dataclass(frozen=True, slots=True)
class Observation:
    """What a step observed.

    Args:
        text: What the model reads.
        read: The statements that were read, triples in their true direction.
        labels: What their ids are called.
    """

    text: str
    read: tuple[Triple, ...] = ()
    labels: Labels = field(default_factory=Labels)


async def definition_of(graph: KnowledgeGraph, max_tokens: int) -> str:
    """Return the definition of a graph.

    Raises:
        RunEnded: The graph gives none.
    """
    try:
        return await graph.schema(max_tokens=max_tokens)
    except ToolError as error:
        raise RunEnded("graph", f"The definition of the graph cannot be had: {error}") from error


async def perform(graph: KnowledgeGraph, query: Query) -> Observation:
    """Perform functions on a graph; what it refuses is observed in its own words.

    Raises:
        RunEnded: The graph does not answer, or in no form that is known.
    """
    try:
        composed = await graph.compose(query.written)
    except ToolRefusal as refusal:
        # For instance, an expression is wrong.
        return Observation(str(refusal))
    except ToolError as error:
        raise RunEnded("graph", str(error)) from error
    read = dict.fromkeys((*_results(composed), *_evidence(composed)))
    return Observation(composed.text, tuple(read), Labels(composed.labels, composed.relations))


def repeated(steps: Sequence[Step]) -> Observation:
    """Return what is observed of an action that earlier steps have performed: nothing new."""
    numbers = " and ".join(str(step.number) for step in steps)
    again = "\n".join(step.observation or "" for step in steps)
    return Observation(
        f"This was performed in step {numbers} already and is not performed again. Answer, or ask for something else. "
        f"It gave:\n{again}"
    )


def _results(composed: Composed) -> Iterator[Triple]:
    """Yield what the rows `[part, node, relation, result, kind, …]` state."""
    expressions = {part[0]: part[1] for part in composed.parts if len(part) > 1}
    for part, node, relation, result, kind in (row[:_RESULT] for row in composed.results if len(row) >= _RESULT):
        if kind in _NO_STATEMENT:
            continue
        if kind == "number":
            yield (f"Degree[{node}, {relation}]" if node else expressions.get(part, part), GIVES, result)
        elif relation.startswith("-"):
            yield (result, relation[1:], node)
        elif relation:
            yield (node, relation, result if kind == "node" else f'"{result}"')


def _evidence(composed: Composed) -> Iterator[Triple]:
    for row in composed.evidence:
        if len(row) == _TRIPLE:
            yield (row[0], row[1], row[2])
