"""Baselines: the model alone, retrieval as text, and Graph-CoT."""

import re
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from kg_agents.evidence.ledger import Ledger
from kg_agents.evidence.matching import fold
from kg_agents.evidence.values import IdLabels, Triple, plain_value
from kg_agents.llm.dialogue import Dialogue
from kg_agents.llm.texts import clipped, tokens_in
from kg_agents.tools.client import ToolRefusal
from kg_agents.tools.knowledge import KnowledgeGraph
from kg_eval.methods.method import Asked, Means, MethodAnswer, answer_of, reply_to, task
from kg_eval.metrics.matching import said
from kg_prompts import render
from kg_prompts.evaluation import ContextPrompt, GraphCotPrompt, QuestionPrompt


@dataclass(frozen=True, slots=True)
class DirectSettings:
    """How a model is asked.

    Args:
        examples: Whether six examples are shown.
        temperature: How freely it chooses its words.
        reply_tokens: How long its reply may be.
    """

    examples: bool = True
    temperature: float = 0.0
    reply_tokens: int = 256


@dataclass(frozen=True, slots=True)
class ConsistencySettings:
    """How a model is asked many times.

    Args:
        samples: How often.
        examples: Whether six examples are shown.
        temperature: How freely it chooses its words.
        reply_tokens: How long its reply may be.
    """

    samples: int = 10
    examples: bool = True
    temperature: float = 0.7
    reply_tokens: int = 256


@dataclass(frozen=True, slots=True)
class Direct:
    """The question, and nothing else; or with the steps in words before the answer (chain of thought)."""

    settings: DirectSettings
    thinking: bool = False

    async def answer(self, asked: Asked, means: Means) -> MethodAnswer:
        """See `Method`."""
        return answer_of(await _reply(asked, means.talk(), self.settings, thinking=self.thinking))


@dataclass(frozen=True, slots=True)
class SelfConsistency:
    """Chains of thought, of which the majority is taken; of as many the first."""

    settings: ConsistencySettings

    async def answer(self, asked: Asked, means: Means) -> MethodAnswer:
        """See `Method`."""
        talk = means.talk()
        replies = [await _reply(asked, talk, self.settings, thinking=True) for _ in range(self.settings.samples)]
        answers = [answer_of(reply) for reply in replies]
        votes = Counter(_vote(answer) for answer in answers)
        most = max(votes.values())
        return next(answer for answer in answers if votes[_vote(answer)] == most)


def _vote(answer: MethodAnswer) -> frozenset[str]:
    return frozenset(fold(each.text) for each in answer.answers)


async def _reply(
    asked: Asked, talk: Dialogue, settings: DirectSettings | ConsistencySettings, *, thinking: bool
) -> str:
    prompt = QuestionPrompt(question=asked.question, thinking=thinking, examples=settings.examples)
    return await reply_to(talk, task(prompt, "answer", settings.reply_tokens, settings.temperature))


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
    labels: IdLabels = field(default_factory=IdLabels)


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


def _line(node: str, relation: str, ends: Sequence[str], labels: IdLabels, *, incoming: bool) -> str:
    name = labels.nodes.get(node, node)
    key = labels.relations.get(relation, relation)
    values = ", ".join(labels.nodes.get(end, plain_value(end)) for end in ends)
    return f"{name}. {'inverse of ' if incoming else ''}{key}: {values}."


_ACTION: Final = re.compile(
    r"(?:Action\s*\d*\s*:\s*)?(Retrieve|Feature|Degree|Neighbou?r)\[([^\[\]]*)\]\.?", re.IGNORECASE
)
_FINISH: Final = re.compile(r"(?:Action\s*\d*\s*:\s*)?Finish\[(.*)\]\.?", re.IGNORECASE | re.DOTALL)
_LED: Final = re.compile(r"^(?:Thought|Action)\s*\d*\s*:\s*", re.IGNORECASE)
_INVALID: Final = (
    "This is not a valid action. Valid are Retrieve[keyword], Feature[node, feature], Degree[node, relation], "
    "Neighbor[node, relation] and Finish[answer]; one at a time, not inside another."
)


@dataclass(frozen=True, slots=True)
class GraphCotSettings:
    """How long the method goes on, and how the model is asked.

    Args:
        steps: The most steps.
        prompt_tokens: Beyond so long a prompt it ends without an answer.
        observation_characters: How much of an observation is shown.
        definition_tokens: How long the definition of the graph may be.
        temperature: How freely the model chooses its words.
        reply_tokens: How long a reply may be; only its first line counts.
    """

    steps: int = 10
    prompt_tokens: int = 10_000
    observation_characters: int = 4_000
    definition_tokens: int = 2_000
    temperature: float = 0.0
    reply_tokens: int = 300


@dataclass
class _Pad:
    """What was thought, done and observed, and what was read of the graph on the way."""

    lines: list[str] = field(default_factory=list[str])
    ledger: Ledger = field(default_factory=Ledger)


@dataclass(frozen=True, slots=True)
class GraphCot:
    """The loop of Graph-CoT."""

    settings: GraphCotSettings

    async def answer(self, asked: Asked, means: Means) -> MethodAnswer:
        """See `Method`."""
        talk, pad = means.talk(), _Pad()
        definition = (await means.graph.schema(max_tokens=self.settings.definition_tokens)).text
        for step in range(1, self.settings.steps + 1):
            for part in ("Thought", "Action"):
                prompt = self._prompt(asked, definition, pad, f"{part} {step}")
                if tokens_in(render(prompt)) > self.settings.prompt_tokens:
                    return _unfinished("prompt", f"A prompt of more than {self.settings.prompt_tokens:,} tokens.")
                request = task(prompt, part.lower(), self.settings.reply_tokens, self.settings.temperature)
                line = _first_line(await reply_to(talk, request))
                pad.lines.append(f"{part} {step}: {line}")
            if (finish := _FINISH.fullmatch(line)) is not None:
                return self._finished(finish[1], asked, pad)
            observed = await self._observe(line, means, pad)
            shown = clipped(" ".join(observed.split()), self.settings.observation_characters)
            pad.lines.append(f"Observation {step}: {shown}")
        return _unfinished("steps", f"No answer within {self.settings.steps} steps.")

    def _prompt(self, asked: Asked, definition: str, pad: _Pad, part: str) -> GraphCotPrompt:
        return GraphCotPrompt(
            question=asked.question,
            entities="\n".join(f"{label} ({entity})" for entity, label in asked.entities),
            definition=definition,
            scratchpad="\n".join(pad.lines),
            part=part,
        )

    async def _observe(self, line: str, means: Means, pad: _Pad) -> str:
        """Perform an action; what the graph refuses is observed in its own words."""
        if (action := _ACTION.fullmatch(line)) is None:
            means.unreadable["action"] += 1
            return _INVALID
        written = f"{action[1].capitalize()}[{action[2]}]"
        try:
            composed = await means.graph.compose(written)
        except ToolRefusal as refusal:
            return str(refusal)
        pad.ledger.add(composed)
        return composed.text

    def _finished(self, written: str, asked: Asked, pad: _Pad) -> MethodAnswer:
        answers = pad.ledger.as_shown(said([written.strip()]), asked.question, asked.ids)
        return MethodAnswer(written.strip(), answers, "answered" if answers else "not_in_graph")


def _first_line(reply: str) -> str:
    """Return the first line of a reply, where the method has the model stop."""
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    return _LED.sub("", lines[0]) if lines else ""


def _unfinished(reason: str, explanation: str) -> MethodAnswer:
    return MethodAnswer("", (), "stopped", reason, explanation)
