"""One question answered with the tools, by a real client of a real server process: `python -m kg_server.demo`."""

import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from tempfile import TemporaryDirectory
from textwrap import indent
from typing import Final, TypeVar

import anyio
from mcp import Client, MCPError, StdioServerParameters
from rich.console import Console
from rich.text import Text

from kg_boundary.shown import visible_line, visible_lines
from kg_server.answers.results import CandidatesResult, NeighborsResult, ObserveResult, PathsResult, Result
from kg_server.commands.config import block_for, launch
from kg_server.commands.graph_words import NamedGraph
from kg_server.commands.installation import lasting_command
from kg_server.commands.invocation import Invocation
from kg_server.commands.output import FailuresForPeople, escape_what_cannot_be_shown, only_cause, text_of
from kg_server.compose.tool import ComposeResult
from kg_server.memory.tool import AppendedResult, MemoryResult
from kg_server.settings import ENVIRONMENT_PREFIX

QUESTION: Final = "When was Goethe born, and through whom did he influence Albert Einstein?"
BORN: Final = "P569"
INFLUENCED_BY: Final = "P737"
SLOW_MACHINE_S: Final = "120"
"""How long a call may take: the first one reads much, and the machine may be busy."""

R = TypeVar("R", bound=Result)


class CallRefused(Exception):
    """A tool call that this walk relies on was refused."""


class Guide:
    """Calls tools and shows each call with its answer.

    Args:
        client: A connected client.
        console: Where people read.
    """

    def __init__(self, client: Client, console: Console) -> None:
        self._client = client
        self._console = console
        self.calls = 0

    async def call(self, kind: type[R], why: str, tool: str, **arguments: object) -> R:
        """Make one call.

        Args:
            kind: What the tool answers.
            why: What the call is for, as a person would say it.
            tool: The tool's name.
            arguments: Its arguments.

        Raises:
            CallRefused: The tool answered with an error.
        """
        started = time.perf_counter()
        result = await self._client.call_tool(tool, arguments)
        took_ms = 1_000 * (time.perf_counter() - started)
        self.calls += 1
        written = " ".join(f"{key}={value!r}" for key, value in arguments.items())
        self._console.print(Text.assemble("\n", f"{self.calls}. {why}"))
        self._console.print(
            Text.assemble(("   ▸ ", "cyan"), (tool, "bold cyan"), f" {written}  ", (f"{took_ms:.0f} ms", "dim"))
        )
        self._console.print(Text(indent(visible_lines(text_of(result)), " " * 5), "red" if result.is_error else "dim"))
        if result.is_error:
            raise CallRefused(f"{tool} was refused")
        return kind.model_validate(result.structured_content)


async def walk(guide: Guide) -> tuple[list[str], list[str]]:
    """Answer the question; return the answers and the triples that prove them, both as lines to read.

    Raises:
        CallRefused: A call was refused, or the answers do not agree with each other.
    """
    source = _best(await guide.call(CandidatesResult, "Which Goethe?", "Retrieve", text="Goethe", limit=3))
    born = await guide.call(NeighborsResult, "When was he born?", "GetNeighbor", entity=source, relation=BORN)
    target = _best(await guide.call(CandidatesResult, "Which Einstein?", "Retrieve", text="Albert Einstien", limit=3))
    linked = await _look(guide, source, target)
    found = await guide.call(
        ComposeResult,
        "Exactly those in between, and nobody else:",
        "Compose",
        expression=f"Intersect[Neighbor[{target}, influenced by], Neighbor[{source}, -influenced by]]",
    )
    answers = [node for _, _, _, node, kind in found.results if kind == "node"]
    evidence = list(_evidence(linked, answers))
    if not evidence:
        raise CallRefused("no path shows what the expression found")
    await _keep(guide, evidence)
    labels = linked.labels | linked.relations | born.labels | born.relations
    return (
        [value for *_, value in born.values] + [f"{labels[answer]} ({answer})" for answer in answers],
        [
            " | ".join(f"{labels[part]} ({part})" if part in labels else part for part in fact)
            for fact in (*born.values, *evidence)
        ],
    )


async def _look(guide: Guide, source: str, target: str) -> PathsResult:
    """Look around the two, and at what links them."""
    await guide.call(
        ObserveResult,
        "What near them bears on the question?",
        "observe",
        question=QUESTION,
        entities=[source, target],
        hops=2,
        max_tokens=500,
    )
    await guide.call(
        NeighborsResult,
        "Whom did Goethe influence?",
        "GetNeighbor",
        entity=source,
        relation=INFLUENCED_BY,
        direction="in",
    )
    return await guide.call(
        PathsResult,
        "How are the two linked?",
        "GetPath",
        source=source,
        target=target,
        max_hops=2,
        limit=5,
        question=QUESTION,
    )


async def _keep(guide: Guide, evidence: Sequence[tuple[str, str, str]]) -> None:
    kept = await guide.call(AppendedResult, "Keep what proves it:", "memory-append", triples=list(map(list, evidence)))
    await guide.call(MemoryResult, "It is still there in the next call:", "memory-read", memory=kept.memory)


def main(options: Sequence[str]) -> int:
    """Start a server with these options of `serve`, walk through the question and return the exit code."""
    console = Console(highlight=False, soft_wrap=True)
    try:
        with TemporaryDirectory() as folder:
            return anyio.run(_answer, _server(options, memories=folder), console)
    except KeyboardInterrupt:
        console.print(Text("Interrupted.", "bold red"))
        return 130
    except (CallRefused, MCPError, ExceptionGroup) as error:
        cause = only_cause(error)
        if not isinstance(cause, CallRefused | MCPError):
            raise
        console.print(Text(visible_lines(f"The demo failed: {cause}."), "bold red"))
        return 1


def _server(options: Sequence[str], *, memories: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "kg_server", "serve", "sample", *options],
        env={f"{ENVIRONMENT_PREFIX}DATA_FOLDER": memories, f"{ENVIRONMENT_PREFIX}TIMEOUT_S": SLOW_MACHINE_S},
    )


async def _answer(server: StdioServerParameters, console: Console) -> int:
    started = time.perf_counter()
    console.print(Text.assemble(("Question: ", "bold"), QUESTION))
    console.print(Text("Starting kg-sextant serve sample as a process of its own …", "dim"))
    async with Client(server) as client:
        tools = (await client.list_tools()).tools
        console.print(Text(f"Connected over stdio: {len(tools)} tools.", "dim"))
        guide = Guide(client, console)
        answers, evidence = await walk(guide)
    console.print(Text.assemble("\n", ("Answer: ", "bold green"), visible_line(", ".join(answers))))
    console.print(Text.assemble(("Evidence:", "bold")))
    for line in evidence:
        console.print(Text(f"  {visible_line(line)}"))
    console.print(Text(f"{guide.calls} calls, {time.perf_counter() - started:.1f} s with the server's start.", "dim"))
    _connect(console)
    return 0


def _connect(console: Console) -> None:
    """Show what makes an assistant start the server that was just seen."""
    block = block_for("claude", launch(Invocation({}), [NamedGraph(None, "sample")]))
    console.print(
        Text.assemble("\n", ("Now connect your assistant", "bold"), " with this block, or let it be written:")
    )
    write = shlex.join([*lasting_command({}), "config", "claude", "--write"])
    console.print(Text(f"{write}   (also cursor, vscode, codex)", "dim"), soft_wrap=True)
    console.print(Text(block.text))
    console.print(Text(block.where, "dim"))


def _best(found: CandidatesResult) -> str:
    if not found.candidates:
        raise CallRefused("nothing was found by that name")
    return found.candidates[0][0]


def _evidence(linked: PathsResult, answers: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Return the triples of every path of influence through an answer."""
    for path in linked.paths:
        if {relation for _, relation, _ in path} == {INFLUENCED_BY} and any(answer in path[0] for answer in answers):
            # From the end to the start, each triple goes on where the one before it ends.
            yield from ((head, relation, tail) for head, relation, tail in reversed(path))


if __name__ == "__main__":
    escape_what_cannot_be_shown()
    with FailuresForPeople(debug=False):
        ended = main(sys.argv[1:])
    sys.exit(ended)
