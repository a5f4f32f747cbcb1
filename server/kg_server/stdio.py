"""What reaches a server over standard input: messages, and lines that are none, which get an answer too."""

import json
from types import TracebackType
from typing import Final, Protocol, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, RequestId
from pydantic import TypeAdapter, ValidationError

MAX_REASON: Final = 200

_OBJECT: Final = TypeAdapter(dict[str, object])
_ID: Final = TypeAdapter[RequestId](RequestId)


class Incoming(Protocol):
    """Where messages come from, and errors in place of lines that are none."""

    async def receive(self) -> SessionMessage | Exception:
        """Return the next of them, or raise `anyio.EndOfStream`."""
        ...

    async def aclose(self) -> None:
        """Read no more."""
        ...


class Outgoing(Protocol):
    """Where answers go."""

    async def send(self, item: SessionMessage, /) -> None:
        """Send one."""
        ...


class Messages:
    """The messages among what comes in; everything else is answered with an error, so that no client waits for ever.

    Args:
        incoming: Where they come from.
        outgoing: Where the errors go.
    """

    def __init__(self, incoming: Incoming, outgoing: Outgoing) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message, or raise `anyio.EndOfStream`."""
        while True:
            item = await self._incoming.receive()
            if not isinstance(item, ValidationError):
                return item
            await self._outgoing.send(SessionMessage(refusal_of(item)))

    async def aclose(self) -> None:
        """Read no more."""
        await self._incoming.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


def refusal_of(error: ValidationError) -> JSONRPCError:
    """Return the answer to a line that is no message, under the line's own id where it has one."""
    first = error.errors(include_url=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        line = first["input"]
        return _refusal(_id_of(line if isinstance(line, str) else ""), PARSE_ERROR, f"Parse error: {first['msg']}")
    return _refusal(
        None, INVALID_REQUEST, "Invalid request: a line is one JSON-RPC 2.0 message, not a batch or a value."
    )


def _refusal(request: RequestId | None, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=request, error=ErrorData(code=code, message=message[:MAX_REASON]))


def _id_of(line: str) -> RequestId | None:
    """Read the id of a line that Python's more forgiving reader understands: lone surrogates, NaN, deep nesting."""
    try:
        return _ID.validate_python(_OBJECT.validate_python(json.loads(line)).get("id"), strict=True)
    except (ValueError, RecursionError):
        return None
