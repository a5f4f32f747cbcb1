"""The section of the benchmark that answers each question about the world by one call."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from statistics import median
from typing import Final

from mcp import Client

from benchmarks.bench import Bench
from benchmarks.figures import Base, Figure, Line, Peer, Section, Target, Unit
from benchmarks.world.answers import ask
from benchmarks.world.graph import World
from benchmarks.world.measure import WORLD
from benchmarks.world.one_call import WAYS, Outcome, outcomes, plain_outcomes
from benchmarks.world.plain import Spent, plain_schema
from benchmarks.world.questions import Asked, read_questions
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_server.app import build_server
from kg_server.settings import Settings

PLAIN: Final = "plain SPARQL"
_RIGHT: Final = Target("median", 0.95, least=True)
_SHORT: Final = Target("median", 150)
_LIMITS: Final[Mapping[Unit, Target]] = {"calls": Target("ratio", 0.5), "characters": Target("ratio", 1 / 3)}


async def measure_calls_for_answers(bench: Bench) -> Section:
    """Answer the questions that came with the world, each way by itself, and count what that took."""
    world, questions = World(), read_questions()
    settings = Settings(cache_folder=bench.cache, data_folder=bench.cache / "data")
    async with (
        aclosing(LocalAdapter(open_sample(bench.cache, WORLD))) as graph,
        Client(build_server(graph, settings)) as client,
    ):
        ways = {way: await outcomes(client, world, questions, way) for way in WAYS}
        schema = Spent.on([(await ask(client, "Schema")).text])
    plain = plain_outcomes(world, questions)
    lines = [line for way, found in ways.items() for line in _totals(way, found, plain, schema, plain_schema(world))]
    title = f"{len(questions)} questions about {WORLD}, each by one call, beside plain SPARQL with ids looked up"
    return Section("one-call", title, (*lines, *_kinds(questions, ways, plain)), tuple(_misses(ways)))


def _totals(
    way: str, found: Sequence[Outcome], plain: Sequence[Outcome], schema: Spent, plain_schema: Spent
) -> Iterator[Line]:
    """Yield what all questions took that can be answered this way; the schema counts on both sides."""
    yield Line(f"{way}: right, of {len(found)}", Figure(_share(found), "share"), (_RIGHT,))
    yield Line(f"{way}: median answer", Figure(_median(found), "tokens"), (_SHORT,))
    answered = {outcome.asked.id for outcome in found}
    theirs = [outcome.spent for outcome in plain if outcome.asked.id in answered]
    ours = [outcome.spent for outcome in found]
    for unit, target in _LIMITS.items():
        spent, against = (_sum(each, unit) for each in ([*ours, schema], [*theirs, plain_schema]))
        base = Base(PLAIN, Figure(against, unit), spent / against)
        yield Line(f"{way}: {unit}, with the schema", Figure(spent, unit), (target,), base)


def _kinds(
    questions: Sequence[Asked], ways: Mapping[str, Sequence[Outcome]], plain: Sequence[Outcome]
) -> Iterator[Line]:
    for kind in dict.fromkeys(asked.kind for asked in questions):
        costs = _median(_of(plain, kind))
        for way, found in ways.items():
            if ours := _of(found, kind):
                peers = {PLAIN: Peer(Figure(costs, "tokens"), costs / _median(ours))}
                what = f"{kind}, {way}: {sum(each.right for each in ours)} of {len(ours)} right"
                yield Line(what, Figure(_median(ours), "tokens"), (), None, peers)


def _misses(ways: Mapping[str, Sequence[Outcome]]) -> Iterator[str]:
    for way, found in ways.items():
        if wrong := [outcome.asked.id for outcome in found if not outcome.right]:
            yield f"Wrong by {way}: {', '.join(wrong)}."


def _of(found: Sequence[Outcome], kind: str) -> list[Outcome]:
    return [outcome for outcome in found if outcome.asked.kind == kind]


def _share(found: Sequence[Outcome]) -> float:
    return sum(outcome.right for outcome in found) / len(found)


def _median(found: Sequence[Outcome]) -> float:
    return median(outcome.spent.tokens for outcome in found)


def _sum(spent: Sequence[Spent], unit: Unit) -> float:
    return sum(each.calls if unit == "calls" else each.characters for each in spent)
