"""Rows of the files that benchmarks are published in, each with the line that it begins on.

Files that are named JSON hold an array, an object around an array, or one object on each line: all are read alike.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeGuard, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from kg_boundary.json_stream import BrokenJson, Json, JsonStream
from kg_boundary.regular_files import open_regular
from kg_boundary.validation import in_plain_words
from kg_eval.questions.record import InvalidQuestions, Record

MAX_BYTES: Final = 500_000_000
"""How large a file may be."""


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
    """Yield the rows of an array, of an array inside an object, or of lines that are an object each.

    Raises:
        InvalidQuestions: The file cannot be read, or is no JSON from some line on.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InvalidQuestions(f"{path} is larger than {MAX_BYTES:,} bytes. Divide it, or take a sample.")
        with open_regular(path) as file:
            yield from _rows(JsonStream(file, strict=True), member)
    except OSError as error:
        raise InvalidQuestions(f"{path} cannot be read: {error.strerror}.") from error
    except BrokenJson as error:
        raise InvalidQuestions(f"{error.told(str(path))}.") from error


def _rows(stream: JsonStream, member: str) -> Iterator[Row]:
    if stream.peek() == "[":
        yield from _items(stream)
        stream.end()
        return
    if member and stream.peek() == "{":
        yield from _around(stream, member)
    while stream.peek():
        yield Row(stream.line, stream.value())


def _items(stream: JsonStream) -> Iterator[Row]:
    for _ in stream.items():
        yield Row(stream.line, stream.value())


def _around(stream: JsonStream, member: str) -> Iterator[Row]:
    """Yield the rows of the array that is a member of an object; the object itself where it has no such member."""
    line, others = stream.line, dict[str, Json]()
    inside = False
    for key in stream.members():
        if key == member:
            inside = True
            yield from _items(stream)
        else:
            others[key] = stream.value()
    if not inside:
        yield Row(line, others)
