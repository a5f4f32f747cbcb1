"""ODA in the manner of its paper (Sun et al., 2024, section 3): observe, act and reflect in replies of their own."""

import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from kg_agents.evidence.values import Found, Labels, Observed, Triple
from kg_agents.linking import resolver
from kg_agents.llm.dialogue import FailedReply, NoRoom, RunEnded, Unreadable
from kg_agents.llm.texts import tokens_in
from kg_agents.papers.oda.replies import Action, Selection, read_action, read_facts, read_selection
from kg_agents.papers.oda.run import (
    NOTHING_OBSERVED,
    Act,
    Choose,
    Means,
    Observe,
    OnStep,
    Reflect,
    Reflected,
    Run,
    far_ends,
)
from kg_agents.parameters import OdaAblation
from kg_agents.replies import read_conclusion
from kg_agents.tools.client import ToolError


@dataclass(frozen=True, slots=True)
class Parts:
    """What ODA is put together from."""

    observe: Observe
    act: Act
    reflect: Reflect
    choose: Choose


@dataclass(frozen=True, slots=True)
class KeepSimilar:
    """Keeps the triples that are most like the question instead of having the model choose (section 4.2).

    What is compared is the relation and the far end of each, as one text.
    """

    means: Means

    async def __call__(self, run: Run, observation: Observed, action: Action, found: Found, /) -> Reflected:
        """See `Reflect`."""
        del observation
        texts = [run.labels.pair(triple, action.entities) for triple in found.facts]
        cosines = await run.talk.within(lambda: self.means.graph.likeness(run.question, texts))
        likest = sorted(zip(cosines, found.facts, strict=True), key=lambda each: (-each[0], each[1]))
        kept = tuple(triple for _, triple in likest[: self.means.settings.kept])
        return Reflected(kept, kept)


@dataclass(frozen=True, slots=True)
class KeepByDice:
    """Keeps triples by dice (section 4.2); equal seeds keep equal triples."""

    most: int
    dice: random.Random = field(default_factory=random.Random)

    async def __call__(self, run: Run, observation: Observed, action: Action, found: Found, /) -> Reflected:
        """See `Reflect`."""
        del run, observation, action
        kept = tuple(self.dice.sample(found.triples, min(self.most, len(found.triples))))
        return Reflected(kept, kept)


@dataclass(frozen=True, slots=True)
class Believe:
    """Keeps sentences that the model believes instead of what the graph says (section 4.2).

    They are the memory that the prompts show, as in the paper. They are no triples of the graph: none is kept there,
    and none is evidence. What they name among the triples that were found is explored next.
    """

    means: Means

    async def __call__(self, run: Run, observation: Observed, action: Action, found: Found, /) -> Reflected:
        """See `Reflect`."""
        del observation
        most = self.means.settings.kept
        write = self.means.wording.generation(run, most)
        facts = await self.means.ask(run, write, "generation", lambda reply: read_facts(reply, most))
        run.beliefs = tuple(dict.fromkeys((*run.beliefs, *facts)))
        said = run.memory_shown.casefold()
        return Reflected((), tuple(each for each in found.triples if _names_end_of(each, run, action, said)))


def _names_end_of(triple: Triple, run: Run, action: Action, said: str) -> bool:
    return any(run.labels.nodes.get(end, end).casefold() in said for end in far_ends([triple], action.entities))


def parts_of(means: Means) -> Parts:
    """Return the parts of ODA that its settings ask for."""
    follow = FollowTails(means.settings.entities)
    whole = Parts(LookAhead(means), ChooseAction(means), SelectTriples(means), follow)
    ablation = means.settings.ablation
    return whole if ablation is None else _ABLATIONS[ablation](whole, means)


def _random(means: Means) -> KeepByDice:
    return KeepByDice(means.settings.kept, random.Random(means.settings.seed))  # noqa: S311 - nothing is kept secret by it


_ABLATIONS: Final[Mapping[OdaAblation, Callable[[Parts, Means], Parts]]] = {
    "no-observation": lambda parts, means: replace(parts, observe=ObserveNothing(means)),
    "similar-reflection": lambda parts, means: replace(parts, reflect=KeepSimilar(means)),
    "random-reflection": lambda parts, means: replace(parts, reflect=_random(means)),
    "generated-facts": lambda parts, means: replace(parts, reflect=Believe(means)),
}


@dataclass(frozen=True, slots=True)
class LookAhead:
    """Observes what lies around the entities and is like the question (section 2.1)."""

    means: Means

    async def __call__(self, run: Run, /) -> Observed:
        """See `Observe`."""
        chosen = self.means.settings
        try:
            observation = await run.talk.within(
                partial(
                    self.means.graph.observe,
                    run.question,
                    run.entities,
                    hops=chosen.hops,
                    top_n=chosen.top_n,
                    top_percent=chosen.top_percent,
                    max_tokens=chosen.observed_tokens,
                )
            )
        except ToolError as error:
            raise RunEnded("graph", f"The graph cannot be observed: {error}") from error
        run.learn(observation.labels)
        return observation


@dataclass(frozen=True, slots=True)
class ObserveNothing:
    """Observes nothing (section 4.1), and learns what the entities are called, as prompts name them."""

    means: Means

    async def __call__(self, run: Run, /) -> Observed:
        """See `Observe`."""
        unnamed = [each for each in run.entities if each not in run.labels.nodes]
        try:
            named = await run.talk.within(partial(self.means.graph.identify, unnamed, limit=1))
        except ToolError as error:
            raise RunEnded("graph", f"The entities cannot be looked up: {error}") from error
        labels = {each.text: found.label for each in named for found in each.candidates if found.id == each.text}
        run.learn(Labels(labels))
        return NOTHING_OBSERVED


@dataclass(frozen=True, slots=True)
class ChooseAction:
    """Has the model choose an action (section 2.2; table 7)."""

    means: Means

    async def __call__(self, run: Run, observation: Observed, /) -> Action:
        """See `Act`."""
        write = self.means.wording.action(run, observation)
        return await self.means.ask(run, write, "action", lambda reply: read_action(reply, run.offered, run.history))


@dataclass(frozen=True, slots=True)
class SelectTriples:
    """Has the model select the triples that help (section 2.3; table 8), in batches that fit its prompt."""

    means: Means

    async def __call__(self, run: Run, observation: Observed, action: Action, found: Found, /) -> Reflected:
        """See `Reflect`."""
        del action
        selected: dict[Triple, None] = {}
        try:
            run.passed_over = await self._select(run, observation, found, selected)
        except RunEnded:
            run.facts = tuple(dict.fromkeys((*run.facts, *selected)))
            raise
        kept = tuple(selected)
        return Reflected(kept, kept)

    async def _select(self, run: Run, observation: Observed, found: Found, selected: dict[Triple, None]) -> int:
        """Add what the model selects, batch by batch, and return how many candidates it was not shown.

        Raises:
            FailedReply: It selected none that was found.
        """
        chosen = self.means.settings
        waiting, asked = deque(self._batches(run, observation, found.facts)), 0
        while waiting and asked < chosen.batches and (most := chosen.kept - len(selected)) > 0:
            batch = waiting.popleft()
            write = self.means.wording.reflection(run, observation, batch, most)
            read = _reader(run, batch, most)
            try:
                selection = await self.means.ask(run, write, "reflection", read, llm=self.means.reflector)
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
                selected.update(dict.fromkeys(selection.triples))
            asked += 1
        return sum(map(len, waiting))

    def _batches(self, run: Run, observation: Observed, triples: Sequence[Triple]) -> list[list[Triple]]:
        """Split candidates into batches that fit into a prompt beside the rest of it."""
        room = run.talk.prompt_tokens(self.means.reflector)
        rest = tokens_in(self.means.wording.reflection(run, observation, (), self.means.settings.kept)(room))
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


@dataclass(frozen=True, slots=True)
class FollowTails:
    """Goes on to the tails of the triples that were reflected on (section 2.3).

    Those of the question that were not looked at yet are among them, as in the paper's own case (table 5).
    """

    most: int

    def __call__(self, run: Run, action: Action, leading: Sequence[Triple], /) -> tuple[str, ...]:
        """See `Choose`."""
        return tuple(dict.fromkeys((*far_ends(leading, action.entities), *run.waiting)))[: self.most]


def _reader(run: Run, batch: Sequence[Triple], most: int) -> Callable[[str], Selection | Unreadable]:
    return lambda reply: read_selection(reply, batch, run.labels, most)


ALL_PATHS: Final = 100
"""The most paths that one call shows."""


@dataclass(frozen=True, slots=True)
class PaperRounds:
    """Observes, has the model choose an action, and has it reflect on what that found.

    Args:
        means: The graph, the parameters and the wording.
        parts: What the rounds are put together from.
    """

    means: Means
    parts: Parts

    async def __call__(self, run: Run, on_step: OnStep, /) -> str:
        """See `Rounds`."""
        chosen = self.means.settings
        for _ in range(chosen.iterations):
            observation = await self.parts.observe(run)
            ending = await self._take_step(run, observation)
            on_step(run.steps[-1])
            if ending == "answered" or run.failures >= chosen.failures:
                return ending
        return "iterations"

    async def conclude(self, run: Run, /) -> None:
        """See `Rounds`; answers stay as the model wrote them."""
        found = await self.means.ask(run, self.means.wording.paper_answer(run), "answer", read_conclusion)
        resolve = resolver(self.means.graph, run.talk)
        answers = await run.ledger.answers(found.answers, run.question, run.asked, resolve, as_given=True)
        run.conclude(answers, found.missing, found.own)

    async def _take_step(self, run: Run, observation: Observed) -> str:
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
            run.note(action, _what(found, run.passed_over), reflected.kept)
            edges = [each for each in reflected.leading if each not in found.values]
            run.entities = self.parts.choose(run, action, edges) or run.entities
        except FailedReply as failure:
            run.fail(str(failure))
            return "unreadable"
        except ToolError as refusal:
            run.fail(str(refusal), action)
            return "graph"
        return ""

    async def _perform(self, run: Run, action: Action) -> Found:
        """Explore the neighbours of an entity, or discover the paths between two (section 2.2).

        Raises:
            ToolError: The graph refused.
        """
        chosen = self.means.settings
        if action.name == "GetPath":
            source, target = action.entities
            call = partial(
                self.means.graph.paths,
                source,
                target,
                max_hops=chosen.path_hops,
                limit=ALL_PATHS,
                question=run.question,
                avoid_hubs=False,
                max_tokens=chosen.action_tokens,
            )
        else:
            (entity,) = action.entities
            call = partial(self.means.graph.neighbors, entity, limit=chosen.found, max_tokens=chosen.action_tokens)
        found = await run.talk.within(call)
        run.ledger.add(found.shown)
        return found

    async def _remember(self, run: Run, selected: Sequence[Triple]) -> None:
        """Append triples to the memory (section 2.3).

        Raises:
            ToolError: The graph refused all of them.
        """
        if not selected:
            return
        kept = selected[: self.means.settings.kept]
        appended = await run.talk.within(partial(self.means.graph.remember, run.memory, kept))
        run.keep(await run.talk.within(partial(self.means.graph.recall, appended.memory)))


def _what(found: Found, passed_over: int) -> str:
    left = f", {passed_over} of them not reflected on" if passed_over else ""
    return f"{len(found.facts)} triples{left}"
