"""What a chat service is asked, in the form that such services read."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from kg_agents.llm import Function, LlmRequest, Message
from kg_agents.texts import tokens_in

SYSTEM: Final = "system"
"""The role that some models do not know."""

STREAM: Final = "stream"
"""The parameter that asks for a reply in parts."""

OPTIONAL: Final = frozenset(
    {"temperature", "top_p", "max_tokens", "stop", "seed", "response_format", STREAM, "stream_options"}
)
"""What a service may refuse, and is then asked without."""

_STREAMED: Final = {STREAM: True, "stream_options": {"include_usage": True}}
_NO_FORMAT: Final = re.compile(r"response_format|json_schema|structured (?:output|response)|grammar", re.IGNORECASE)
_NO_STREAM: Final = re.compile(r"(stream_options)|\bstream", re.IGNORECASE)
_UNABLE: Final = frozenset({405, 406, 415, 500, 501})
"""The statuses with which a service may refuse what it cannot do."""
_NO_SYSTEM: Final = re.compile(r"\bsystem\b.{0,20}\b(?:role|message|prompt|instruction)", re.IGNORECASE)

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
        **(_STREAMED if streams(request, refused) else {}),
    }
    return {
        "model": model,
        "messages": [_message(each) for each in _spoken(request.messages, merged=SYSTEM in refused)],
        "max_completion_tokens" if "max_tokens" in refused else "max_tokens": max_tokens,
        **{name: value for name, value in optional.items() if value is not None and name not in refused},
        **({"tools": [_tool(each) for each in request.tools]} if request.tools else {}),
    }


def streams(request: LlmRequest, refused: frozenset[str]) -> bool:
    """Say whether a reply is asked for in parts."""
    return request.on_part is not None and STREAM not in refused


def estimated_tokens(request: LlmRequest) -> int:
    """Return about how many tokens a request has, with the functions that it offers."""
    calls = (call.name + call.arguments for each in request.messages for call in each.calls)
    schemas = (json.dumps(each.parameters, separators=(",", ":")) for each in request.tools)
    told = (each.name + each.description for each in request.tools)
    return tokens_in("".join((*(each.content for each in request.messages), *calls, *schemas, *told)))


def refused_in(request: LlmRequest, named: str, reason: str) -> frozenset[str]:
    """Return what of a request a service does not take: the parameter that it names, or what its reason speaks of.

    Args:
        request: The request.
        named: The parameter that the refusal is about; empty where it does not say.
        reason: Why it refused.
    """
    refused = OPTIONAL & {named}
    if not refused and request.schema is not None and _NO_FORMAT.search(reason):
        refused = frozenset({"response_format"})
    if not refused and request.messages[0].role == SYSTEM and _NO_SYSTEM.search(reason):
        refused = frozenset({SYSTEM})
    return refused


def refused_stream(request: LlmRequest, status: int, reason: str) -> frozenset[str]:
    """Return what a service does not take of a request for a reply in parts, where that is what it refuses."""
    if request.on_part is None:
        return frozenset()
    named = _NO_STREAM.search(reason) if status in {400, 404, 422, *_UNABLE} else None
    if named is not None and named[1]:
        return frozenset({"stream_options"})
    return frozenset({STREAM}) if named is not None or status in _UNABLE else frozenset()


def refuses_tools(reason: str) -> bool:
    """Say whether a service refuses because the model, or the service itself, cannot call functions."""
    return _NO_TOOLS.search(reason) is not None


def _spoken(messages: Sequence[Message], *, merged: bool) -> Sequence[Message]:
    """Return messages, with what the system says in the first other one where the service knows no such role."""
    first, *others = messages
    if not merged or first.role != SYSTEM or not others:
        return messages
    return (replace(others[0], content=f"{first.content}\n\n{others[0].content}"), *others[1:])


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
