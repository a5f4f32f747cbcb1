"""Result models of the tools, the line grammar for facts, and cutting an answer to a token budget."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final, Generic, TypeAlias, TypedDict, TypeVar
from typing import Literal as Choice

from mcp.types import CallToolResult, InputRequiredResult, TextContent
from pydantic import BaseModel, ConfigDict, Field

from kg_adapters.calls import lacking
from kg_adapters.models import Count
from kg_adapters.prefixes import Prefixes
from kg_adapters.terms import RDF_LANG_STRING, XSD_STRING, BlankNode, Fact, Iri, Literal, Node, Term, Triple
from kg_boundary.shown import shown, shown_within
from kg_server.answers.values import unit_of
from kg_server.names import MAX_VALUE, Names, ends_of, in_graph, shown_datatype, terms_of

BYTES_PER_TOKEN: Final = 3

MOST_TOKENS: Final = 50_000
MOST_HOPS: Final = 4
"""The largest budget that an answer can be given."""


def token_count(text: str) -> int:
    """Return an upper estimate of the tokens in `text`.

    A third of its bytes in UTF-8: ids and digits cost a token for every two or three characters, words for four or
    more, and scripts beyond Latin about one for each character.
    """
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def fitting(lines: Iterable[str], max_tokens: int) -> int:
    """Return how many of the first lines fit into a budget; no line is made after the first that does not."""
    return sum(1 for _ in affordable(lines, max_tokens))


def affordable(lines: Iterable[str], max_tokens: int) -> Iterator[str]:
    """Yield the first lines that fit into a budget; no line is made after the first that does not."""
    room = max_tokens * BYTES_PER_TOKEN
    for line in lines:
        room -= len(line.encode()) + 1
        if room < 0:
            break
        yield line


Status: TypeAlias = Choice["ok", "empty", "truncated", "timeout"]

Verdict: TypeAlias = Choice["exact", "close", "value", "loose", "none"]
"""How well a text names something; see `kg_server.naming.entities`."""

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

    triples: list[list[str]] = Field(default=[], description="[head, relation, tail]")
    values: list[list[str]] = Field(default=[], description="[head, relation, value]")
    held: list[list[str]] | None = None
    labels: dict[str, str] = {}
    relations: dict[str, str] = {}
    outgoing: dict[str, int] = {}
    incoming: dict[str, int] = {}
    total: int = 0
    exact: bool | None = None
    cursor: str | None = None
    details: list[list[str]] | None = Field(
        default=None, description="[head, relation, tail, kind, number, property, value]"
    )


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

    Where one entity is meant, `card` has a row for each of its relations, `[direction, relation, count, tails…]`; of
    several texts `cards` has those of each such entity. `labels` has the labels of what they name.
    """

    match: Verdict
    matches: dict[str, Verdict] | None = None
    candidates: list[list[str]] = Field(
        description="[id, label, description, types, score, how matched, telling fact, text number]"
    )
    missing: str | None = None
    card: list[list[str]] | None = None
    cards: dict[str, list[list[str]]] | None = None
    held: list[list[str]] | None = None
    labels: dict[str, str] | None = None
    values: list[list[str]] | None = Field(
        default=None, description="[text, relation, how many have it, class, of how many, condition]"
    )


class FeaturesResult(Result):
    """Literal-valued attributes of one entity."""

    features: list[list[str]] = Field(default=[], description="[id, value, language or datatype]")
    labels: dict[str, str] | None = None
    relations: dict[str, str] = {}
    total: int = 0


class DegreeResult(Result):
    """Numbers of distinct neighbours."""

    neighbors: int = 0
    exact: bool = True
    outgoing: dict[str, int] = {}
    incoming: dict[str, int] = {}
    relations: dict[str, str] = {}


class ObserveResult(Result):
    """What lies around entities, by relation and direction, best first; what is only counted ends with the count."""

    groups: list[list[str]] = Field(description="[entity, relation, out/in, count, score, hop, far ends]")
    labels: dict[str, str]
    relations: dict[str, str]
    held: list[list[str]] | None = Field(default=None, description="what nodes without a name hold")
    found: int
    sampled: list[str]
    scorer: str


class SchemaResult(Result):
    """The definition of the graph; counts by id. Of an ontology, classes with their subclasses, and properties."""

    entities: int
    triples: int
    classes: dict[str, int]
    relations: dict[str, int]
    features: dict[str, int]
    labels: dict[str, str]
    prefixes: dict[str, str]
    tree: list[list[str]] | None = Field(default=None, description="[class or nothing, those below]")
    properties: list[list[str]] | None = Field(default=None, description="[property, class, ranges…]")
    notes: list[str] | None = None
    links: list[list[str]] | None = Field(default=None, description="[class, relation, class]")


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
    lines: tuple[str, ...] = ()

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


def located(answer: CallToolResult | InputRequiredResult, place: str) -> CallToolResult | InputRequiredResult:
    """Return an empty answer with the sentence on where it was asked in its summary; any other as it is."""
    match answer:
        case CallToolResult(
            content=[TextContent(text=text)], structured_content={"status": "empty", "summary": str(summary), **rest}
        ) if place:
            told = f"{place} {summary}" if summary.endswith(":") else f"{summary} {place}"
            return CallToolResult(
                content=[TextContent(type="text", text=f"{told}{text.removeprefix(summary)}")],
                structured_content={"status": "empty", "summary": told, **rest},
            )
        case _:
            return answer


@dataclass(frozen=True, slots=True)
class Over:
    """A relation or feature, whether it is walked from tail to head, and the graph of the fact, of several graphs."""

    relation: Iri
    backwards: bool = False
    graph: str = ""


Piece: TypeAlias = str | Node | Literal | Count | Over

Note: TypeAlias = tuple[str | Term | Over, ...]
"""A remark on an answer: texts, and terms that are shown with their labels."""


@dataclass(frozen=True, slots=True)
class Line:
    """One fact of an answer: what readers see, as pieces of one line, and what programs see, as cells of one row.

    A text is shown as it is; a node, relation or literal by `Names`, with its label in the line and its id in the row.

    Args:
        text: The pieces of the line.
        row: The cells of the row.
        facts: The facts that the line shows.
        marks: What separates names in the line, beside its columns (`set_apart`).
    """

    text: tuple[Piece, ...]
    row: tuple[Piece, ...] = ()
    facts: tuple[Fact, ...] = ()
    marks: str | None = field(default=None, kw_only=True)

    @property
    def rows(self) -> tuple[tuple[Piece, ...], ...]:
        """All rows of the line."""
        return (self.row,) if self.row else ()

    @property
    def stated(self) -> Iterable[Fact]:
        """The facts that the line states."""
        return self.facts

    @property
    def pieces(self) -> Iterator[Piece]:
        """The pieces of the line and of its rows."""
        return chain(self.text, *self.rows)

    def shown(self, names: Names, max_value: int = MAX_VALUE) -> str:
        """Return the line for readers, with values of at most so many characters."""
        parts: list[str] = []
        over = self.facts[0].relation if self.facts else None
        for piece in self.text:
            over = piece.relation if isinstance(piece, Over) else over
            parts.append(piece if isinstance(piece, str) else self.shown_piece(piece, names, max_value, over))
        return "".join(parts)

    def shown_piece(self, piece: Piece, names: Names, max_value: int, over: Iri | None) -> str:
        """Return a piece as readers see it; of a value, `over` is the relation before it."""
        match piece:
            case Literal():
                return names.value(piece, max_value, relation=over)
            case Iri() | BlankNode():
                return names.entity(piece, self.marks)
            case Over(relation, backwards, graph):
                return f"{'-' if backwards else ''}{names.relation(relation, self.marks)}{in_graph(graph)}"
            case _:
                return str(piece)


L = TypeVar("L", bound=Line)


class RowFields(TypedDict):
    """The fields that every answer with rows has: what nodes without a name hold, and the labels of all."""

    held: list[list[str]] | None
    labels: dict[str, str]
    relations: dict[str, str]


@dataclass(frozen=True, slots=True)
class AnswerRows(Generic[L]):
    """The lines of an answer, in both of its forms.

    Args:
        lines: The lines.
        names: The names of all that they name.
        max_value: The most characters of a value.
    """

    lines: Sequence[L]
    names: Names
    max_value: int = MAX_VALUE

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[L]:
        return iter(self.lines)

    def texts(self) -> tuple[str, ...]:
        """Return the lines for readers."""
        return tuple(line.shown(self.names, self.max_value) for line in self.lines)

    def cells(self) -> list[list[str]]:
        """Return the rows for programs."""
        return [[*map(self._cell, row), *_graph(row)] for line in self.lines for row in line.rows]

    def facts(self, kind: type[Fact]) -> list[list[str]]:
        """Return the triples, or the attributes, that the lines show, as rows of head, relation and tail."""
        return [self.names.row(fact) for line in self.lines for fact in line.facts if isinstance(fact, kind)]

    def fields(self) -> RowFields:
        """Return what nodes without a name hold beside what the lines state of it, and the labels of everything."""
        nodes: dict[Node, None] = {}
        relations: dict[Iri, None] = {}
        for line in self.lines:
            for fact in line.facts:
                nodes[fact.head] = relations[fact.relation] = None
                if isinstance(fact, Triple):
                    nodes[fact.tail] = None
            for piece in line.pieces:
                if isinstance(piece, Over):
                    relations[piece.relation] = None
                elif isinstance(piece, (Iri, BlankNode)):
                    nodes[piece] = None
        stated = {fact for line in self.lines for fact in line.stated} if self.names.held else set[Fact]()
        held = self.names.held_by(nodes, stated)
        return {
            "held": [self.names.row(fact) for fact in held] or None,
            "labels": self.names.entity_labels((*nodes, *ends_of(held))),
            "relations": self.names.relation_labels((*relations, *(fact.relation for fact in held))),
        }

    def _cell(self, piece: Piece) -> str:
        match piece:
            case str():
                return piece
            case Over():
                return f"{'-' if piece.backwards else ''}{self.names.relation_id(piece.relation)}"
            case Count():
                return str(piece.value)
            case Literal():
                return shown_within(piece.value, self.max_value)
            case _:
                return self.names.entity_id(piece)


def _graph(row: Iterable[Piece]) -> list[str]:
    """Return the cell with the graph that a row is from, in an answer over several."""
    return [piece.graph for piece in row if isinstance(piece, Over) and piece.graph]


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


def fitted_rows(rows: AnswerRows[L], build: Callable[[AnswerRows[L]], Answer], max_tokens: int) -> Answer:
    """Return the answer with as many of the first lines as its budget allows, at least one.

    Args:
        rows: The lines that may be shown, the most important first.
        build: Makes the answer that shows some lines.
        max_tokens: The budget of either form.
    """
    possible = 1 + fitting((line.shown(rows.names, rows.max_value) for line in rows), max_tokens)
    return fitted(lambda count: build(replace(rows, lines=rows.lines[:count])), min(possible, len(rows)), max_tokens)


def in_columns(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Return pieces as the columns of a line."""
    columns = [part for piece in pieces for part in (" | ", piece)]
    return tuple(columns[1:])


def terms_of_lines(lines: Iterable[Line]) -> Iterator[Node]:
    """Yield all terms that lines name, the units of their values too, with repeats."""
    for piece in chain.from_iterable((*line.pieces, *terms_of(line.facts)) for line in lines):
        match piece:
            case Iri() | BlankNode():
                yield piece
            case Over():
                yield piece.relation
            case Literal() if (unit := unit_of(piece)) is not None:
                yield unit
            case _:
                pass


def kind_of_value(value: Literal, prefixes: Prefixes) -> str:
    """Return the language of a value, or its datatype; nothing for a plain text."""
    plain = value.datatype in {XSD_STRING, RDF_LANG_STRING}
    return shown(value.language or "") or ("" if plain else shown_datatype(value.datatype, prefixes))
