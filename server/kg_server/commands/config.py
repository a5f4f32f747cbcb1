"""`kg-sextant config`: the block that a host's configuration wants."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from kg_adapters.errors import InvalidRequest
from kg_boundary.shown import in_quotes
from kg_server.clients import Host, Launch, block_for
from kg_server.commands.invocation import Invocation, invocation
from kg_server.commands.output import warn
from kg_server.settings import APP, ENVIRONMENT_PREFIX


def config(
    context: typer.Context,
    host: Annotated[Host, typer.Argument(help="The host.")],
    graph: Annotated[str | None, typer.Argument(help="`sample`, RDF files, a store, or an endpoint's URL.")] = None,
) -> None:
    """Print the block to paste into a host's configuration; where it goes is said on standard error."""
    called = invocation(context)
    settings = called.load(graph=graph).settings
    block = block_for(host, launch(called, settings.graph))
    _require_shown_as_it_is(block.text)
    warn(block.where)
    print(block.text)


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
    where = str(graph_path.resolve()) if graph_path.exists() and graph != "sample" else graph
    environment = {key: value for key, value in sorted(called.environ.items()) if key.startswith(ENVIRONMENT_PREFIX)}
    environment.pop(f"{ENVIRONMENT_PREFIX}GRAPH", None)
    return Launch(start[0], (*start[1:], *file, "serve", where), environment)
