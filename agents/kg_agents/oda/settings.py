"""The parameters of ODA."""

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from kg_agents.answers import ClosedBook
from kg_agents.dialogue import Limits
from kg_agents.manner import Manner
from kg_agents.own_files import OwnFolder

OdaAblation: TypeAlias = Literal["no-observation", "similar-reflection", "random-reflection", "generated-facts"]
"""A part that is taken out or replaced (sections 4.1 and 4.2)."""


_PAPER_OBSERVATION: Final = 2_000
_OBSERVATION: Final = 700


@dataclass(frozen=True, slots=True)
class OdaSettings:
    """Section 3.2 of the paper, and limits.

    Args:
        iterations: The most rounds of observation, action and reflection.
        temperature: How freely the model chooses its words.
        reply_tokens: How long a reply may be.
        hops: How far an observation looks; D in the paper.
        top_n: How many triples of each hop it keeps; N.
        top_percent: From what share of these it goes on; P.
        kept: The most triples that one reflection keeps; K.
        entities: The most task-relevant entities of a round.
        found: The most triples that one action finds.
        paths: The most paths that one action finds.
        path_hops: How long a path may be.
        observation_tokens: How long the observation may be in a prompt; by default 2,000 in the paper, 700 otherwise.
        action_tokens: How long the answer to an action may be.
        shown: How many facts of a hub are shown, unless the model names a relation; not in the paper.
        failures: After so many failed steps in a row the run ends.
        closed_book: What becomes of what the model says by itself.
        manner: As in the paper, or as practice taught.
        ablation: Which part of the paper's method is taken out or replaced; none by default. It brings the paper's
            manner with it.
        seed: What the dice of a random reflection begin with.
        batches: In how many parts at most candidates are reflected on.
        examples_folder: A folder with examples of good replies, as `oda-turn.md`; those shipped by default.
        structured: Whether replies are asked for as JSON, where the service can enforce it; not in the paper.
        stop: A text before which replies end; none by default.
        model_seed: What the model's dice begin with, where its service lets that be set.
        limits: What the whole run may use.
    """

    iterations: int = 8
    temperature: float = 0.4
    reply_tokens: int = 500
    hops: int = 3
    top_n: int = 50
    top_percent: float = 10.0
    kept: int = 15
    entities: int = 15
    found: int = 200
    paths: int = 20
    path_hops: int = 3
    observation_tokens: int | None = None
    action_tokens: int = 8_000
    shown: int = 40
    failures: int = 2
    closed_book: ClosedBook = "apart"
    manner: Manner = "sextant"
    ablation: OdaAblation | None = None
    seed: int = 0
    batches: int = 10
    examples_folder: OwnFolder = ""
    structured: bool = True
    stop: str = ""
    model_seed: int | None = None
    limits: Limits = field(default_factory=Limits)

    @property
    def observed_tokens(self) -> int:
        """How long an observation may be."""
        return self.observation_tokens or (_PAPER_OBSERVATION if self.as_in_paper else _OBSERVATION)

    @property
    def as_in_paper(self) -> bool:
        """Whether the method is the paper's."""
        return self.manner == "paper" or self.ablation is not None

    @property
    def reflects(self) -> bool:
        """Whether a model is asked to reflect: in the paper's manner, unless something takes the place of that."""
        return self.as_in_paper and self.ablation in {None, "no-observation"}
