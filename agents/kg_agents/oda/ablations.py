"""Parts that take the place of the paper's own, to show what these are worth (sections 4.1 and 4.2)."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from kg_agents.graph_values import Found, Observed, Triple
from kg_agents.oda.means import Act, Choose, Means, Observe, Reflect, Reflected
from kg_agents.oda.parts import ChooseAction, FollowTails, LookAhead, SelectTriples
from kg_agents.oda.replies import Action, read_facts
from kg_agents.oda.run import NOTHING_OBSERVED, Run, far_ends
from kg_agents.oda.settings import OdaAblation

MADE_UP: Final = "made up, not looked up: "
"""How a fact is marked that the model believes."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What ODA is put together from."""

    observe: Observe
    act: Act
    reflect: Reflect
    choose: Choose


async def look_nowhere(run: Run, /) -> Observed:
    """Observe nothing (section 4.1)."""
    del run
    return NOTHING_OBSERVED


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

    They stand in the memory that the prompts show, marked as made up. They are no triples of the graph: none is kept
    there, and none is evidence. What they name among the triples that were found is explored next.
    """

    means: Means

    async def __call__(self, run: Run, observation: Observed, action: Action, found: Found, /) -> Reflected:
        """See `Reflect`."""
        del observation
        most = self.means.settings.kept
        write = self.means.wording.generation(run, most)
        facts = await self.means.ask(run, write, "generation", lambda reply: read_facts(reply, most))
        run.beliefs = (*run.beliefs, *(f"{MADE_UP}{fact}" for fact in facts))
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
    "no-observation": lambda parts, _: replace(parts, observe=look_nowhere),
    "similar-reflection": lambda parts, means: replace(parts, reflect=KeepSimilar(means)),
    "random-reflection": lambda parts, means: replace(parts, reflect=_random(means)),
    "generated-facts": lambda parts, means: replace(parts, reflect=Believe(means)),
}
