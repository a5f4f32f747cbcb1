"""Real questions of one hop: `observe` by time and by what it shows, and the reference agents without a model."""

import json
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

from mcp import Client
from mcp.server import MCPServer
from pydantic import BaseModel, ConfigDict

from benchmarks.figures import Figure, Line, Section, Target, Timings, line_of, race, time_once
from benchmarks.graphs import Bench, Pair, bundled_sample
from benchmarks.world.findings import Wanted, ask
from kg_adapters.embedding import CachedEmbedder, MiniLmEmbedder
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.store import open_store
from kg_adapters.local.vectors.labels import build_label_vectors
from kg_adapters.models import Direction
from kg_adapters.prefixes import Position
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Iri, Node
from kg_agents.evidence.answers import AgentAnswer
from kg_agents.llm import ScriptedLlm
from kg_agents.papers.oda import ODA, OdaSettings, OdaWithoutModel
from kg_agents.tools.knowledge import KnowledgeGraph, connect
from kg_server.app import build_server
from kg_server.observation.answer import observation
from kg_server.observation.scoring import RelationFirstScorer, Scorer, SpellingScorer
from kg_server.observation.search import Reach
from kg_server.settings import Settings

QUESTIONS: Final = Path(__file__).parents[2] / "shared" / "data" / "simplequestions-dev.jsonl"
HOPS: Final = 3
_WIKIDATA: Final = "http://www.wikidata.org/entity/"
# The vectors of all labels of a large graph take minutes; letters stand in for those of the others.
_MOST_LABELS: Final = 40_000
_MOST_COLD: Final = 100
_MOST_ANSWERS: Final = 1_000
_LOOPS: Final = 40
_ACTION: Final = "Thought: I look around.\nAction: GetNeighbor\nEntity_id: {}"


class Question(BaseModel):
    """A question about a topic; every edge over the relation in the direction is a right answer."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    question: str
    topic: str
    relation: str
    direction: Direction


_MADE_UP: Final = (
    Question(question="Where was he born?", topic="Q5879", relation="P19", direction="out"),
    Question(question="Who was influenced by him?", topic="Q937", relation="P737", direction="in"),
)


def read_questions(most: int) -> list[Question]:
    """Return the first questions of the shared file, or two made-up ones where it is missing."""
    if not QUESTIONS.is_file():
        return [*_MADE_UP]
    lines = QUESTIONS.read_text(encoding="utf-8").splitlines()
    return [Question.model_validate(json.loads(line)) for line in lines[:most]]


def questions_of(bench: Bench) -> list[Pair]:
    """Return real questions about entities of the graph, each with its entity, or made-up ones where there are none."""
    real = [(each.question, _WIKIDATA + each.topic) for each in read_questions(2**31)]
    found = [case for case in real if bench.store.index.nodes.find(case[1]) is not None]
    made_up = [("what is it known for?", entity) for entity in (*bench.work.hubs, *bench.work.low)]
    return (found or made_up)[: bench.size]


async def observed(adapter: LocalAdapter, scorer: Scorer, case: Pair) -> object:
    """Observe three hops around the entity of a question."""
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


async def measure_observe(bench: Bench) -> Section:
    """Observe three hops around the topics of questions: asked for the first time, asked again, and by letters."""
    model = MiniLmEmbedder()
    model.load()
    bench.tell("Embedding the labels, if that was not done by an earlier run …")
    await build_label_vectors(bench.store.folder, bench.store.index, model, max_labels=_MOST_LABELS)
    vectors = await bench.adapter.label_vectors(model.fingerprint)
    cases = questions_of(bench)
    known = RelationFirstScorer(CachedEmbedder(model, memory_rows=500_000, path=None), vectors=vectors)

    async def cold(case: Pair) -> object:
        unknown = RelationFirstScorer(CachedEmbedder(model, path=None), vectors=vectors)
        return await observed(bench.adapter, unknown, case)

    warm = partial(observed, bench.adapter, known)
    lines = [line_of("observe, cold", await race({"ours": cold}, cases[:_MOST_COLD], budget_s=30), Target(60e-3))]
    for case in cases:
        await warm(case)
    lines.append(line_of("observe, warm", await race({"ours": warm}, cases), Target(10e-3)))
    letters = partial(observed, bench.adapter, SpellingScorer())
    lines.append(line_of("observe, by letters alone", await race({"ours": letters}, cases)))
    notes = (
        f"{len(cases)} questions, each about one entity. Cold: the question is asked for the first time.",
        f"Vectors of relations, and of the {_MOST_LABELS:,} best connected labels, are there.",
    )
    return Section("observe", f"observe in process, {HOPS} hops", lines, notes)


async def measure_one_hop(bench: Bench) -> Section:
    """Ask `observe` real questions, of any number of hops by default, and look for the one fact that answers."""
    questions = read_questions(bench.size)
    bench.tell(f"Asking {len(questions)} questions about the sample …")
    held, tokens = list[bool](), list[float]()
    async with _sample(bench, bench.cache) as (graph, server), Client(server) as client:
        for question in questions:
            reply = await ask(client, "observe", question=question.question, entities=[question.topic])
            held.append(any(fact.stands_in(reply.text) for fact in await _right(graph, question)))
            tokens.append(reply.tokens)
    lines = (
        Line("the fact stands in the answer", Figure(sum(held) / len(held), "share"), Target(0.99, least=True)),
        Line("length of the answer", Figure.of(Timings(tuple(tokens)), "tokens"), Target(500)),
    )
    note = "A question is answered by any fact over its relation in its direction."
    return Section("one-hop", f"observe, {len(held)} questions of one hop about the sample", lines, (note,))


async def measure_agents(bench: Bench) -> Section:
    """Answer questions about the sample without a model, and time the loop of ODA with a model that takes no time."""
    questions, ranks, seconds = read_questions(bench.size), list[int | None](), list[float]()
    bench.tell(f"Answering {len(questions)} questions without a model …")
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        _, server = await stack.enter_async_context(_sample(bench, folder))
        graph = await stack.enter_async_context(connect(server))
        agent = OdaWithoutModel(graph)
        for question in questions:
            answers: list[AgentAnswer] = []

            async def answer(asked: Question, kept: list[AgentAnswer] = answers) -> None:
                kept.append(await agent.answer(asked.question, [asked.topic]))

            seconds.append(await time_once(answer, question))
            ranks.append(next((rank for rank, fact in enumerate(answers[0].facts) if _hits(question, fact)), None))
        loops = await race({"ours": partial(_loop, graph)}, questions[:_LOOPS])
    lines = (
        line_of("ODA without a model, a question", {"ours": Timings(tuple(seconds))}),
        line_of("ODA, an iteration, without model time", loops, Target(60e-3)),
    )
    first, five = (sum(rank is not None and rank < most for rank in ranks) / len(ranks) for most in (1, 5))
    notes = (
        f"Hits@1 {first:.3f}, Hits@5 {five:.3f} of {len(ranks)} questions without a model.",
        "A hit is a triple over the right relation and direction among the first kept.",
    )
    return Section("agents", "The reference agents on the bundled sample", lines, notes)


async def _loop(graph: KnowledgeGraph, question: Question) -> object:
    """Run one iteration (observe, act, perform, reflect, remember) and the answer after it."""
    fact = (await graph.neighbors(question.topic, limit=1)).triples[0]
    llm = ScriptedLlm([_ACTION.format(question.topic), f"Triples:\n{','.join(fact)}", "Answer: x"])
    agent = ODA(llm, graph, settings=OdaSettings(manner="paper", iterations=1))
    return await agent.answer(question.question, [question.topic])


def _hits(question: Question, fact: Sequence[str]) -> bool:
    near = fact[0] if question.direction == "out" else fact[2]
    return near == question.topic and fact[1] == question.relation


async def _right(graph: LocalAdapter, question: Question) -> list[Wanted]:
    """Return what answers a question: by the ids or the labels of each part of a fact."""
    topic, relation = graph.prefixes.expand(question.topic), graph.prefixes.expand(question.relation, "relation")
    assert isinstance(relation, Iri)
    request = NeighborRequest(
        (topic,), direction=question.direction, relations=frozenset({relation}), limit=_MOST_ANSWERS
    )
    page = (await graph.neighbors(request))[topic]
    ends = [triple.tail if question.direction == "out" else triple.head for triple in page.triples]
    labels = await graph.labels([topic, relation, *ends])

    def spelled(node: Node, position: Position = "entity") -> tuple[str, ...]:
        short = graph.prefixes.shorten(node, position)
        return (short, labels[node]) if node in labels else (short,)

    return [Wanted((spelled(topic), spelled(relation, "relation"), spelled(end))) for end in ends]


@asynccontextmanager
async def _sample(bench: Bench, folder: Path) -> AsyncGenerator[tuple[LocalAdapter, MCPServer[None]]]:
    settings = Settings(cache_folder=folder, data_folder=folder / "data")
    async with aclosing(LocalAdapter(open_store(bundled_sample(bench.cache).store))) as graph:
        yield graph, build_server(graph, settings)


async def _not_told(hop: int) -> None:
    del hop
