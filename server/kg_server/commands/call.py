"""`kg-sextant call`: make one tool call, print its answer in a format, and complete its arguments in a shell."""

import csv
import difflib
import io
import json
import re
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import typer
from pydantic import BaseModel, ConfigDict, Field

from kg_adapters.errors import InvalidRequest, KGError
from kg_boundary.regular_files import open_regular, parsed
from kg_boundary.shown import in_quotes, json_text
from kg_server.commands.invocation import CacheFolderOption, GraphOption, Invocation, invocation
from kg_server.commands.output import ExitCode, say, warn
from kg_server.settings import Settings

if TYPE_CHECKING:
    from mcp.types import CallToolResult, Tool

    from kg_adapters.protocol import KGAdapter


Output: TypeAlias = Literal["text", "json", "csv", "tsv", "markdown"]

Rows: TypeAlias = list[list[str]]

_TRIPLE: Final = ("head", "relation", "tail")

_NUMBER: Final = re.compile(r"[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?")

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")

_MARKUP: Final = str.maketrans(
    {**{mark: f"\\{mark}" for mark in "\\`|[]"}, "&": "&amp;", "<": "&lt;", ">": "&gt;", "\n": " "}
)


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """Rows of cells under a header.

    Args:
        header: The names of the columns.
        rows: The cells, ids and values; as many in each row as in the header.
        labels: What ids are called.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    labels: Mapping[str, str] = field(default_factory=dict[str, str])

    def named(self) -> "PrintedTable":
        """Return the table with `label (id)` in place of each id that has a label."""
        rows = tuple(
            tuple(f"{self.labels[cell]} ({cell})" if cell in self.labels else cell for cell in row) for row in self.rows
        )
        return PrintedTable(self.header, rows)

    def with_labels(self) -> "PrintedTable":
        """Return the table with a column of labels behind each column in which some cell has one."""
        labelled = [any(row[place] in self.labels for row in self.rows) for place in range(len(self.header))]
        header = [
            each
            for name, more in zip(self.header, labelled, strict=True)
            for each in ((name, f"{name} label") if more else (name,))
        ]
        rows = tuple(
            tuple(
                each
                for cell, more in zip(row, labelled, strict=True)
                for each in ((cell, self.labels.get(cell, "")) if more else (cell,))
            )
            for row in self.rows
        )
        return PrintedTable(tuple(header), rows)


class _Answer(BaseModel):
    """The parts of structured answers that are rows, or counts by id."""

    model_config = ConfigDict(extra="ignore")

    variables: list[str] | None = None
    rows: Rows = []
    truth: bool | None = None
    triples: Rows | dict[str, int] | int | None = None
    values: Rows = []
    paths: list[Rows] | None = None
    candidates: Rows | None = None
    features: Rows | dict[str, int] | None = None
    groups: Rows | None = None
    results: Rows | None = None
    facts: Rows | None = None
    neighbors: int | None = None
    outgoing: dict[str, int] = {}
    incoming: dict[str, int] = {}
    classes: dict[str, int] | None = None
    relations: dict[str, str] | dict[str, int] = {}
    labels: dict[str, str] | None = None


def table_of(structured: Mapping[str, object] | None) -> PrintedTable:
    """Return the structured answer of a tool as a table; one without columns where it holds no rows."""
    answer = _Answer.model_validate(structured or {})
    names = {name: text for name, text in answer.relations.items() if isinstance(text, str)}
    none: tuple[tuple[str, ...], Rows] = ((), [])
    header, rows = next(((header, rows) for header, rows in _choices(answer) if rows is not None), none)
    wide = len(header)
    whole = tuple((*row[:wide], *[""] * (wide - len(row))) for row in rows)
    return PrintedTable(header, whole, {**names, **(answer.labels or {})})


def _choices(answer: _Answer) -> Iterator[tuple[tuple[str, ...], Rows | None]]:
    if answer.truth is not None:
        yield ("answer",), [[str(answer.truth).lower()]]
    yield tuple(answer.variables or ()), answer.rows if answer.variables is not None else None
    yield _TRIPLE, [*answer.triples, *answer.values] if isinstance(answer.triples, list) else None
    yield ("path", "step", *_TRIPLE), _steps(answer.paths)
    yield ("id", "label", "description", "types", "score", "match", "fact", "text"), answer.candidates
    yield ("feature", "value", "type"), answer.features if isinstance(answer.features, list) else None
    yield ("entity", "relation", "direction", "count", "score", "hop", "far ends"), _joined(answer.groups)
    yield ("part", "node", "relation", "result", "type"), answer.results
    yield ("path", *_TRIPLE, "verified"), answer.facts
    yield ("direction", "relation", "count"), _degrees(answer)
    yield ("kind", "id", "count"), _schema(answer)


def _steps(paths: Sequence[Rows] | None) -> Rows | None:
    if paths is None:
        return None
    return [
        [str(number), str(step), *triple]
        for number, path in enumerate(paths, start=1)
        for step, triple in enumerate(path, start=1)
    ]


def _joined(groups: Rows | None) -> Rows | None:
    """Put all far ends of a group into one cell."""
    return None if groups is None else [[*group[:6], " ".join(group[6:])] for group in groups]


def _degrees(answer: _Answer) -> Rows | None:
    if answer.neighbors is None:
        return None
    tables = (("out", answer.outgoing), ("in", answer.incoming))
    return [[way, relation, str(count)] for way, counts in tables for relation, count in counts.items()]


def _schema(answer: _Answer) -> Rows | None:
    if answer.classes is None:
        return None
    features = answer.features if isinstance(answer.features, dict) else {}
    kinds = (("class", answer.classes), ("relation", answer.relations), ("feature", features))
    return [[kind, each, str(count)] for kind, counts in kinds for each, count in counts.items()]


def _separated(table: PrintedTable, delimiter: str) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    rows = (table.header, *table.rows) if table.header else ()
    writer.writerows(map(_inert, row) for row in rows)
    return out.getvalue().rstrip("\n")


def _inert(cell: str) -> str:
    """Return a cell that no spreadsheet computes: what begins like a formula and is no number has an apostrophe."""
    return f"'{cell}" if cell.startswith(_FORMULA) and _NUMBER.fullmatch(cell) is None else cell


def _markdown(table: PrintedTable) -> str:
    rows = (table.header, ("---",) * len(table.header), *table.rows)
    lines = ["| " + " | ".join(cell.translate(_MARKUP) for cell in row) + " |" for row in rows]
    return "\n".join(lines) if table.header else ""


WRITERS: Final[Mapping[Literal["csv", "tsv", "markdown"], Callable[[PrintedTable], str]]] = {
    "csv": lambda table: _separated(table.with_labels(), ","),
    "tsv": lambda table: _separated(table.with_labels(), "\t"),
    "markdown": lambda table: _markdown(table.named()),
}
"""How a table is written, by form."""

ENTITIES: Final = frozenset({"entity", "entities", "source", "target", "text"})
"""Arguments whose values are entities."""

MOST: Final = 10

_SPECIAL: Final = re.compile(r"[^\w.,:/@%+=-]")

LEAST_LETTERS: Final = 2

COMPLETING: Final = "_KG_SEXTANT_COMPLETE"
"""The variable by which a shell asks for completion, with its name."""


def complete_tool(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the tools whose names begin like this, each with what it answers."""
    import anyio

    async def listed() -> list[tuple[str, str]]:
        async with _asked(context) as (_, tools):
            folded = incomplete.casefold()
            return [(tool.name, first_line(tool)) for tool in tools if tool.name.casefold().startswith(folded)]

    try:
        return anyio.run(listed)
    except (KGError, OSError):
        return []


def complete_argument(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return arguments of the tool, as `entity=`, or entities whose names or ids begin like the value."""
    import anyio

    written: list[str] | None = context.params.get("arguments")
    before, key, value = _place(written or [], incomplete)

    async def found() -> list[tuple[str, str]]:
        async with _asked(context) as (graph, tools):
            if key in ENTITIES:
                # Bash takes `=` for the end of a word, other shells do not: they get back what they gave.
                start = f"{key}=" if "=" in incomplete else ""
                escaped = _escaping(context)
                return [(f"{start}{escaped(name)}", about) for name, about in await entities_like(graph, value)]
            names = argument_names(tools, str(context.params.get("tool")))
            offered = [f"{name}=" for name in names if name.startswith(incomplete) and name not in before]
            if len(offered) == 1 and _shell(context) in {"bash", "zsh"}:
                # Behind the only word that fits, these would write a blank.
                offered.append(f"{offered[0]}VALUE")
            return [(each, "") for each in offered]

    try:
        return anyio.run(found)
    except (KGError, OSError):
        return []


def argument_names(tools: "Sequence[Tool]", name: str) -> list[str]:
    """Return the arguments of a tool; none where there is no such tool."""
    schemas = [tool.input_schema for tool in tools if tool.name.casefold() == name.casefold()]
    return [argument for schema in schemas for argument in schema.get("properties", {})]


async def entities_like(graph: "KGAdapter", start: str) -> list[tuple[str, str]]:
    """Return names, or ids, of entities that begin like this, each with what tells it apart."""
    if len(start) < LEAST_LETTERS:
        return []
    candidates = await graph.search(start, limit=5 * MOST)
    described = await graph.describe([candidate.entity for candidate in candidates])
    found: dict[str, str] = {}
    for candidate in candidates:
        what = described[candidate.entity]
        id_ = graph.prefixes.shorten(candidate.entity)
        for text in (what.label or "", candidate.matched_text, id_):
            if text.casefold().startswith(start.casefold()):
                found.setdefault(text, what.description or id_)
                break
    return list(found.items())[:MOST]


def first_line(tool: "Tool") -> str:
    """Return what a tool answers, in one line."""
    return (tool.description or "").partition("\n")[0]


def _place(args: Sequence[str], incomplete: str) -> tuple[set[str], str, str]:
    """Return the arguments that are there, the key of the one that is being written, and its value until now.

    Bash splits words at `=`, so that `entity=Go` arrives as three of them.
    """
    before = {word.partition("=")[0] for word in args}
    if len(args) > 1 and args[-1] == "=":
        return before, args[-2], incomplete
    key, equals, value = incomplete.partition("=")
    return (before, key, value) if equals else (before, "", incomplete)


def _escaping(context: typer.Context) -> Callable[[str], str]:
    """Return what makes a name one word: Bash takes what is offered as it is, other shells quote it."""
    return (lambda name: _SPECIAL.sub(r"\\\g<0>", name)) if _shell(context) == "bash" else str


def _shell(context: typer.Context) -> str:
    """Return the shell that asks, such as `zsh`."""
    called = context.find_object(Invocation)
    return "" if called is None else called.environ.get(COMPLETING, "").removeprefix("complete_")


@asynccontextmanager
async def _asked(context: typer.Context) -> "AsyncGenerator[tuple[KGAdapter, list[Tool]]]":
    """Open the graph that the command names so far, as far as it was imported, and a server of it."""
    from kg_server.commands.graphs import connected

    # The words before the command have not been carried out, and so `--config` is not known.
    called = context.find_object(Invocation) or Invocation({})
    graph = context.params.get("graph")
    settings = called.load({"graph": graph if isinstance(graph, str) else None}).settings
    async with connected(settings, imports=False) as (opened_graph, client):
        yield opened_graph, (await client.list_tools()).tools


MAIN: Final = ""
"""The key of what `@FILE` or `-` gives: the first argument that the tool needs."""

_MOST_READ: Final = 10_000_000

_LONGEST_PATH: Final = 1_000

READ_AS_JSON: Final = frozenset({"integer", "number", "boolean", "array", "object"})


def call(
    context: typer.Context,
    tool: Annotated[str, typer.Argument(help="The tool, as in Retrieve or GetNeighbor.", autocompletion=complete_tool)],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]…",
            help="Its arguments; @FILE or - (standard input) is its main one.",
            autocompletion=complete_argument,
        ),
    ] = None,
    graph: GraphOption = None,
    output: Annotated[Output, typer.Option(help="The answer as text, as JSON, or its rows as a table.")] = "text",
    as_json: Annotated[bool, typer.Option("--json", help="The same as --output json.")] = False,
    cache_folder: CacheFolderOption = None,
) -> None:
    """Call one tool and print its answer, as in: call GetNeighbor entity=Q1490 relation=P36."""
    settings = invocation(context).load({"graph": graph, "cache_folder": cache_folder}).settings
    written = split_arguments(arguments or [])
    import anyio

    result = anyio.run(_call, settings, tool, written)
    print_result(result, "json" if as_json else output)
    if result.is_error:
        raise typer.Exit(ExitCode.REFUSED)


def print_result(result: "CallToolResult", output: Output) -> None:
    """Print an answer in a format; an error goes to standard error."""
    if result.is_error:
        warn(shown(result, output))
    else:
        say(shown(result, output), tabs=output == "tsv")


def shown(result: "CallToolResult", output: Output) -> str:
    """Return an answer in a format; an error is always text."""
    if result.is_error or output == "text":
        return _text(result)
    if output == "json":
        return json_text(result.structured_content, indent=2)
    return WRITERS[output](table_of(result.structured_content))


async def _call(settings: Settings, name: str, written: Mapping[str, str]) -> "CallToolResult":
    from kg_server.commands.graphs import connected

    async with connected(settings) as (_, client):
        tool = find_tool((await client.list_tools()).tools, name)
        return await client.call_tool(tool.name, parse_arguments(written, tool.input_schema))


def split_arguments(written: Sequence[str]) -> dict[str, str]:
    """Split every `key=value` at its first equals sign; the text that `@FILE` or `-` names has the key `MAIN`.

    Raises:
        InvalidRequest: One has no equals sign, a key comes twice, or a file cannot be read.
    """
    split: dict[str, str] = {}
    for text in written:
        key, equals, value = text.partition("=")
        if text == "-" or text.startswith("@"):
            key, equals, value = MAIN, "=", _read_text(text)
        if not equals or not (key or text[:1] in "@-"):
            raise InvalidRequest(f"Arguments are written key=value, as in entity=Q1490; {in_quotes(text)} is not.")
        if key in split:
            raise InvalidRequest(f"The argument {in_quotes(key)} is given twice; give it once.")
        split[key] = value
    return split


def parse_arguments(written: Mapping[str, str], schema: Mapping[str, object]) -> dict[str, object]:
    """Parse the values by the tool's input schema; values that do not fit stay texts, which the tool refuses.

    Raises:
        InvalidRequest: The main argument is given twice, or the tool has none.
    """
    known = _Schema.model_validate(schema)
    named = dict(written)
    if MAIN in named:
        main = next(iter(known.required), None)
        if main is None or main in named:
            raise InvalidRequest(
                f"The argument {in_quotes(main)} is given twice; give it once."
                if main is not None
                else "This tool has no main argument; write key=value."
            )
        named[main] = named.pop(MAIN)
    return {key: _parse(value, known.properties.get(key)) for key, value in named.items()}


def _read_text(source: str) -> str:
    """Return the text of `@FILE`, or of standard input, without the line end behind it."""
    shown = in_quotes(source, _LONGEST_PATH)
    try:
        if source == "-":
            text = sys.stdin.read(_MOST_READ + 1)
        else:
            with TextIOWrapper(open_regular(Path(source[1:])), encoding="utf-8") as file:
                text = file.read(_MOST_READ + 1)
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{shown} is not text in UTF-8.") from error
    except OSError as error:
        raise InvalidRequest(f"{shown} cannot be read: {error.strerror}.") from error
    if len(text) > _MOST_READ:
        raise InvalidRequest(f"{shown} is longer than {_MOST_READ:,} characters, which is too long for any tool.")
    return text.rstrip("\n")


class _Property(BaseModel):
    """The JSON types of one argument in an input schema."""

    type: str | tuple[str, ...] | None = None
    any_of: "tuple[_Property, ...]" = Field((), alias="anyOf")

    @property
    def types(self) -> frozenset[str | None]:
        own = (self.type,) if isinstance(self.type, str | None) else self.type
        return frozenset(own).union(*(choice.types for choice in self.any_of))


class _Schema(BaseModel):
    properties: dict[str, _Property] = {}
    required: tuple[str, ...] = ()


def _parse(text: str, known: _Property | None) -> object:
    types: frozenset[str | None] = frozenset() if known is None else known.types
    is_text = "string" in types and not ("array" in types and text.lstrip().startswith("["))
    if is_text or types.isdisjoint(READ_AS_JSON):
        return text
    try:
        value: object = parsed(json.loads, text)
    except ValueError:
        # A list of one is what people write without brackets.
        return [text] if "array" in types and not text.lstrip().startswith("[") else text
    return value


def find_tool(tools: "Sequence[Tool]", name: str) -> "Tool":
    """Return the tool of a name.

    Raises:
        InvalidRequest: There is none; the message suggests a similar name.
    """
    by_name = {tool.name: tool for tool in tools}
    if name in by_name:
        return by_name[name]
    folded = {known.casefold(): known for known in by_name}
    close = difflib.get_close_matches(name.casefold(), folded, n=1)
    meant = f" Did you mean {folded[close[0]]}?" if close else ""
    raise InvalidRequest(f"This graph has no tool {in_quotes(name)}.{meant} Its tools are {', '.join(by_name)}.")


def _text(result: "CallToolResult") -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")
