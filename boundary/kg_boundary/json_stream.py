"""JSON too large to be held at once: the members of its outer objects and lists, one after the other.

Only the outer levels are walked here; what stands in them is decoded by Python's own `json`, one value at a time, so
that a file takes the memory of its largest value.
"""

import codecs
import json
import re
from collections.abc import Iterator
from typing import IO, Final, NoReturn, TypeAlias

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"

_CHUNK: Final = 1 << 20
_BLANK: Final = re.compile(r"[ \t\n\r]*")
# An error this near to the end of what was read may only mean that the rest is missing; no token is longer.
_LONGEST_TOKEN: Final = 16
_SHOWN: Final = 60


class BrokenJson(ValueError):
    """A text is no JSON, or none that can be read.

    Args:
        reason: What is wrong, as a predicate where there is no place.
        place: The line and column, from 1.
    """

    def __init__(self, reason: str, place: tuple[int, int] | None = None) -> None:
        super().__init__(reason)
        self._reason = reason
        self._place = place

    def told(self, name: str) -> str:
        """Return the message, without a full stop, about a file of this name."""
        if self._place is None:
            return f"{name} {self._reason}"
        line, column = self._place
        return f"{name}, line {line:,}, column {column:,}: {self._reason}"


class _NoValue(ValueError):
    """A constant that Python's `json` reads and JSON does not have."""


class JsonStream:
    """Walks through JSON while it is read.

    Whoever walks takes each value that it meets: by `value`, or by walking through its members or items in turn.

    Args:
        stream: The bytes: UTF-8, or another encoding of Unicode that JSON allows.
        strict: Whether NaN and infinities, which many programs write, are refused.
    """

    def __init__(self, stream: IO[bytes], *, strict: bool = False) -> None:
        self._stream = stream
        self._json = json.JSONDecoder(parse_constant=_refuse) if strict else json.JSONDecoder()
        head = stream.read(4)
        self._decoder = codecs.getincrementaldecoder(json.detect_encoding(head))("surrogatepass")
        self._bytes = 0
        self._ended = False
        self._text, self._at = "", 0
        # A place in the text that is held: the lines before it, and the characters before it in its line.
        self._mark, self._lines, self._columns = 0, 0, 0
        self._add(head)

    @property
    def line(self) -> int:
        """The line of what comes next, from 1."""
        self.peek()
        self._mark_here()
        return self._lines + 1

    def peek(self) -> str:
        """Return the first character of what comes next, or nothing at the end.

        Raises:
            BrokenJson: It is not Unicode.
        """
        while True:
            self._at = _end_of_blank(self._text, self._at)
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def members(self) -> Iterator[str]:
        """Yield the keys of the object that comes next; behind each, its value comes next.

        Raises:
            BrokenJson: It is broken, or no object.
        """
        self._expect("{", "Expecting an object")
        if self.peek() == "}":
            self._at += 1
            return
        while True:
            yield self._key()
            if self.peek() == "}":
                self._at += 1
                return
            self._expect(",", "Expecting ',' delimiter")

    def items(self) -> Iterator[int]:
        """Yield the numbers, from 1, of the items of the list that comes next; behind each, the item comes next.

        Raises:
            BrokenJson: It is broken, or no list.
        """
        self._expect("[", "Expecting a list")
        number = 0
        while self.peek() != "]":
            if number:
                self._expect(",", "Expecting ',' delimiter")
            number += 1
            yield number
        self._at += 1

    def value(self) -> Json:
        """Return what comes next.

        Raises:
            BrokenJson: It is broken.
        """
        self.peek()
        value: Json
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                whole = error.pos + _LONGEST_TOKEN < len(self._text) and not error.msg.startswith("Unterminated")
                if whole or not self._more():
                    self._fail(error.msg, error.pos)
            except RecursionError as error:
                raise BrokenJson("is nested too deeply") from error
            except _NoValue as error:
                self._fail(str(error), self._at)
            except ValueError as error:
                raise BrokenJson("holds a whole number with more digits than can be read") from error
            else:
                # A number may go on in what was not read yet.
                whole = not isinstance(value, int | float) or end + _LONGEST_TOKEN < len(self._text)
                if whole or not self._more():
                    self._at = end
                    return value

    def shown(self) -> str:
        """Return the beginning of what comes next, for a message."""
        self.peek()
        if len(self._text) - self._at <= _SHOWN:
            self._more()
        try:
            text = json.dumps(self._json.raw_decode(self._text, self._at)[0])
        except (ValueError, RecursionError):
            text = self._text[self._at : self._at + _SHOWN + 1]
        return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"

    def end(self) -> None:
        """Make sure that nothing comes any more.

        Raises:
            BrokenJson: Something does.
        """
        if self.peek():
            self._fail("Extra data", self._at)

    def _key(self) -> str:
        if self.peek() != '"':
            self._fail("Expecting property name enclosed in double quotes", self._at)
        key = str(self.value())
        self._expect(":", "Expecting ':' delimiter")
        return key

    def _expect(self, sign: str, otherwise: str) -> None:
        if self.peek() != sign:
            self._fail(otherwise, self._at)
        self._at += 1

    def _more(self) -> bool:
        """Read on, as much as is held of what was not taken yet, and return whether there was more."""
        if self._ended:
            return False
        self._add(self._stream.read(max(_CHUNK, len(self._text) - self._at)))
        return True

    def _add(self, chunk: bytes) -> None:
        self._mark_here()
        held = len(self._decoder.getstate()[0])
        try:
            text = self._decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            place = self._bytes - held + error.start
            raise BrokenJson(f"is not UTF-8 text: byte {place:,} is {error.reason}") from error
        self._ended = not chunk
        self._bytes += len(chunk)
        self._text, self._at, self._mark = self._text[self._at :] + text, 0, 0

    def _mark_here(self) -> None:
        self._lines, self._columns = self._before(self._at)
        self._mark = self._at

    def _before(self, at: int) -> tuple[int, int]:
        breaks = self._text.count("\n", self._mark, at)
        if not breaks:
            return self._lines, self._columns + at - self._mark
        return self._lines + breaks, at - self._text.rfind("\n", self._mark, at) - 1

    def _fail(self, reason: str, at: int) -> NoReturn:
        lines, columns = self._before(at)
        raise BrokenJson(reason, (lines + 1, columns + 1))


def _refuse(constant: str) -> NoReturn:
    raise _NoValue(f"{constant} is not a JSON value")


def _end_of_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return at if found is None else found.end()
