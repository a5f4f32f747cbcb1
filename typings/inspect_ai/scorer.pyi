from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import ParamSpec, TypeAlias

from inspect_ai.solver import TaskState

_P = ParamSpec("_P")

class Metric: ...
class Target: ...

class Score:
    def __init__(self, *, value: Mapping[str, float], answer: str, explanation: str) -> None: ...

Scorer: TypeAlias = Callable[[TaskState, Target], Awaitable[Score]]

def mean() -> Metric: ...
def stderr() -> Metric: ...
def scorer(
    metrics: Mapping[str, Sequence[Metric]], name: str
) -> Callable[[Callable[_P, Scorer]], Callable[_P, Scorer]]: ...
