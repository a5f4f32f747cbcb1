"""The questions about the world, each answered by one call that a good assistant would make; the calls are data."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from mcp import Client
from pydantic import BaseModel, ConfigDict, TypeAdapter

from benchmarks.world.answers import Reply, ask
from benchmarks.world.gold import completed
from benchmarks.world.graph import World
from benchmarks.world.matching import Given, is_right
from benchmarks.world.plain import Spent, plain_answer
from benchmarks.world.questions import YES_NO, Asked

CALLS: Final = Path(__file__).parent / "calls.json"
SPARQL: Final = "Sparql with names"
COMPOSE: Final = "Compose"


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


Way: TypeAlias = Callable[[Client, Calls], Awaitable[tuple[Reply, Given]] | None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call gave.

    Args:
        asked: The question.
        right: Whether it is the answer.
        spent: What it cost.
    """

    asked: Asked
    right: bool
    spent: Spent


def read_calls(path: Path = CALLS) -> Mapping[str, Calls]:
    """Read the calls by the ids of the questions."""
    return TypeAdapter(dict[str, Calls]).validate_python(json.loads(path.read_bytes()))


async def outcomes(client: Client, world: World, questions: Sequence[Asked], way: str) -> list[Outcome]:
    """Make the one call for each question that can be answered this way."""
    calls, found = read_calls(), list[Outcome]()
    for asked in questions:
        made = WAYS[way](client, calls[asked.id])
        if made is not None:
            reply, given = await made
            if asked.kind == YES_NO and not given.values:
                # Whoever asks for what is so is answered by whether there is any.
                given = Given(values=(str(bool(given.nodes)).lower(),)) if reply.data else given
            found.append(Outcome(asked, is_right(completed(world, asked), given), Spent.on([reply.text])))
    return found


def plain_outcomes(world: World, questions: Sequence[Asked]) -> list[Outcome]:
    """Return what each question costs somebody who has nothing but SPARQL, and writes every query rightly."""
    calls = read_calls()
    return [
        Outcome(asked, True, plain_answer(world, completed(world, asked), calls[asked.id].sparql))
        for asked in questions
    ]


async def _by_sparql(client: Client, calls: Calls) -> tuple[Reply, Given]:
    reply = await ask(client, "Sparql", query=calls.sparql)
    truth, rows = reply.data.get("truth"), reply.data.get("rows")
    if isinstance(truth, bool):
        return reply, Given(values=(str(truth).lower(),))
    firsts = [row[0] for row in TypeAdapter(list[list[str]]).validate_python(rows or [])]
    return reply, _given(firsts, reply)


def _by_compose(client: Client, calls: Calls) -> Awaitable[tuple[Reply, Given]] | None:
    return None if calls.compose is None else _composed(client, calls.compose, first=calls.first)


async def _composed(client: Client, expression: str, *, first: bool) -> tuple[Reply, Given]:
    reply = await ask(client, "Compose", expression=expression)
    results = TypeAdapter(list[list[str]]).validate_python(reply.data.get("results") or [])
    found = (((result,) if kind == "node" else (node, result)) for _, node, _, result, kind in results)
    # A node without a name is an entry that holds facts, and no answer to anybody.
    cells = [cell for row in found for cell in row if cell and not cell.startswith("_:")]
    return reply, _given(cells[:1] if first else cells, reply)


def _given(cells: Sequence[str], reply: Reply) -> Given:
    nodes = tuple(cell for cell in cells if cell.startswith("w:"))
    values = tuple(cell for cell in cells if not cell.startswith("w:"))
    return Given(nodes, values, "" if cells else reply.text)


WAYS: Final[Mapping[str, Way]] = {SPARQL: _by_sparql, COMPOSE: _by_compose}
