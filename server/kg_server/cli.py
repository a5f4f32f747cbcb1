"""The command line, the only place that reads the environment and wires everything together."""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Annotated

import typer

from kg_server.commands.ask import ask, replay
from kg_server.commands.call import call
from kg_server.commands.config import config
from kg_server.commands.doctor import doctor
from kg_server.commands.evaluate import evaluate
from kg_server.commands.failures import EXIT_CODES, FailuresForPeople
from kg_server.commands.import_ import import_
from kg_server.commands.invocation import Invocation, invocation
from kg_server.commands.output import escape_what_cannot_be_shown
from kg_server.commands.serve import serve
from kg_server.commands.shell import shell
from kg_server.commands.subgraph import subgraph
from kg_server.commands.tools import tools
from kg_server.settings import APP
from kg_server.settings_loading import SECRET_VARIABLES

app = typer.Typer(
    name=APP,
    help="Serve a knowledge graph to LLM agents over MCP.",
    epilog=f"Exit codes: {'; '.join(f'{code} {meaning}' for code, meaning in EXIT_CODES.items())}.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> None:
    """Run one command and exit.

    Args:
        arguments: The words after the program's name; those of this process if None.
        environ: The environment; that of this process if None.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    called = Invocation(dict(os.environ) if environ is None else environ)
    if environ is None:
        # What is started from here, such as a server of somebody else, need not know them.
        for name in SECRET_VARIABLES:
            os.environ.pop(name, None)
    escape_what_cannot_be_shown()
    with FailuresForPeople(debug=debug, redacted=called.secrecy.message):
        app([word for word in words if word != "--debug"], prog_name=APP, obj=called)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{APP} {version_of(APP)}")
        raise typer.Exit


@app.callback()
def _globals(  # pyright: ignore[reportUnusedFunction] - Typer calls it
    context: typer.Context,
    config_file: Annotated[Path | None, typer.Option("--config", help="A settings file (TOML).")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; allowed anywhere.")] = False,  # noqa: ARG001 - taken out by main, stands here for --help
    version: Annotated[  # noqa: ARG001 - acts through its callback
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    called = invocation(context)
    context.obj = Invocation(called.environ, config_file, called.secrecy)


app.command(short_help="Serve a graph to MCP clients.")(serve)
app.command(short_help="Print or write your MCP client's configuration.")(config)
app.command(short_help="Call one tool and print its answer.")(call)
app.command(short_help="List the tools, their arguments and examples.")(tools)
app.command(short_help="Open a prompt for tools, Compose and SPARQL.")(shell)
app.command(short_help="Answer a question with an agent and a model.")(ask)
app.command(short_help="Run a question again from its record.")(replay)
app.command("import", short_help="Import files into a store that opens at once.")(import_)
app.command(short_help="Extract what lies around entities into a store.")(subgraph)
app.command(short_help="Check the installation, settings and a graph.")(doctor)
app.add_typer(evaluate, name="eval", short_help="Run benchmarks on your model.")

if __name__ == "__main__":
    main()
