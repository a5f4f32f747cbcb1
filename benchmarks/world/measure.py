"""The section of the benchmark that asks the questions about the world."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Final

from mcp import Client

from benchmarks.bench import Bench
from benchmarks.figures import Figure, Line, Section, Target
from benchmarks.timing import Timings
from benchmarks.world.findings import (
    EXACT,
    IN_LITTLE,
    IN_ONE,
    NO_NAME,
    NO_NEIGHBOR,
    STATED,
    Finding,
    failing,
    findings,
    share,
)
from benchmarks.world.generated import PER_KIND, generated
from benchmarks.world.graph import World
from benchmarks.world.questions import (
    INVERSE,
    LITERAL,
    NO_SUCH_ENTITY,
    NO_SUCH_FACT,
    NO_VALUE,
    ONE_HOP,
    QUALIFIER,
    TWO_HOP,
    read_questions,
)
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_server.app import build_server
from kg_server.settings import Settings

WORLD: Final = "sample:world"
TARGETS: Final[Mapping[tuple[str, str], float]] = {
    (LITERAL, IN_ONE): 0.95,
    (ONE_HOP, IN_ONE): 0.95,
    (ONE_HOP, STATED): 0.95,
    (ONE_HOP, EXACT): 0.98,
    (TWO_HOP, IN_ONE): 0.95,
    (TWO_HOP, IN_LITTLE): 0.85,
    (INVERSE, IN_ONE): 0.95,
    (QUALIFIER, IN_ONE): 0.95,
    (NO_SUCH_FACT, NO_NEIGHBOR): 0.95,
    (NO_VALUE, NO_NEIGHBOR): 0.95,
    (NO_SUCH_ENTITY, NO_NAME): 1.0,
}
# The kinds with targets; of the others it is only told how far one answer goes.
_KINDS: Final = tuple(dict.fromkeys(kind for kind, _ in TARGETS))
_NAMED_MISSES: Final = 6


async def measure_world(bench: Bench) -> Section:
    """Ask the questions that came with the world and generated ones, and look for what answers them."""
    world = World()
    per_kind = min(PER_KIND, bench.size)
    questions = [*read_questions(), *generated(world, per_kind)]
    settings = Settings(cache_folder=bench.cache, data_folder=bench.cache / "data")
    bench.tell(f"Asking {len(questions)} questions about {WORLD} …")
    async with (
        aclosing(LocalAdapter(open_sample(bench.cache, WORLD))) as graph,
        Client(build_server(graph, settings)) as client,
    ):
        found = await findings(client, world, questions)
    title = f"Answers about {WORLD}: {len(found)} questions, {per_kind} generated of each kind with a target"
    return Section("world", title, tuple(_lines(found)), tuple(_misses(found)))


def _lines(found: Sequence[Finding]) -> Iterator[Line]:
    kinds = dict.fromkeys(finding.asked.kind for finding in found)
    for kind in (*_KINDS, *(kind for kind in kinds if kind not in _KINDS)):
        ours = [finding for finding in found if finding.asked.kind == kind]
        for claim in ours[0].claims if kind in _KINDS else (IN_ONE,):
            limit = TARGETS.get((kind, claim))
            targets = () if limit is None else (Target("median", limit, least=True),)
            yield Line(f"{kind} ({len(ours)}): {claim}", Figure(share(found, kind, claim), "share"), targets)
        for tool in ours[0].tokens if kind in _KINDS else ():
            tokens = Timings(tuple(float(finding.tokens[tool]) for finding in ours))
            yield Line(f"{kind}: length of {tool}", Figure(tokens.median, "tokens", p95=tokens.p95))


def _misses(found: Sequence[Finding]) -> Iterator[str]:
    """Name the first questions that miss a target, so that somebody can look why."""
    for kind, claim in TARGETS:
        missed = failing(found, kind, claim)
        if missed:
            more = f" and {len(missed) - _NAMED_MISSES} others" if len(missed) > _NAMED_MISSES else ""
            yield f"Not so, {kind}, {claim}: {', '.join(missed[:_NAMED_MISSES])}{more}."
