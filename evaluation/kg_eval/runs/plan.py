"""What a run asks, of whom and how."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from kg_agents.llm import AgentError
from kg_eval.questions import BenchmarkName, Record

LinkingName: TypeAlias = Literal["gold", "model", "none"]
"""Whether the entities of a question are given, found in it, or not looked for."""

MethodName: TypeAlias = Literal[
    "direct",
    "cot",
    "self-consistency",
    "text-rag",
    "graph-rag-1",
    "graph-rag-2",
    "tog",
    "tog-r",
    "graph-cot",
    "oda",
    "graph-counselor",
    "tools",
]


class InvalidPlan(AgentError):
    """A run cannot be made like this; the text says why, and what can be done."""


class RunPlan(BaseModel):
    """What a run asks, of whom and how; a run is gone on with only by the same plan.

    Args:
        benchmark: The benchmark.
        data: The file or the folder of its questions.
        graph: The graph that is asked.
        method: How it is asked.
        model: The language model.
        judge: Another model that judges, for Graph Counselor.
        reflector: Another model that reflects, for Graph Counselor, and for ODA in the manner of its paper.
        linking: Where the entities of a question come from.
        sample: How many questions are drawn; all where it is None.
        seed: The seed of all random choices.
        settings: Parameters of the method, as `name=value`.
        learn: Whether solved questions are kept, and those like a new one shown to the model.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    benchmark: BenchmarkName
    data: Path
    graph: str = "sample"
    method: MethodName
    model: str
    judge: str = ""
    reflector: str = ""
    linking: LinkingName = "gold"
    sample: Annotated[int, Field(ge=1)] | None = None
    seed: int = 0
    settings: tuple[str, ...] = ()
    learn: bool = False

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the method by name; the last of a name counts."""
        split = (each.partition("=") for each in self.settings)
        return {name.strip().replace("-", "_"): value.strip() for name, _, value in split}


def drawn(records: Sequence[Record], sample: int | None, seed: int) -> tuple[Record, ...]:
    """Return a sample of questions in their order; all of them where there are no more."""
    if sample is None or sample >= len(records):
        return tuple(records)
    places = random.Random(seed).sample(range(len(records)), sample)  # noqa: S311 - a sample is no secret
    return tuple(records[place] for place in sorted(places))
