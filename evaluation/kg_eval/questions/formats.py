"""Questions as files hold them: the published benchmarks, one's own, and those that come with a graph."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from kg_eval.questions.record import (
    Edge,
    FileRow,
    Gold,
    InvalidQuestions,
    PublishedRow,
    Record,
    Topic,
    is_array,
    is_object,
    numbered,
    read_records,
    read_rows,
    validated,
    wrong,
)

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
    return read_records(path, PlainRow, _own_record)


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


def _own_record(row: PlainRow, number: int) -> Record:
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


SEPARATOR: Final = "[SEP]"
UNKNOWN: Final = "UnknownQID"

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


_BY_FIELD: Final[Mapping[str, Callable[[FileRow, Path, int], Record]]] = {
    "sentence": lambda row, path, number: creak_record(validated(CreakRow, row, path), number),
    "input": lambda row, path, number: slot_record(validated(SlotRow, row, path), number),
    "RawQuestion": lambda row, path, number: web_record(validated(WebRow, row, path), number),
    "question": lambda row, path, number: qald_record(validated(QaldRow, row, path), number),
}
"""What makes a question of a row, by the field that tells which set it is of."""


def read_kgdata(path: Path) -> tuple[Record, ...]:
    """Read questions of KGdata; which set they are of follows from their fields.

    Raises:
        InvalidQuestions: A row is of none of the sets.
    """
    rows = enumerate(read_rows(path, "Questions"), start=1)
    return numbered(path, ((row.line, _record(row, path, number)) for number, row in rows))


def _record(row: FileRow, path: Path, number: int) -> Record:
    if is_object(row.value):
        for field, record_of in _BY_FIELD.items():
            if field in row.value:
                return record_of(row, path, number)
    raise wrong(path, row.line, f"A row has one of the fields {', '.join(_BY_FIELD)}, and this one has none.")


DOMAINS: Final[Mapping[str, str]] = {
    "amazon": "E-commerce",
    "biomedical": "Healthcare",
    "dblp": "Academic",
    "goodreads": "Literature",
    "legal": "Legal",
    "maple": "Academic",
}
"""The domain of the papers' tables, by the graph that a file is about."""

ACADEMIC: Final = ("Academic", 6)
"""The domain of several graphs, and how many: dblp and five fields of maple."""

_ENDINGS: Final = {".json", ".jsonl"}
_BETWEEN: Final = ", "
"""What stands between right answers, also within a name that holds commas."""
_OF_TEMPLATE: Final = 10
"""How many questions follow one template."""


def _joined(value: object) -> object:
    """Join the parts of a list, as the published scoring does."""
    parts = value if is_array(value) else [value]
    texts = [written(each) for each in parts if isinstance(each, str | int | float)]
    return _BETWEEN.join(texts) if len(texts) == len(parts) else None


class GrRow(PublishedRow):
    """A row of GRBench; `level` stands in one of its two releases."""

    qid: Annotated[str, BeforeValidator(_joined), StringConstraints(pattern=r"^\d{1,9}$")]
    question: Annotated[str, StringConstraints(min_length=1)]
    answer: Annotated[str, BeforeValidator(_joined)]
    level: str = ""


def read_grbench(path: Path) -> tuple[Record, ...]:
    """Read one file of GRBench, or all in a folder; of what graph a file is follows from its path.

    Raises:
        InvalidQuestions: There is no file, or the path names no graph of GRBench.
    """
    files = sorted(each for each in path.rglob("*") if each.suffix in _ENDINGS) if path.is_dir() else [path]
    return numbered(path, (found for file in files for found in _records(file)))


def _records(path: Path) -> Iterator[tuple[int, Record]]:
    graph = _graph_of(path)
    for row in read_rows(path):
        found = validated(GrRow, row, path)
        yield (
            row.line,
            Record(
                f"{graph}:{found.qid}",
                found.question,
                tuple(map(Gold, filter(None, found.answer.split(_BETWEEN)))),
                kind=f"{graph}:{int(found.qid) // _OF_TEMPLATE}",
                group=DOMAINS[graph.partition("-")[0]],
                level=found.level,
            ),
        )


def _graph_of(path: Path) -> str:
    """Return the graph that a file is about, as `legal` or `maple-biology`."""
    parts = [path.stem, *(each.name for each in path.parents)][:3]
    for depth, part in enumerate(map(str.lower, parts)):
        name = part.partition("-")[0].partition("_")[0]
        if name in DOMAINS and name in {part, "maple"}:
            field = parts[depth - 1].lower() if part == "maple" and depth else ""
            return f"maple-{field}" if field and field != "data" else part
    raise InvalidQuestions(
        f"{path} is in no folder and has no name of a graph of GRBench. Name it as one of {', '.join(DOMAINS)}."
    )
