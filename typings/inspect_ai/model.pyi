from collections.abc import Sequence
from typing import TypeAlias

from inspect_ai.tool import ToolCall, ToolInfo

class ChatMessageSystem:
    def __init__(self, *, content: str) -> None: ...

class ChatMessageUser:
    def __init__(self, *, content: str) -> None: ...

class ChatMessageTool:
    def __init__(self, *, content: str, tool_call_id: str) -> None: ...

class ChatMessageAssistant:
    tool_calls: list[ToolCall] | None
    def __init__(self, *, content: str, tool_calls: list[ToolCall] | None = None) -> None: ...

ChatMessage: TypeAlias = ChatMessageSystem | ChatMessageUser | ChatMessageTool | ChatMessageAssistant

class GenerateConfig:
    def __init__(
        self,
        *,
        temperature: float | None,
        max_tokens: int | None,
        top_p: float | None,
        stop_seqs: list[str] | None,
        seed: int | None,
    ) -> None: ...

class ModelUsage:
    input_tokens: int
    output_tokens: int
    input_tokens_cache_read: int | None
    input_tokens_cache_write: int | None
    total_cost: float | None

class ModelOutput:
    stop_reason: str
    completion: str
    usage: ModelUsage | None
    message: ChatMessageAssistant

class Model:
    async def generate(
        self, input: Sequence[ChatMessage], tools: Sequence[ToolInfo], *, config: GenerateConfig
    ) -> ModelOutput: ...

def get_model() -> Model: ...
