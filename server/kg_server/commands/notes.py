"""kg-sextant notes: check the notes of a graph, or draft them."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import anyio
import typer

from kg_adapters.errors import InvalidRequest
from kg_adapters.protocol import KGAdapter
from kg_boundary.shown import counted, in_quotes, one_line
from kg_server.commands import options
from kg_server.commands.invocation import invocation
from kg_server.commands.noted_examples import asked_examples, called, move_solved, wrong_example
from kg_server.commands.output import ExitCode, say, text_of, warn
from kg_server.notes import Example, Notes, notes_file, read_notes
from kg_server.settings import APP, Settings

if TYPE_CHECKING:
    from mcp import Client

_SHOWN: Final = 100
_MOST_PROBLEMS: Final = 20
_LONGEST_CALL: Final = 300
_TIE: Final = " more tie with "
"""What an answer says that is no good example of a superlative."""
CHECK_S: Final = 30.0
"""How long the calls of notes may take."""


@dataclass(frozen=True, slots=True)
class CheckedNotes:
    """Notes, their file, and what is wrong with them as sentences that name lines."""

    file: Path
    notes: Notes
    problems: Sequence[str]

    def told(self) -> Sequence[str]:
        """Return the first problems with the name of the file, and how many more there are."""
        hidden = len(self.problems) - _MOST_PROBLEMS
        more = (f"Notes {self.file}: {hidden:,} more lines have problems.",) if hidden > 0 else ()
        return (*(f"Notes {self.file}: {each}" for each in self.problems[:_MOST_PROBLEMS]), *more)


async def checked_notes(settings: Settings, seconds: float) -> CheckedNotes | None:
    """Return the notes of the graph that the settings name, checked against it; None where it has none.

    Args:
        settings: They name the graph.
        seconds: How long the calls of all examples may take.

    Raises:
        KGError: The notes cannot be read, or the graph cannot be opened.
    """
    from kg_server.commands.graphs import connected

    file = notes_file(settings.graph, settings.notes)
    if file is None or not file.exists():
        return None
    notes = read_notes(file)
    async with connected(settings) as (graphs, client):
        graph = (await graphs.opened()).adapter
        return CheckedNotes(file, notes, await problems_of(notes, graph, client, seconds))


async def problems_of(notes: Notes, graph: KGAdapter, client: "Client", seconds: float) -> Sequence[str]:
    """Return what is wrong with notes, each as a sentence that names its line.

    Args:
        notes: The notes.
        graph: What they are about.
        client: A client of a server of it, which makes the calls of examples.
        seconds: How long all calls may take; examples behind them are counted as not checked.
    """
    from kg_server.naming.relations import used_relation

    problems = list(notes.problems)
    for preferred in notes.preferred:
        if await used_relation(graph, preferred.relation) is None:
            quoted = in_quotes(preferred.relation)
            problems.append(f"Line {preferred.number}: {quoted} is not the id of a relation that this graph uses.")
    checked = 0
    with anyio.move_on_after(seconds):
        tools = (await client.list_tools()).tools
        for example in notes.examples:
            problem = await wrong_example(client, tools, example)
            checked += 1
            if problem:
                problems.append(f"Line {example.number}: {problem}")
    if checked < len(notes.examples):
        problems.append(f"{len(notes.examples) - checked} examples were not checked within {seconds:g} seconds.")
    return problems


def notes(
    context: typer.Context,
    graph: options.GraphArgument = None,
    draft: Annotated[
        bool, typer.Option("--draft", help="Print a draft from what the graph holds, for you to edit.")
    ] = False,
    ask: Annotated[
        int, typer.Option(min=0, max=50, metavar="N", help="With --draft: let the model write and answer N questions.")
    ] = 0,
    add_solved: Annotated[
        bool, typer.Option("--add-solved", help="Move solved questions (learn) whose calls still hold into the notes.")
    ] = False,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
) -> None:
    """Check the notes of a graph, or draft them: kg-sextant notes people.ttl --draft > people.notes.md."""
    settings = invocation(context).load(graph=graph, model=model, base_url=base_url).settings
    if ask and not draft:
        raise InvalidRequest("--ask adds to a draft. Add --draft, or leave it out.")
    if draft:
        for line in (*anyio.run(_drafted, settings), *anyio.run(asked_examples, settings, ask)):
            say(line)
        return
    if add_solved:
        _move(settings)
        return
    found = anyio.run(checked_notes, settings, CHECK_S)
    if found is None:
        written = shlex.join([APP, "notes", settings.graph, "--draft"])
        raise InvalidRequest(f"The graph has no notes. Draft some: {settings.redactor.message(written)}")
    for line in found.told():
        warn(settings.redactor.message(line))
    if found.problems:
        raise typer.Exit(ExitCode.REFUSED)
    say(f"{found.file}: {counted(len(found.notes.examples), 'example')} checked.")


def _move(settings: Settings) -> None:
    """Move solved questions into the notes, and report those that stay."""
    moved = anyio.run(move_solved, settings)
    for line in moved.staying:
        warn(settings.redactor.message(line))
    say(f"{counted(moved.number, 'solved question')} moved into {moved.file}.")


async def _drafted(settings: Settings) -> Sequence[str]:
    """Return the lines of a draft, with the answers of those examples that work."""
    from kg_server.commands.graphs import connected
    from kg_server.notes_draft import Draft

    unnoted = settings.model_copy(update={"notes": None})
    async with connected(unnoted) as (graphs, client):
        draft = await Draft.of((await graphs.opened()).adapter)
        tools = (await client.list_tools()).tools
        examples: list[str] = []
        for each in draft.proposals:
            call = shlex.join(["Compose", f"expression={each.expression}"])
            example = Example(each.question, (call,), "", 0)
            if len(call) > _LONGEST_CALL or "`" in call or await wrong_example(client, tools, example):
                continue
            answer = one_line(text_of(await called(client, tools, call)))
            if _TIE in answer:
                continue
            answer = answer[:_SHOWN].strip()
            examples.extend((each.question, f"`{call}`", f"Answer: {answer}", ""))
    return (
        *("## About", *draft.about, ""),
        *("## Traps", *draft.traps, ""),
        *("## Prefer", *(f"<!-- {each} -->" for each in draft.preferred), ""),
        *("## Examples", *examples),
    )
