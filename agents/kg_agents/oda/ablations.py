"""ODA with a part of it taken out or replaced (sections 4.1 and 4.2)."""

import random
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from kg_agents.graph_values import Found, Observed, Triple
from kg_agents.oda.agent import ODA
from kg_agents.oda.replies import Action, read_facts
from kg_agents.oda.run import NOTHING_OBSERVED, Run, far_ends

MADE_UP: Final = "made up, not looked up: "
"""How a fact is marked that the model believes."""


class OdaWithoutObservation(ODA):
    """Acts and reflects without looking ahead (section 4.1)."""

    async def _observe(self, run: Run) -> Observed:
        del run
        return NOTHING_OBSERVED


class OdaBySimilarReflection(ODA):
    """Keeps the triples that are most like the question instead of having the model choose (section 4.2)."""

    async def _reflect(self, run: Run, observation: Observed, found: Found) -> Sequence[Triple]:
        most = self._settings.action_tokens
        near = await run.talk.within(
            partial(self._graph.observe, run.question, run.entities, hops=1, top_n=200, max_tokens=most)
        )
        for compared in (observation, near):
            run.scores.update(compared.scores(found.triples))
        ranked = sorted(found.triples, key=lambda triple: (-run.scores.get(triple, 0.0), triple))
        return ranked[: self._settings.kept]


class OdaByRandomReflection(ODA):
    """Keeps triples by dice (section 4.2).

    Args:
        seed: What the dice begin with: equal seeds keep equal triples.
        positional: See `ODA`.
        named: See `ODA`.
    """

    def __init__(self, *positional: Any, seed: int = 0, **named: Any) -> None:  # noqa: ANN401 - passed on as they are
        super().__init__(*positional, **named)
        self._dice = random.Random(seed)  # noqa: S311 - nothing is kept secret by it

    async def _reflect(self, run: Run, observation: Observed, found: Found) -> Sequence[Triple]:
        del run, observation
        return self._dice.sample(found.triples, min(self._settings.kept, len(found.triples)))


class OdaByGeneratedFacts(ODA):
    """Keeps sentences that the model believes instead of what the graph says (section 4.2).

    They stand in the memory that the prompts show, marked as made up. They are no triples of the graph: none is kept
    there, and none is evidence. What they name among the triples that were found is explored next.
    """

    async def _reflect(self, run: Run, observation: Observed, found: Found) -> Sequence[Triple]:
        del observation, found
        most = self._settings.kept
        facts = await self._ask(
            run, self._wording.generation(run, most), "generation", lambda reply: read_facts(reply, most)
        )
        run.beliefs = (*run.beliefs, *(f"{MADE_UP}{fact}" for fact in facts))
        return ()

    def _next_entities(self, run: Run, action: Action, found: Found, selected: Sequence[Triple]) -> tuple[str, ...]:
        del selected
        named = [triple for triple in found.triples if self._names_end_of(triple, run, action)]
        return super()._next_entities(run, action, found, named)

    def _names_end_of(self, triple: Triple, run: Run, action: Action) -> bool:
        facts = run.memory_shown.casefold()
        return any(run.labels.nodes.get(end, end).casefold() in facts for end in far_ends([triple], action.entities))
