"""ODA in the manner of its paper (Sun et al., 2024, section 3): observe, act and reflect in replies of their own."""

import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

from kg_agents.evidence.values import Found, IdLabels, ObservedFacts, Triple
from kg_agents.llm.dialogue import FailedReply, NoRoom, RunEnded, Writer
from kg_agents.llm.texts import tokens_in
from kg_agents.papers.oda.replies import Action, read_action, read_facts, read_selection
from kg_agents.papers.oda.run import OdaMeans, OdaRun, fitted
from kg_agents.replies import read_conclusion
from kg_agents.tools.client import ToolError
from kg_prompts.oda import ActionPrompt, GeneratedFactsPrompt, PaperAnswerPrompt, ReflectionPrompt

ALL_PATHS: Final = 100
"""The most paths that one call shows."""


@dataclass(frozen=True, slots=True)
class Reflected:
    """What a reflection brought: triples to keep, and those that lead on to the entities of the next round."""

    kept: tuple[Triple, ...]
    leading: tuple[Triple, ...]


Observe: TypeAlias = Callable[[OdaRun], Awaitable[ObservedFacts]]
"""Looks ahead from the task-relevant entities; raises `RunEnded` where the graph cannot be observed."""

Act: TypeAlias = Callable[[OdaRun, ObservedFacts], Awaitable[Action]]
"""Chooses an action; raises `FailedReply` where none that is possible was chosen."""

Reflect: TypeAlias = Callable[[OdaRun, ObservedFacts, Action, Found], Awaitable[Reflected]]
"""Judges what an action found; raises `FailedReply` where nothing that was found was chosen."""

Choose: TypeAlias = Callable[[OdaRun, Action, Sequence[Triple]], tuple[str, ...]]
"""Returns the task-relevant entities of the next round from the triples that lead on to them, the best first."""


@dataclass(frozen=True, slots=True)
class OdaParts:
    """What ODA is put together from."""

    observe: Observe
    act: Act
    reflect: Reflect
    choose: Choose


def parts_of(means: OdaMeans) -> OdaParts:
    """Return the parts of ODA that its settings ask for."""
    chosen = means.settings
    whole = OdaParts(
        partial(look_ahead, means),
        partial(choose_action, means),
        partial(select_triples, means),
        partial(follow_tails, chosen.entities),
    )
    match chosen.ablation:
        case "no-observation":
            return replace(whole, observe=observe_nothing)
        case "similar-reflection":
            return replace(whole, reflect=partial(keep_similar, means))
        case "random-reflection":
            dice = random.Random(chosen.seed)  # noqa: S311 - nothing is kept secret by it
            return replace(whole, reflect=partial(keep_by_dice, dice, chosen.kept))
        case "generated-facts":
            return replace(whole, reflect=partial(believe, means))
        case None:
            return whole


async def look_ahead(means: OdaMeans, run: OdaRun) -> ObservedFacts:
    """Observe what lies around the entities and is like the question (section 2.1)."""
    chosen = means.settings
    try:
        observation = await run.graph.observe(
            run.question,
            run.entities,
            hops=chosen.hops,
            top_n=chosen.top_n,
            top_percent=chosen.top_percent,
            max_tokens=chosen.observed_tokens,
        )
    except ToolError as error:
        raise RunEnded("graph", f"The graph cannot be observed: {error}") from error
    run.ledger.learn(observation.labels)
    return observation


async def observe_nothing(run: OdaRun) -> ObservedFacts:
    """Observe nothing (section 4.1), but learn what the entities are called, as prompts name them."""
    unnamed = [each for each in run.entities if each not in run.labels.nodes]
    try:
        named = await run.graph.identify(unnamed, limit=1)
    except ToolError as error:
        raise RunEnded("graph", f"The entities cannot be looked up: {error}") from error
    labels = {each.text: found.label for each in named for found in each.candidates if found.id == each.text}
    run.ledger.learn(IdLabels(labels))
    return ObservedFacts()


async def choose_action(means: OdaMeans, run: OdaRun, observation: ObservedFacts) -> Action:
    """Have the model choose an action (section 2.2; table 7)."""
    prompt = ActionPrompt(
        question=run.question,
        memory=run.memory_shown,
        candidates=_candidates(run),
        observation=_body(observation),
        history="\n".join(f"{action}{outcome}" for action, outcome in run.history.items()),
        paths=len(run.entities) > 1,
        examples=means.examples(ActionPrompt),
    )
    offered = {each: run.labels.nodes.get(each) for each in run.entities}
    task = means.settings.task("action", fitted(prompt, "observation"))
    return await run.talk.ask(task, lambda reply: read_action(reply, offered, run.history))


async def select_triples(
    means: OdaMeans, run: OdaRun, observation: ObservedFacts, action: Action, found: Found
) -> Reflected:
    """Have the model select the triples that help (section 2.3; table 8), in batches that fit its prompt."""
    del action
    selected: dict[Triple, None] = {}
    try:
        run.passed_over = await _select(means, run, observation, found, selected)
    except RunEnded:
        run.facts = tuple(dict.fromkeys((*run.facts, *selected)))
        raise
    kept = tuple(selected)
    return Reflected(kept, kept)


async def _select(
    means: OdaMeans, run: OdaRun, observation: ObservedFacts, found: Found, selected: dict[Triple, None]
) -> int:
    """Add what the model selects, batch by batch, and return how many candidates it was not shown.

    Raises:
        FailedReply: It selected none that was found.
    """
    chosen = means.settings
    waiting, asked = deque(_batches(means, run, observation, found.facts)), 0
    while waiting and asked < chosen.batches and (most := chosen.kept - len(selected)) > 0:
        batch = waiting.popleft()
        task = chosen.task("reflection", _reflection(means, run, observation, batch, most))
        read = partial(read_selection, candidates=batch, labels=run.labels, most=most)
        try:
            triples = await run.talk.ask(task, read, means.reflector)
        except NoRoom:
            if len(batch) == 1:
                raise
            half = len(batch) // 2
            waiting.extendleft((batch[half:], batch[:half]))
            continue
        except FailedReply:
            # What was selected from other batches is not lost by it.
            if not selected and not waiting:
                raise
        else:
            selected.update(dict.fromkeys(triples))
        asked += 1
    return sum(map(len, waiting))


def _reflection(means: OdaMeans, run: OdaRun, observation: ObservedFacts, batch: Sequence[Triple], most: int) -> Writer:
    nodes = dict.fromkeys(end for head, _, tail in batch for end in (head, tail))
    relations = dict.fromkeys(relation for _, relation, _ in batch)
    known = [(each, run.labels.nodes.get(each)) for each in nodes]
    known += [(each, run.labels.relations.get(each)) for each in relations]
    prompt = ReflectionPrompt(
        question=run.question,
        candidates="\n".join(map(",".join, batch)),
        labels="\n".join(f"{each}: {label}" for each, label in known if label is not None),
        observation=_body(observation),
        memory=run.memory_shown,
        most=most,
        examples=means.examples(ReflectionPrompt),
    )
    return fitted(prompt, "observation")


def _batches(means: OdaMeans, run: OdaRun, observation: ObservedFacts, triples: Sequence[Triple]) -> list[list[Triple]]:
    """Split candidates into batches that fit into a prompt beside the rest of it."""
    room = run.talk.prompt_tokens(means.reflector)
    rest = tokens_in(_reflection(means, run, observation, (), means.settings.kept)(room))
    most = max(room - rest, room // 2)
    batches: list[list[Triple]] = []
    used = most
    for triple in triples:
        needed = tokens_in(",".join(triple)) + tokens_in(run.labels.triple(triple)) + 2
        if used + needed > most:
            batches.append([])
            used = 0
        batches[-1].append(triple)
        used += needed
    return batches


async def keep_similar(
    means: OdaMeans, run: OdaRun, observation: ObservedFacts, action: Action, found: Found
) -> Reflected:
    """Keep the triples whose relation and far end are most like the question, without the model (section 4.2)."""
    del observation
    texts = [run.labels.pair(triple, action.entities) for triple in found.facts]
    cosines = await run.graph.likeness(run.question, texts)
    likest = sorted(zip(cosines, found.facts, strict=True), key=lambda each: (-each[0], each[1]))
    kept = tuple(triple for _, triple in likest[: means.settings.kept])
    return Reflected(kept, kept)


async def keep_by_dice(
    dice: random.Random, most: int, run: OdaRun, observation: ObservedFacts, action: Action, found: Found
) -> Reflected:
    """Keep triples by dice (section 4.2); equal seeds keep equal triples."""
    del run, observation, action
    kept = tuple(dice.sample(found.triples, min(most, len(found.triples))))
    return Reflected(kept, kept)


async def believe(means: OdaMeans, run: OdaRun, observation: ObservedFacts, action: Action, found: Found) -> Reflected:
    """Keep sentences that the model believes instead of what the graph says (section 4.2).

    They are the memory that the prompts show, as in the paper. They are no triples of the graph: none is kept there,
    and none is evidence. What they name among the triples that were found is explored next.
    """
    del observation
    most = means.settings.kept
    prompt = GeneratedFactsPrompt(
        question=run.question, candidates=_candidates(run), memory=run.memory_shown, most=most
    )
    facts = await run.talk.ask(means.settings.task("generation", fitted(prompt)), partial(read_facts, most=most))
    run.beliefs = tuple(dict.fromkeys((*run.beliefs, *facts)))
    said = run.memory_shown.casefold()

    def is_named(triple: Triple) -> bool:
        ends = far_ends([triple], action.entities)
        return any(run.labels.nodes.get(end, end).casefold() in said for end in ends)

    return Reflected((), tuple(filter(is_named, found.triples)))


def follow_tails(most: int, run: OdaRun, action: Action, leading: Sequence[Triple]) -> tuple[str, ...]:
    """Return the tails of the triples that were reflected on (section 2.3).

    Those of the question that were not looked at yet are among them, as in the paper's own case (table 5).
    """
    waiting = (each for each in run.asked if str(Action("GetNeighbor", (each,))) not in run.history)
    return tuple(dict.fromkeys((*far_ends(leading, action.entities), *waiting)))[:most]


def far_ends(triples: Sequence[Triple], near: Sequence[str]) -> tuple[str, ...]:
    """Return the entities that triples lead to: their tails or, of those found from the tail, their heads.

    Args:
        triples: The triples; where a tail is a literal, they lead nowhere.
        near: The entities that they were found from.
    """
    ends = (head if tail in near else tail for head, _, tail in triples)
    return tuple(dict.fromkeys(end for end in ends if not end.startswith('"')))


def _body(observation: ObservedFacts) -> str:
    """Return an observation without the line that sums it up."""
    return observation.shown.text.partition("\n")[2]


def _candidates(run: OdaRun) -> str:
    return "\n".join(run.labels.node(each) for each in run.entities)


@dataclass(frozen=True, slots=True)
class PaperRounds:
    """Observes, has the model choose an action, and has it reflect on what that found.

    Args:
        means: The graph and the parameters.
        parts: What the rounds are put together from.
    """

    means: OdaMeans
    parts: OdaParts

    async def explore(self, run: OdaRun) -> str:
        """Observe, act and reflect until the model wants to answer; return why the rounds ended, in a word.

        Raises:
            RunEnded: A limit is reached.
        """
        chosen = self.means.settings
        for _ in range(chosen.iterations):
            ending = await self._take_step(run, await self.parts.observe(run))
            if ending == "answered" or run.failures >= chosen.failures:
                return ending
        return "iterations"

    async def conclude(self, run: OdaRun) -> None:
        """Have the model answer from the memory (table 7); answers stay as it wrote them.

        Raises:
            FailedReply: It gave no answer.
        """
        prompt = PaperAnswerPrompt(question=run.question, memory=run.memory_shown)
        found = await run.talk.ask(self.means.settings.task("answer", fitted(prompt)), read_conclusion)
        await run.conclude(found, found.answers, as_given=True)

    async def _take_step(self, run: OdaRun, observation: ObservedFacts) -> str:
        """Act, and reflect on what that found; return how the loop ends if it ends here."""
        action: Action | None = None
        run.ledger.add(replace(observation.shown, ahead=True))
        try:
            action = await self.parts.act(run, observation)
            if action.name == "Answer":
                run.note(action, "")
                return "answered"
            found = await self._perform(run, action)
            reflected = await self.parts.reflect(run, observation, action, found)
            await self._remember(run, reflected.kept)
        except FailedReply as failure:
            run.fail(str(failure))
            return "unreadable"
        except ToolError as refusal:
            run.fail(str(refusal), action)
            return "graph"
        left = f", {run.passed_over} of them not reflected on" if run.passed_over else ""
        run.note(action, f"{len(found.facts)} triples{left}", reflected.kept)
        edges = [each for each in reflected.leading if each not in found.values]
        run.entities = self.parts.choose(run, action, edges) or run.entities
        return ""

    async def _perform(self, run: OdaRun, action: Action) -> Found:
        """Explore the neighbours of an entity, or discover the paths between two (section 2.2).

        Raises:
            ToolError: The graph refused.
        """
        chosen = self.means.settings
        if action.name == "GetPath":
            found = await run.graph.paths(
                *action.entities,
                max_hops=chosen.path_hops,
                limit=ALL_PATHS,
                question=run.question,
                avoid_hubs=False,
                max_tokens=chosen.action_tokens,
            )
        else:
            found = await run.graph.neighbors(*action.entities, limit=chosen.found, max_tokens=chosen.action_tokens)
        run.ledger.add(found.shown)
        return found

    async def _remember(self, run: OdaRun, selected: Sequence[Triple]) -> None:
        """Append triples to the memory (section 2.3).

        Raises:
            ToolError: The graph refused all of them.
        """
        if not selected:
            return
        kept = selected[: self.means.settings.kept]
        appended = await run.graph.remember(run.memory, kept)
        run.keep(await run.graph.recall(appended.memory))
