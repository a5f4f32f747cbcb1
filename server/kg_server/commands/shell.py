"""`kg-sextant shell` and `tools`: call the tools line by line, with history and completion."""

import json
import re
import shlex
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, Protocol, TypeAlias, get_args

import typer
from pydantic import BaseModel, ConfigDict, Field

from kg_adapters.errors import InvalidRequest, KGError
from kg_boundary.private_files import private_file, private_folder
from kg_boundary.regular_files import open_regular
from kg_boundary.shown import in_quotes
from kg_server.commands.call import (
    ENTITIES,
    argument_names,
    complete_tool,
    entities_like,
    find_tool,
    first_line,
    parse_arguments,
    print_result,
    shown,
    split_arguments,
    table_of,
)
from kg_server.commands.invocation import GraphArgument, GraphOption, invocation
from kg_server.commands.output import ExitCode, say, sentence, warn
from kg_server.settings import APP, Settings

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal
    from mcp import Client
    from mcp.types import CallToolResult, Tool

    from kg_adapters.protocol import KGAdapter


FUNCTIONS: Final = (
    "Bottom[",
    "Count[",
    "Degree[",
    "Feature[",
    "Group[",
    "Intersect[",
    "Max[",
    "Mean[",
    "Min[",
    "Minus[",
    "Neighbor[",
    "Retrieve[",
    "Share[",
    "Sum[",
    "Table[",
    "Top[",
    "Type[",
    "Union[",
    "Where[",
)

KEYWORDS: Final = (
    "ASK",
    "CONSTRUCT",
    "COUNT",
    "DESCRIBE",
    "DISTINCT",
    "FILTER",
    "GROUP",
    "HAVING",
    "LIMIT",
    "MINUS",
    "OFFSET",
    "OPTIONAL",
    "ORDER",
    "PREFIX",
    "SELECT",
    "UNION",
    "VALUES",
    "WHERE",
)

HISTORY: Final = "shell-history"

HISTORY_LINES: Final = 2_000

_ARGUMENT: Final = re.compile(r"(?P<key>\w+)=(?:[\"'](?P<quoted>[^\"']*)|(?P<plain>[^\s\"']*))$")

_WORD: Final = re.compile(r"[\w.]*$")


class _Readline(Protocol):
    """The functions used of the module `readline`, which not every Python has."""

    def parse_and_bind(self, string: str, /) -> None: ...
    def set_completer(self, function: Callable[[str, int], str | None] | None = None, /) -> None: ...
    def set_completer_delims(self, string: str, /) -> None: ...
    def get_line_buffer(self) -> str: ...
    def get_endidx(self) -> int: ...
    def read_history_file(self, filename: str, /) -> None: ...
    def write_history_file(self, filename: str, /) -> None: ...
    def set_history_length(self, length: int, /) -> None: ...


@contextmanager
def editing(folder: Path, tools: "Sequence[Tool]", entities: Callable[[str], list[str]]) -> Generator[None]:
    """Keep a history in a folder and complete with Tab while this is open, at a terminal.

    Args:
        folder: Where the history is kept.
        tools: The tools, whose names and arguments are completed.
        entities: Gives entities whose names begin like a text.
    """
    readline = _readline() if sys.stdin.isatty() else None
    if readline is None:
        yield
        return
    file = folder / HISTORY
    kept = _read_history(readline, file)

    def offered(_: str, number: int) -> str | None:
        line = readline.get_line_buffer()[: readline.get_endidx()]
        choices = completions(line, tools, entities)
        return choices[number] if number < len(choices) else None

    readline.set_completer_delims(" \t\n=,;(){}[]\"'")
    readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")
    readline.set_completer(offered)
    try:
        yield
    finally:
        readline.set_completer(None)
        if kept:
            readline.set_history_length(HISTORY_LINES)
            readline.write_history_file(str(file))


def completions(line: str, tools: "Sequence[Tool]", entities: Callable[[str], list[str]]) -> list[str]:
    """Return what may stand in place of the last word of a line.

    Names with spaces are completed word by word: what is offered begins where the last word does.
    """
    word = _found(_WORD, line)
    first, _, rest = line.lstrip().partition(" ")
    names = {tool.name.casefold() for tool in tools}
    if " " not in line.lstrip() and "[" not in line:
        known = [*(f"{tool.name} " for tool in tools), *FUNCTIONS, *KEYWORDS]
        return [each for each in known if word and each.casefold().startswith(word.casefold())]
    if first.casefold() in names:
        argument = _ARGUMENT.search(rest)
        if argument is None:
            given = set(re.findall(r"(\w+)=", rest))
            return [f"{name}=" for name in argument_names(tools, first) if name not in given and name.startswith(word)]
        if argument["key"] not in ENTITIES:
            return []
        return _continued(argument["quoted"] or argument["plain"] or "", word, entities)
    inner = re.split(r"[\[,{]\s*|@?\"", line)[-1]
    known = [each for each in (*FUNCTIONS, *KEYWORDS) if word and inner.strip() == word and each.startswith(word)]
    return [*known, *_continued(inner, word, entities)]


def _continued(value: str, word: str, entities: Callable[[str], list[str]]) -> list[str]:
    """Return the ends of names that begin like a value, from where its last word begins."""
    try:
        found = entities(value) if value.strip() else []
    except KGError:
        return []
    skipped = len(value) - len(word)
    return [name[skipped:] for name in found if name.casefold().startswith(value.casefold())]


def _read_history(readline: _Readline, file: Path) -> bool:
    """Read the history, and return whether new lines can be added to it."""
    try:
        private_folder(file.parent)
        private_file(file)
        open_regular(file).close()
        readline.read_history_file(str(file))
    except OSError as error:
        warn(f"The history cannot be kept in {file}: {error.strerror}.")
        return False
    return True


def _readline() -> _Readline | None:
    try:
        import readline
    except ImportError:
        return None
    return readline


def _found(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[0] if found else ""


EXAMPLES: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "observe": (("question=Who influenced him?", "entities=Albert Einstein", "hops=1"),),
    "Retrieve": (("text=Johann Wolfgang von Goethe",), ('text=["Goethe", "Einstien"]', "limit=2")),
    "GetNeighbor": (("entity=Q1490", "relation=P36"), ("entity=Q30", "direction=in", "limit=5")),
    "GetPath": (("source=Q5879", "target=Q937", "limit=3"),),
    "Feature": (("entity=Q937",), ("entity=Q937", "feature=date of birth")),
    "Degree": (("entity=Q30",),),
    "Schema": ((), ("about=human",)),
    "Sparql": (('query=SELECT ?who WHERE { ?who @"influenced by" @"Johann Wolfgang von Goethe" } LIMIT 5',),),
    "Compose": (
        ("expression=Count[Neighbor[Q937, influenced by]]",),
        ("expression=Intersect[Neighbor[Q937, influenced by], Neighbor[Q5879, -influenced by]]",),
    ),
    "memory-append": (('triples=[["Q937", "P737", "Q38193"]]',),),
    "memory-read": (("memory=HANDLE",),),
}
"""Calls on the bundled sample, by tool; HANDLE is what `memory-append` gave."""


class _Property(BaseModel):
    """One argument in an input schema."""

    model_config = ConfigDict(extra="ignore")

    type: str | list[str] = "any"
    enum: list[str] = []
    default: object = None
    minimum: float | None = None
    maximum: float | None = None
    description: str = ""


class _Schema(BaseModel):
    model_config = ConfigDict(extra="ignore")

    properties: dict[str, _Property] = Field({})
    required: list[str] = []


def tools(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="One tool, to see all of it.", autocompletion=complete_tool)
    ] = None,
    graph: GraphOption = None,
) -> None:
    """List the tools of a graph, or one with its arguments and examples."""
    import anyio

    known = anyio.run(_tools, invocation(context).load({"graph": graph}).settings)
    if name is None:
        say(listing(known))
        say(f"\nArguments and examples: {APP} tools NAME")
    else:
        say(page(find_tool(known, name), graph))


async def _tools(settings: Settings) -> "list[Tool]":
    from kg_server.commands.graphs import connected

    async with connected(settings) as (_, client):
        return (await client.list_tools()).tools


def listing(known: "Sequence[Tool]") -> str:
    """Return one line for each tool."""
    wide = max(len(tool.name) for tool in known)
    return "\n".join(f"{tool.name:<{wide}}  {first_line(tool)}" for tool in known)


def page(tool: "Tool", graph: str | None = None) -> str:
    """Return all about a tool: what it answers, its arguments, and calls to copy."""
    schema = _Schema.model_validate(tool.input_schema)
    rows = [
        (name, _form(known), _rest(known, required=name in schema.required))
        for name, known in schema.properties.items()
    ]
    widths = [max(len(row[place]) for row in rows) for place in (0, 1)]
    lines = [tool.name, *(f"  {line}".rstrip() for line in (tool.description or "").splitlines()), "", "Arguments:"]
    lines += [f"  {name:<{widths[0]}}  {form:<{widths[1]}}  {rest}".rstrip() for name, form, rest in rows]
    calls = EXAMPLES.get(tool.name, ()) if graph in {None, "sample"} else ()
    if calls:
        lines += ["", "Examples:", *(f"  {shlex.join([APP, 'call', tool.name, *words])}" for words in calls)]
    return "\n".join(lines)


def _form(known: _Property) -> str:
    if known.enum:
        return "|".join(known.enum)
    return known.type if isinstance(known.type, str) else " or ".join(known.type)


def _rest(known: _Property, *, required: bool) -> str:
    bounds = [
        f"{word} {bound:g}"
        for word, bound in (("at least", known.minimum), ("at most", known.maximum))
        if bound is not None
    ]
    default = "required" if required else f"default {json.dumps(known.default)}" if known.default is not None else ""
    return "; ".join(each for each in (default, *bounds, known.description) if each)


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
    graph: GraphArgument = None,
    output: Annotated[Form, typer.Option(help="How answers are shown.")] = "table",
) -> None:
    """Open a prompt for tools, Compose expressions and SPARQL, with history and completion."""
    from anyio.from_thread import start_blocking_portal

    settings = invocation(context).load({"graph": graph}).settings
    with start_blocking_portal() as portal, _session(portal, settings) as session:
        session.form = output
        session.read_all(settings.data_folder)
    if session.failed and not sys.stdin.isatty():
        raise typer.Exit(ExitCode.REFUSED)


@contextmanager
def _session(portal: "BlockingPortal", settings: Settings) -> "Generator[ShellSession]":
    """Open the graph and a server of it on the portal's event loop."""
    from kg_server.commands.graphs import connected

    with portal.wrap_async_context_manager(connected(settings)) as (graph, client):
        yield ShellSession(portal, graph, client, portal.call(client.list_tools).tools)


class ShellSession:
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
        tool = next((tool for tool in self.tools if tool.name.casefold() == name.casefold()), None)
        if tool is None:
            return self._call("Retrieve", {"text": text})
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
            print_result(result, "text" if self.form == "table" else self.form)

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
