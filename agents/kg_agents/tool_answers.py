"""From the structured answers of tools to values, checked."""

from collections.abc import Sequence
from typing import Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from kg_agents.graph_values import Candidate, Group, Labels, Remembered, Triple
from kg_agents.tool_calls import ToolCall, UnreadableAnswer

COUNTED, GROUP = 4, 6
"""How many columns a group has that is only counted, and how many before the far ends."""
ROW: Final = 3
"""How many columns a triple has; what follows it in a row says more about it."""


class Answer(BaseModel):
    """What every tool's structured answer says; other servers may say more."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    status: str = "ok"
    summary: str = ""
    labels: dict[str, str] = {}
    relations: dict[str, str] = {}


class ObservedAnswer(Answer):
    """Rows of entity, relation, direction, count, score, hop, and far ends; what is only counted ends there."""

    groups: list[list[str]]


class TriplesAnswer(Answer):
    """Triples as rows, and how many there are by relation in either direction."""

    triples: list[list[str]]
    values: list[list[str]] = []
    held: list[list[str]] = []
    outgoing: dict[str, int] = {}
    incoming: dict[str, int] = {}


class PathsAnswer(Answer):
    """Paths as lists of triples."""

    paths: list[list[list[str]]]


class CandidatesAnswer(Answer):
    """Rows of id, label, description, types, score, how it matched, telling fact, and the number of the text."""

    match: str = "none"
    matches: dict[str, str] = {}
    candidates: list[list[str]]


class FactsAnswer(Answer):
    """Rows of path, head, relation, tail, and whether it is verified."""

    memory: str = ""
    facts: list[list[str]]
    refused: list[str] = []
    cursor: str | None = None


class ComparedAnswer(Answer):
    """How like a question each of some texts is."""

    cosines: list[float]


class ComposedAnswer(Answer):
    """The rows of a compound expression."""

    parts: list[list[str]] = []
    results: list[list[str]] = []
    steps: list[list[str]] = []
    evidence: list[list[str]] = []
    knowledge: str = ""


A = TypeVar("A", bound=Answer)


def remembered_of(call: ToolCall, memory: str) -> Remembered:
    """Return what a memory tool says of a memory."""
    answer = read(FactsAnswer, call)
    facts = tuple((int(row[0]), triple_of(row[1:])) for row in answer.facts if len(row) > ROW and row[0].isdecimal())
    unverified = frozenset(triple_of(row[1:]) for row in answer.facts if row[-1:] == ["unverified"])
    return Remembered(
        answer.memory or memory,
        facts,
        tuple(answer.refused),
        labels_of(answer),
        call.text,
        answer.cursor or "",
        unverified,
    )


def read(kind: type[A], call: ToolCall) -> A:
    """Return the structured answer of a call.

    Raises:
        UnreadableAnswer: It has another form.
    """
    try:
        return kind.model_validate(call.data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise UnreadableAnswer(
            f"{call.tool} answered in a form that is not known here ({place}: {first['msg']}). "
            "Connect a server with the same tools as kg-sextant."
        ) from error


def candidate_of(row: Sequence[str]) -> Candidate:
    """Return the entity that a row describes, which has as many columns as `CandidatesAnswer` says but the last."""
    entity, label, description, types, score, matched, fact = row[:7]
    return Candidate(entity, label, description, score_of(score), matched, types, fact)


def group_of(row: Sequence[str]) -> Group:
    """Return the group that a row describes.

    Raises:
        UnreadableAnswer: The row is too short.
    """
    if len(row) < COUNTED:
        raise UnreadableAnswer(f"A group of the answer has {len(row)} parts instead of at least {COUNTED}.")
    entity, relation, direction, count, score, _, *far = (*row, "", "")[: max(GROUP, len(row))]
    return Group(entity, relation, direction == "in", tuple(far), score_of(score), int(score_of(count)))


def triple_of(row: Sequence[str]) -> Triple:
    """Return the triple that a row begins with.

    Raises:
        UnreadableAnswer: The row is too short.
    """
    if len(row) < ROW:
        raise UnreadableAnswer(f"A triple of the answer has {len(row)} parts instead of three.")
    return row[0], row[1], row[2]


def labels_of(answer: Answer) -> Labels:
    """Return the labels that come with an answer."""
    return Labels(answer.labels, answer.relations)


def score_of(text: str) -> float:
    """Return a score that is written as text; 0 where it is none."""
    try:
        return float(text)
    except ValueError:
        return 0.0
