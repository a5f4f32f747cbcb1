"""Questions that come with a graph: SimpleQuestions over Wikidata, and those about the fictional world."""

import re
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import StringConstraints

from kg_eval.questions.plain import Value, golds_of
from kg_eval.questions.reading import PublishedRow, read_records
from kg_eval.questions.record import Edge, Gold, Record, Topic

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
