"""Whether the default answer of `observe` holds the one fact that a question about the sample asks for."""

from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

from mcp import Client

from benchmarks.bench import Bench
from benchmarks.figures import Figure, Line, Section, Target
from benchmarks.graphs import bundled_sample
from benchmarks.quality_questions import QUESTIONS, Question, read_questions
from benchmarks.timing import Timings
from benchmarks.world.answers import Wanted, ask
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.store import open_store
from kg_adapters.models import Direction
from kg_adapters.prefixes import Position
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Iri, Node
from kg_server.app import build_server
from kg_server.settings import Settings

_MOST_ANSWERS: Final = 1_000


async def measure_one_hop(bench: Bench) -> Section:
    """Ask `observe` real questions, of any number of hops by default, and look for the one fact that answers."""
    questions = read_questions()[: bench.size] if QUESTIONS.is_file() else []
    bench.tell(f"Asking {len(questions)} questions about the sample …")
    held: list[bool] = []
    tokens: list[float] = []
    settings = Settings(cache_folder=bench.cache, data_folder=bench.cache / "data")
    async with (
        aclosing(LocalAdapter(open_store(bundled_sample(bench.cache).store))) as graph,
        Client(build_server(graph, settings)) as client,
    ):
        for question in questions:
            reply = await ask(client, "observe", question=question.question, entities=[question.topic])
            held.append(any(fact.stands_in(reply.text) for fact in await _right(graph, question)))
            tokens.append(reply.tokens)
    note = "A question is answered by any fact over its relation in its direction."
    lines = _lines(held, tokens) if held else ()
    return Section("one-hop", f"observe, {len(held)} questions of one hop about the sample", lines, (note,))


def _lines(held: Sequence[bool], tokens: Sequence[float]) -> tuple[Line, ...]:
    lengths = Timings(tuple(tokens))
    return (
        Line("the fact stands in the answer", _share(held), (Target("median", 0.99, least=True),)),
        Line("length of the answer", Figure(lengths.median, "tokens", p95=lengths.p95), (Target("median", 500),)),
    )


def _share(held: Sequence[bool]) -> Figure:
    return Figure(sum(held) / len(held), "share")


async def _right(graph: LocalAdapter, question: Question) -> list[Wanted]:
    """Return what answers a question: by the ids or the labels of what stands in the fact."""
    topic, relation = graph.prefixes.expand(question.topic), graph.prefixes.expand(question.relation, "relation")
    assert isinstance(relation, Iri)
    direction: Direction = "out" if question.direction == "out" else "in"
    request = NeighborRequest((topic,), direction=direction, relations=frozenset({relation}), limit=_MOST_ANSWERS)
    page = (await graph.neighbors(request))[topic]
    ends = [triple.tail if direction == "out" else triple.head for triple in page.triples]
    labels = await graph.labels([topic, relation, *ends])

    def spelled(node: Node, position: Position = "entity") -> tuple[str, ...]:
        short = graph.prefixes.shorten(node, position)
        return (short, labels[node]) if node in labels else (short,)

    return [Wanted((spelled(topic), spelled(relation, "relation"), spelled(end))) for end in ends]
