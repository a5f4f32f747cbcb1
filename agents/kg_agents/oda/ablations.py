"""ODA with a part of it taken out or replaced (sections 4.1 and 4.2)."""

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

from kg_agents.graph_values import Found, Observed, Triple
from kg_agents.oda.agent import ODA
from kg_agents.oda.replies import read_generated
from kg_agents.oda.run import NOTHING_OBSERVED, Run


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
            run.scores.update(zip(compared.triples, compared.scores, strict=True))
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
    """Keeps what the model believes instead of what the graph says; marked as unverified (section 4.2)."""

    async def _reflect(self, run: Run, observation: Observed, found: Found) -> Sequence[Triple]:
        del observation, found
        most = self._settings.kept
        write = self._wording.generation(run, most)
        selection = await self._ask(run, write, "generation", lambda reply: read_generated(reply, most))
        return selection.triples

    async def _remember(self, run: Run, selected: Sequence[Triple], *, unverified: bool = True) -> None:
        await super()._remember(run, selected, unverified=unverified)
