"""`kg-sextant config`: the block that a host's configuration wants."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from kg_adapters.errors import InvalidRequest
from kg_adapters.registry import SAMPLES
from kg_boundary.secrets import Redactor
from kg_boundary.shown import in_quotes
from kg_server.clients import Host, Launch, block_for
from kg_server.commands.invocation import Invocation, invocation
from kg_server.commands.output import warn
from kg_server.settings import APP, ENVIRONMENT_PREFIX
from kg_server.settings_loading import SECRET_VARIABLES


def config(
    context: typer.Context,
    host: Annotated[Host, typer.Argument(help="The host.")],
    graph: Annotated[str | None, typer.Argument(help="`sample`, RDF files, a store, or an endpoint's URL.")] = None,
    show_secrets: Annotated[
        bool, typer.Option("--show-secrets", help="Print passwords, tokens and keys, in place of their names.")
    ] = False,
) -> None:
    """Print the block to paste into a host's configuration; where it goes is said on standard error."""
    called = invocation(context)
    settings = called.load(graph=graph).settings
    whole = launch(called, settings.graph)
    shown = whole if show_secrets else without_secrets(whole, settings.redactor)
    block = block_for(host, shown)
    _require_shown_as_it_is(block.text)
    warn(block.where)
    if left_out := _left_out(whole, shown):
        warn(f"Not shown: {', '.join(left_out)}. Fill it in, or run this again with --show-secrets.")
    print(block.text)


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
    """Return how a host starts this very installation with the settings of this run, by absolute paths."""
    beside = Path(sys.executable).with_name(APP + Path(sys.executable).suffix)
    start = [str(beside)] if beside.is_file() else [sys.executable, "-m", "kg_server.cli"]
    file = ["--config", str(called.config.resolve())] if called.config is not None else []
    graph_path = Path(graph)
    where = str(graph_path.resolve()) if graph_path.exists() and graph not in SAMPLES else graph
    environment = {key: value for key, value in sorted(called.environ.items()) if key.startswith(ENVIRONMENT_PREFIX)}
    environment.pop(f"{ENVIRONMENT_PREFIX}GRAPH", None)
    return Launch(start[0], (*start[1:], *file, "serve", where), environment)
