"""Questions of benchmarks with their right answers, and the rows of the files that hold them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeGuard, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from kg_agents.llm import AgentError
from kg_boundary.json_stream import BrokenJson, Json, JsonStream
from kg_boundary.regular_files import open_regular
from kg_boundary.shown import in_plain_words


class InvalidQuestions(AgentError):
    """A file of questions cannot be used; the text names the file, the line and what is wrong there."""


@dataclass(frozen=True, slots=True)
class Gold:
    """One right answer.

    Args:
        text: A name, number, date, `true` or `false`.
        id: The entity, where the file says which.
        aliases: Other accepted names.
    """

    text: str
    id: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All accepted names."""
        return self.text, *self.aliases


@dataclass(frozen=True, slots=True)
class Topic:
    """An entity that a question is about, with its name where the file gives one."""

    id: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """The relation that leads from the topic to the answers; what else the graph holds over it is right as well."""

    topic: str
    relation: str
    direction: Literal["in", "out"]


@dataclass(frozen=True, slots=True)
class Record:
    """One question.

    Args:
        id: What tells it from the others of its file.
        question: What is asked, as published.
        golds: The right answers; none where the file gives none.
        topics: The entities that it is about, where the file says so.
        kind: What sort of question it is: a template, or a name that the file has for it.
        group: The part of the benchmark that it belongs to, as the domain `Legal`.
        level: How hard it is, where the file says so.
        answerable: Whether the graph can answer it; where it cannot, to abstain is right.
        published: The texts that the published scoring script takes for right, where they are others.
        sparql: The query that gives the answers, where the file has one.
        edge: Where else right answers are found in the graph.
    """

    id: str
    question: str
    golds: tuple[Gold, ...]
    topics: tuple[Topic, ...] = ()
    kind: str = ""
    group: str = ""
    level: str = ""
    answerable: bool = True
    published: tuple[str, ...] = ()
    sparql: str = ""
    edge: Edge | None = None

    @property
    def scored(self) -> bool:
        """Whether anything tells a right answer from a wrong one."""
        return bool(self.golds) or not self.answerable


MAX_BYTES: Final = 500_000_000
"""How large a file may be."""


class PublishedRow(BaseModel):
    """A row of a published file; fields that nothing here needs are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", str_strip_whitespace=True)


class QuestionRow(PublishedRow):
    """A row that is a question."""

    def record(self, number: int) -> Record:
        """Return the question; rows count from 1."""
        raise NotImplementedError


R = TypeVar("R", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class FileRow:
    """One value of a file, and the line that it begins on."""

    line: int
    value: object


def read_records(path: Path, kind: type[QuestionRow], member: str = "") -> tuple[Record, ...]:
    """Return the questions of a file.

    Args:
        path: The file.
        kind: What a row must look like.
        member: The member that holds the array, in files that are an object around it.

    Raises:
        InvalidQuestions: The file cannot be read, a row is wrong, two have one id, or there is none.
    """
    rows = enumerate(read_rows(path, member), start=1)
    return numbered(path, ((row.line, validated(kind, row, path).record(number)) for number, row in rows))


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


def validated(kind: type[R], row: FileRow, path: Path) -> R:
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


def read_rows(path: Path, member: str = "") -> Iterator[FileRow]:
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


def _rows(stream: JsonStream, member: str) -> Iterator[FileRow]:
    if stream.peek() == "[":
        yield from _items(stream)
        stream.end()
        return
    if member and stream.peek() == "{":
        yield from _around(stream, member)
    while stream.peek():
        yield FileRow(stream.line, stream.value())


def _items(stream: JsonStream) -> Iterator[FileRow]:
    for _ in stream.items():
        yield FileRow(stream.line, stream.value())


def _around(stream: JsonStream, member: str) -> Iterator[FileRow]:
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
        yield FileRow(line, others)
