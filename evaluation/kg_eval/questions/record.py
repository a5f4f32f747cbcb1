"""One question of a benchmark with what is right, whatever file it came from."""

from dataclasses import dataclass
from typing import Literal

from kg_agents.llm import AgentError


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
