"""What a run asks, of whom and how; suites of runs."""

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kg_agents.llm import AgentError
from kg_boundary.regular_files import read_toml
from kg_boundary.shown import in_plain_words
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
        graph: The graph that is asked, or several as `NAME=GRAPH`, the default first.
        method: How it is asked.
        model: The language model.
        judge: Another model that judges, for Graph Counselor.
        reflector: Another model that reflects, for Graph Counselor, and for ODA in the manner of its paper.
        linking: Where the entities of a question come from.
        sample: How many questions are drawn; all where it is None.
        seed: The seed of all random choices.
        settings: Parameters of the method, as `name=value`.
        learn: Whether solved questions are kept, and those like a new one shown to the model.
        score: What `observe` ranks by; empty where nothing is observed.
        embedder: The fingerprint of the model that this needs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    benchmark: BenchmarkName
    data: Path
    graph: str | tuple[str, ...] = "sample"
    method: MethodName
    model: str
    judge: str = ""
    reflector: str = ""
    linking: LinkingName = "gold"
    sample: Annotated[int, Field(ge=1)] | None = None
    seed: int = 0
    settings: tuple[str, ...] = ()
    learn: bool = False
    score: str = ""
    embedder: str = ""

    @property
    def graphs(self) -> list[str]:
        """The graphs, as a command names them."""
        return [self.graph] if isinstance(self.graph, str) else [*self.graph]

    @property
    def first_graph(self) -> str:
        """The graph that is asked by default, without the name that it is given beside others."""
        first = self.graphs[0]
        return first.partition("=")[2] or first if len(self.graphs) > 1 else first

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


Value: TypeAlias = bool | int | float | str


class SuiteRun(BaseModel):
    """One run of a suite, or a sweep of runs over values of parameters.

    Args:
        name: What it is called; its folder.
        sweep: Parameters of the method, each with the values that it takes; runs for all their combinations.
        settings: Parameters of the method that stay as they are.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str
    sweep: Mapping[str, tuple[Value, ...]] = {}
    settings: Mapping[str, Value] = {}


class Suite(BaseModel):
    """A file of runs: what all have in common, and what each has beside."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    common: Mapping[str, object] = {}
    runs: tuple[SuiteRun, ...]


def read_suite(path: Path, defaults: Mapping[str, object]) -> dict[str, RunPlan]:
    """Return the plans of a suite by name; paths in it count from its folder.

    Args:
        path: The file (TOML).
        defaults: What counts where the suite says nothing.

    Raises:
        InvalidPlan: The file cannot be read, or a run in it is wrong; the text names it.
    """
    try:
        suite = Suite.model_validate(read_toml(path))
    except ValidationError as error:
        raise InvalidPlan(f"The suite {path}: {_first(error)}.") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidPlan(f"The suite {path} cannot be read: {reason}.") from error
    plans: dict[str, RunPlan] = {}
    for each in suite.runs:
        for name, fields in _combined(each, {**defaults, **suite.common}):
            if name in plans or not name or name != Path(name).name:
                raise InvalidPlan(f"The suite {path}: {name!r} is not a valid name, or two runs have it.")
            plans[name] = _plan(path, name, fields)
    return plans


def _combined(run: SuiteRun, common: Mapping[str, object]) -> Iterator[tuple[str, dict[str, object]]]:
    """Return each run of a sweep with its name and its fields."""
    fields = {**common, **(run.model_extra or {})}
    for values in itertools.product(*run.sweep.values()):
        swept = dict(zip(run.sweep, values, strict=True))
        name = "-".join((run.name, *(f"{key}={value}" for key, value in swept.items())))
        written = tuple(f"{key}={value}" for key, value in {**run.settings, **swept}.items())
        yield name, {**fields, "settings": written}


def _plan(path: Path, name: str, fields: Mapping[str, object]) -> RunPlan:
    data = fields.get("data")
    whole = {**fields, "data": path.parent / data} if isinstance(data, str) else fields
    try:
        return RunPlan.model_validate(whole)
    except ValidationError as error:
        raise InvalidPlan(f"The suite {path}, run {name!r}: {_first(error)}.") from error


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {in_plain_words(first['msg'])}"
