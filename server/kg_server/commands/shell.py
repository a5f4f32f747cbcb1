"""`kg-sextant shell`: a prompt at which tools, Compose expressions and SPARQL are typed, and answers are tables."""

import re
import shlex
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias, get_args

import typer

from kg_adapters.errors import InvalidRequest, KGError
from kg_boundary.shown import in_quotes
from kg_server.commands.call import find_tool, parse_arguments, shown, split_arguments, tell
from kg_server.commands.failures import ExitCode, sentence
from kg_server.commands.invocation import invocation
from kg_server.commands.line_editing import editing
from kg_server.commands.output import say, warn
from kg_server.commands.tables import table_of
from kg_server.commands.tools import listing, page
from kg_server.settings import APP, Settings

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal
    from mcp import Client
    from mcp.types import CallToolResult, Tool

    from kg_adapters.protocol import KGAdapter

Form: TypeAlias = Literal["table", "text", "json", "csv", "tsv", "markdown"]

HELP: Final = """\
A line is one of these:
  GetNeighbor entity=Q937 relation=P737    a tool with its arguments (Tab completes them)
  Count[Neighbor[Q937, influenced by]]     an expression for Compose
  SELECT ?x WHERE { ?x wdt:P36 ?y }        SPARQL; on several lines it ends with an empty one
  Goethe                                   anything else is looked up by Retrieve
  .tools   .tool NAME   .output table|text|json|csv|tsv|markdown   .help   .quit"""
PROMPT: Final = f"{APP}> "
MORE: Final = "... "
_SPARQL: Final = re.compile(r"(SELECT|ASK|CONSTRUCT|DESCRIBE|PREFIX|BASE)\b", re.IGNORECASE)
_EXPRESSION: Final = re.compile(r"[A-Z]\w*\s*\[")


def shell(
    context: typer.Context,
    graph: Annotated[str | None, typer.Argument(help="`sample`, RDF files, a store, or an endpoint's URL.")] = None,
    output: Annotated[Form, typer.Option(help="How answers are shown.")] = "table",
) -> None:
    """Open a prompt for tools, Compose expressions and SPARQL, with history and completion."""
    from anyio.from_thread import start_blocking_portal

    settings = invocation(context).load(graph=graph).settings
    with start_blocking_portal() as portal, _session(portal, settings) as session:
        session.form = output
        session.read_all(settings.data_folder)
    if session.failed and not sys.stdin.isatty():
        raise typer.Exit(ExitCode.REFUSED)


@contextmanager
def _session(portal: "BlockingPortal", settings: Settings) -> "Generator[Session]":
    """Open the graph and a server of it on the portal's event loop."""
    from mcp import Client

    from kg_server.app import build_server
    from kg_server.commands.graphs import opened

    with (
        portal.wrap_async_context_manager(opened(settings)) as graph,
        portal.wrap_async_context_manager(Client(build_server(graph, settings))) as client,
    ):
        yield Session(portal, graph, client, portal.call(client.list_tools).tools)


class Session:
    """What a prompt works on.

    Args:
        portal: Where the graph and its server run.
        graph: The graph, for completion.
        client: A client of its server.
        tools: The tools.
    """

    def __init__(self, portal: "BlockingPortal", graph: "KGAdapter", client: "Client", tools: "list[Tool]") -> None:
        self._portal = portal
        self._graph = graph
        self._client = client
        self.tools = tools
        self.form: Form = "table"
        self.failed = False

    def read_all(self, folder: Path) -> None:
        """Read and answer until the end of the input or `.quit`; the history is kept in this folder."""
        if sys.stdin.isatty():
            say(f"{APP} shell on {self._graph.name}. .help says what can be typed; .quit or Ctrl-D ends.")
        with editing(folder, self.tools, self.entities_like):
            for text in iter(_next_text, None):
                if text in {".quit", ".exit", "quit", "exit"}:
                    return
                if text:
                    self._answer(text)

    def entities_like(self, start: str) -> list[str]:
        """Return names or ids of entities that begin like this."""
        from kg_server.commands.completion import entities_like

        return [text for text, _ in self._portal.call(entities_like, self._graph, start)]

    def _answer(self, text: str) -> None:
        try:
            if text.startswith("."):
                self._command(text)
            else:
                self._show(self._called(text))
        except KGError as error:
            self.failed = True
            warn(sentence(error).removeprefix(f"{APP}: "))

    def _called(self, text: str) -> "CallToolResult":
        if _SPARQL.match(text):
            return self._call("Sparql", {"query": text})
        if _EXPRESSION.match(text):
            return self._call("Compose", {"expression": text})
        name, *_ = text.split(maxsplit=1)
        if name.casefold() not in {tool.name.casefold() for tool in self.tools}:
            return self._call("Retrieve", {"text": text})
        tool = next(tool for tool in self.tools if tool.name.casefold() == name.casefold())
        try:
            words = shlex.split(text)[1:]
        except ValueError as error:
            raise InvalidRequest(f"The line cannot be read: {error}.") from error
        return self._call(tool.name, parse_arguments(split_arguments(words), tool.input_schema))

    def _call(self, name: str, arguments: dict[str, object]) -> "CallToolResult":
        result: CallToolResult = self._portal.call(self._client.call_tool, find_tool(self.tools, name).name, arguments)
        return result

    def _show(self, result: "CallToolResult") -> None:
        self.failed |= bool(result.is_error)
        if self.form == "table" and not result.is_error:
            _print_table(result)
        else:
            tell(result, "text" if self.form == "table" else self.form)

    def _command(self, text: str) -> None:
        match text.split():
            case [".tools"]:
                say(listing(self.tools))
            case [".tool", name]:
                say(page(find_tool(self.tools, name)))
            case [".output", form] if form in _FORMS:
                self.form = _FORMS[form]
            case [".help"]:
                say(HELP)
            case _:
                raise InvalidRequest(f"Unknown command {in_quotes(text)}. .help lists what can be typed.")


def _next_text(read: Callable[[str], str] = input) -> str | None:
    """Return the next line, or the lines of a query until an empty one; None at the end of the input."""
    lines: list[str] = []
    while True:
        try:
            lines.append(read((MORE if lines else PROMPT) if sys.stdin.isatty() else ""))
        except EOFError:
            return "\n".join(lines).strip() or None
        except UnicodeDecodeError as error:
            raise InvalidRequest("Standard input is not text in UTF-8.") from error
        except KeyboardInterrupt:
            say("")
            return ""
        text = "\n".join(lines).strip()
        if not lines[-1].strip() or (len(lines) == 1 and not _is_begun(text)):
            return text


def _is_begun(line: str) -> bool:
    """Say whether a first line is the beginning of a query, or of an expression, that goes on."""
    query = _SPARQL.match(line)
    if query is None:
        return _EXPRESSION.match(line) is not None and line.count("[") > line.count("]")
    return line.count("{") > line.count("}") or ("{" not in line and query[1].upper() != "DESCRIBE")


def _print_table(result: "CallToolResult") -> None:
    """Print the line that sums up, and the rows below it as a table; an answer without rows as text."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as Drawn
    from rich.text import Text

    from kg_boundary.shown import visible_line

    table = table_of(result.structured_content).named()
    text = shown(result, "text")
    if not table.rows:
        say(text)
        return
    say(text.partition("\n")[0])
    drawn = Drawn(box=SIMPLE_HEAD)
    places = [place for place in range(len(table.header)) if any(row[place] for row in table.rows)]
    for place in places:
        drawn.add_column(table.header[place], overflow="fold")
    for row in table.rows:
        drawn.add_row(*(Text(visible_line(row[place])) for place in places))
    Console(highlight=False).print(drawn)


_FORMS: Final[dict[str, Form]] = {form: form for form in get_args(Form)}
