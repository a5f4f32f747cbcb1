"""kg-sextant shell: call the tools line by line, with history and completion."""

import re
import shlex
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias, get_args

import typer

from kg_adapters.errors import InvalidRequest, KGError
from kg_boundary.private_files import private_file, private_folder
from kg_boundary.regular_files import open_regular
from kg_boundary.shown import in_quotes, visible_line
from kg_server.commands import options
from kg_server.commands.call import print_result, table_of
from kg_server.commands.graphs import connected
from kg_server.commands.invocation import invocation
from kg_server.commands.output import ExitCode, say, sentence, text_of, warn
from kg_server.commands.tools import argument_names, find_tool, listing, page, parse_arguments, split_arguments
from kg_server.compose.syntax import FUNCTIONS
from kg_server.settings import APP, Settings

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal
    from mcp import Client
    from mcp.types import CallToolResult, Tool

HISTORY: Final = "shell-history"

HISTORY_LINES: Final = 2_000

KEYWORDS: Final = ("ASK", "CONSTRUCT", "DESCRIBE", "FILTER", "LIMIT", "OPTIONAL", "PREFIX", "SELECT", "WHERE")


@contextmanager
def editing(folder: Path, tools: "Sequence[Tool]") -> Generator[None]:
    """Keep a history in a folder and complete words with Tab while this is open, at a terminal.

    Args:
        folder: Where the history is kept.
        tools: The tools, whose names and arguments are completed.
    """
    try:
        import readline
    except ImportError:
        yield  # not every Python has it
        return
    file = folder / HISTORY
    if not sys.stdin.isatty() or not _history_can_be_kept(file):
        yield
        return
    readline.read_history_file(file)

    def offered(word: str, number: int) -> str | None:
        choices = completions(readline.get_line_buffer()[: readline.get_begidx()], word, tools)
        return choices[number] if number < len(choices) else None

    readline.set_completer_delims(" \t\n=,;(){}[]\"'")
    readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")
    readline.set_completer(offered)
    try:
        yield
    finally:
        readline.set_completer(None)
        readline.set_history_length(HISTORY_LINES)
        readline.write_history_file(file)


def completions(before: str, word: str, tools: "Sequence[Tool]") -> list[str]:
    """Return what a word may become: tools at the beginning, then a tool's arguments, or functions and keywords."""
    known = [*(f"{name}[" for name in dict.fromkeys(FUNCTIONS.values())), *KEYWORDS]
    if not before.strip():
        known += [f"{tool.name} " for tool in tools]
    elif names := argument_names(tools, before.split(maxsplit=1)[0]):
        known = [f"{name}=" for name in names if f"{name}=" not in before]
    return [each for each in known if each.casefold().startswith(word.casefold())]


def _history_can_be_kept(file: Path) -> bool:
    try:
        private_folder(file.parent)
        private_file(file)
        open_regular(file).close()
    except OSError as error:
        warn(f"The history cannot be kept in {file}: {error.strerror}.")
        return False
    return True


Form: TypeAlias = Literal["table", "text", "json", "csv", "tsv", "markdown"]

HELP: Final = """\
A line is one of these:
  GetNeighbor Q937 relation=P737           a tool with its arguments (Tab completes them)
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
    graph: options.GraphArguments = None,
    output: Annotated[Form, typer.Option(help="The format of answers.")] = "table",
) -> None:
    """Open a prompt for tools, Compose expressions and SPARQL, with history and completion."""
    from anyio.from_thread import start_blocking_portal

    settings = invocation(context).load_for_any(graph=graph).settings
    with start_blocking_portal() as portal, _session(portal, settings) as session:
        session.form = output
        session.read_all(settings.data_folder)
    if session.failed and not sys.stdin.isatty():
        raise typer.Exit(ExitCode.REFUSED)


@contextmanager
def _session(portal: "BlockingPortal", settings: Settings) -> "Generator[ShellSession]":
    """Open the graph and a server of it on the portal's event loop."""
    with portal.wrap_async_context_manager(connected(settings)) as (graphs, client):
        yield ShellSession(portal, ", ".join(graphs.names), client, portal.call(client.list_tools).tools)


class ShellSession:
    """What a prompt works on.

    Args:
        portal: Where the graph and its server run.
        graph: The names of the graphs.
        client: A client of its server.
        tools: The tools.
    """

    def __init__(self, portal: "BlockingPortal", graph: str, client: "Client", tools: "list[Tool]") -> None:
        self._portal = portal
        self._graph = graph
        self._client = client
        self.tools = tools
        self.form: Form = "table"
        self.failed = False

    def read_all(self, folder: Path) -> None:
        """Read and answer until the end of the input or `.quit`; the history is kept in this folder."""
        if sys.stdin.isatty():
            say(f"{APP} shell on {self._graph}. .help says what can be typed; .quit or Ctrl-D ends.")
        with editing(folder, self.tools):
            for text in iter(_next_text, None):
                if text in {".quit", ".exit", "quit", "exit"}:
                    return
                if text:
                    self._answer(text)

    def _answer(self, text: str) -> None:
        try:
            if text.startswith(".") or text == "help":
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
        try:
            words = shlex.split(text)[1:]
        except ValueError as error:
            raise InvalidRequest(f"The line cannot be read: {error}.") from error
        tool = find_tool(self.tools, name)
        return self._call(tool.name, parse_arguments(split_arguments(words), tool.input_schema))

    def _call(self, name: str, arguments: dict[str, object]) -> "CallToolResult":
        result: CallToolResult = self._portal.call(self._client.call_tool, find_tool(self.tools, name).name, arguments)
        return result

    def _show(self, result: "CallToolResult") -> None:
        self.failed |= bool(result.is_error)
        if self.form == "table" and not result.is_error:
            _print_table(result)
        else:
            print_result(result, "text" if self.form == "table" else self.form)

    def _command(self, text: str) -> None:
        match text.split():
            case [".tools"]:
                say(listing(self.tools))
            case [".tool", name]:
                say(page(find_tool(self.tools, name)))
            case [".output", form] if form in _FORMS:
                self.form = _FORMS[form]
            case [".help" | "help"]:
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
    """Return whether a first line begins a query or an expression that continues."""
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

    table = table_of(result.structured_content).named()
    text = text_of(result)
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
