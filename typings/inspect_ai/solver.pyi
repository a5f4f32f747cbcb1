from collections.abc import Awaitable, Callable
from typing import ParamSpec, Protocol, TypeAlias

from inspect_ai.model import ModelOutput

_P = ParamSpec("_P")

class Generate(Protocol): ...

class TaskState:
    metadata: dict[str, object]
    output: ModelOutput
    epoch: int

Solver: TypeAlias = Callable[[TaskState, Generate], Awaitable[TaskState]]

def solver(name: str) -> Callable[[Callable[_P, Solver]], Callable[_P, Solver]]: ...
