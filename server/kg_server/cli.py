"""The command line, the only place that reads the environment and wires everything together."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Annotated, Final

import typer

from kg_adapters.errors import InvalidRequest
from kg_server.commands.invocation import COMPLETING, Invocation, invocation, may_hold_secret
from kg_server.commands.output import EXIT_CODES, FailuresForPeople, escape_what_cannot_be_shown
from kg_server.settings import APP

_FOLDER: Final = "kg_server.commands"
_COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "serve": ("serve:serve", "Serve a graph to MCP clients."),
    "explore": ("explore:explore", "Show a graph as a page in the browser."),
    "draw": ("draw:draw", "Draw a part of a graph as a file."),
    "config": ("config:config", "Print or write your MCP client's configuration."),
    "call": ("call:call", "Call one tool and print its answer."),
    "tools": ("tools:tools", "List the tools, their arguments and examples."),
    "shell": ("shell:shell", "Open a prompt for tools, Compose and SPARQL."),
    "ask": ("ask:ask", "Answer a question with an agent and a model."),
    "replay": ("ask:replay", "Repeat a recorded run of `ask`."),
    "import": ("import_:import_", "Import files into a store that opens at once."),
    "subgraph": ("subgraph:subgraph", "Extract the neighbourhood of entities into a store."),
    "notes": ("notes:notes", "Check or draft the notes of a graph."),
    "doctor": ("doctor:doctor", "Check the installation, settings and a graph."),
    "token": ("token:token", "Make and revoke tokens for callers over HTTP."),
    "eval": ("evaluate:evaluate", "Run benchmarks on your model."),
}
"""Where each command is, and what it does; only the one that is called is loaded."""


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
        for name in filter(may_hold_secret, list(os.environ)):
            del os.environ[name]
    escape_what_cannot_be_shown()
    with FailuresForPeople(debug=debug, redacted=called.secrecy.message):
        given = [word for word in words if word != "--debug"]
        # A shell that asks for completion hands the words over in the environment.
        completed = (called.environ.get("COMP_WORDS") or called.environ.get("_TYPER_COMPLETE_ARGS") or "").split()[1:]
        command = _command(completed if COMPLETING in called.environ else given)
        _refuse_tool(command, given)
        application(command, only_listed=True)(given, prog_name=APP, obj=called)


def application(command: str | None = None, *, only_listed: bool = False) -> typer.Typer:
    """Return the program with one of its commands or, where there is none of this name, with all.

    Args:
        command: The name.
        only_listed: Whether all, where they are all there, can only be listed and not called, which loads none.
    """
    app = typer.Typer(
        name=APP,
        help="Serve a knowledge graph to LLM agents over MCP.",
        epilog=f"Exit codes: {'; '.join(f'{code} {meaning}' for code, meaning in EXIT_CODES.items())}.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_globals)
    named = command if command in _COMMANDS else None
    for name in _COMMANDS if named is None else (named,):
        place, short_help = _COMMANDS[name]
        listed = only_listed and named is None
        found: object = _listed if listed else EntryPoint(name, f"{_FOLDER}.{place}", _FOLDER).load()
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name, short_help=short_help)
        else:
            assert callable(found)  # noqa: S101 - a command is a function
            app.command(name, short_help=short_help)(found)
    return app


def _listed() -> None:
    """Stand in the list of commands."""


def _command(words: Sequence[str]) -> str | None:
    """Return the word that names a command: the first that is no option, and no option's value."""
    rest = iter(words)
    for word in rest:
        if word == "--help":
            # It lists all commands, whatever follows.
            return None
        if word == "--config":
            next(rest, None)
        elif not word.startswith("-"):
            return word
    return None


def _refuse_tool(command: str | None, words: Sequence[str]) -> None:
    """Refuse the name of a tool in place of a command.

    Raises:
        InvalidRequest: It is one; the message has the command that calls it.
    """
    if command is None or command in _COMMANDS:
        return
    from kg_server.commands.tools import EXAMPLES  # noqa: PLC0415 - it is only needed on the way to an error

    tool = next((each for each in EXAMPLES if each.casefold() == command.casefold()), None)
    if tool is not None:
        place = words.index(command)
        written = shlex.join([APP, *words[:place], "call", tool, *words[place + 1 :]])
        raise InvalidRequest(f"{tool} is a tool, not a command. Call it: {written}")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{APP} {version_of(APP)}")
        raise typer.Exit


def _globals(
    context: typer.Context,
    config_file: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="The settings file (TOML).")
    ] = None,
    debug: Annotated[  # noqa: ARG001 - taken out by main, stands here for --help
        bool, typer.Option("--debug", help="Show tracebacks of errors; may also follow the command.")
    ] = False,
    version: Annotated[  # noqa: ARG001 - acts through its callback
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    called = invocation(context)
    context.obj = Invocation(called.environ, config_file, called.secrecy)
