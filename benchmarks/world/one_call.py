"""The questions about the world, each answered by one recorded call."""

import math
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final, TypeAlias

from mcp import Client
from pydantic import BaseModel, ConfigDict, TypeAdapter

from benchmarks.figures import Figure, Line, Section, Target
from benchmarks.graphs import Bench
from benchmarks.world.findings import WORLD, Reply, ask, read_facts
from benchmarks.world.graph import World
from benchmarks.world.questions import FOLDER, YES_NO, Asked, read_questions
from benchmarks.world.split import NAMESPACES, PLAYED, id_in_world, split
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_server.app import build_server
from kg_server.commands.graphs import opening
from kg_server.settings import Settings

CALLS: Final = FOLDER / "calls.json"
_ENOUGH: Final = 0.99
_NEAR: Final = 0.005
_NUMBER: Final = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?")
_DATE: Final = re.compile(r"\d{4}(?:-\d\d(?:-\d\d)?)?")


class Calls(BaseModel):
    """How one question is put.

    Args:
        sparql: As a query with names, which are written as the question writes them.
        compose: As an expression; None where no expression answers it.
        first: Whether the answer of the expression is the first of what it lists.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sparql: str
    compose: str | None = None
    first: bool = False


@dataclass(frozen=True, slots=True)
class Given:
    """What an answer gives.

    Args:
        nodes: The short ids of entities and relations.
        values: Numbers, dates, `true` and `false`, as they are printed.
        unknown: The text of an answer that gives nothing.
    """

    nodes: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one question came to: whether the answer is right, and its tokens."""

    asked: Asked
    right: bool
    tokens: int


Asking: TypeAlias = Callable[..., Awaitable[Reply]]
"""Calls a tool by its name with arguments."""
Way: TypeAlias = Callable[[Asking, Calls], Awaitable[tuple[Reply, Given] | None]]


def read_calls(path: Path = CALLS) -> Mapping[str, Calls]:
    """Read the calls by the ids of the questions."""
    return TypeAdapter(dict[str, Calls]).validate_json(path.read_bytes())


async def outcomes(client: Client, questions: Sequence[Asked], way: str, graphs: Sequence[str] = ()) -> list[Outcome]:
    """Make the one call for each question that can be answered this way, over some of the server's graphs if named."""
    calls, found = read_calls(), list[Outcome]()
    over: dict[str, object] = {"graph": list(graphs)} if graphs else {}

    async def asking(tool: str, **arguments: object) -> Reply:
        return await ask(client, tool, **over, **arguments)

    wanted = {each.id: each.wanted for each in read_facts()}
    for asked in questions:
        made = await WAYS[way](asking, calls[asked.id])
        if made is not None:
            reply, given = made
            if asked.kind == YES_NO and not given.values:
                # A call that asks for what is so is answered by whether there is any.
                given = Given(values=(str(bool(given.nodes)).lower(),)) if reply.data else given
            found.append(Outcome(asked, is_right(asked, given, wanted.get(asked.id, "")), reply.tokens))
    return found


def is_right(asked: Asked, given: Given, wanted: str = "") -> bool:
    """Return whether an answer is the right one, by the rules of the world's README.

    Args:
        asked: The question.
        given: The answer.
        wanted: What the graph does not hold, where it cannot answer: then only an answer that names it is right.
    """
    if wanted:
        return not given.nodes and not given.values and wanted.casefold() in given.unknown.casefold()
    if asked.answer_ids:
        found, right = set(given.nodes), set(asked.answer_ids)
        return _agreement(len(found & right), len(found), len(right)) >= _ENOUGH
    matched = sum(any(_same(value, str(answer)) for value in given.values) for answer in asked.answers)
    return _agreement(matched, len(set(given.values)), len(asked.answers)) >= _ENOUGH


@asynccontextmanager
async def split_client(folder: Path) -> AsyncGenerator[Client]:
    """Give a client of a server of the two graphs into which the world is split."""
    graphs = {name: Settings(graph=str(path)) for name, path in split(World(), folder).items()}
    settings = Settings(cache_folder=folder, data_folder=folder / "data", graphs=graphs)
    async with opening(settings, patience_s=math.inf) as served, Client(build_server(served, settings)) as client:
        yield client


def played() -> list[Asked]:
    """Return the questions that are asked of the two graphs."""
    return [each for each in read_questions() if each.id in PLAYED]


async def measure_calls_for_answers(bench: Bench) -> Section:
    """Answer the questions that came with the world, each way by itself, and count what that took."""
    questions = read_questions()
    settings = Settings(cache_folder=bench.cache, data_folder=bench.cache / "data")
    async with (
        aclosing(LocalAdapter(open_sample(bench.cache, WORLD))) as graph,
        Client(build_server(graph, settings)) as client,
    ):
        ways = {way: await outcomes(client, questions, way) for way in WAYS}
    async with split_client(bench.cache) as client:
        ways["Compose over two graphs"] = await outcomes(client, played(), "Compose", list(NAMESPACES))
    lines = [line for way, found in ways.items() for line in _lines(way, found)]
    notes = [
        f"Wrong by {way}: {', '.join(wrong)}."
        for way, found in ways.items()
        if (wrong := [outcome.asked.id for outcome in found if not outcome.right])
    ]
    return Section("one-call", f"{len(questions)} questions about {WORLD}, each by one call", lines, notes)


async def _by_sparql(asking: Asking, calls: Calls) -> tuple[Reply, Given]:
    reply = await asking("Sparql", query=calls.sparql)
    truth, rows = reply.data.get("truth"), reply.data.get("rows")
    if isinstance(truth, bool):
        return reply, Given(values=(str(truth).lower(),))
    firsts = [row[0] for row in TypeAdapter(list[list[str]]).validate_python(rows or [])]
    return reply, _given(firsts, reply)


async def _by_compose(asking: Asking, calls: Calls) -> tuple[Reply, Given] | None:
    if calls.compose is None:
        return None
    reply = await asking("Compose", expression=calls.compose)
    results = TypeAdapter(list[list[str]]).validate_python(reply.data.get("results") or [])
    found = (((result,) if kind == "node" else (node, result)) for _, node, _, result, kind, *_ in results)
    # A node without a name is an entry that holds facts, and no answer to anybody.
    cells = [cell for row in found for cell in row if cell and not cell.startswith("_:")]
    return reply, _given(cells[:1] if calls.first else cells, reply)


WAYS: Final[Mapping[str, Way]] = {"Sparql with names": _by_sparql, "Compose": _by_compose}


def _given(cells: Sequence[str], reply: Reply) -> Given:
    ids = [id_in_world(cell) for cell in cells]
    nodes = tuple(cell for cell in ids if cell.startswith("w:"))
    values = tuple(cell for cell in ids if not cell.startswith("w:"))
    return Given(nodes, values, "" if cells else reply.text)


def _lines(way: str, found: Sequence[Outcome]) -> Iterator[Line]:
    """Yield how many of all answers are right, and of each kind, and how long they are."""
    right = Figure(sum(outcome.right for outcome in found) / len(found), "share")
    yield Line(f"{way}: right, of {len(found)}", right, Target(0.95, least=True))
    yield Line(f"{way}: median answer", Figure(_median(found), "tokens"), Target(150))
    for kind in dict.fromkeys(outcome.asked.kind for outcome in found):
        ours = [outcome for outcome in found if outcome.asked.kind == kind]
        what = f"{kind}, {way}: {sum(each.right for each in ours)} of {len(ours)} right"
        yield Line(what, Figure(_median(ours), "tokens"))


def _median(found: Sequence[Outcome]) -> float:
    return median(outcome.tokens for outcome in found)


def _agreement(both: int, found: int, wanted: int) -> float:
    """Return F1."""
    return 2 * both / (found + wanted) if found + wanted else 1.0


def _same(given: str, wanted: str) -> bool:
    if _DATE.fullmatch(wanted) and not wanted.isdigit():
        return given.startswith(wanted)
    numbers = [float(each[0].replace(",", "")) for text in (given, wanted) if (each := _NUMBER.match(text))]
    if len(numbers) == 2:
        return abs(numbers[0] - numbers[1]) <= _NEAR * abs(numbers[1])
    return given.casefold() == wanted.casefold()
