"""What an extraction notes on disk: what was asked for, and each answer as it came."""

from typing import Annotated, Final, TypeAlias
from typing import Literal as Choice

from pydantic import BaseModel, ConfigDict, Field

from kg_adapters.labels import Vocabulary
from kg_adapters.local.store import SourceFile
from kg_adapters.prefixes import Prefixes

MAX_HOPS: Final = 10
MAX_BATCH: Final = 1_000

ValueChoice: TypeAlias = Choice["all", "inner", "none"]
"""Whose literals are taken: everybody's, those of all entities but the ones of the last hop, or nobody's."""

Row: TypeAlias = tuple[str, str, str]
"""A triple: the `node_key` of its head, its relation's IRI, the `node_key` of its tail."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Bounds(_Record):
    """How far an extraction goes.

    Args:
        hops: How many edges lie between an entity that was named and the farthest that is taken.
        per_relation: The most triples of one entity over one relation in one direction.
        max_degree: The most triples of one entity. One that has more is a hub: its triples are left out, unless it was
            named itself.
        batch: How many entities one request is about.
    """

    hops: Annotated[int, Field(ge=1, le=MAX_HOPS)] = 3
    per_relation: Annotated[int, Field(ge=1)] = 200
    max_degree: Annotated[int, Field(ge=1)] = 1_000
    batch: Annotated[int, Field(ge=1, le=MAX_BATCH)] = 100


class Request(_Record):
    """What is to be extracted; two runs with the same request go on with the same work.

    Args:
        graph: The name under which the graph is opened.
        bounds: How far to go.
        source: The file that names the entities.
        fields: The fields of its JSON lines that hold ids.
    """

    graph: str
    bounds: Bounds
    source: SourceFile
    fields: tuple[str, ...]


class Unknown(_Record):
    """A line of the file that names no entity of the graph, and why."""

    line: int
    text: str
    reason: str


class Plan(_Record):
    """What an extraction goes by from its start to its end.

    Args:
        request: What was asked for.
        seeds: The `node_key` of every entity that was named, sorted.
        unknown: The lines that name none.
        prefixes: The short forms of the graph's IRIs.
        vocabulary: The relations that name, describe and type its entities.
    """

    request: Request
    seeds: tuple[str, ...]
    unknown: tuple[Unknown, ...]
    prefixes: Prefixes
    vocabulary: Vocabulary


class Answer(_Record):
    """What came of one batch.

    Args:
        asked: The `node_key` of everything that it was about.
    """

    asked: tuple[str, ...]


class Cut(_Record):
    """An entity of whose triples some or all were left out.

    Args:
        node: Its `node_key`.
        total: How many triples there are around it, or at least are.
        exact: Whether there are exactly so many.
        hub: Whether all were left out.
    """

    node: str
    total: int
    exact: bool
    hub: bool


class Look(Answer):
    """The triples around a batch of entities."""

    triples: tuple[Row, ...]
    cut: tuple[Cut, ...]


class Value(_Record):
    """A literal that the graph states of a term."""

    term: str
    relation: str
    value: str
    datatype: str
    language: str | None


class Values(Answer):
    """The literals of a batch of terms, and how many more, or at least more, there are."""

    values: tuple[Value, ...]
    left_out: int
    exact: bool


class Text(_Record):
    """What a term is called and described as."""

    term: str
    label: str | None
    description: str | None


class Texts(Answer):
    """What the terms of a batch are called and described as; nothing of those without either."""

    texts: tuple[Text, ...]
