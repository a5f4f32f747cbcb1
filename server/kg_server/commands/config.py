"""`kg-sextant config`: the entry of this server in an MCP client's configuration."""

import difflib
import stat
import sys
from pathlib import Path
from typing import Annotated

import typer

from kg_adapters.errors import InvalidRequest
from kg_adapters.registry import SAMPLES, require_graph
from kg_boundary.private_files import write_private
from kg_boundary.secrets import Redactor
from kg_boundary.shown import in_quotes
from kg_server.client_files import client_file, merged
from kg_server.clients import Host, Launch, block_for
from kg_server.commands.invocation import Invocation, invocation
from kg_server.commands.output import say, warn
from kg_server.commands.starting import lasting_command
from kg_server.settings import ENVIRONMENT_PREFIX
from kg_server.settings_loading import SECRET_VARIABLES


def config(
    context: typer.Context,
    host: Annotated[Host, typer.Argument(metavar="CLIENT", help="Which MCP client.")],
    graph: Annotated[str | None, typer.Argument(help="`sample`, RDF files, a store, or an endpoint's URL.")] = None,
    show_secrets: Annotated[
        bool, typer.Option("--show-secrets", help="Print passwords, tokens and keys, in place of their names.")
    ] = False,
    write: Annotated[
        bool, typer.Option("--write", help="Show the difference, then add it to the client's file; keep a backup.")
    ] = False,
    file: Annotated[
        Path | None, typer.Option("--file", help="With --write: this file, not the client's usual one.")
    ] = None,
) -> None:
    """Print the block for your MCP client's configuration, or write it there with --write."""
    called = invocation(context)
    settings = called.load(graph=graph).settings
    require_graph(settings.graph)
    whole = launch(called, settings.graph)
    shown = whole if show_secrets else without_secrets(whole, settings.redactor)
    block = block_for(host, shown)
    _require_shown_as_it_is(block.text)
    if write:
        _write(host, shown, file or client_file(host, Path.home(), called.environ, sys.platform))
    else:
        warn(block.where)
    if left_out := _left_out(whole, shown):
        warn(f"Not shown: {', '.join(left_out)}. Fill it in, or run this again with --show-secrets.")
    if not write:
        print(block.text)


def _write(host: Host, shown: Launch, file: Path) -> None:
    """Add the server to a client's file, after showing what changes and, at a terminal, asking."""
    path = file.resolve()
    there = path.exists()
    try:
        before = path.read_text(encoding="utf-8") if there else ""
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{path} is not text in UTF-8. Nothing was written.") from error
    after = merged(host, shown, before, path)
    if after == before:
        say(f"{path} has this server already.")
        return
    lines = (before.splitlines(), after.splitlines())
    say("\n".join(difflib.unified_diff(*lines, str(path), "with kg-sextant", n=2, lineterm="")))
    if sys.stdin.isatty():
        typer.confirm("Write this?", abort=True, err=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    backup = path.with_name(f"{path.name}.bak")
    if there:
        write_private(backup, before.encode())
    mode = stat.S_IMODE(path.stat().st_mode) if there else None
    write_private(path, after.encode())
    if mode is not None:
        path.chmod(mode)
    say(f"Written: {path}{f' (before: {backup})' if there else ''}. Restart the client.")


def without_secrets(whole: Launch, redactor: Redactor) -> Launch:
    """Return how a host starts the server, with the names of variables in place of what is secret."""
    environment = {
        name: value if name not in SECRET_VARIABLES and redactor.message(value) == value else f"<{name}>"
        for name, value in whole.environment.items()
    }
    return Launch(whole.command, tuple(map(redactor.message, whole.arguments)), environment)


def _left_out(whole: Launch, shown: Launch) -> list[str]:
    names = [name for name in whole.environment if whole.environment[name] != shown.environment[name]]
    return [*names, *(["what stands in place of … in the arguments"] if whole.arguments != shown.arguments else [])]


def _require_shown_as_it_is(text: str) -> None:
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"The block holds {in_quotes(text[error.start])}, which output in {error.encoding} cannot. "
            "Set PYTHONUTF8=1 in the environment and run it again."
        ) from error


def launch(called: Invocation, graph: str) -> Launch:
    """Return how a client starts this very installation with the settings of this run, by absolute paths.

    Raises:
        InvalidRequest: This runs from a cache, and nothing could install it again.
    """
    command, *words = lasting_command(called.environ)
    file = ["--config", str(called.config.resolve())] if called.config is not None else []
    graph_path = Path(graph)
    where = str(graph_path.resolve()) if graph not in SAMPLES and graph_path.exists() else graph
    environment = {key: value for key, value in sorted(called.environ.items()) if key.startswith(ENVIRONMENT_PREFIX)}
    environment.pop(f"{ENVIRONMENT_PREFIX}GRAPH", None)
    return Launch(command, (*words, *file, "serve", where), environment)
