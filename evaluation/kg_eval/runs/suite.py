"""Suites: whole tables and sweeps as a file, each run with a name."""

import itertools
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from kg_boundary.validation import in_plain_words
from kg_eval.runs.plan import InvalidPlan, RunPlan

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
        suite = Suite.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidPlan(f"The suite {path} cannot be read: {error}.") from error
    except ValidationError as error:
        raise InvalidPlan(f"The suite {path}: {_first(error)}.") from error
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
