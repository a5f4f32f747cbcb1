"""A service of embeddings that is away, slow or mad: names still match, letters rank, and the answer says so."""

import json
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from contextlib import AbstractContextManager, aclosing, contextmanager
from pathlib import Path

import anyio
import numpy as np
import pytest
from mcp import Client

from calls import Reply as Said
from calls import reply_of, rows
from embedders import Asked, RecordingEmbedder, Script, caching, failing, serving
from kg_adapters.embedding import GuardedEmbedder, OpenAiEmbedder, Vectors
from kg_adapters.errors import BackendError, ModelUnavailable
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.vectors.entities import embed_store
from kg_adapters.testing import iri, ntriples
from kg_server.app import build_server
from kg_server.observation.scoring import AWAY
from kg_server.settings import EmbedderName, EmbeddingSettings, Settings
from loopback_service import Reply
from patience import PATIENCE_S
from played_time import PlayedTime
from small_graphs import store_of

DIMENSIONS = 8
MODEL = "text-embedding-3-small"
GRAPH = (
    'tokyo label "Tokyo"@en',
    'japan label "Japan"@en',
    'capital label "capital"@en',
    'near_to label "near to"@en',
    'kyoto label "Kyoto"@en',
    "japan capital tokyo",
    "tokyo near_to kyoto",
)
QUESTION = {"question": "What is the capital?", "entities": [f"<{iri('japan').value}>"], "hops": 2}


def healthy(asked: Asked) -> Reply:
    """Answer with vectors by the lengths of the texts."""
    vectors = np.zeros((len(asked.input), DIMENSIONS))
    for place, text in enumerate(asked.input):
        vectors[place, len(text) % DIMENSIONS] = 1
    data = [{"object": "embedding", "index": row, "embedding": vector.tolist()} for row, vector in enumerate(vectors)]
    return Reply({"object": "list", "model": asked.model, "data": data, "usage": {"total_tokens": 1}})


def garbage(_: Asked) -> Reply:
    return Reply(b'\xff\x00{"data": nonsense')


def giving(vector: Sequence[float]) -> Script:
    """Answer with one vector for every text."""

    def answer(asked: Asked) -> Reply:
        data = [{"index": place, "embedding": vector} for place in range(len(asked.input))]
        return Reply({"object": "list", "model": asked.model, "data": data})

    return answer


def endless(_: Asked) -> Reply:
    return Reply(b" " * 20_000_000)


class Stalling:
    """Does not answer before it is told to."""

    def __init__(self) -> None:
        self.release = threading.Event()

    def __call__(self, asked: Asked) -> Reply:
        self.release.wait(PATIENCE_S)
        return healthy(asked)


class Switch:
    """Follows the script that it has now."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def __call__(self, asked: Asked) -> Reply:
        return self.script(asked)


class ComingBack(RecordingEmbedder):
    """Is away until a test says that it is back."""

    away = True

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if self.away:
            raise BackendError("The model is away.")
        return await super().embed(texts)


def settings_in(
    folder: Path, url: str, *, embedder: EmbedderName = "openai", embedding_s: float = 5, timeout_s: float = 10
) -> Settings:
    return Settings(
        cache_folder=folder / "cache",
        data_folder=folder,
        timeout_s=timeout_s,
        embedding=EmbeddingSettings(
            embedder=embedder, model=MODEL, dimensions=DIMENSIONS, base_url=url, timeout_s=embedding_s
        ),
    )


@contextmanager
def refusing() -> Generator[str]:
    """Give a URL where nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/v1"


@contextmanager
def scripted(script: Script) -> Generator[str]:
    with serving(script) as service:
        yield service.url
        if isinstance(script, Stalling):
            script.release.set()


FAULTS: dict[str, Callable[[], AbstractContextManager[str]]] = {
    "refused": refusing,
    "failing": lambda: scripted(failing(500)),
    "unknown key": lambda: scripted(failing(401)),
    "garbage": lambda: scripted(garbage),
    "wrong length": lambda: scripted(giving([1.0])),
    "no numbers": lambda: scripted(giving([float("nan")] * DIMENSIONS)),
    "endless": lambda: scripted(endless),
    "stalling": lambda: scripted(Stalling()),
}


async def observed(graph: LocalAdapter, settings: Settings) -> Said:
    async with Client(build_server(graph, settings)) as client:
        return reply_of(await client.call_tool("observe", QUESTION))


@pytest.fixture
async def graph(tmp_path: Path) -> AsyncIterator[LocalAdapter]:
    async with aclosing(LocalAdapter(store_of(tmp_path, ntriples(GRAPH)))) as graph:
        yield graph


@pytest.mark.parametrize("fault", FAULTS)
async def test_letters_rank_while_the_service_is_away_and_the_answer_says_so(
    graph: LocalAdapter, fault: str, tmp_path: Path
) -> None:
    with FAULTS[fault]() as url:
        seen = await observed(graph, settings_in(tmp_path, url, embedding_s=0.3))
    by_letters = await observed(graph, settings_in(tmp_path, "http://unused", embedder="lexical"))
    assert seen.data["scorer"] == f"spelling alone ({AWAY})"
    assert f"by spelling alone ({AWAY})" in seen.text
    assert (seen.is_error, seen.data["groups"]) == (False, by_letters.data["groups"])


async def test_a_service_that_fails_in_the_middle_leaves_one_ranking_by_letters(tmp_path: Path) -> None:
    graph = LocalAdapter(store_of(tmp_path, ntriples((*GRAPH, 'capital altLabel "seat of government"@en'))))
    # The question is embedded with the relations, and no other name of these after it.
    with serving(healthy, failing(500)) as service:
        seen = await observed(graph, settings_in(tmp_path, service.url, embedding_s=60, timeout_s=600))
    by_letters = await observed(graph, settings_in(tmp_path, "http://unused", embedder="lexical"))
    await graph.aclose()
    assert len(service.requests) > 1
    assert (seen.data["scorer"], seen.data["groups"]) == (f"spelling alone ({AWAY})", by_letters.data["groups"])


async def test_only_the_first_call_finds_out_that_the_service_is_away(graph: LocalAdapter, tmp_path: Path) -> None:
    with serving(failing(500)) as service:
        settings = settings_in(tmp_path, service.url, embedding_s=60, timeout_s=600)
        async with Client(build_server(graph, settings)) as client:
            asked: list[int] = []
            for _ in range(4):
                await client.call_tool("observe", QUESTION)
                asked.append(len(service.requests))
    assert asked[0] > 0
    assert asked == [asked[0]] * 4


async def test_names_are_found_while_the_service_is_away_and_descriptions_say_what_is_missing(tmp_path: Path) -> None:
    store = store_of(tmp_path, ntriples(GRAPH))
    switch = Switch(healthy)
    with serving(switch) as service:
        embedder = OpenAiEmbedder(model=MODEL, dimensions=DIMENSIONS, base_url=service.url)
        await embed_store(store, embedder)
        await embedder.aclose()
        switch.script = failing(500)
        graph = LocalAdapter(store)
        settings = settings_in(tmp_path, service.url, embedding_s=60, timeout_s=600)
        async with Client(build_server(graph, settings)) as client:
            named = reply_of(await client.call_tool("Retrieve", {"text": "Tokio"}))
            described = reply_of(await client.call_tool("Retrieve", {"text": "where the emperor lives near Tokyo"}))
        await graph.aclose()
    assert (named.data["status"], rows(named.data["candidates"])[0][1], "missing" in named.data) == (
        "ok",
        "Tokyo",
        False,
    )
    assert described.data["missing"] == AWAY
    assert f"Names alone were compared: {AWAY}." in described.text
    assert rows(described.data["candidates"])[0][1] == "Tokyo"


async def test_a_graph_without_vectors_misses_nothing(graph: LocalAdapter, tmp_path: Path) -> None:
    with serving(failing(500)) as service:
        async with Client(build_server(graph, settings_in(tmp_path, service.url))) as client:
            described = reply_of(await client.call_tool("Retrieve", {"text": "where the emperor lives"}))
    assert (described.is_error, "missing" in described.data, service.requests) == (False, False, [])


async def test_what_failed_is_left_alone_for_a_while_and_then_tried_once() -> None:
    time, inner = PlayedTime(), ComingBack()
    guarded = GuardedEmbedder(inner, timeout_s=60, pause_s=30, timing=time.timing)
    messages: list[str] = []

    async def fail() -> None:
        with pytest.raises(ModelUnavailable) as caught:
            await guarded.embed(["text"])
        messages.append(str(caught.value))

    await fail()
    inner.away = False
    time.elapsed_s = 29
    await fail()
    assert inner.calls == []
    time.elapsed_s = 30
    assert (await guarded.embed(["text"])).shape == (1, inner.dimensions)
    assert (await guarded.embed(["more"])).shape == (1, inner.dimensions)
    assert messages == [
        "The model is away.",
        "The embedding service has failed 1 times in a row, so it is left alone for now. It is tried again at "
        "12:00:30 UTC: ask again then. Last: The model is away.",
    ]


async def test_what_takes_too_long_is_given_up() -> None:
    inner = RecordingEmbedder()
    inner.may_answer = anyio.Event()
    guarded = GuardedEmbedder(inner, timeout_s=0.01)
    with pytest.raises(ModelUnavailable, match=r"^The embedding service gave no answer within 0\.01 s\.$"):
        await guarded.embed(["text"])
    with pytest.raises(ModelUnavailable, match="is left alone for now"):
        await guarded.embed(["text"])
    assert inner.texts == ["text"]


async def test_what_is_known_needs_no_service() -> None:
    inner = RecordingEmbedder(fails_after=1)
    async with caching(GuardedEmbedder(inner, timeout_s=60)) as cached:
        first = await cached.embed(["known"])
        with pytest.raises(ModelUnavailable):
            await cached.embed(["known", "new"])
        assert (await cached.embed(["known"]) == first).all()


async def test_a_flood_from_the_service_is_not_read_to_its_end() -> None:
    with serving(endless) as service:
        embedder = OpenAiEmbedder(model=MODEL, dimensions=DIMENSIONS, base_url=service.url)
        with pytest.raises(BackendError, match="was not read further"):
            await embedder.embed(["text"])
        await embedder.aclose()


def test_without_the_shipped_model_descriptions_say_what_is_missing(tmp_path: Path) -> None:
    program = "import sys; sys.modules['onnxruntime'] = None; from kg_server.cli import main; main(sys.argv[1:])"
    words = ["call", "Retrieve", "text=German author of Faust", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        check=False,
        env={"KG_SEXTANT_CACHE_FOLDER": str(tmp_path / "cache"), "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["missing"] == "the embedding model does not run here; kg-sextant doctor says why"
    assert "Names alone were compared: the embedding model does not run here" in said["summary"]
