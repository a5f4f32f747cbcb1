"""Rows of the files that benchmarks are published in, each with the line that it begins on.

Files that are named JSON hold an array, an object around an array, or one object on each line: all are read alike.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn, TypeGuard, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from kg_boundary.validation import in_plain_words
from kg_eval.questions.record import InvalidQuestions, Record

MAX_BYTES: Final = 500_000_000
"""How large a file may be."""

_SPACE: Final = re.compile(r"[ \t\r\n]*")


class PublishedRow(BaseModel):
    """A row of a published file; fields that nothing here needs are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", str_strip_whitespace=True)


R = TypeVar("R", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Row:
    """One value of a file, and the line that it begins on."""

    line: int
    value: object


def read_records(
    path: Path, kind: type[R], record_of: Callable[[R, int], Record], member: str = ""
) -> tuple[Record, ...]:
    """Return the questions of a file.

    Args:
        path: The file.
        kind: What a row must look like.
        record_of: Makes a question of a row and its number, which counts from 1.
        member: The member that holds the array, in files that are an object around it.

    Raises:
        InvalidQuestions: The file cannot be read, a row is wrong, two have one id, or there is none.
    """
    rows = read_rows(path, member)
    return numbered(path, ((row.line, record_of(validated(kind, row, path), n)) for n, row in enumerate(rows, start=1)))


def numbered(path: Path, records: Iterable[tuple[int, Record]]) -> tuple[Record, ...]:
    """Return questions whose ids all differ.

    Raises:
        InvalidQuestions: Two have one id, or there is no question.
    """
    found: dict[str, tuple[int, Record]] = {}
    for line, record in records:
        if record.id in found:
            first, _ = found[record.id]
            raise wrong(path, line, f"The id {record.id!r} is that of line {first} already; ids must differ.")
        found[record.id] = (line, record)
    if not found:
        raise InvalidQuestions(f"{path} holds no question.")
    return tuple(record for _, record in found.values())


def validated(kind: type[R], row: Row, path: Path) -> R:
    """Return a row as what it must look like.

    Raises:
        InvalidQuestions: It does not.
    """
    if not is_object(row.value):
        raise wrong(path, row.line, "A question is an object with named fields, and this is none.")
    try:
        return kind.model_validate(row.value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise wrong(path, row.line, f"{place or 'the row'}: {in_plain_words(first['msg'])}.") from error


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """Say whether a value of JSON is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[object]]:
    """Say whether a value of JSON is an array."""
    return isinstance(value, list)


def wrong(path: Path, line: int, what: str) -> InvalidQuestions:
    """Return the error that says what is wrong on a line of a file."""
    return InvalidQuestions(f"{path}, line {line}: {what}")


def read_rows(path: Path, member: str = "") -> Iterator[Row]:
    """Return the rows of an array, of an array inside an object, or of lines that are an object each.

    Raises:
        InvalidQuestions: The file cannot be read, or is no JSON from some line on.
    """
    return _Scanner(path, _text_of(path)).rows(member)


def _text_of(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InvalidQuestions(f"{path} is larger than {MAX_BYTES:,} bytes. Divide it, or take a sample.")
        content = path.read_bytes()
    except OSError as error:
        raise InvalidQuestions(f"{path} cannot be read: {error.strerror}.") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise wrong(path, content.count(b"\n", 0, error.start) + 1, "This is not text in UTF-8.") from error


class _Scanner:
    """Reads one JSON value after the other, and counts lines."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._text = text
        self._at = 0
        self._counted = 0
        self._line = 1
        self._decoder = json.JSONDecoder(parse_constant=_refuse_constant)

    def rows(self, member: str) -> Iterator[Row]:
        if self._peek() == "[":
            yield from self._elements()
            if self._peek():
                raise self._wrong("Something follows the end of the array")
            return
        first = self._value() if self._peek() else None
        if member and first is not None and is_object(first.value) and member in first.value:
            yield from self._inside(member)
            return
        while first is not None:
            yield first
            first = self._value() if self._peek() else None

    def _inside(self, member: str) -> Iterator[Row]:
        """Read the array that is a member of the only object."""
        found = re.search(rf'"{re.escape(member)}"\s*:\s*(?=\[)', self._text)
        if found is None:
            raise self._wrong(f"{member!r} is not an array")
        self._at, self._counted, self._line = found.end(), 0, 1
        yield from self._elements()

    def _elements(self) -> Iterator[Row]:
        self._at += 1
        if self._peek() == "]":
            self._at += 1
            return
        while True:
            yield self._value()
            mark = self._peek()
            if mark not in {",", "]"}:
                raise self._wrong("A comma or the end of the array is missing")
            self._at += 1
            if mark == "]":
                return

    def _value(self) -> Row:
        self._peek()
        line = self._line_of(self._at)
        try:
            value, self._at = self._decoder.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            self._at = error.pos
            raise self._wrong(f"This is not valid JSON ({error.msg})") from error
        except (ValueError, RecursionError) as error:
            raise wrong(self._path, line, f"This JSON cannot be used ({error}).") from error
        return Row(line, value)

    def _peek(self) -> str:
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found is not None else self._at
        return self._text[self._at : self._at + 1]

    def _line_of(self, place: int) -> int:
        self._line += self._text.count("\n", self._counted, place)
        self._counted = place
        return self._line

    def _wrong(self, what: str) -> InvalidQuestions:
        return wrong(self._path, self._line_of(self._at), f"{what}.")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")
