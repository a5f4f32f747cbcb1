"""Replies that a chat service sends in parts (server-sent events), put together as they come."""

import json
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kg_agents.chat_replies import list_in, object_in, text_in

EVENTS: Final = "text/event-stream"
"""The content type of an answer in parts."""

_END: Final = b"[DONE]"
_GROWTH: Final = 50
"""By which share of its length a reply grows before it is told again, so that a long one is not read too often."""


class BrokenStream(Exception):
    """An answer in parts cannot be read, or ends before the reply does."""


@dataclass
class _CalledFunction:
    id: object = None
    name: str = ""
    arguments: str = ""


@dataclass
class _Parts:
    """What came of a reply."""

    text: str = ""
    calls: dict[object, _CalledFunction] = field(default_factory=dict[object, _CalledFunction])
    finish_reason: object = None
    usage: object = None
    error: object = None
    over: bool = False
    empty: bool = True

    @property
    def body(self) -> bytes:
        """The reply so far, in the form of an answer that comes as a whole."""
        calls = [
            {"id": each.id, "function": {"name": each.name, "arguments": each.arguments}}
            for each in self.calls.values()
        ]
        message = {"content": self.text, "tool_calls": calls}
        choices = [] if self.empty or self.error else [{"message": message, "finish_reason": self.finish_reason}]
        return json.dumps({"choices": choices, "usage": self.usage, "error": self.error}).encode()

    @property
    def length(self) -> int:
        """How many characters it has."""
        return len(self.text) + sum(len(each.name) + len(each.arguments) for each in self.calls.values())

    def add_lines(self, lines: Iterable[bytes]) -> None:
        """Take what lines say; services send each event as one line, and comments and names of events beside.

        Raises:
            BrokenStream: An event is not a JSON object.
        """
        for line in lines:
            name, _, event = line.partition(b":")
            if name == b"data" and event.strip():
                self._add(event.strip())

    def _add(self, event: bytes) -> None:
        if event == _END:
            self.over = True
            return
        try:
            told = object_in(json.loads(event))
        except (ValueError, RecursionError) as error:
            raise BrokenStream("an event is not JSON") from error
        if not told:
            raise BrokenStream("an event is not a JSON object")
        self.error = self.error or told.get("error")
        self.usage = told.get("usage") or self.usage
        for choice in map(object_in, list_in(told.get("choices"))[:1]):
            self._add_choice(choice)

    def _add_choice(self, choice: Mapping[str, object]) -> None:
        self.empty = False
        said = object_in(choice.get("delta") or choice.get("message"))
        self.text += text_in(said.get("content"))
        for call in map(object_in, list_in(said.get("tool_calls"))):
            self._add_call(call)
        if "function_call" in said:
            self._add_call({"index": 0, "function": said["function_call"]})
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        self.over = self.over or bool(self.finish_reason)

    def _add_call(self, call: Mapping[str, object]) -> None:
        """Add a part of a call; a service that does not number calls sends each as a whole."""
        number, function = call.get("index"), object_in(call.get("function"))
        called = self.calls.setdefault(number if type(number) is int else (len(self.calls),), _CalledFunction())
        called.id = called.id or call.get("id")
        name, arguments = function.get("name"), function.get("arguments")
        called.name += name if isinstance(name, str) else ""
        called.arguments += arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""


async def read_stream(slices: AsyncIterable[bytes], on_part: Callable[[bytes], None]) -> bytes:
    """Return an answer that comes in parts in the form of one that comes as a whole.

    Args:
        slices: The body as it comes; events and characters may be cut anywhere.
        on_part: Told the answer so far, in the same form, whenever it has grown.

    Raises:
        BrokenStream: It cannot be read, or ends too early.
    """
    parts, rest, told = _Parts(), b"", 0
    async for each in slices:
        *lines, rest = (rest + each).split(b"\n")
        parts.add_lines(lines)
        if parts.length > told + told // _GROWTH:
            told = parts.length
            on_part(parts.body)
    parts.add_lines([rest])
    if not parts.over and not parts.error:
        raise BrokenStream("it ends before the reply does")
    return parts.body
