"""The forms in which QALD-10, Creak, T-REx, Zero-Shot RE and WebQSP are published.

Entities that a question is about stand in `qid_topic_entity` or `topic_entity`, as id and name. An id that says that it
is unknown is left out.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AliasChoices, BeforeValidator, Field, StringConstraints

from kg_eval.questions.reading import PublishedRow, read_records
from kg_eval.questions.record import Gold, Record, Topic

SEPARATOR: Final = "[SEP]"
UNKNOWN: Final = "UnknownQID"

Text = Annotated[str, StringConstraints(min_length=1)]
_ENTITY: Final = re.compile(r"[QPL]\d+|[mg]\.\w+")


def _some(value: object) -> object:
    """Take what is not there for nothing."""
    return {} if value is None else value


Topics = Annotated[
    dict[str, str],
    BeforeValidator(_some),
    Field(validation_alias=AliasChoices("qid_topic_entity", "topic_entity"), default_factory=dict),
]


def topics_of(named: Mapping[str, str]) -> tuple[Topic, ...]:
    """Return the entities of a question that have an id."""
    return tuple(Topic(entity, label) for entity, label in named.items() if entity and entity != UNKNOWN)


class QaldRow(PublishedRow):
    """A row of QALD-10: the answers by id or value, each with a name."""

    question: Text
    answer: dict[str, str]
    sparql: str = ""
    topics: Topics


class CreakRow(PublishedRow):
    """A row of Creak: a sentence that is true or false."""

    sentence: Text
    label: Literal["true", "false"]
    ex_id: str = ""
    topics: Topics


class SlotRow(PublishedRow):
    """A row of T-REx or Zero-Shot RE: an entity, a mark and a relation, and what the slot holds."""

    input: Annotated[str, StringConstraints(pattern=r"\S.*\[SEP\].*\S")]
    answer: Text
    alias: tuple[str, ...] = ()
    topics: Topics


class WebAnswer(PublishedRow):
    """An answer of WebQSP: an entity's name, else its argument."""

    AnswerArgument: str = ""
    EntityName: str | None = None


class WebParse(PublishedRow):
    """One reading of a question of WebQSP."""

    TopicEntityMid: str | None = None
    TopicEntityName: str | None = None
    Answers: tuple[WebAnswer, ...] = ()


class WebRow(PublishedRow):
    """A row of WebQSP, in either form: with parses, or with answers and topics beside the question."""

    RawQuestion: Text
    QuestionId: str = ""
    Parses: tuple[WebParse, ...] | None = None
    answer: tuple[str, ...] | None = None
    topics: Topics


def read_qald(path: Path) -> tuple[Record, ...]:
    """Read QALD-10."""
    return read_records(path, QaldRow, qald_record)


def read_creak(path: Path) -> tuple[Record, ...]:
    """Read Creak."""
    return read_records(path, CreakRow, creak_record)


def read_slots(path: Path) -> tuple[Record, ...]:
    """Read T-REx or Zero-Shot RE."""
    return read_records(path, SlotRow, slot_record)


def read_webqsp(path: Path) -> tuple[Record, ...]:
    """Read WebQSP."""
    return read_records(path, WebRow, web_record, member="Questions")


def qald_record(row: QaldRow, number: int) -> Record:
    """Return a question of QALD-10; of a value that is no entity, the value counts and not the name beside it."""
    golds = tuple(
        Gold(name or key, key) if _ENTITY.fullmatch(key) else Gold(key)
        for key, name in row.answer.items()
        if key or name
    )
    published = tuple(row.answer.values())
    return Record(
        str(number), row.question, golds, topics_of(row.topics), published=published, sparql=row.sparql.strip()
    )


def creak_record(row: CreakRow, number: int) -> Record:
    """Return a sentence of Creak."""
    return Record(row.ex_id or str(number), row.sentence, (Gold(row.label),), topics_of(row.topics), kind=row.label)


def slot_record(row: SlotRow, number: int) -> Record:
    """Return a question of T-REx or Zero-Shot RE, worded as published."""
    aliases = tuple(dict.fromkeys(alias for alias in row.alias if alias and alias != row.answer))
    relation = row.input.rpartition(SEPARATOR)[2].strip()
    gold = Gold(row.answer, aliases=aliases)
    return Record(str(number), row.input, (gold,), topics_of(row.topics), kind=relation, published=(row.answer,))


def web_record(row: WebRow, number: int) -> Record:
    """Return a question of WebQSP; the answers of all its parses are right."""
    parses = row.Parses or ()
    named = {each.TopicEntityMid: each.TopicEntityName or "" for each in parses if each.TopicEntityMid}
    golds = [
        Gold(each.EntityName or each.AnswerArgument, each.AnswerArgument if each.EntityName else "")
        for parse in parses
        for each in parse.Answers
    ]
    golds += [Gold(text) for text in row.answer or ()]
    return Record(
        row.QuestionId or str(number),
        row.RawQuestion,
        tuple(dict.fromkeys(each for each in golds if each.text)),
        topics_of(row.topics or named),
    )
