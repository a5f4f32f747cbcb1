"""The parts of ODA as the paper has them: observation, action and reflection (section 2)."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from kg_agents.dialogue import FailedReply, NoRoom, RunEnded, Unreadable
from kg_agents.graph_values import Found, Observed, Triple
from kg_agents.oda.means import Means, Reflected
from kg_agents.oda.replies import Action, Selection, read_action, read_selection
from kg_agents.oda.run import Run, far_ends
from kg_agents.texts import tokens_in
from kg_agents.tool_calls import ToolError


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
