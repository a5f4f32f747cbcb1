"""Parse one JSON-RPC message; an invalid one is answered with an error under the sender's id."""

import json
from collections.abc import Mapping
from typing import Final, TypeAlias

import pydantic_core
from mcp.types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import TypeAdapter, ValidationError

MAX_MESSAGE_BYTES: Final = 4 * 1024 * 1024
MAX_REASON: Final = 200
MAX_ID_CHARACTERS: Final = 1_000
MAX_ID: Final = 2**63 - 1
VERSION: Final = "2.0"
LISTEN: Final = "subscriptions/listen"
"""The method whose answer lasts as long as its client."""

_Object: TypeAlias = Mapping[str, object]
_OBJECT: Final = TypeAdapter(dict[str, object])


class NotAMessage(Exception):
    """What was received is no message.

    Args:
        answer: The error for its sender.
    """

    def __init__(self, answer: JSONRPCError) -> None:
        super().__init__(answer.error.message)
        self.answer = answer


def read_message(text: bytes) -> JSONRPCMessage:
    """Return the message that a text is.

    Raises:
        NotAMessage: It is no JSON (-32700), not one JSON-RPC 2.0 message (-32600), or its parameters are not named
            (-32602).
    """
    found = _object(text)
    _check(found)
    try:
        return jsonrpc_message_adapter.validate_python(found, by_name=False)
    except ValidationError as error:
        raise _invalid(_id_in(found), "it is not a request, a notification or a response") from error


def refusal(request: RequestId | None, code: int, message: str) -> JSONRPCError:
    """Return an error as an answer, cut to a bearable length."""
    return JSONRPCError(jsonrpc=VERSION, id=request, error=ErrorData(code=code, message=message[:MAX_REASON]))


def _object(text: bytes) -> _Object:
    """Read a JSON object: UTF-8, at most some 200 levels deep, no NaN and no half characters."""
    try:
        found: object = pydantic_core.from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise NotAMessage(refusal(_id_of(text), PARSE_ERROR, f"Parse error: {error}")) from error
    if isinstance(found, list):
        raise _invalid(None, "it is a list; batches are not supported; send one message at a time")
    if not isinstance(found, dict):
        raise _invalid(None, "it is not an object")
    return _OBJECT.validate_python(found)


def _check(found: _Object) -> None:
    identity = _id_in(found)
    if "id" in found and identity is None and not _is_error_of_nothing(found):
        raise _invalid(None, f"its id is neither a text of at most {MAX_ID_CHARACTERS:,} characters nor a whole number")
    if found.get("jsonrpc") != VERSION:
        raise _invalid(identity, f'it lacks "jsonrpc": "{VERSION}"')
    if "method" not in found:
        if "result" in found or "error" in found:
            return
        raise _invalid(identity, "it has no method")
    if not isinstance(found["method"], str):
        raise _invalid(identity, "its method is not a text")
    if not isinstance(found.get("params"), dict | None):
        raise NotAMessage(refusal(identity, INVALID_PARAMS, "Invalid params: they are an object with names."))


def _is_error_of_nothing(found: _Object) -> bool:
    """Tell whether this is the answer to a message whose id could not be read."""
    return found["id"] is None and "error" in found and "method" not in found


def _invalid(request: RequestId | None, reason: str) -> NotAMessage:
    return NotAMessage(refusal(request, INVALID_REQUEST, f"Invalid request: {reason}."))


def _id_of(text: bytes) -> RequestId | None:
    """Read the id of what a more forgiving reader understands: lone surrogates and NaN."""
    try:
        found: object = json.loads(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return _id_in(_OBJECT.validate_python(found)) if isinstance(found, dict) else None


def _id_in(found: _Object) -> RequestId | None:
    """Return the id of an object where it has one that can be answered."""
    match found.get("id"):
        case bool():
            return None
        case int() as number if -MAX_ID <= number <= MAX_ID:
            return number
        case str() as text if len(text) <= MAX_ID_CHARACTERS and _is_writable(text):
            return text
        case _:
            return None


def _is_writable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
