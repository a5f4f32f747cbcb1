"""A model of inspect_ai, as the methods ask it."""

import json
from dataclasses import dataclass
from typing import Final

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
)
from inspect_ai.tool import ToolCall, ToolInfo, ToolParams
from pydantic import TypeAdapter, ValidationError

from kg_agents.llm import Completion, FunctionCall, LlmRequest, Message, PromptTooLong, Usage

_ARGUMENTS: Final = TypeAdapter(dict[str, object])
_ENDS: Final = {"max_tokens": "length"}


@dataclass(frozen=True, slots=True)
class InspectLlm:
    """Asks a model through inspect_ai, which waits, tries again, caches and logs as it was told to."""

    model: Model

    @property
    def name(self) -> str:
        """See `Llm`."""
        return str(self.model)

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`."""
        config = GenerateConfig(
            temperature=request.temperature,
            max_tokens=request.max_tokens,
            top_p=request.top_p,
            stop_seqs=list(request.stop) or None,
            seed=request.seed,
        )
        tools = [
            ToolInfo(
                name=each.name, description=each.description, parameters=ToolParams.model_validate(each.parameters)
            )
            for each in request.tools
        ]
        output = await self.model.generate([_message(each) for each in request.messages], tools=tools, config=config)
        if output.stop_reason == "model_length":
            raise PromptTooLong(f"{self.name} takes no prompt of this length.")
        return _completion(output)


def _message(message: Message) -> ChatMessage:
    match message.role:
        case "system":
            return ChatMessageSystem(content=message.content)
        case "user":
            return ChatMessageUser(content=message.content)
        case "tool":
            return ChatMessageTool(content=message.content, tool_call_id=message.call_id)
        case "assistant":
            calls = [ToolCall(id=each.id, function=each.name, arguments=_arguments(each)) for each in message.calls]
            return ChatMessageAssistant(content=message.content, tool_calls=calls or None)


def _arguments(call: FunctionCall) -> dict[str, object]:
    """Return the arguments of a call; none where the model wrote something else, as it was told then."""
    try:
        return _ARGUMENTS.validate_json(call.arguments)
    except ValidationError:
        return {}


def _completion(output: ModelOutput) -> Completion:
    used = output.usage
    usage = Usage(calls=1)
    if used is not None:
        read = used.input_tokens + (used.input_tokens_cache_read or 0) + (used.input_tokens_cache_write or 0)
        usage = Usage(read, used.output_tokens, used.total_cost or 0.0, 1)
    calls = tuple(
        FunctionCall(each.id, each.function, json.dumps(each.arguments)) for each in output.message.tool_calls or ()
    )
    return Completion(output.completion, usage, _ENDS.get(output.stop_reason, output.stop_reason), calls)
