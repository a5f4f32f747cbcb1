"""kg-sextant call: make one tool call, and print its answer in a format."""

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import typer
from pydantic import BaseModel, ConfigDict

from kg_server.commands import options
from kg_server.commands.invocation import invocation
from kg_server.commands.output import ExitCode, say, show, text_of, warn
from kg_server.commands.tools import complete_argument, complete_tool, find_tool, parse_arguments, split_arguments
from kg_server.settings import Settings

if TYPE_CHECKING:
    from mcp.types import CallToolResult


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
    """Return the structured answer of a tool as a table; one without columns where it holds no rows.

    Over several graphs its last column is the graph of each row.
    """
    answer = _Answer.model_validate(structured or {})
    names = {name: text for name, text in answer.relations.items() if isinstance(text, str)}
    none: tuple[tuple[str, ...], Rows] = ((), [])
    header, rows = next(((header, rows) for header, rows in _choices(answer) if rows is not None), none)
    wide = len(header)
    whole = tuple((*row[:wide], *[""] * (wide - len(row))) for row in rows)
    if any(len(row) > wide for row in rows):
        # Over several graphs, rows end with their graph.
        header = (*header, "graph")
        whole = tuple(
            (*cells, *(row[-1:] if len(row) > wide else ("",))) for cells, row in zip(whole, rows, strict=True)
        )
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


def call(
    context: typer.Context,
    tool: Annotated[
        str,
        typer.Argument(metavar="TOOL", help="The tool, such as Retrieve or GetNeighbor.", autocompletion=complete_tool),
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="VALUE… KEY=VALUE…",
            help="The tool's arguments; the first ones need no keys. @FILE or - takes a value from a file or standard "
            "input.",
            autocompletion=complete_argument,
        ),
    ] = None,
    graph: options.Graphs = None,
    output: Annotated[
        Output, typer.Option(help="The format: the answer as text or JSON, or its rows as a table.")
    ] = "text",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the answer as JSON; the same as --output json.")
    ] = False,
    cache_folder: options.CacheFolder = None,
) -> None:
    """Call one tool and print its answer, for example: call GetNeighbor Q17 relation=P36."""
    settings = invocation(context).load_for_any(graph=graph, cache_folder=cache_folder).settings
    written = split_arguments(arguments or [])
    import anyio

    result = anyio.run(_call, settings, tool, written)
    print_result(result, "json" if as_json else output)
    if result.is_error:
        raise typer.Exit(ExitCode.REFUSED)


def print_result(result: "CallToolResult", output: Output) -> None:
    """Print an answer in a format; an error goes to standard error as text."""
    if result.is_error:
        warn(text_of(result))
    elif output == "text" or output == "json":  # noqa: PLR1714 - mypy narrows this
        show(result.structured_content, (text_of(result),), as_json=output == "json")
    else:
        say(WRITERS[output](table_of(result.structured_content)), tabs=output == "tsv")


async def _call(settings: Settings, name: str, written: Mapping[str, str]) -> "CallToolResult":
    from kg_server.commands.graphs import connected

    async with connected(settings) as (_, client):
        tool = find_tool((await client.list_tools()).tools, name)
        return await client.call_tool(tool.name, parse_arguments(written, tool.input_schema))
