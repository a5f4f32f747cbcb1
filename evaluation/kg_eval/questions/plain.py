"""Questions of one's own: a JSON object on each line, with `question`, `answers` and perhaps `entities`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, StringConstraints

from kg_eval.questions.reading import read_records
from kg_eval.questions.record import Gold, Record, Topic

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
