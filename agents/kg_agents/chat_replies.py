"""What a chat service answers, read without trust: services fill the same form in many ways, and some with nonsense."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import TypeAdapter, ValidationError

from kg_agents.llm import FunctionCall
from kg_agents.texts import whole_characters

MAX_CALLS: Final = 200
"""How many calls of one reply are read."""

_MAX_TOKENS: Final = 100_000_000
_OBJECT: Final = TypeAdapter(dict[str, object])
_LIST: Final = TypeAdapter(list[object])


@dataclass(frozen=True, slots=True)
class ChatReply:
    """The first choice of an answer, and the tokens that it counts, where it does.

    Args:
        text: What the model said; empty where it said nothing.
        finish_reason: Why it ended; `empty` where there is no choice.
        prompt_tokens: Those of the prompt.
        completion_tokens: Those of the reply.
        calls: The functions that the model calls.
    """

    text: str
    finish_reason: str
    prompt_tokens: int | None
    completion_tokens: int | None
    calls: tuple[FunctionCall, ...] = ()


def read_chat_reply(content: bytes) -> ChatReply:
    """Read the body of an answer.

    Raises:
        ValueError: It is not a JSON object, or says what went wrong instead of a reply.
    """
    try:
        body = _OBJECT.validate_python(json.loads(content))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except ValidationError as error:
        raise ValueError("it is not a JSON object") from error
    choices = list_in(body.get("choices"))
    if not choices and body.get("error"):
        raise ValueError(str(object_in(body["error"]).get("message") or body["error"]))
    usage = object_in(body.get("usage"))
    counted = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    if not choices:
        return ChatReply("", "empty", *counted)
    choice = object_in(choices[0])
    reason = choice.get("finish_reason")
    message = object_in(choice.get("message"))
    calls = list_in(message.get("tool_calls")) or ([message] if message.get("function_call") else [])
    called = tuple(_call(object_in(each), number) for number, each in enumerate(calls[:MAX_CALLS], start=1))
    return ChatReply(text_in(message.get("content")), reason if isinstance(reason, str) else "", *counted, called)


def _call(call: Mapping[str, object], number: int) -> FunctionCall:
    """Return a call of a function; some services give it no id, and some its arguments as an object."""
    function = object_in(call.get("function") or call.get("function_call"))
    named, name, arguments = call.get("id"), function.get("name"), function.get("arguments")
    written = arguments if isinstance(arguments, str) else json.dumps(arguments if arguments is not None else {})
    return FunctionCall(
        whole_characters(named) if isinstance(named, str) and named else f"call_{number}",
        whole_characters(name) if isinstance(name, str) else "",
        whole_characters(written),
    )


def text_in(content: object) -> str:
    """Return a text that stands there as a whole or, as some services send it, in parts."""
    if isinstance(content, str):
        return content
    parts = (object_in(part).get("text") for part in list_in(content))
    return "".join(part for part in parts if isinstance(part, str))


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= _MAX_TOKENS else None


def object_in(value: object) -> Mapping[str, object]:
    """Return a JSON object, or an empty one in place of anything else."""
    try:
        return _OBJECT.validate_python(value)
    except ValidationError:
        return {}


def list_in(value: object) -> Sequence[object]:
    """Return a JSON array, or an empty one in place of anything else."""
    try:
        return _LIST.validate_python(value, strict=True)
    except ValidationError:
        return ()
