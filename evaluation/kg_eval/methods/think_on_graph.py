"""Think-on-Graph (Sun et al., ICLR 2024), and with relations only."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kg_agents.evidence.values import IdLabels, Triple, plain_value
from kg_agents.llm.dialogue import Dialogue, FailedReply, Unreadable
from kg_agents.tools.knowledge import KnowledgeGraph
from kg_eval.methods.baselines import Direct, DirectSettings
from kg_eval.methods.method import Asked, Means, MethodAnswer, answer_of, reply_to, task
from kg_prompts.evaluation import ContextPrompt, EnoughPrompt, EntitiesPrompt, RelationsPrompt

_SCORE: Final = re.compile(r"^\W*(\d{1,4})\W+?(?:score\W+)?([01]?\.\d+|[01])\W*$", re.IGNORECASE | re.MULTILINE)


def reading_scores(count: int) -> Callable[[str], dict[int, float] | Unreadable]:
    """Return what reads lines as `number: score`, the numbers from 1 to a count."""

    def read(reply: str) -> dict[int, float] | Unreadable:
        found = {int(number): float(score) for number, score in _SCORE.findall(reply)}
        valid = {number: score for number, score in found.items() if 1 <= number <= count}
        return valid or Unreadable(f"it has no line of the form `number: score` with a number from 1 to {count}.")

    return read


def numbered(lines: list[str]) -> str:
    """Return lines with their numbers, from 1."""
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, start=1))


SKIPPED_RELATIONS: frozenset[str] = frozenset(
    {"rdf:type", "rdfs:label", "rdfs:comment", "skos:altLabel", "skos:prefLabel", "schema:description", "owl:sameAs"}
)
"""Relations that are never chosen, as they name or describe and lead nowhere."""


@dataclass(frozen=True, slots=True)
class TogSettings:
    """Width and depth of the beam, and how the model is asked.

    Args:
        width: How many chains go on, and how many relations of an entity.
        depth: How long chains become.
        sampled_from: From so many candidates of one relation on, some are drawn.
        sampled: How many are drawn.
        read: How many facts of an entity are read.
        explore_temperature: How freely words are chosen while exploring.
        reason_temperature: The same while reasoning.
        reply_tokens: How long a reply may be.
    """

    width: int = 3
    depth: int = 3
    sampled_from: int = 20
    sampled: int = 10
    read: int = 200
    explore_temperature: float = 0.4
    reason_temperature: float = 0.0
    reply_tokens: int = 256


@dataclass(frozen=True, slots=True)
class ChainEnd:
    """An entity or a value at the end of a chain, and how much it promises; from a value no chain goes on."""

    end: str
    chain: tuple[Triple, ...] = ()
    score: float = 1.0
    value: bool = False


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of an entity, in one direction, and its score."""

    id: str
    incoming: bool
    score: float = 1.0


@dataclass
class _Search:
    """What one question has found so far."""

    question: str
    graph: KnowledgeGraph
    talk: Dialogue
    dice: random.Random
    starts: tuple[str, ...]
    labels: IdLabels = field(default_factory=IdLabels)
    chains: list[tuple[Triple, ...]] = field(default_factory=list[tuple[Triple, ...]])
    values: set[Triple] = field(default_factory=set[Triple])


@dataclass(frozen=True, slots=True)
class ThinkOnGraph:
    """The beam search of Think-on-Graph.

    Args:
        settings: Its parameters.
        relations_only: Whether entities are drawn at random and the model sees chains of relations (ToG-R).
    """

    settings: TogSettings
    relations_only: bool = False

    async def answer(self, asked: Asked, means: Means) -> MethodAnswer:
        """See `Method`."""
        dice = random.Random(means.seed)  # noqa: S311 - a draw is no secret
        search = _Search(asked.question, means.graph, means.talk(), dice, asked.ids)
        search.labels = IdLabels(dict(asked.entities))
        frontier = [ChainEnd(entity) for entity in asked.ids]
        for _ in range(self.settings.depth):
            candidates = [found for topic in frontier for found in await self._around(search, topic)]
            beam = sorted(candidates, key=lambda each: -each.score)[: self.settings.width]
            if not beam:
                return await self._from_chains(search)
            search.chains += [each.chain for each in beam]
            if await self._suffices(search):
                return await self._from_chains(search)
            frontier = [each for each in beam if not each.value]
        settings = DirectSettings(reply_tokens=self.settings.reply_tokens)
        return await Direct(settings, thinking=True).answer(asked, means)

    async def _around(self, search: _Search, topic: ChainEnd) -> list[ChainEnd]:
        """Choose relations of an entity, and score what they lead to."""
        found: list[ChainEnd] = []
        for relation in await self._relations(search, topic):
            facts = await self._facts(search, topic, relation)
            scores = await self._scores(search, topic, relation, facts)
            for fact, score in zip(facts, scores, strict=True):
                end = fact[0] if relation.incoming else fact[2]
                found.append(ChainEnd(end, (*topic.chain, fact), relation.score * score, fact in search.values))
        return found

    async def _relations(self, search: _Search, topic: ChainEnd) -> list[Relation]:
        """Have the model choose among the relations of both directions, and score them: one call."""
        around = await search.graph.neighbors(topic.end, limit=self.settings.read)
        search.labels = search.labels.merged(around.labels)
        known = dict.fromkeys(
            (fact[1], fact[0] != topic.end) for fact in around.facts if fact[1] not in SKIPPED_RELATIONS
        )
        relations = [Relation(relation, incoming) for relation, incoming in known]
        if not relations:
            return []
        prompt = RelationsPrompt(
            question=search.question,
            entity=search.labels.node(topic.end),
            relations=numbered([_named(each, search.labels) for each in relations]),
            most=self.settings.width,
        )
        request = task(prompt, "relations", self.settings.reply_tokens, self.settings.explore_temperature)
        try:
            scores = await search.talk.ask(request, reading_scores(len(relations)))
        except FailedReply:
            return []
        best = sorted(scores.items(), key=lambda each: -each[1])[: self.settings.width]
        return [Relation(relations[n - 1].id, relations[n - 1].incoming, score) for n, score in best]

    async def _facts(self, search: _Search, topic: ChainEnd, relation: Relation) -> list[Triple]:
        """Read what a relation leads to; of many some are drawn."""
        found = await search.graph.neighbors(
            topic.end,
            relation=relation.id,
            direction="in" if relation.incoming else "out",
            limit=self.settings.read,
        )
        search.labels = search.labels.merged(found.labels)
        search.values.update(found.values)
        facts = [fact for fact in found.facts if fact not in topic.chain]
        if len(facts) >= self.settings.sampled_from:
            return search.dice.sample(facts, self.settings.sampled)
        return facts

    async def _scores(
        self, search: _Search, topic: ChainEnd, relation: Relation, facts: Sequence[Triple]
    ) -> Sequence[float]:
        """Have the model score what a relation leads to: one call, or none where there is one; ToG-R draws."""
        if len(facts) <= 1:
            return [1.0] * len(facts)
        if self.relations_only:
            drawn = set(search.dice.sample(range(len(facts)), min(self.settings.width, len(facts))))
            return [float(place in drawn) / len(drawn) for place in range(len(facts))]
        ends = [fact[0] if relation.incoming else fact[2] for fact in facts]
        prompt = EntitiesPrompt(
            question=search.question,
            relation=f"{search.labels.node(topic.end)}, {_named(relation, search.labels)}",
            candidates=numbered([search.labels.node(plain_value(end)) for end in ends]),
        )
        request = task(prompt, "entities", self.settings.reply_tokens, self.settings.explore_temperature)
        try:
            scores = await search.talk.ask(request, reading_scores(len(facts)))
        except FailedReply:
            return [1 / len(facts)] * len(facts)
        return [scores.get(number, 0.0) for number in range(1, len(facts) + 1)]

    async def _suffices(self, search: _Search) -> bool:
        """Have the model say whether the chains suffice; what is neither yes nor no is no."""
        prompt = EnoughPrompt(question=search.question, chains=self._written(search))
        request = task(prompt, "enough", self.settings.reply_tokens, self.settings.reason_temperature)
        try:
            return await search.talk.ask(request, _read_yes)
        except FailedReply:
            return False

    async def _from_chains(self, search: _Search) -> MethodAnswer:
        """Have the model answer from the chains."""
        prompt = ContextPrompt(question=search.question, context=self._written(search))
        request = task(prompt, "answer", self.settings.reply_tokens, self.settings.reason_temperature)
        facts = tuple(dict.fromkeys(fact for chain in search.chains for fact in chain))
        return answer_of(await reply_to(search.talk, request), facts, search.starts, search.labels)

    def _written(self, search: _Search) -> str:
        """Write each chain on a line: its facts, or for ToG-R its relations and where they end."""
        if not self.relations_only:
            return "\n".join("; ".join(map(search.labels.triple, chain)) for chain in search.chains)
        lines = (_relation_chain(chain, search.labels) for chain in search.chains)
        return "\n".join(dict.fromkeys(lines))


def _relation_chain(chain: Sequence[Triple], labels: IdLabels) -> str:
    """Write where a chain starts, its relations, and where it ends."""
    ends = {chain[-1][0], chain[-1][2]}
    before = {chain[-2][0], chain[-2][2]} if len(chain) > 1 else {chain[0][0]}
    start = chain[0][0]
    end = next(iter(sorted(ends - before)), chain[-1][2])
    relations = " -> ".join(labels.relation(relation) for _, relation, _ in chain)
    return f"{labels.node(start)} -> {relations} -> {labels.node(plain_value(end))}"


def _named(relation: Relation, labels: IdLabels) -> str:
    return f"{'inverse of ' if relation.incoming else ''}{labels.relation(relation.id)}"


def _read_yes(reply: str) -> bool | Unreadable:
    word = reply.strip(" \t\r\n.!*{}\"'`").lower()
    return word == "yes" if word in {"yes", "no"} else Unreadable("it is neither Yes nor No.")
