"""`kg-sextant explore`: a graph, or the record of a run, as a page in the browser."""

import threading
import webbrowser
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlencode

import anyio
import typer

from kg_adapters.errors import InvalidRequest
from kg_boundary.regular_files import read_regular
from kg_boundary.shown import one_line, shown
from kg_server.commands import options
from kg_server.commands.addresses import HTTP_HOST
from kg_server.commands.invocation import invocation
from kg_server.commands.output import warn
from kg_server.commands.recording import Recording
from kg_server.commands.serve import Served, serve_http, serve_watched, unblocked_standard_error
from kg_server.serving.http import MCP_PATH

if TYPE_CHECKING:
    from kg_server.mcp_server import SextantServer

TRACE_URI: Final = "kg-trace://run"
MAX_TRACE_BYTES: Final = 50_000_000
"""What a browser can show in a reasonable time."""
_MAX_TITLE: Final = 100


def explore(
    context: typer.Context,
    graph: options.GraphArguments = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Show the record of a run that `ask` kept, step by step.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port to serve at; 0 for any that is free.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Show graphs as a page in the browser: search them, walk them, query them and see the evidence of answers."""
    title, record, run_graph = ("", "", "") if trace is None else _read(trace)
    with unblocked_standard_error():
        loaded = invocation(context).load_for_any(graph=graph or ([run_graph] if run_graph else None))

        def prepare(server: "SextantServer") -> None:
            if record:
                server.resource(TRACE_URI, name="run", title=title, mime_type="application/jsonl")(lambda: record)

        def on_start(endpoint: str) -> None:
            place = f"#{urlencode({'trace': TRACE_URI})}" if record else ""
            page = f"{endpoint.removesuffix(MCP_PATH)}/{place}"
            warn(f"The page is at {page} ; Ctrl-C ends it.")
            if browser:
                # Some browsers in a terminal do not return before they end.
                threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()

        served = Served((HTTP_HOST, port), prepare=prepare, on_start=on_start)
        recorded = Recording(loaded.settings, invocation(context).environ)
        anyio.run(serve_watched, partial(serve_http, served=served), loaded.settings, recorded)


def _read(path: Path) -> tuple[str, str, str]:
    """Return the question of a recorded run, the record, and the graph that was asked.

    Raises:
        InvalidRequest: The file cannot be read, or is no record of a run.
    """
    from kg_agents.trace import InvalidTrace, RunLine, read_trace

    try:
        first = read_trace(path)[0]
        record = read_regular(path, MAX_TRACE_BYTES).decode()
    except InvalidTrace as error:
        raise InvalidRequest(one_line(str(error))) from error
    except OSError as error:
        raise InvalidRequest(f"The trace {path} cannot be read: {error.strerror}.") from error
    assert isinstance(first, RunLine)  # noqa: S101 - else it would not have been read
    return shown(first.question)[:_MAX_TITLE], record, first.graph
