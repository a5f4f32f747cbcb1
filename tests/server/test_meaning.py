"""What compares meanings: by which model, kept where, and what happens where none works."""

import subprocess
import sys
from pathlib import Path

import numpy as np
from mcp import Client
from pydantic import SecretStr

from calls import call, plain, reply_of, rows
from cli_runs import write_graph
from embedders import LEXICAL, Asked, serving
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.models import Candidate
from kg_adapters.terms import Iri
from kg_server.app import build_server
from kg_server.naming.meaning import Meaning, SharedEmbedder
from kg_server.naming.retrieval import ranked
from kg_server.observation.scoring import AWAY
from kg_server.settings import EmbeddingSettings, Settings
from loopback_service import Reply

DIMENSIONS = 8


def settings_in(folder: Path, **changes: object) -> Settings:
    return Settings.model_validate({"cache_folder": folder / "cache", "data_folder": folder, **changes})


def letters(asked: Asked) -> Reply:
    """Answer like a service whose vectors are made of the first letters."""
    vectors = np.zeros((len(asked.input), DIMENSIONS))
    for row, text in enumerate(asked.input):
        vectors[row, len(text) % DIMENSIONS] = 1
    data = [{"object": "embedding", "index": row, "embedding": vector.tolist()} for row, vector in enumerate(vectors)]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return Reply({"object": "list", "model": asked.model, "data": data, "usage": usage})


async def test_words_that_describe_an_entity_find_it(sample: LocalAdapter, tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    reply = await call(sample, "Retrieve", settings, text="German author of Faust", limit=3)
    assert rows(reply.data["candidates"])[0][:2] == ["Q5879", "Johann Wolfgang von Goethe"]
    assert rows(reply.data["candidates"])[0][5].startswith("meaning ")
    among = await call(sample, "Retrieve", settings, text="German author of Faust", limit=3, type="Q5")
    assert rows(among.data["candidates"])[0][0] == "Q5879"


async def test_a_name_needs_no_model(sample: LocalAdapter, tmp_path: Path) -> None:
    reply = await call(sample, "Retrieve", settings_in(tmp_path), text="Johann Wolfgang von Gothe")
    assert rows(reply.data["candidates"])[0][0] == "Q5879"
    assert not (tmp_path / "cache").exists()


def test_one_ranking_holds_each_entity_once_with_its_best_score() -> None:
    def found(name: str, score: float, matched: str) -> Candidate:
        return Candidate(Iri(f"http://e/{name}"), score, "text", matched)

    def meant(name: str, score: float) -> Candidate:
        return Candidate(Iri(f"http://e/{name}"), score, "meaning", name)

    named = [found("capital", 0.89, "capital"), found("both", 0.7, "capitals of Japan")]
    ranking = ranked("capital of Japan", named, [meant("tokyo", 0.8), meant("both", 0.3)])
    assert [(each.entity.local_part, each.matched_by) for each in ranking] == [
        ("both", "text"),
        ("tokyo", "meaning"),
        ("capital", "text"),
    ]
    assert ranked("capital of Japan", named, []) == named


async def test_vectors_are_kept_beside_the_stores_for_the_next_server(tokyo: LocalAdapter, tmp_path: Path) -> None:
    with serving(letters) as service:
        settings = settings_in(
            tmp_path,
            embedding=EmbeddingSettings(
                embedder="openai",
                dimensions=DIMENSIONS,
                base_url=service.url,
                api_key=SecretStr("sk-test"),
            ),
        )
        for _ in range(2):
            reply = await call(tokyo, "observe", settings, question="Which capital?", entities=["Q17"], hops=1)
            assert reply.data["scorer"] == "meaning and spelling"
        assert {asked.authorization for asked in service.requests} == {"Bearer sk-test"}
        texts = [text for asked in service.requests for text in asked.input]
    assert (len(texts), len(set(texts))) == (len(set(texts)), len(texts))
    (kept,) = (tmp_path / "cache" / "vectors").glob("*.sqlite3")
    assert kept.name.startswith("openai-text-embedding-3-small-8-")


async def test_a_service_that_fails_leaves_the_ranking_to_letters_and_the_other_tools_still_work(
    tokyo: LocalAdapter, tmp_path: Path
) -> None:
    with serving(lambda _: Reply({"error": {"message": "no such key"}}, status=401)) as service:
        settings = settings_in(tmp_path, embedding=EmbeddingSettings(embedder="openai", base_url=service.url))
        async with Client(build_server(tokyo, settings)) as client:
            seen = reply_of(
                await client.call_tool("observe", {"question": "Which capital?", "entities": ["Q17"], "hops": 1})
            )
            found = reply_of(await client.call_tool("Retrieve", {"text": "Tokyo"}))
    assert seen.data["scorer"] == f"spelling alone ({AWAY})"
    assert _of_first(seen.data["groups"]) == ["Q17", "P36", "Q1490"]
    assert rows(found.data["candidates"])[0][0] == "Q1490"


async def test_letters_can_be_chosen(tokyo: LocalAdapter, tmp_path: Path) -> None:
    settings = settings_in(tmp_path, embedding=LEXICAL)
    reply = await call(tokyo, "observe", settings, question="What is the capital?", entities=["Q17"], hops=1)
    assert (reply.data["scorer"], _of_first(reply.data["groups"])) == ("spelling alone", ["Q17", "P36", "Q1490"])


async def test_it_can_be_used_again_after_it_was_closed(tokyo: LocalAdapter, tmp_path: Path) -> None:
    embedder = SharedEmbedder(settings_in(tmp_path))
    meaning = Meaning(tokyo, embedder)
    first = await meaning.scorer()
    await embedder.aclose()
    assert (await meaning.scorer()).name == first.name == "meaning and spelling"
    await embedder.aclose()
    await embedder.aclose()


def test_without_the_libraries_of_the_model_the_server_says_so_and_works(tmp_path: Path) -> None:
    program = "import sys; sys.modules['onnxruntime'] = None; from kg_server.cli import main; main(sys.argv[1:])"
    words = ["call", "observe", "question=Which capital?", 'entities=["wd:Q17"]', "--graph", str(write_graph(tmp_path))]
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        check=False,
        env={"KG_SEXTANT_CACHE_FOLDER": str(tmp_path / "cache"), "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert "by spelling alone (the embedding model does not run here; kg-sextant doctor says why)" in done.stdout
    assert "The embedding model needs onnxruntime, which does not work here" in done.stderr
    assert "Japan | capital | Tokyo" in plain(done.stdout)


def _of_first(groups: object) -> list[str]:
    """Return the entity, the relation and the first far end of the first group."""
    first = rows(groups)[0]
    return [*first[:2], first[6]]
