"""No command waits for a pipe, reads a device or takes a deeply nested file for a bug, wherever it is named."""

import os
from pathlib import Path

import pytest

from cli_runs import CommandLine, write_graph

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="only POSIX has named pipes")

ODD = ("pipe", "device")
NAMED = (
    ["--config", "{}", "tools"],
    ["replay", "{}"],
    ["call", "Compose", "@{}"],
    ["subgraph", "--graph", "sample", "--out", "out", "--entities", "{}"],
    ["ask", "Who?", "--model", "m", "--agent", "graph-counselor", "--set", "definition_file={}"],
    ["ask", "Who?", "--model", "m", "--trace", "{}"],
    ["eval", "run", "--benchmark", "jsonl", "--out", "out", "--graph", "sample", "--model", "m", "--data", "{}"],
    ["eval", "suite", "--out", "out", "{}"],
    ["config", "claude", "--write", "--file", "{}"],
    ["config", "codex", "--write", "--file", "{}"],
    ["call", "Schema", "--graph", "{}"],
    ["import", "--to", "out", "{}"],
)


def odd_file(folder: Path, kind: str) -> Path:
    file = folder / f"{kind}.toml"
    match kind:
        case "pipe":
            os.mkfifo(file)
        case "device":
            file.symlink_to("/dev/zero")
        case _:
            file.write_text("x = " + "[" * 20_000, encoding="utf-8")
    return file


@pytest.mark.parametrize("kind", ["pipe", "device", "nested"])
@pytest.mark.parametrize("words", NAMED, ids=lambda words: " ".join(words[:2]))
def test_an_odd_file_is_refused_with_a_sentence(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = odd_file(tmp_path, kind)
    run = cli.run(*(word.format(file) for word in words))
    assert run.code in {1, 2}
    assert run.err.count("\n") >= 1
    assert "a bug" not in run.err


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_file_of_authorities_is_refused(cli: CommandLine, tmp_path: Path, kind: str) -> None:
    file = odd_file(tmp_path, kind)
    run = cli.run("call", "Schema", "--graph", "https://127.0.0.1:9/", KG_SEXTANT_ENDPOINT__CA_FILE=str(file))
    assert "The file of authorities cannot be read: Not a regular file." in run.err


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_file_in_the_cache_is_built_again(cli: CommandLine, tmp_path: Path, kind: str) -> None:
    call = ("call", "Retrieve", "text=Tokio", "--graph", str(write_graph(tmp_path)))
    expected = cli.run(*call, KG_SEXTANT_EMBEDDING__EMBEDDER="lexical").out
    noted = [
        next(cli.cache.rglob(name)) for name in ("*.sources.json", "store.json", "profile.json", ".tantivy-meta.lock")
    ]
    for file in noted:
        file.unlink()
        odd_file(file.parent, kind).rename(file)
        assert cli.run(*call, KG_SEXTANT_EMBEDDING__EMBEDDER="lexical").out == expected
