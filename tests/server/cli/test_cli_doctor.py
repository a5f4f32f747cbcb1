import json
import shutil
from importlib.metadata import version
from pathlib import Path

from cli_runs import CommandLine, write_graph
from embedding_service import serving
from kg_adapters.embedding import MiniLmEmbedder
from loopback_service import Reply


def graded(text: str) -> dict[str, list[str]]:
    """Return the lines of a report by grade, without the last line."""
    lines: dict[str, list[str]] = {}
    for line in text.splitlines()[:-1]:
        if line.endswith("--all shows them."):
            continue
        lines.setdefault(line[:4].strip(), []).append(line[5:])
    return lines


def test_only_what_was_set_and_what_is_wrong_is_shown_unless_all_is_asked_for(cli: CommandLine, tmp_path: Path) -> None:
    graph = str(write_graph(tmp_path))
    environ = {"KG_SEXTANT_EMBEDDING__EMBEDDER": "lexical"}
    short = cli.run("doctor", graph, **environ).out.splitlines()
    whole = cli.run("doctor", graph, "--all", **environ).out.splitlines()
    assert 'ok   embedding.embedder = "lexical", from the environment' in short
    assert [line for line in short if "from the default" in line or line.startswith("ok   numpy")] == []
    hidden = len(whole) - len(short) + 1
    assert short[-2:] == [f"{hidden} checks and settings are as usual; --all shows them.", "No problems found."]
    assert any("from the default" in line for line in whole)


def test_a_healthy_installation_gets_only_ok_and_0(cli: CommandLine, tmp_path: Path) -> None:
    store = tmp_path / "store"
    cli.run("import", str(write_graph(tmp_path)), "--to", str(store))
    run = cli.run("doctor", str(store))
    report = graded(run.out)
    assert (run.code, list(report), run.out.splitlines()[-1]) == (0, ["ok"], "No problems found.")
    assert f"kg-sextant {version('kg-sextant')}" in report["ok"]
    (index,) = (line for line in report["ok"] if line.startswith(f"The index of store {store} is intact"))
    assert index.endswith("first used, or by doctor --deep): 2 triples, 2 entities, 0 skipped at import")


def damage(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def test_a_deep_look_compares_every_file(cli: CommandLine, tmp_path: Path) -> None:
    store = tmp_path / "store"
    cli.run("import", str(write_graph(tmp_path)), "--to", str(store))
    (store / "vectors" / "model").mkdir(parents=True)
    (store / "vectors" / "model" / "labels.npy").write_bytes(b"half")
    assert "vectors/model in store" in graded(cli.run("doctor", str(store), "--deep").out)["warn"][0]
    shutil.rmtree(store / "vectors")
    run = cli.run("doctor", str(store), "--deep")
    (said,) = (line for line in graded(run.out)["ok"] if line.startswith(f"Store {store} is intact, all "))
    assert said.endswith(" compared: 2 triples, 2 entities, 0 skipped at import")
    damage(store / "text" / "nodes.names.text.npy")
    assert cli.run("doctor", str(store)).code == 0
    run = cli.run("doctor", str(store), "--deep")
    assert (run.code, run.out.splitlines()[-1]) == (1, "Fix the failures above and run again.")
    assert "nodes.names.text.npy has changed. Import the files again" in graded(run.out)["fail"][0]


def test_the_report_is_available_as_json(cli: CommandLine, tmp_path: Path) -> None:
    report = json.loads(cli.run("doctor", str(write_graph(tmp_path)), "--json").out)
    assert report["worst"] == "ok"
    assert {"grade": "ok", "text": "Graph japan opens", "detail": False} in report["findings"]


def test_every_setting_says_where_it_comes_from(cli: CommandLine, tmp_path: Path) -> None:
    graph = write_graph(tmp_path)
    settings = graded(cli.run("doctor", str(graph), "--all", KG_SEXTANT_LANGUAGES="de").out)["ok"]
    assert f'graph = "{graph}", from the command line' in settings
    assert 'languages = ["de"], from the environment' in settings
    assert f'cache_folder = "{cli.cache}", from the file {tmp_path / "config.toml"}' in settings
    assert "max_tokens = 2000, from the default" in settings


def test_what_was_skipped_at_import_is_a_warning(cli: CommandLine, tmp_path: Path) -> None:
    broken, store = tmp_path / "broken.nt", tmp_path / "store"
    broken.write_text("<http://a> <http://b> <http://c> .\n<http://a> <http://b> .\n", encoding="utf-8")
    cli.run("import", str(broken), "--to", str(store), "--skip-errors")
    run = cli.run("doctor", str(store))
    assert (run.code, run.out.splitlines()[-1]) == (0, "It works; see the warnings above.")
    assert len(graded(run.out)["warn"]) == 1


def test_a_changed_store_fails_with_what_to_do(cli: CommandLine, tmp_path: Path) -> None:
    store = tmp_path / "store"
    cli.run("import", str(write_graph(tmp_path)), "--to", str(store))
    damage(store / "index" / "nodes.text.npy")
    run = cli.run("doctor", str(store))
    assert (run.code, run.out.splitlines()[-1]) == (1, "Fix the failures above and run again.")
    (failure,) = graded(run.out)["fail"]
    assert "nodes.text.npy has changed. Import the files again: kg-sextant import" in failure


def test_a_graph_that_is_not_there_fails(cli: CommandLine) -> None:
    run = cli.run("doctor", "nowhere.ttl")
    assert run.code == 1
    assert graded(run.out)["fail"][0].startswith("Graph nowhere.ttl: There is no graph 'nowhere.ttl'.")


def test_a_password_in_a_url_is_not_shown(cli: CommandLine) -> None:
    run = cli.run("doctor", "http://someone:secret@example.org/sparql")
    assert run.code == 1
    assert "secret" not in run.out + run.err
    assert any("must not hold a user or password" in line for line in graded(run.out)["fail"])


def test_a_cache_folder_that_cannot_be_written_fails_with_what_to_set(cli: CommandLine, tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("", encoding="utf-8")
    run = cli.run("doctor", KG_SEXTANT_CACHE_FOLDER=str(in_the_way / "cache"))
    assert run.code == 1
    assert any("cannot be written" in line and "KG_SEXTANT_CACHE_FOLDER" in line for line in graded(run.out)["fail"])


def test_the_model_is_tried_and_letters_may_take_its_place(cli: CommandLine, tmp_path: Path) -> None:
    graph = str(write_graph(tmp_path))
    assert f"Meanings are compared by {MiniLmEmbedder().fingerprint}" in graded(cli.run("doctor", graph).out)["ok"]
    chosen = graded(cli.run("doctor", graph, KG_SEXTANT_EMBEDDING__EMBEDDER="lexical").out)["ok"]
    assert "Texts are compared by their letters, as the setting embedding.embedder says" in chosen


def test_a_service_that_refuses_the_key_fails(cli: CommandLine, tmp_path: Path) -> None:
    with serving(lambda _: Reply({"error": {"message": "wrong key"}}, status=401)) as service:
        environ = {"KG_SEXTANT_EMBEDDING__EMBEDDER": "openai", "KG_SEXTANT_EMBEDDING__BASE_URL": service.url}
        run = cli.run("doctor", str(write_graph(tmp_path)), KG_SEXTANT_EMBEDDING__API_KEY="sk-secret", **environ)
    (failure,) = graded(run.out)["fail"]
    assert (failure.startswith("The embedder openai fails: "), "Check the authentication" in failure) == (True, True)
    assert "sk-secret" not in run.out + run.err


def test_a_secret_that_is_too_short_to_be_hidden_everywhere_is_told(cli: CommandLine, tmp_path: Path) -> None:
    environ = {
        "KG_SEXTANT_EMBEDDING__EMBEDDER": "lexical",
        "KG_SEXTANT_LLM__API_KEY": "k7",
        "KG_SEXTANT_ENDPOINT__TOKEN": "long-enough",
    }
    warned = graded(cli.run("doctor", str(write_graph(tmp_path)), **environ).out)["warn"]
    assert [line.partition(" characters")[0] for line in warned] == ["llm.api_key has fewer than 8"]
