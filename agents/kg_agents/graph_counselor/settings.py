"""The parameters of Graph Counselor."""

from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from kg_agents.answers import ClosedBook
from kg_agents.dialogue import Limits
from kg_agents.manner import Manner
from kg_agents.own_files import OwnFile, OwnFolder

_CHARACTERS_PER_TOKEN = 3
_PAPER_DEFINITION = 2_000
_DEFINITION = 600


CounselorAblation: TypeAlias = Literal["no-planning", "single-functions", "no-reflection"]
"""What is taken out (section 3.4): plans; functions inside each other and side by side; all judging."""


FunctionSet: TypeAlias = Literal["four", "all"]
"""The paper's four functions, also inside each other and side by side; or with those that work with sets and values."""


@dataclass(frozen=True, slots=True)
class CounselorSettings:
    """Section 3.1 and appendices A and D of the paper, and limits.

    Args:
        steps: The most steps of an attempt; T in the paper.
        reflections: How often an attempt that failed is reflected on and repeated; N.
        temperature: How freely the models choose their words.
        top_p: From which share of the likeliest words they choose.
        reply_tokens: How long a plan, a thought, an action or a judgement may be.
        reflection_tokens: How long a reflection may be.
        definition_tokens: How long the definition of the graph may be; by default 2,000 in the paper, 600 otherwise.
        closed_book: What becomes of what the model says by itself.
        manner: As in the paper, or as practice taught.
        ablation: What is taken out of the paper's method; nothing by default. It brings the paper's manner with it.
        functions: Which functions there are; by default four in the manner of the paper, and all otherwise.
        learnt: Which reflections the next attempt begins with.
        earlier_answer: Whether an earlier attempt's answer stands where the last one ends without any.
        failures: After so many failed steps in a row an attempt is given up.
        examples_folder: A folder with examples of good replies, as `graph_counselor-step.md`; those shipped by default.
        definition_file: A file with the definition of the graph; what the graph says of itself by default.
        structured: Whether replies are asked for as JSON, where the service can enforce it; not in the paper.
        judge_unreadable: What becomes of a judgement that cannot be read: it does not confirm; or, with `yes`, it does,
            and so does `[no]`, as in the released code.
        stop: A text before which replies end; none by default.
        model_seed: What the model's dice begin with, where its service lets that be set.
        limits: What the whole run may use.
    """

    steps: int = 10
    reflections: Annotated[int, Field(ge=0)] = 2
    temperature: float = 0.7
    top_p: float = 0.9
    reply_tokens: int = 500
    reflection_tokens: int = 1_500
    definition_tokens: int | None = None
    closed_book: ClosedBook = "apart"
    manner: Manner = "sextant"
    ablation: CounselorAblation | None = None
    functions: FunctionSet | None = None
    learnt: Literal["all", "latest"] = "all"
    earlier_answer: bool = True
    failures: int = 3
    examples_folder: OwnFolder = ""
    definition_file: OwnFile = ""
    structured: bool = True
    judge_unreadable: Literal["no", "yes"] = "no"
    stop: str = ""
    model_seed: int | None = None
    limits: Limits = field(default_factory=lambda: Limits(tokens=600_000, seconds=900.0))

    @property
    def defined_tokens(self) -> int:
        """How long the definition of the graph may be."""
        return self.definition_tokens or (_PAPER_DEFINITION if self.as_in_paper else _DEFINITION)

    @property
    def as_in_paper(self) -> bool:
        """Whether the method is the paper's."""
        return self.manner == "paper" or self.ablation is not None

    @property
    def reflects(self) -> bool:
        """Whether an attempt that failed is reflected on."""
        return self.reflections > 0 and self.ablation != "no-reflection"

    @property
    def with_sets(self) -> bool:
        """Whether there are functions that work with sets and values, beside the paper's four."""
        return self.functions == "all" or (self.functions is None and not self.as_in_paper)

    @property
    def reflection_characters(self) -> int:
        """How much of each reflection is kept: together they take at most a quarter of a prompt."""
        return self.limits.prompt_tokens * _CHARACTERS_PER_TOKEN // (4 * max(1, self.reflections))
