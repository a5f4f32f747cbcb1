from collections.abc import Mapping
from typing import Self

class ToolCall:
    id: str
    function: str
    arguments: dict[str, object]
    def __init__(self, *, id: str, function: str, arguments: dict[str, object]) -> None: ...

class ToolParams:
    @classmethod
    def model_validate(cls, obj: Mapping[str, object]) -> Self: ...

class ToolInfo:
    def __init__(self, *, name: str, description: str, parameters: ToolParams) -> None: ...
