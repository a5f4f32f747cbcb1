"""`import --embed`: vectors that are computed ahead."""

from pathlib import Path

import anyio

from cli_runs import CommandLine, write_graph
from embedding_service import Asked, serving
from kg_adapters.embedding import MiniLmEmbedder
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.store import open_store
from loopback_service import Reply


def in_three_dimensions(asked: Asked) -> Reply:
    data = [{"object": "embedding", "index": row, "embedding": [1, 0, 0]} for row, _ in enumerate(asked.input)]
    return Reply({"object": "list", "model": "m", "data": data, "usage": {"prompt_tokens": 5, "total_tokens": 5}})


def test_an_import_can_compute_the_vectors_too(cli: CommandLine, tmp_path: Path) -> None:
    store = tmp_path / "store"
    run = cli.run("import", str(write_graph(tmp_path)), "--to", str(store), "--embed")
    assert (run.code, run.out.splitlines()[-1]) == (0, f"Serve it: kg-sextant serve {store}")
    assert [line for line in run.err.splitlines() if line.startswith("Embedding")] == [
        "Embedding the relations …",
        "Embedding the labels …",
        "Embedding what entities are …",
    ]
    anyio.run(find_tokyo, store)


async def find_tokyo(store: Path) -> None:
    graph = LocalAdapter(open_store(store))
    vectors = await graph.label_vectors(MiniLmEmbedder().fingerprint)
    assert vectors is not None
    (vector,) = await MiniLmEmbedder().embed(["Tokyo"])
    found = await graph.search_vectors(vector, fingerprint=MiniLmEmbedder().fingerprint, limit=1)
    assert [each.matched_text for each in found] == ["Tokyo"]
    assert await graph.search_vectors(vector, fingerprint="another", limit=1) == []
    await graph.aclose()


def test_a_store_that_is_there_gets_its_vectors_from_a_service_and_the_cost_is_told(
    cli: CommandLine, tmp_path: Path
) -> None:
    store = str(tmp_path / "store")
    cli.run("import", str(write_graph(tmp_path)), "--to", store)
    with serving(in_three_dimensions) as service:
        environ = {
            "KG_SEXTANT_EMBEDDER": "openai",
            "KG_SEXTANT_EMBEDDING_DIMENSIONS": "3",
            "KG_SEXTANT_EMBEDDING_BASE_URL": service.url,
            "KG_SEXTANT_EMBEDDING_PRICE": "1000",
        }
        run = cli.run("import", store, "--embed", **environ)
    assert (run.code, run.out.splitlines()) == (
        0,
        ["7 texts, 15 tokens, cost 0.0150.", f"{store}: the vectors are complete."],
    )


def test_the_sample_is_a_store_too(cli: CommandLine) -> None:
    with serving(lambda _: Reply({"error": {"message": "out of money"}}, status=400)) as service:
        environ = {"KG_SEXTANT_EMBEDDER": "openai", "KG_SEXTANT_EMBEDDING_BASE_URL": service.url}
        run = cli.run("import", "sample", "--embed", **environ)
    assert (run.code, "out of money" in run.err) == (1, True)


def test_letters_need_no_vectors_and_an_import_needs_a_place(cli: CommandLine, tmp_path: Path) -> None:
    source = str(write_graph(tmp_path))
    run = cli.run("import", source, "--to", str(tmp_path / "store"), "--embed", KG_SEXTANT_EMBEDDER="lexical")
    assert (run.code, "--embed needs a model" in run.err) == (2, True)
    for words in ((source,), (source, "--embed"), (source, source, "--embed")):
        run = cli.run("import", *words)
        assert (run.code, run.err) == (2, "kg-sextant: Say where the store is to be, as in --to FOLDER.\n")


def test_the_world_is_a_store_with_its_vectors_too(cli: CommandLine) -> None:
    run = cli.run("doctor", "sample:world", "--deep")
    assert (run.code, run.err) == (0, "")
    assert "compared: 40,512 triples, 8,041 entities, 0 skipped at import" in run.out
