"""`kg-sextant config`: print or write what MCP clients need to start this server, or to call a hosted one."""

import difflib
import json
import re
import shlex
import stat
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Annotated, Final, Literal, TypeAlias

import typer
from pydantic import TypeAdapter, ValidationError

from kg_adapters.errors import InvalidRequest
from kg_adapters.registry import path_of, require_graph
from kg_boundary.addresses import base_url_problem
from kg_boundary.private_files import write_private
from kg_boundary.regular_files import parse_toml, read_regular
from kg_boundary.secrets import Redactor
from kg_boundary.shown import in_quotes
from kg_server.commands import options
from kg_server.commands.commented_json import read_commented, with_member
from kg_server.commands.graph_words import NamedGraph
from kg_server.commands.installation import lasting_command
from kg_server.commands.invocation import Invocation, invocation, may_hold_secret
from kg_server.commands.output import say, warn
from kg_server.settings import ENVIRONMENT_PREFIX, Settings, variable

Host: TypeAlias = Literal["claude", "claude-code", "cursor", "vscode", "codex", "windsurf", "zed", "gemini", "lmstudio"]

SERVER_NAME: Final = "kg-sextant"

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class HostFormat:
    """Where an MCP client keeps its servers, and how it writes them.

    Args:
        where: Where people find the file, or what they run instead of editing it.
        folder: The folder that the file is below: the home folder, that of the settings of desktop programs, or that of
            the settings of command lines, which is also in the home folder on a Mac.
        file: The file below that folder.
        section: The object, or table, that holds the servers by name.
        typed: Whether each server's entry has a `type`.
        url: What it calls the URL of a hosted server; empty where its file takes none.
        headers: What it calls the headers that it sends there.
        variable: The environment variable that names another folder for the file, if there is one.
        more: What each server's entry holds besides.
    """

    where: str
    folder: Literal["home", "applications", "config"]
    file: str
    section: str = "mcpServers"
    typed: bool = False
    url: str = "url"
    headers: str = "headers"
    variable: str | None = None
    more: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def is_toml(self) -> bool:
        """Whether the file is TOML; others are JSON, perhaps with comments."""
        return self.file.endswith(".toml")


HOSTS: Final[Mapping[Host, HostFormat]] = {
    "claude": HostFormat(
        "Claude Desktop: Settings, Developer, Edit Config, then restart it.",
        "applications",
        "Claude/claude_desktop_config.json",
        url="",
    ),
    "claude-code": HostFormat(
        "Claude Code: run this instead: {command}",
        "home",
        ".claude.json",
        typed=True,
        # Otherwise the model sees no tool of the server until it searches for one.
        more={"alwaysLoad": True},
    ),
    "cursor": HostFormat("Cursor: ~/.cursor/mcp.json, or .cursor/mcp.json in a project.", "home", ".cursor/mcp.json"),
    "vscode": HostFormat(
        "VS Code: .vscode/mcp.json in a workspace, or the command MCP: Open User Configuration.",
        "applications",
        "Code/User/mcp.json",
        "servers",
        typed=True,
    ),
    "codex": HostFormat(
        "Codex: ~/.codex/config.toml.",
        "home",
        ".codex/config.toml",
        "mcp_servers",
        headers="http_headers",
        variable="CODEX_HOME",
    ),
    "windsurf": HostFormat(
        "Windsurf: ~/.codeium/windsurf/mcp_config.json.",
        "home",
        ".codeium/windsurf/mcp_config.json",
        url="serverUrl",
    ),
    "zed": HostFormat("Zed: the command zed: open settings.", "config", "zed/settings.json", "context_servers"),
    "gemini": HostFormat(
        "Gemini CLI: ~/.gemini/settings.json, or .gemini/settings.json in a project.",
        "home",
        ".gemini/settings.json",
        url="httpUrl",
    ),
    "lmstudio": HostFormat("LM Studio: Program, Install, Edit mcp.json.", "home", ".lmstudio/mcp.json"),
}
"""The clients that `config` knows."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How a host starts the server.

    Args:
        command: The executable, by its absolute path: desktop hosts have a bare PATH.
        arguments: What follows it.
        environment: The variables that it needs; desktop hosts pass on few of their own.
    """

    command: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Remote:
    """A hosted server.

    Args:
        url: Its URL.
        token: The bearer token that it needs, unless the client logs in by itself.
    """

    url: str
    token: str | None = None


Server: TypeAlias = Launch | Remote
"""What a host starts or calls."""


@dataclass(frozen=True, slots=True)
class Block:
    """A text to paste, and where it goes."""

    text: str
    where: str


def block_for(host: Host, server: Server, name: str = SERVER_NAME) -> Block:
    """Return the block that makes a host start or call the server under a name.

    Raises:
        InvalidRequest: The host's file takes no hosted servers.
    """
    form, entry = HOSTS[host], _entry(host, server)
    where = form.where.format(command=claude_code_command(server, name)) if host == "claude-code" else form.where
    if form.is_toml:
        return Block(_toml(form.section, name, entry), where)
    return Block(json.dumps({form.section: {name: entry}}, ensure_ascii=False, indent=2), where)


def claude_code_command(server: Server, name: str = SERVER_NAME) -> str:
    """Return the line that adds the server to Claude Code."""
    entry = json.dumps(_entry("claude-code", server), ensure_ascii=False, separators=(",", ":"))
    # `claude mcp add` would drop what it has no option for.
    return shlex.join(["claude", "mcp", "add-json", name, entry])


def _entry(host: Host, server: Server) -> dict[str, object]:
    form = HOSTS[host]
    if isinstance(server, Launch):
        entry: dict[str, object] = {"type": "stdio"} if form.typed else {}
        entry |= {"command": server.command, "args": list(server.arguments)}
        environment = {"env": dict(server.environment)} if server.environment else {}
        return {**entry, **environment, **form.more}
    if not form.url:
        raise InvalidRequest(
            "Claude Desktop takes no hosted servers from its file. Add the URL in its settings: Connectors, Add custom "
            "connector. It logs in there, at the server's authorization server; tokens cannot be given."
        )
    headers = {form.headers: {"Authorization": f"Bearer {server.token}"}} if server.token else {}
    entry = {"type": "http"} if form.typed else {}
    return {**entry, form.url: server.url, **headers, **form.more}


def _toml(section: str, name: str, entry: Mapping[str, object]) -> str:
    lines = [f"[{section}.{name}]"]
    for key, value in entry.items():
        match value:
            case dict():
                pairs = ", ".join(f"{each} = {_quoted(text)}" for each, text in _WORDS.validate_python(value).items())
                lines.append(f"{key} = {{ {pairs} }}")
            case _:
                lines.append(f"{key} = {_quoted(value)}")
    return "\n".join(lines)


def _quoted(value: object) -> str:
    # A JSON string is a TOML basic string, once nothing is escaped as a pair of surrogates; a list of them is an array.
    return json.dumps(value, ensure_ascii=False)


_TABLE: Final = re.compile(r"^\s*\[")


def client_file(host: Host, home: Path, environ: Mapping[str, str], system: str) -> Path:
    """Return the file in which a client keeps its servers.

    Args:
        host: The client.
        home: The user's home folder.
        environ: The environment, which may name other folders.
        system: `linux`, `darwin` or `win32`, as `sys.platform` has it.
    """
    form = HOSTS[host]
    folders = {"home": home, "applications": _applications(home, environ, system)}
    folders["config"] = home / ".config" if system == "darwin" else folders["applications"]
    if form.variable is not None and environ.get(form.variable):
        return Path(environ[form.variable]) / PurePath(form.file).name
    return folders[form.folder] / form.file


def merged(host: Host, server: Server, before: str, path: PurePath, name: str = SERVER_NAME) -> str:
    """Return the text of a client's file with this server in it, and everything else as it was.

    Args:
        host: The client.
        server: What it starts or calls.
        before: The text of the file now; empty where there is none.
        path: The file, for messages.
        name: What the client calls the server; another server of that name is replaced.

    Raises:
        InvalidRequest: The file has another form.
    """
    if HOSTS[host].is_toml:
        return _merged_toml(host, server, before, path, name)
    return _merged_json(host, _entry(host, server), before, path, name)


def _applications(home: Path, environ: Mapping[str, str], system: str) -> Path:
    match system:
        case "darwin":
            return home / "Library" / "Application Support"
        case "win32":
            return Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
        case _:
            return Path(environ.get("XDG_CONFIG_HOME") or home / ".config")


def _merged_json(host: Host, entry: dict[str, object], before: str, path: PurePath, name: str) -> str:
    section, text = HOSTS[host].section, before if before.strip() else "{\n}\n"
    try:
        whole = _OBJECT.validate_python(read_commented(text))
    except ValueError as error:
        reason = "it holds no object" if isinstance(error, ValidationError) else str(error)
        raise InvalidRequest(f"{path} is not JSON as expected ({reason}). Nothing was written: {_BY_HAND}") from error
    try:
        servers = _OBJECT.validate_python(whole.get(section, {}))
    except ValueError as error:
        raise InvalidRequest(f"{path} has no object at {section!r}. Nothing was written: {_BY_HAND}") from error
    if servers.get(name) == entry:
        return before
    return with_member(text, (section, name), entry)


def _merged_toml(host: Host, server: Server, before: str, path: PurePath, name: str) -> str:
    section, block = HOSTS[host].section, block_for(host, server, name).text
    expected = _read_toml(before, path)
    ours = tomllib.loads(block)[section]
    kept, place = _without_table(before, section, name)
    lines = [*kept[:place], *block.splitlines(), *([""] if kept[place:] else []), *kept[place:]]
    if place == len(kept) and kept and kept[-1].strip():
        lines.insert(place, "")
    after = "\n".join(lines) + "\n"
    try:
        expected[section] = {**_OBJECT.validate_python(expected.get(section, {})), **ours}
        same = tomllib.loads(after) == expected
    except ValueError:
        same = False
    if not same:
        raise InvalidRequest(f"{path} writes {name} in another way. Nothing was written: {_BY_HAND}")
    return after


def _read_toml(text: str, path: PurePath) -> dict[str, object]:
    try:
        return parse_toml(text)
    except ValueError as error:
        raise InvalidRequest(f"{path} is not TOML ({error}). Nothing was written: {_BY_HAND}") from error


def _without_table(text: str, section: str, name: str) -> tuple[list[str], int]:
    """Return the lines of other tables, and the number of the line before which this server's stood, or would."""
    kept: list[str] = []
    place = None
    ours = False
    for line in text.splitlines():
        if _TABLE.match(line):
            ours = re.match(rf"\s*\[{section}\.\"?{name}\"?[.\]]", line) is not None
        if not ours:
            kept.append(line)
        elif place is None:
            place = len(kept)
    return kept, len(kept) if place is None else place


_OBJECT: Final = TypeAdapter(dict[str, object])

_WORDS: Final = TypeAdapter(dict[str, str])

_BY_HAND: Final = "add the block by hand, or name another file with --file."


def config(
    context: typer.Context,
    host: Annotated[Host, typer.Argument(metavar="CLIENT", help="The MCP client.")],
    graph: options.GraphArguments = None,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Let the client call a hosted server at this URL instead; server_token is its token."
        ),
    ] = None,
    show_secrets: Annotated[
        bool, typer.Option("--show-secrets", help="Print passwords, tokens and keys themselves, not only their names.")
    ] = False,
    write: Annotated[
        bool,
        typer.Option(
            "--write",
            help="Add the block to the client's configuration file, after showing the difference; keeps a backup.",
        ),
    ] = False,
    name: Annotated[
        str,
        typer.Option(
            "--name", metavar="NAME", help="What the client calls this server; several can stand side by side."
        ),
    ] = SERVER_NAME,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="The file that --write changes, if not the client's usual one."),
    ] = None,
) -> None:
    """Print the block that makes an MCP client start or call a server, or add it to the client's configuration."""
    if _NAME.fullmatch(name) is None:
        raise InvalidRequest("--name takes up to 64 letters, digits, hyphens and underscores, as in --name people.")
    called = invocation(context)
    loaded = called.load_for_any(graph=graph)
    settings = loaded.settings
    if server is None:
        graphs = [NamedGraph(name, each.graph) for name, each in settings.graphs.items()]
        graphs = graphs or [NamedGraph(loaded.name, settings.graph)]
        whole: Server = launch(called, graphs)
    else:
        whole = _remote(server, graph, settings)
    shown = whole if show_secrets else without_secrets(whole, settings.redactor)
    block = block_for(host, shown, name)
    _require_shown_as_it_is(block.text)
    if write:
        _write(host, shown, file or client_file(host, Path.home(), called.environ, sys.platform), name)
    else:
        warn(block.where)
    if left_out := _left_out(whole, shown):
        warn(f"Not shown: {', '.join(left_out)}. Fill it in, or run this again with --show-secrets.")
    if not write:
        print(block.text)


def _remote(url: str, graph: list[str] | None, settings: Settings) -> Remote:
    if graph:
        raise InvalidRequest("A hosted server has its own graph: give --server or a graph, not both.")
    if problem := base_url_problem(url):
        raise InvalidRequest(f"--server is not the URL of a server: {problem}.")
    token = settings.server_token
    return Remote(url, None if token is None else token.get_secret_value())


def _write(host: Host, shown: Server, file: Path, name: str) -> None:
    """Add the server to a client's file, after showing what changes and, at a terminal, asking."""
    path = file.resolve()
    there = path.exists()
    try:
        kept = read_regular(path).decode() if there else ""
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{path} is not text in UTF-8. Nothing was written.") from error
    before = kept.replace("\r\n", "\n")
    after = merged(host, shown, before, path, name)
    if after == before:
        say(f"{path} has this server already.")
        return
    lines = (before.splitlines(), after.splitlines())
    say("\n".join(difflib.unified_diff(*lines, str(path), "with kg-sextant", n=2, lineterm="")))
    if name in _servers(host, before):
        warn(f"This replaces the server {name}. To add one beside it, give it another name, as in --name people.")
    if sys.stdin.isatty():
        typer.confirm("Write this?", abort=True, err=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    backup = path.with_name(f"{path.name}.bak")
    if there:
        write_private(backup, kept.encode())
    mode = stat.S_IMODE(path.stat().st_mode) if there else None
    write_private(path, (after.replace("\n", "\r\n") if "\r\n" in kept else after).encode())
    if mode is not None:
        path.chmod(mode)
    say(f"Written: {path}{f' (before: {backup})' if there else ''}. Restart the client.")


def _servers(host: Host, text: str) -> Mapping[str, object]:
    """Return the servers in the text of a client's file, which `merged` has read."""
    whole = parse_toml(text) if HOSTS[host].is_toml else read_commented(text if text.strip() else "{}")
    return _OBJECT.validate_python(_OBJECT.validate_python(whole).get(HOSTS[host].section, {}))


def without_secrets(whole: Server, redactor: Redactor) -> Server:
    """Return what a host starts or calls, with the names of variables in place of what is secret."""
    if isinstance(whole, Remote):
        return Remote(redactor.message(whole.url), whole.token and f"<{variable('server_token')}>")
    environment = {
        name: value if not may_hold_secret(name) and redactor.message(value) == value else f"<{name}>"
        for name, value in whole.environment.items()
    }
    return Launch(whole.command, tuple(map(redactor.message, whole.arguments)), environment)


def _left_out(whole: Server, shown: Server) -> list[str]:
    if isinstance(whole, Launch) and isinstance(shown, Launch):
        names = [name for name in whole.environment if whole.environment[name] != shown.environment[name]]
        return [*names, *(["what stands in place of … in the arguments"] if whole.arguments != shown.arguments else [])]
    return ["the token, or the part of the URL that … replaces"] if whole != shown else []


def _require_shown_as_it_is(text: str) -> None:
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"The block holds {in_quotes(text[error.start])}, which output in {error.encoding} cannot. "
            "Set PYTHONUTF8=1 in the environment and run it again."
        ) from error


def _whole(named: NamedGraph) -> str:
    """Return a graph as it is called from any folder.

    Raises:
        InvalidRequest: There is no such graph.
    """
    graph = named.graph or ""
    require_graph(graph)
    path = path_of(graph)
    return graph if path is None else str(path.resolve())


def launch(called: Invocation, graphs: Sequence[NamedGraph]) -> Launch:
    """Return how a client starts this very installation with the settings of this run, by absolute paths.

    Args:
        called: This run.
        graphs: The graphs.

    Raises:
        InvalidRequest: This runs from a cache, and nothing could install it again, or there is no such graph.
    """
    command, *words = lasting_command(called.environ)
    file = ["--config", str(called.config.resolve())] if called.config is not None else []
    named = [f"{each.name}={_whole(each)}" if each.name is not None else _whole(each) for each in graphs]
    environment = {key: value for key, value in sorted(called.environ.items()) if key.startswith(ENVIRONMENT_PREFIX)}
    environment.pop(f"{ENVIRONMENT_PREFIX}GRAPH", None)
    return Launch(command, (*words, *file, "serve", *named), environment)
