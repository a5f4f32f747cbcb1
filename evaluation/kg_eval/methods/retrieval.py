"""Text RAG and GraphRAG: the node most like the question, what lies around it as text, and one reply."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from kg_agents.graph_values import Labels, Triple, plain_value
from kg_agents.knowledge import KnowledgeGraph
from kg_agents.texts import tokens_in
from kg_eval.methods.method import Asked, Means, MethodAnswer, answer_of, reply_to, task
from kg_prompts.evaluation import ContextPrompt

_READ: int = 200
"""How many triples of a node are read at most."""


@dataclass(frozen=True, slots=True)
class RagSettings:
    """How much of the graph is put before the question.

    Args:
        context_tokens: How long it may be; the rest is cut off.
        per_type: How many neighbours of each relation and direction count.
        nodes: How many nodes are begun from.
        temperature: How freely the model chooses its words.
        reply_tokens: How long its reply may be.
    """

    context_tokens: int = 2_300
    per_type: int = 20
    nodes: int = 1
    temperature: float = 0.0
    reply_tokens: int = 256


@dataclass
class _Found:
    lines: list[str] = field(default_factory=list[str])
    facts: list[Triple] = field(default_factory=list[Triple])
    labels: Labels = field(default_factory=Labels)


@dataclass(frozen=True, slots=True)
class GraphRag:
    """Retrieval of a node and of all that lies within some hops of it; with 0 hops its own values alone.

    Args:
        settings: How much is read.
        hops: How far.
    """

    settings: RagSettings
    hops: int

    async def answer(self, asked: Asked, means: Means) -> MethodAnswer:
        """See `Method`."""
        starts = asked.ids or await self._retrieved(asked, means.graph)
        found = await self._context(starts, means.graph)
        prompt = ContextPrompt(question=asked.question, context="\n".join(found.lines))
        request = task(prompt, "answer", self.settings.reply_tokens, self.settings.temperature)
        reply = await reply_to(means.talk(), request)
        return answer_of(reply, found.facts, starts, found.labels)

    async def _retrieved(self, asked: Asked, graph: KnowledgeGraph) -> tuple[str, ...]:
        candidates = await graph.retrieve(asked.question, limit=self.settings.nodes)
        return tuple(candidate.id for candidate in candidates)

    async def _context(self, starts: Sequence[str], graph: KnowledgeGraph) -> _Found:
        """Read nodes, the nearest first, until there is no more room."""
        found = _Found()
        left = self.settings.context_tokens
        async for line, facts in self._texts(starts, graph, found):
            if (left := left - tokens_in(line) - 1) < 0:
                break
            found.lines.append(line)
            found.facts += facts
        return found

    async def _texts(
        self, starts: Sequence[str], graph: KnowledgeGraph, found: _Found
    ) -> AsyncIterator[tuple[str, list[Triple]]]:
        """Write a line for each relation of each node, as `key: value, value. `."""
        frontier, seen = list(starts), set(starts)
        for hop in range(max(1, self.hops)):
            reached: dict[str, None] = {}
            for node in frontier:
                around = await graph.neighbors(node, limit=_READ)
                found.labels = found.labels.merged(around.labels)
                kept = self._grouped(around.facts if self.hops else around.values, node)
                for (relation, incoming), facts in kept.items():
                    ends = [fact[0] if incoming else fact[2] for fact in facts]
                    values = {*around.values}
                    reached.update((end, None) for end, fact in zip(ends, facts, strict=True) if fact not in values)
                    yield _line(node, relation, ends, found.labels, incoming=incoming), facts
            frontier = [node for node in reached if node not in seen] if hop + 1 < self.hops else []
            seen.update(frontier)

    def _grouped(self, facts: Sequence[Triple], node: str) -> dict[tuple[str, bool], list[Triple]]:
        grouped: dict[tuple[str, bool], list[Triple]] = {}
        for fact in facts:
            of_kind = grouped.setdefault((fact[1], fact[0] != node), [])
            if len(of_kind) < self.settings.per_type:
                of_kind.append(fact)
        return grouped


def _line(node: str, relation: str, ends: Sequence[str], labels: Labels, *, incoming: bool) -> str:
    name = labels.nodes.get(node, node)
    key = labels.relations.get(relation, relation)
    values = ", ".join(labels.nodes.get(end, plain_value(end)) for end in ends)
    return f"{name}. {'inverse of ' if incoming else ''}{key}: {values}."
