"""`kg-sextant explore`: a graph, or the record of a run, as a page in the browser."""

import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlencode

import typer

from kg_adapters.errors import InvalidRequest
from kg_boundary.shown import one_line
from kg_server.commands import options
from kg_server.commands.addresses import HTTP_HOST
from kg_server.commands.answering import TRACE_URI, list_record, record_of
from kg_server.commands.invocation import invocation
from kg_server.commands.output import warn
from kg_server.commands.recording import Recording
from kg_server.commands.serve import Served, over_http, run, unblocked_standard_error
from kg_server.serving.http import MCP_PATH

if TYPE_CHECKING:
    from kg_server.graphs import GraphSet
    from kg_server.mcp_server import SextantServer


def explore(
    context: typer.Context,
    graph: options.GraphArguments = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Show the record of a run that `ask` kept, step by step.")
    ] = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port to serve at; 0 for any that is free.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Show graphs as a page in the browser: search, walk and query them, and see the evidence of answers.

    Where a model is set, the page asks it questions and shows its steps.
    """
    question, record, run_graph = ("", "", "") if trace is None else _read(trace)
    with unblocked_standard_error():
        called = invocation(context)
        chosen = graph or ([run_graph] if run_graph else None)
        settings = called.load_for_any(graph=chosen, model=model, base_url=base_url).settings
        if settings.llm.model is None and not record:
            from kg_server.commands.local_models import with_local_model

            settings = with_local_model(settings)

        def prepare(server: "SextantServer", graphs: "GraphSet") -> None:
            if settings.llm.model is not None:
                from kg_server.commands.asking import AskTool

                AskTool(server, graphs, settings, called.secrecy.redactor).provide()
            if record:
                list_record(server, TRACE_URI, question, lambda: record)

        def on_start(endpoint: str) -> None:
            place = f"#{urlencode({'trace': TRACE_URI})}" if record else ""
            page = f"{endpoint.removesuffix(MCP_PATH)}/{place}"
            warn(f"The page is at {page} ; Ctrl-C ends it.")
            if browser:
                # Some browsers in a terminal do not return before they end.
                threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()

        served = Served((HTTP_HOST, port), prepare=prepare, on_start=on_start, own_page=True)
        run(over_http(served), settings, Recording(settings, called.environ))


def _read(path: Path) -> tuple[str, str, str]:
    """Return the question of a recorded run, the record, and the graph that was asked.

    Raises:
        InvalidRequest: The file cannot be read, or is no record of a run.
    """
    from kg_agents.trace import InvalidTrace, RunLine, read_trace

    try:
        first = read_trace(path)[0]
    except InvalidTrace as error:
        raise InvalidRequest(one_line(str(error))) from error
    assert isinstance(first, RunLine)  # noqa: S101 - else it would not have been read
    return first.question, record_of(path), first.graph
