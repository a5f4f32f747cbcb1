"""`observe` in process: what is known already, what is asked for the first time, and a plain implementation."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from benchmarks.bench import Bench
from benchmarks.figures import Line, Section, Target, line_of
from benchmarks.peers.plain_observe import plain_observe
from benchmarks.peers.rdflib_graph import RdflibPeer
from benchmarks.quality_questions import QUESTIONS, read_questions
from benchmarks.timing import race
from kg_adapters.embedding import CachedEmbedder, MiniLmEmbedder
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.vectors.labels import build_label_vectors
from kg_adapters.vectors import LabelVectors
from kg_server.observation.answer import observation
from kg_server.observation.reach import Reach
from kg_server.observation.scoring import RelationFirstScorer, Scorer, SpellingScorer

Asked: TypeAlias = tuple[str, str]

HOPS: Final = 3
_WIKIDATA: Final = "http://www.wikidata.org/entity/"
_PLAIN_CASES: Final = 2
# The vectors of all labels of a large graph take minutes; letters stand in for those of the others.
_MOST_LABELS: Final = 40_000
_MOST_COLD: Final = 100


async def measure_observe(bench: Bench) -> Section:
    """Observe three hops around the topics of questions: asked for the first time, asked again, and by letters."""
    model = MiniLmEmbedder()
    model.load()
    bench.tell("Embedding the labels, if that was not done by an earlier run …")
    await build_label_vectors(bench.store.folder, bench.store.index, model, max_labels=_MOST_LABELS)
    vectors = await bench.adapter.label_vectors(model.fingerprint)
    assert vectors is not None
    cases = questions_of(bench)
    lines = [
        await _cold(bench, model, vectors, cases[:_MOST_COLD]),
        await _warm(bench.adapter, model, vectors, cases),
        await _spelling(bench.adapter, cases),
    ]
    if bench.with_peers:
        lines.append(await _plain(bench, model, vectors, cases[:_PLAIN_CASES]))
    notes = (
        f"{len(cases)} questions, each about one entity. Cold: the question is asked for the first time.",
        f"Vectors of relations, and of the {_MOST_LABELS:,} best connected labels, are there.",
        "Plain: rdflib in memory, every neighbour, and one call of the same model for each text.",
    )
    return Section("observe", f"observe in process, {HOPS} hops", tuple(lines), notes)


async def _cold(bench: Bench, model: MiniLmEmbedder, vectors: LabelVectors, cases: Sequence[Asked]) -> Line:
    async def ours(case: Asked) -> object:
        return await _observe(
            bench.adapter, RelationFirstScorer(CachedEmbedder(model, path=None), vectors=vectors), case
        )

    targets = (Target("median", 0.12), Target("p90", 0.18))
    return line_of("observe, cold", await race({"ours": ours}, cases, budget_s=30), targets=targets)


async def _warm(adapter: LocalAdapter, model: MiniLmEmbedder, vectors: LabelVectors, cases: Sequence[Asked]) -> Line:
    scorer = RelationFirstScorer(CachedEmbedder(model, memory_rows=500_000, path=None), vectors=vectors)
    for case in cases:
        await _observe(adapter, scorer, case)

    async def ours(case: Asked) -> object:
        return await _observe(adapter, scorer, case)

    targets = (Target("median", 10e-3), Target("p90", 25e-3))
    return line_of("observe, warm", await race({"ours": ours}, cases), targets=targets)


async def _spelling(adapter: LocalAdapter, cases: Sequence[Asked]) -> Line:
    async def ours(case: Asked) -> object:
        return await _observe(adapter, SpellingScorer(), case)

    return line_of("observe, by letters alone", await race({"ours": ours}, cases))


async def _plain(bench: Bench, model: MiniLmEmbedder, vectors: LabelVectors, cases: Sequence[Asked]) -> Line:
    peer = next(peer for peer in bench.peers if isinstance(peer, RdflibPeer))

    async def ours(case: Asked) -> object:
        return await _observe(
            bench.adapter, RelationFirstScorer(CachedEmbedder(model, path=None), vectors=vectors), case
        )

    async def plain(case: Asked) -> object:
        return await plain_observe(peer, model, *case, HOPS)

    timings = await race({"ours": ours, "plain rdflib": plain}, cases, budget_s=60)
    return line_of(f"observe, cold, the first {len(cases)} questions", timings)


async def _observe(adapter: LocalAdapter, scorer: Scorer, case: Asked) -> object:
    question, entity = case
    return await observation(
        adapter,
        scorer,
        question=question,
        entities=[f"<{entity}>"],
        reach=Reach(hops=HOPS, timeout_s=60),
        max_tokens=2_000,
        on_hop=_not_told,
    )


def questions_of(bench: Bench) -> list[Asked]:
    """Return real questions about entities of the graph, or made-up ones where there are none."""
    if QUESTIONS.is_file():
        known = bench.store.index.nodes
        real = [(each.question, _WIKIDATA + each.topic) for each in read_questions()]
        found = [case for case in real if known.find(case[1]) is not None]
        if found:
            return found[: bench.size]
    return [("what is it known for?", entity) for entity in (*bench.work.hubs, *bench.work.low)][: bench.size]


async def _not_told(hop: int) -> None:
    del hop
