"""Questions as files hold them: the published benchmarks, one's own, and those that come with a graph."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field, StringConstraints

from kg_eval.questions.record import (
    Edge,
    FileRow,
    Gold,
    InvalidQuestions,
    PublishedRow,
    QuestionRow,
    Record,
    Topic,
    is_array,
    is_object,
    numbered,
    read_rows,
    validated,
    wrong,
)

Value: TypeAlias = bool | int | float | str


class PlainRow(QuestionRow):
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

    def record(self, number: int) -> Record:
        """See `QuestionRow`."""
        return Record(
            self.id or str(number),
            self.question,
            golds_of(self.answers, (), self.aliases),
            tuple(map(Topic, self.entities)),
            kind=self.kind,
            answerable=bool(self.answers),
        )


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


_TOPIC: Final = re.compile(r"\bw:E\d+\b")

Text = Annotated[str, StringConstraints(min_length=1)]


class SimpleRow(QuestionRow):
    """A row of SimpleQuestions: the edge that the question is about, and one of the right answers."""

    question: Text
    topic: Text
    relation: Text
    direction: Literal["in", "out"]
    answer: Text

    def record(self, number: int) -> Record:
        """See `QuestionRow`."""
        edge, golds = Edge(self.topic, self.relation, self.direction), (Gold(self.answer, self.answer),)
        return Record(str(number), self.question, golds, (Topic(self.topic),), kind=self.relation, edge=edge)


class WorldRow(QuestionRow):
    """A question about the fictional world, with the query that gives its answers and names what it is about."""

    id: Text
    question: Text
    kind: Text
    answers: tuple[Value, ...]
    answer_ids: tuple[str, ...] = ()
    aliases: tuple[tuple[str, ...], ...] = ()
    sparql: str = ""

    def record(self, number: int) -> Record:
        """See `QuestionRow`."""
        del number
        return Record(
            self.id,
            self.question,
            golds_of(self.answers, self.answer_ids, self.aliases),
            tuple(map(Topic, dict.fromkeys(_TOPIC.findall(self.sparql)))),
            kind=self.kind,
            answerable=bool(self.answers),
            sparql=self.sparql,
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


class QaldRow(QuestionRow):
    """A row of QALD-10: the answers by id or value, each with a name."""

    question: Text
    answer: dict[str, str]
    sparql: str = ""
    topics: Topics

    def record(self, number: int) -> Record:
        """Return a question; of a value that is no entity, the value counts and not the name beside it."""
        golds = tuple(
            Gold(name or key, key) if _ENTITY.fullmatch(key) else Gold(key)
            for key, name in self.answer.items()
            if key or name
        )
        published, sparql = tuple(self.answer.values()), self.sparql.strip()
        topics = topics_of(self.topics)
        return Record(str(number), self.question, golds, topics, published=published, sparql=sparql)


class CreakRow(QuestionRow):
    """A row of Creak: a sentence that is true or false."""

    sentence: Text
    label: Literal["true", "false"]
    ex_id: str = ""
    topics: Topics

    def record(self, number: int) -> Record:
        """See `QuestionRow`."""
        golds = (Gold(self.label),)
        return Record(self.ex_id or str(number), self.sentence, golds, topics_of(self.topics), kind=self.label)


class SlotRow(QuestionRow):
    """A row of T-REx or Zero-Shot RE: an entity, a mark and a relation, and what the slot holds; asked as published."""

    input: Annotated[str, StringConstraints(pattern=r"\S.*\[SEP\].*\S")]
    answer: Text
    alias: tuple[str, ...] = ()
    topics: Topics

    def record(self, number: int) -> Record:
        """See `QuestionRow`."""
        aliases = tuple(dict.fromkeys(alias for alias in self.alias if alias and alias != self.answer))
        relation, golds = self.input.rpartition(SEPARATOR)[2].strip(), (Gold(self.answer, aliases=aliases),)
        topics, published = topics_of(self.topics), (self.answer,)
        return Record(str(number), self.input, golds, topics, kind=relation, published=published)


class WebAnswer(PublishedRow):
    """An answer of WebQSP: an entity's name, else its argument."""

    AnswerArgument: str = ""
    EntityName: str | None = None


class WebParse(PublishedRow):
    """One reading of a question of WebQSP."""

    TopicEntityMid: str | None = None
    TopicEntityName: str | None = None
    Answers: tuple[WebAnswer, ...] = ()


class WebRow(QuestionRow):
    """A row of WebQSP, in either form: with parses, or with answers and topics beside the question."""

    RawQuestion: Text
    QuestionId: str = ""
    Parses: tuple[WebParse, ...] | None = None
    answer: tuple[str, ...] | None = None
    topics: Topics

    def record(self, number: int) -> Record:
        """Return a question; the answers of all its parses are right."""
        parses = self.Parses or ()
        named = {each.TopicEntityMid: each.TopicEntityName or "" for each in parses if each.TopicEntityMid}
        golds = [
            Gold(each.EntityName or each.AnswerArgument, each.AnswerArgument if each.EntityName else "")
            for parse in parses
            for each in parse.Answers
        ]
        golds += [Gold(text) for text in self.answer or ()]
        return Record(
            self.QuestionId or str(number),
            self.RawQuestion,
            tuple(dict.fromkeys(each for each in golds if each.text)),
            topics_of(self.topics or named),
        )


_BY_FIELD: Final[Mapping[str, type[QuestionRow]]] = {
    "sentence": CreakRow,
    "input": SlotRow,
    "RawQuestion": WebRow,
    "question": QaldRow,
}
"""The kinds of rows, by the field that tells which set one is of."""


def read_kgdata(path: Path) -> tuple[Record, ...]:
    """Read questions of KGdata; which set they are of follows from their fields.

    Raises:
        InvalidQuestions: A row is of none of the sets.
    """
    rows = enumerate(read_rows(path, "Questions"), start=1)
    return numbered(path, ((row.line, _record(row, path, number)) for number, row in rows))


def _record(row: FileRow, path: Path, number: int) -> Record:
    if is_object(row.value):
        for field, kind in _BY_FIELD.items():
            if field in row.value:
                return validated(kind, row, path).record(number)
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
