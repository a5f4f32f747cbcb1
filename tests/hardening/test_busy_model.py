"""The event loop stays free while models embed and while graphs are large."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import anyio
import anyio.lowlevel
import numpy as np
import pytest

import watched_server
from conftest import SHARED_DATA
from kg_adapters.embedding import (
    CachedEmbedder,
    GuardedEmbedder,
    MiniLmEmbedder,
    OpenAiEmbedder,
    QueuedEmbedder,
    Vectors,
)
from kg_adapters.errors import ModelBusy
from kg_adapters.importing.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.surroundings import Longs, Surroundings, surroundings_of
from kg_adapters.testing import EXAMPLE
from kg_server.embedders import hurried, shared
from kg_server.observation.answer import observation
from kg_server.observation.scoring import Floats, HurriedScorer, Inquiry, RelationFirstScorer
from kg_server.observation.search import Reach
from kg_server.settings import Settings
from patience import PATIENCE_S
from server_processes import HELLO, Spoken, request
from small_graphs import store_of

# Each hub has relations of its own: who asks for the very texts that are being embedded waits for these.
STARS = "\n".join(
    f"<{EXAMPLE}{hub}> <{EXAMPLE}{hub}{number}> <{EXAMPLE}friend{number}> ."
    for hub in ("ann", "bob")
    for number in range(40)
)


class HeldEmbedder:
    """Embeds a single text at once, and more when it is let."""

    fingerprint = "held"
    dimensions = 4

    def __init__(self) -> None:
        self.go_on = anyio.Event()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if len(texts) > 1:
            await self.go_on.wait()
        return np.full((len(texts), self.dimensions), 0.5, dtype=np.float32)


async def test_who_would_wait_too_long_for_the_model_is_answered_by_letters(tmp_path: Path) -> None:
    model = HeldEmbedder()
    scorer = RelationFirstScorer(CachedEmbedder(QueuedEmbedder(model, wait_s=0.01, timeout_s=600), path=None))
    graph = LocalAdapter(store_of(tmp_path, STARS))
    said: list[str] = []

    async def observe(hub: str) -> None:
        answer = await observation(
            graph,
            scorer,
            question="Who is a friend?",
            entities=[f"<{EXAMPLE}{hub}>"],
            reach=Reach(timeout_s=600),
            max_tokens=6_000,
            on_hop=_not_told,
        )
        said.append(answer.text.partition("\n")[0])

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(observe, "ann")
            await anyio.wait_all_tasks_blocked()
            await observe("bob")
            model.go_on.set()
    assert [line.partition("first, by ")[2].partition(";")[0].removesuffix(".") for line in said] == [
        "spelling alone (the embedding model is busy now",
        "meaning and spelling",
    ]


class NeverEmbedder(HeldEmbedder):
    """Comes to no end, however little it is asked for."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        await self.go_on.wait()
        return await super().embed(texts)


async def test_whatever_holds_up_the_model_letters_stand_in_while_there_is_time(tmp_path: Path) -> None:
    graph, settings = LocalAdapter(store_of(tmp_path, STARS)), Settings(timeout_s=1)
    answer = await observation(
        graph,
        hurried(RelationFirstScorer(NeverEmbedder()), settings),
        question="Who is a friend?",
        entities=[f"<{EXAMPLE}ann>"],
        reach=Reach(timeout_s=600),
        max_tokens=6_000,
        on_hop=_not_told,
    )
    assert "by spelling alone (the embedding model is busy now" in answer.text
    assert answer.result.status == "ok"


class SlowScorer:
    """Takes long for the first scores, and never gives the event loop a turn before the second are asked for."""

    name = "slow"

    def __init__(self, busy_s: float) -> None:
        self._busy_s = busy_s

    async def score(self, asked: Inquiry, around: Surroundings, edges: Longs) -> Floats:
        del asked, around
        end = anyio.current_time() + self._busy_s
        while anyio.current_time() < end:
            pass
        if self._busy_s == 0:
            await anyio.lowlevel.checkpoint()
        self._busy_s = 0
        return np.ones(len(edges), dtype=np.float32)


async def test_all_hops_of_a_question_share_the_time_of_the_model() -> None:
    scorer, nothing = HurriedScorer(SlowScorer(0.02), 0.01), surroundings_of((), {}, {})
    edges = np.zeros(1, dtype=np.int64)
    assert len(await scorer.score(Inquiry("Who?", "Who?"), nothing, edges)) == 1
    with pytest.raises(ModelBusy):
        await scorer.score(Inquiry("Who?", "Who?"), nothing, edges)


def test_the_model_of_the_package_is_shared_in_a_queue_and_a_service_is_guarded() -> None:
    settings = Settings(timeout_s=10)
    assert isinstance(shared(MiniLmEmbedder(), settings), QueuedEmbedder)
    service = OpenAiEmbedder(model="m", dimensions=4, api_key=None, base_url="http://127.0.0.1:9/v1")
    assert isinstance(shared(service, settings), GuardedEmbedder)


async def _not_told(hop: int) -> None:
    del hop


ATTEMPTS: Final = 3
LONG_S: Final = 0.05
LARGE: Final = SHARED_DATA / "wikidata-1m.nt.gz"
HUB, OTHER_HUB, SINGER = "Q30", "Q183", "Q1203"
WIDE: Final = 50_000
LONG_TEXT: Final = "a very long text about the history of the city of lights " * 17
HEAVY: Final[tuple[tuple[str, Mapping[str, object]], ...]] = (
    ("GetNeighbor", {"entity": HUB, "direction": "both", "limit": 200, "max_tokens": WIDE}),
    ("GetNeighbor", {"entity": HUB, "direction": "in"}),
    ("GetPath", {"source": HUB, "target": OTHER_HUB, "max_hops": 4, "limit": 100, "avoid_hubs": False}),
    ("GetPath", {"source": HUB, "target": "Q142", "limit": 100, "question": "a shared border?", "avoid_hubs": False}),
    ("Retrieve", {"text": "Xqzzt Blorp of the nether"}),
    ("Retrieve", {"text": LONG_TEXT}),
    ("Retrieve", {"text": [f"university of town {number}" for number in range(50)], "limit": 20}),
    ("Retrieve", {"text": "John", "type": "Q5", "limit": 50}),
    ("Feature", {"entity": HUB}),
    ("Degree", {"entity": HUB}),
    ("Schema", {}),
    ("Schema", {"max_tokens": WIDE}),
    ("Schema", {"about": "human", "max_tokens": WIDE}),
    ("Schema", {"about": "the feeling of melancholia"}),
    ("observe", {"question": "Which wars did it fight?", "entities": [HUB], "max_tokens": WIDE}),
    (
        "observe",
        {"question": "Who studied there?", "entities": [HUB, OTHER_HUB, "Q142", "Q145", "Q5"], "top_n": 200},
    ),
    ("Compose", {"expression": "Count[Type[Q5]]", "evidence": "all"}),
    ("Compose", {"expression": "Type[Q5]", "evidence": "all", "max_tokens": WIDE}),
    ("Compose", {"expression": "Top[Type[Q5], occupation, 10]", "explain": True}),
    ("Compose", {"expression": "Group[Type[Q5], country of citizenship]", "max_tokens": WIDE, "evidence": "all"}),
    ("Compose", {"expression": "Table[Type[Q5], occupation, country of citizenship]", "max_tokens": WIDE}),
    ("Compose", {"expression": f"Share[{HUB}, {OTHER_HUB}]", "max_tokens": WIDE}),
    ("Compose", {"expression": ", ".join(f"Count[Neighbor[{each}, -country]]" for each in (HUB, OTHER_HUB))}),
    ("Sparql", {"query": "SELECT * { ?a ?b ?c }", "max_rows": 100_000, "timeout_s": 600}),
    ("Sparql", {"query": "CONSTRUCT { ?a ?b ?c } { ?a ?b ?c }", "max_rows": 100_000, "timeout_s": 600}),
    ("Sparql", {"query": 'SELECT ?x { ?x @"occupation" @"actor" . ?x wdt:P36 ?y }', "timeout_s": 600}),
)
READ: Final[tuple[tuple[str, Mapping[str, object]], ...]] = (
    ("tools/list", {}),
    ("resources/list", {}),
    ("prompts/list", {}),
    ("resources/read", {"uri": "kg://schema"}),
    ("resources/read", {"uri": f"kg://entity/{HUB}"}),
    ("prompts/get", {"name": "oda", "arguments": {"question": "Who is the mayor of Tokyo?"}}),
    ("prompts/get", {"name": "graph-counselor", "arguments": {"question": "Who is the mayor of Tokyo?"}}),
)


@pytest.fixture(scope="module", params=["sample", "wikidata-1m"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The shipped sample, and a graph of a million statements."""
    if request.param == "sample":
        return "sample"
    if not LARGE.exists():
        pytest.skip(f"needs {LARGE}")
    folder = tmp_path_factory.mktemp("large") / "store"
    build_store([LARGE], folder, ImportOptions())
    return str(folder)


def calls() -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield every call as it is the first of its kind, and once more."""
    yield from READ
    for name, arguments in HEAVY:
        yield from [("tools/call", {"name": name, "arguments": arguments})] * 2
    yield from READ


def test_no_call_holds_the_event_loop_for_long(served: str, tmp_path: Path) -> None:
    # A processor that is shared takes longer for the same work, so only what holds the loop every time counts.
    for attempt in range(ATTEMPTS - 1):
        if not holding(served, tmp_path / str(attempt)):
            return
    assert holding(served, tmp_path / "last") == []


def holding(served: str, folder: Path) -> list[tuple[int, str, list[str]]]:
    """Serve every call, and return which held the loop for long: milliseconds, the call, and what was under way."""
    folder.mkdir()
    command = [sys.executable, watched_server.__file__, served, str(folder), str(LONG_S)]
    ends: list[tuple[float, str]] = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            spoken = Spoken(process)
            spoken.ask(HELLO)
            spoken.say(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
            for number, (method, arguments) in enumerate((*calls(), *remembering(spoken))):
                spoken.say(request(number, method, **arguments))
                answer = spoken.hear()
                assert "result" in answer, (method, arguments, answer)
                ends.append((time.monotonic(), f"{method} {json.dumps(arguments)[:80]}"))
            spoken.stdin.close()
            assert process.wait(timeout=PATIENCE_S) == 0
        finally:
            process.kill()
    held = json.loads((folder / "held.json").read_text(encoding="utf-8"))
    return [
        (round(seconds * 1_000), next((call for end, call in ends if end >= at), "at the end"), under_way)
        for seconds, at, under_way in held
    ]


def remembering(spoken: Spoken) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield calls that keep fifteen triples and read them again."""
    spoken.say(request(9_001, "tools/call", name="GetNeighbor", arguments={"entity": SINGER, "limit": 15}))
    found = json.dumps(spoken.hear())
    triples = json.loads(found)["result"]["structuredContent"]["triples"][:15]
    arguments = {"name": "memory-append", "arguments": {"triples": triples}}
    spoken.say(request(9_002, "tools/call", **arguments))
    memory = json.loads(json.dumps(spoken.hear()))["result"]["structuredContent"]["memory"]
    yield "tools/call", {"name": "memory-append", "arguments": {"triples": triples, "memory": memory}}
    yield "tools/call", {"name": "memory-read", "arguments": {"memory": memory}}
    yield "resources/read", {"uri": f"kg-memory://{memory}"}
