from collections.abc import Callable
from typing import TypeVar

from inspect_ai.dataset import MemoryDataset
from inspect_ai.scorer import Scorer
from inspect_ai.solver import Solver

_T = TypeVar("_T")

class Task:
    def __init__(self, *, dataset: MemoryDataset, solver: Solver, scorer: Scorer) -> None: ...

def task(*, name: str) -> Callable[[_T], _T]: ...
