"""What a chat service is asked, in the form that such services read."""

import json
import re
from collections.abc import Mapping
from typing import Final

from kg_agents.llm import Function, LlmRequest, Message
from kg_agents.texts import tokens_in

OPTIONAL: Final = frozenset({"temperature", "top_p", "max_tokens", "stop", "seed", "response_format"})
"""What a service may refuse, and is then asked without."""

_NO_TOOLS: Final = re.compile(
    r"(?:\bnot|n't|\bno\b).{0,40}\bsupport.{0,40}\b(?:tool|function)"
    r"|\b(?:tools?|functions?|tool_choice|calling)\b.{0,40}(?:\bnot|n't)\b.{0,20}\b(?:support|enabled)"
    r"|tool choice requires|tools param requires",
    re.IGNORECASE,
)


def chat_body(model: str, request: LlmRequest, max_tokens: int, refused: frozenset[str]) -> dict[str, object]:
    """Return the body of a request.

    Args:
        model: The model's name.
        request: What it is asked.
        max_tokens: How long the reply may be, with the thoughts before it.
        refused: What the service does not take.
    """
    optional = {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "stop": list(request.stop) or None,
        "seed": request.seed,
        "response_format": request.schema and _format(request.schema),
    }
    return {
        "model": model,
        "messages": [_message(each) for each in request.messages],
        "max_completion_tokens" if "max_tokens" in refused else "max_tokens": max_tokens,
        **{name: value for name, value in optional.items() if value is not None and name not in refused},
        **({"tools": [_tool(each) for each in request.tools]} if request.tools else {}),
    }


def estimated_tokens(request: LlmRequest) -> int:
    """Return about how many tokens a request has, with the functions that it offers."""
    calls = (call.name + call.arguments for each in request.messages for call in each.calls)
    schemas = (json.dumps(each.parameters, separators=(",", ":")) for each in request.tools)
    told = (each.name + each.description for each in request.tools)
    return tokens_in("".join((*(each.content for each in request.messages), *calls, *schemas, *told)))


def refuses_tools(reason: str) -> bool:
    """Say whether a service refuses because the model, or the service itself, cannot call functions."""
    return _NO_TOOLS.search(reason) is not None


def _message(message: Message) -> Mapping[str, object]:
    spoken: dict[str, object] = {"role": message.role, "content": message.content}
    if message.call_id:
        spoken["tool_call_id"] = message.call_id
    if message.calls:
        spoken["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    return spoken


def _tool(function: Function) -> Mapping[str, object]:
    told = {"name": function.name, "description": function.description, "parameters": function.parameters}
    return {"type": "function", "function": told}


def _format(schema: Mapping[str, object]) -> Mapping[str, object]:
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
