"""Questions of one's own and those that come with a graph."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, StringConstraints

from kg_eval.questions.reading import PublishedRow, read_records
from kg_eval.questions.record import Edge, Gold, Record, Topic

Value: TypeAlias = bool | int | float | str


class PlainRow(BaseModel):
    """A question of one's own.

    Args:
        question: The question.
        answers: What is right; an empty list says that the graph cannot answer it.
        entities: What it is about, as ids, IRIs or names.
        id: What tells it from the others; its number by default.
        kind: What sort of question it is.
        aliases: Other accepted names, for each answer a list.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    question: Annotated[str, StringConstraints(min_length=1)]
    answers: tuple[Value, ...]
    entities: tuple[Annotated[str, StringConstraints(min_length=1)], ...] = ()
    id: Annotated[str, StringConstraints(min_length=1)] | None = None
    kind: str = ""
    aliases: tuple[tuple[str, ...], ...] = ()


def read_plain(path: Path) -> tuple[Record, ...]:
    """Read questions of one's own."""
    return read_records(path, PlainRow, _record)


def written(value: Value) -> str:
    """Return a value as text: `true`, `7`, `1.5`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def golds_of(answers: Sequence[Value], ids: Sequence[str], aliases: Sequence[Sequence[str]]) -> tuple[Gold, ...]:
    """Return right answers with their ids and aliases, as far as there are any."""
    return tuple(
        Gold(
            written(answer),
            ids[place] if place < len(ids) else "",
            tuple(aliases[place]) if place < len(aliases) else (),
        )
        for place, answer in enumerate(answers)
    )


def _record(row: PlainRow, number: int) -> Record:
    return Record(
        row.id or str(number),
        row.question,
        golds_of(row.answers, (), row.aliases),
        tuple(map(Topic, row.entities)),
        kind=row.kind,
        answerable=bool(row.answers),
    )


_TOPIC: Final = re.compile(r"\bw:E\d+\b")

Text = Annotated[str, StringConstraints(min_length=1)]


class SimpleRow(PublishedRow):
    """A row of SimpleQuestions: the edge that the question is about, and one of the right answers."""

    question: Text
    topic: Text
    relation: Text
    direction: Literal["in", "out"]
    answer: Text


class WorldRow(PublishedRow):
    """A question about the fictional world, with the query that gives its answers."""

    id: Text
    question: Text
    kind: Text
    answers: tuple[Value, ...]
    answer_ids: tuple[str, ...] = ()
    aliases: tuple[tuple[str, ...], ...] = ()
    sparql: str = ""


def read_simple(path: Path) -> tuple[Record, ...]:
    """Read SimpleQuestions."""
    return read_records(path, SimpleRow, _simple_record)


def read_world(path: Path) -> tuple[Record, ...]:
    """Read the questions about the fictional world; they are about the entities that their queries name."""
    return read_records(path, WorldRow, _world_record)


def _simple_record(row: SimpleRow, number: int) -> Record:
    edge = Edge(row.topic, row.relation, row.direction)
    return Record(
        str(number), row.question, (Gold(row.answer, row.answer),), (Topic(row.topic),), kind=row.relation, edge=edge
    )


def _world_record(row: WorldRow, number: int) -> Record:
    del number
    named = dict.fromkeys(_TOPIC.findall(row.sparql))
    return Record(
        row.id,
        row.question,
        golds_of(row.answers, row.answer_ids, row.aliases),
        tuple(map(Topic, named)),
        kind=row.kind,
        answerable=bool(row.answers),
        sparql=row.sparql,
    )
