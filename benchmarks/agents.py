"""The reference agents on the bundled sample: what the policy without a model gets right, and what the loop costs."""

import re
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Final

from benchmarks.bench import Bench
from benchmarks.figures import Line, Section, Target, line_of
from benchmarks.graphs import bundled_sample
from benchmarks.quality_questions import QUESTIONS, Question, read_questions
from benchmarks.timing import Timings, race, time_once
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.store import open_store
from kg_adapters.requests import SurroundingsRequest
from kg_agents.answers import AgentAnswer
from kg_agents.knowledge import KnowledgeGraph, connect
from kg_agents.oda import ODA, OdaSettings, OdaWithoutModel
from kg_agents.scripted_llm import ScriptedLlm
from kg_server.app import build_server
from kg_server.settings import EmbedderName, Settings

ITERATIONS: Final = 1
MOST_EDGES: Final = 5_000
_MADE_UP: Final = (
    Question(question="Where was he born?", topic="Q5879", relation="P19", direction="out", answer="Q1794"),
    Question(question="Who was influenced by him?", topic="Q937", relation="P737", direction="in", answer="Q42156"),
)
_ACTION: Final = "Thought: I look around.\nAction: GetNeighbor\nEntity_id: {}"


async def measure_agents(bench: Bench) -> Section:
    """Answer questions about the sample without a model, and time the loop of ODA with a model that takes no time."""
    questions = (read_questions() if QUESTIONS.is_file() else list(_MADE_UP))[: bench.size]
    store = bundled_sample(bench.cache).store
    notes: list[str] = []
    lines: list[Line] = []
    kinds: tuple[tuple[EmbedderName, str], ...] = (("minilm", "meaning and spelling"), ("lexical", "spelling alone"))
    for embedder, name in kinds:
        bench.tell(f"Answering {len(questions)} questions without a model, by {name} …")
        async with _served(store, embedder) as graph:
            hits, taken = await _answered(graph, questions)
        lines.append(line_of(f"ODA without a model, a question, by {name}", {"ours": taken}))
        notes.append(f"By {name}: Hits@1 {hits[0]:.3f}, Hits@5 {hits[1]:.3f} of {len(questions)} questions.")
    hits = await _by_words(store, questions)
    notes.append(f"By shared words alone, as a baseline: Hits@1 {hits[0]:.3f}, Hits@5 {hits[1]:.3f}.")
    async with _served(store, "minilm") as graph:
        lines.append(await _loop(graph, questions))
    notes.append(
        "A hit is a triple over the right relation and direction among the first kept. Loop: warm, no model time."
    )
    return Section("agents", "The reference agents on the bundled sample", tuple(lines), tuple(notes))


async def _answered(graph: KnowledgeGraph, questions: Sequence[Question]) -> tuple[tuple[float, float], Timings]:
    agent = OdaWithoutModel(graph)
    seconds: list[float] = []
    first = five = 0
    for question in questions:
        answers: list[AgentAnswer] = []

        async def ask(asked: Question, kept: list[AgentAnswer] = answers) -> object:
            kept.append(await agent.answer(asked.question, [asked.topic]))
            return kept

        seconds.append(await time_once(ask, question))
        right = [_is_right(question, fact) for fact in answers[0].facts[:5]]
        first += right[:1] == [True]
        five += any(right)
    return (first / len(questions), five / len(questions)), Timings(tuple(seconds))


async def _by_words(store: Path, questions: Sequence[Question]) -> tuple[float, float]:
    """Return Hits@1 and Hits@5 of the plainest baseline: triples by the share of their words that the question has."""
    first = five = 0
    async with aclosing(LocalAdapter(open_store(store))) as graph:
        for question in questions:
            topic = graph.prefixes.expand(question.topic)
            around = await graph.surroundings(
                SurroundingsRequest((topic,), per_relation=MOST_EDGES, per_entity=MOST_EDGES)
            )
            right: list[tuple[float, bool]] = []
            for edge in range(len(around)):
                relation, far = int(around.relation[edge]), int(around.far[edge])
                inverse = bool(around.inverse[edge])
                names = around.relation_labels[relation], around.far_labels[far]
                shared = _alike(question.question, " ".join(name or "" for name in names))
                short = graph.prefixes.shorten(around.relations[relation], "relation")
                right.append((shared, short == question.relation and inverse == (question.direction == "in")))
            right.sort(key=lambda each: -each[0])
            first += any(hit for _, hit in right[:1])
            five += any(hit for _, hit in right[:5])
    return first / len(questions), five / len(questions)


def _alike(text: str, other: str) -> float:
    words, others = (set(re.findall(r"\w+", each.lower())) for each in (text, other))
    return len(words & others) / max(1, len(words | others))


def _is_right(question: Question, fact: Sequence[str]) -> bool:
    near = fact[0] if question.direction == "out" else fact[2]
    return near == question.topic and fact[1] == question.relation


async def _loop(graph: KnowledgeGraph, questions: Sequence[Question]) -> Line:
    """Time one iteration: observe, act, perform, reflect, remember; and the answer after it."""

    async def one(question: Question) -> object:
        fact = (await graph.neighbors(question.topic, limit=1)).triples[0]
        llm = ScriptedLlm([_ACTION.format(question.topic), f"Triples:\n{','.join(fact)}", "Answer: x"])
        agent = ODA(llm, graph, settings=OdaSettings(manner="paper", iterations=ITERATIONS))
        return await agent.answer(question.question, [question.topic])

    cases = questions[:40]
    for case in cases:
        await one(case)
    return line_of(
        "ODA, an iteration, without model time", await race({"ours": one}, cases), targets=(Target("median", 0.06),)
    )


@asynccontextmanager
async def _served(store: Path, embedder: EmbedderName) -> AsyncGenerator[KnowledgeGraph]:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.model_validate({"cache_folder": folder, "data_folder": folder, "embedder": embedder})
        async with (
            aclosing(LocalAdapter(open_store(store))) as adapter,
            connect(build_server(adapter, settings)) as graph,
        ):
            yield graph
