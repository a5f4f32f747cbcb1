"""What the tools answer: flat models for programs, and one line per fact for readers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal as Choice
from typing import TypeAlias

from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel, ConfigDict, Field

from kg_adapters.partial import lacking
from kg_server.budget import token_count

Status: TypeAlias = Choice["ok", "empty", "truncated", "timeout"]
Verdict: TypeAlias = Choice["exact", "close", "loose", "none"]
"""How well a text names something; see `kg_server.identity`."""

Knowledge: TypeAlias = Choice["stated", "denied", "unknown", "unnamed"]
"""What an answer rests on: the graph says this; the graph says no; it does not know; you meant something not in it."""


def knowledge_of(found: Mapping[str, object]) -> Knowledge:
    """Return what an answer says by its status alone: what is there is stated, what is not is not known."""
    return "stated" if found.get("status") in {"ok", "truncated"} else "unknown"


class Result(BaseModel):
    """What every tool's answer says about itself; `read` holds the ids that names in the call were read as."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    status: Status
    knowledge: Knowledge = Field(default_factory=knowledge_of)
    summary: str
    read: dict[str, str] | None = None


class NeighborsResult(Result):
    """Triples around one entity as rows of ids, and its values; `held` is what nodes without a name hold."""

    triples: list[list[str]] = Field(description="[head, relation, tail]")
    values: list[list[str]] = Field(default=[], description="[head, relation, value]")
    held: list[list[str]] | None = None
    labels: dict[str, str]
    relations: dict[str, str]
    outgoing: dict[str, int]
    incoming: dict[str, int]
    total: int
    cursor: str | None = None


class PathsResult(Result):
    """Paths between two entities, each a list of triples in walking order; `held` is what nodes without a name hold."""

    paths: list[list[list[str]]] = Field(description="[head, relation, tail]")
    held: list[list[str]] | None = None
    labels: dict[str, str]
    relations: dict[str, str]
    total: int
    exhaustive: bool
    skipped_hubs: list[str]


class CandidatesResult(Result):
    """What texts name: the weakest verdict, the verdict on each of several, and who is meant or near, best first.

    Where one entity is meant, `card` has a row for each of its relations, `[direction, relation, count, tails…]`, and
    `labels` the labels of what they name.
    """

    match: Verdict
    matches: dict[str, Verdict] | None = None
    candidates: list[list[str]] = Field(
        description="[id, label, description, types, score, how matched, telling fact, text number]"
    )
    missing: str | None = None
    card: list[list[str]] | None = None
    held: list[list[str]] | None = None
    labels: dict[str, str] | None = None


class FeaturesResult(Result):
    """Literal-valued attributes of one entity."""

    features: list[list[str]] = Field(description="[id, value, language or datatype]")
    labels: dict[str, str] | None = None
    relations: dict[str, str]
    total: int


class DegreeResult(Result):
    """Numbers of distinct neighbours."""

    neighbors: int
    exact: bool
    outgoing: dict[str, int]
    incoming: dict[str, int]
    relations: dict[str, str]


class SchemaResult(Result):
    """The definition of the graph; counts by id."""

    entities: int
    triples: int
    classes: dict[str, int]
    relations: dict[str, int]
    features: dict[str, int]
    labels: dict[str, str]
    prefixes: dict[str, str]


class SparqlResult(Result):
    """Rows of a SPARQL query; an unbound variable is an empty text."""

    variables: list[str]
    rows: list[list[str]]
    held: list[list[str]] | None = None
    labels: dict[str, str]
    relations: dict[str, str] | None = None
    truth: bool | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer in its two forms: a model for programs, lines for readers."""

    result: Result
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The form for readers: a line that sums up, then one line per fact."""
        return "\n".join((self.result.summary, *self.lines))

    @property
    def tokens(self) -> int:
        """The budget that the longer form takes."""
        return max(token_count(self.text), token_count(self.result.model_dump_json(exclude_none=True)))

    def to_mcp(self) -> CallToolResult:
        """Return both forms as MCP carries them, with what the call had no time for."""
        summary = f"{self.result.summary} {lacking()}".rstrip()
        return CallToolResult(
            content=[TextContent(type="text", text="\n".join((summary, *self.lines)))],
            structured_content={**self.result.model_dump(exclude_none=True), "summary": summary},
        )


def fitted(build: Callable[[int], Answer], most: int, max_tokens: int) -> Answer:
    """Return the answer with as many items as its budget allows, at least one.

    Args:
        build: Makes the answer that shows the first so many items.
        most: How many items there are.
        max_tokens: The budget of either form.
    """
    count = most
    while True:
        answer = build(count)
        tokens = answer.tokens
        if count <= 1 or tokens <= max_tokens:
            return answer
        count = max(1, min(count - 1, count * max_tokens // tokens))
