"""The rounds of ODA as the paper has them: observation, action, reflection (section 2; figure 3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from kg_agents.dialogue import FailedReply
from kg_agents.graph_values import Found, Observed, Triple
from kg_agents.oda.ablations import Parts
from kg_agents.oda.means import Means, OnStep
from kg_agents.oda.replies import Action
from kg_agents.oda.run import Run
from kg_agents.tool_calls import ToolError


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

    async def _take_step(self, run: Run, observation: Observed) -> str:
        """Act, and reflect on what that found; return how the loop ends if it ends here."""
        action: Action | None = None
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
                limit=chosen.paths,
                question=run.question,
                max_tokens=chosen.action_tokens,
            )
        else:
            (entity,) = action.entities
            call = partial(self.means.graph.neighbors, entity, limit=chosen.found, max_tokens=chosen.action_tokens)
        found = await run.talk.within(call)
        run.learn(found.labels)
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
