"""`subgraph` and `doctor`: part of an endpoint's graph in a file, and what is wrong with a set-up."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from threading import Event
from urllib.parse import parse_qs, urlsplit

import pyoxigraph as ox
import pytest
from rich.console import Console

from calls import plain
from cli_runs import COMMAND, CommandLine, write_graph
from embedders import serving
from extractions import content_of
from kg_adapters.embedding import MiniLmEmbedder
from kg_adapters.open_options import ExtractionProgress
from kg_server.commands.output import shown_progress
from loopback_service import Reply, answering
from oda_runs import story_store
from patience import PATIENCE_S
from small_graphs import NOVELS


def ids(folder: Path, *lines: str) -> str:
    file = folder / "entities.txt"
    file.write_text("\n".join(lines), encoding="utf-8")
    return str(file)


def test_it_says_what_was_extracted_and_how_to_serve_it(cli: CommandLine, tmp_path: Path) -> None:
    graph, store = str(write_graph(tmp_path)), str(tmp_path / "my store")
    words = ("subgraph", "--graph", graph, "--entities", ids(tmp_path, "Q1490"), "--hops", "1", "--out", store)
    run = cli.run(*words)
    assert (run.code, run.out.splitlines()) == (
        0,
        [
            f"{store}: 2 triples between 2 entities over 2 relations, and 5 literals.",
            "Around 1 entity, with 3 requests, and 1 for literals.",
            f"Serve it: kg-sextant serve '{store}'",
        ],
    )
    assert [line.partition(",")[0].removesuffix(" …") for line in run.err.splitlines()][-8:] == [
        "Looking around",
        "Asking for the types of the outermost entities",
        "Asking for literals",
        "Asking for labels and descriptions",
        "Reading",
        "Building the adjacency index",
        "Building the text search",
        "Saving",
    ]
    report = json.loads(cli.run(*words, "--json").out)
    assert (report["counts"]["triples"], report["seeds"], report["skipped"]) == (2, 1, 0)
    answer = cli.run("call", "GetNeighbor", "entity=Q1490", "--graph", store)
    assert plain(answer.out).splitlines()[1] == "country | Japan"


def test_hubs_left_outs_and_wrong_lines_are_said(cli: CommandLine, tmp_path: Path) -> None:
    graph = str(story_store(NOVELS))
    questions = ids(tmp_path, '{"question": "Who?", "topic": "Q476871"}', "Tokyo", "Q2", '{"id": "Q16"}')
    words = ["subgraph", "--graph", graph, "--entities", questions, "--out", str(tmp_path / "store")]
    run = cli.run(*words, "--max-degree", "1", "--per-relation", "2")
    assert run.code == 0
    assert run.out.splitlines()[2:9] == [
        "Not expanded: 1 hub, the largest Q45765 (2 triples).",
        "Taken in part: the triples of 1 entity.",
        "Left out around these: 5 triples.",
        "Lines that name no entity of this graph: 3. The first of them:",
        "  line 2, 'Tokyo': 'Tokyo' is not an id. Expected a bare id as results show it, a prefixed name "
        "(wd:…, wdt:…, p:…, rdfs:…), or a full IRI (<http://…>). Retrieve finds the id of a name.",
        "  line 3, 'Q2': The graph has no such entity.",
        '  line 4, \'{"id": "Q16"}\': It has none of the fields entity, entities, topic, topic_entity, '
        "qid_topic_entity. Name the one that holds ids with --field.",
    ]


def test_another_field_can_be_named(cli: CommandLine, tmp_path: Path) -> None:
    graph, store = str(write_graph(tmp_path)), str(tmp_path / "store")
    words = ["subgraph", "--graph", graph, "--out", store, "--entities", ids(tmp_path, '{"id": "Q17"}')]
    assert cli.run(*words, "--field", "id").out.splitlines()[1].startswith("Around 1 entity")


class FalteringEndpoint:
    """A SPARQL endpoint that answers so many requests, and then refuses them or, with `stalls`, keeps them waiting."""

    def __init__(self, turtle: str) -> None:
        self.store = ox.Store()
        self.store.load(turtle, ox.RdfFormat.TURTLE)
        self.url = ""
        self.answers = 1_000_000
        self.asked = 0
        self.stalls = False
        self.stalled, self.ended = Event(), Event()

    def answer(self, form: bytes, _: str | None) -> Reply:
        self.asked += 1
        if self.asked <= self.answers:
            found = self.store.query(parse_qs(form.decode())["query"][0])
            assert isinstance(found, ox.QuerySolutions)
            body = found.serialize(format=ox.QueryResultsFormat.JSON)
            return Reply(body, headers={"Content-Type": "application/sparql-results+json"})
        if self.stalls:
            self.stalled.set()
            self.ended.wait(PATIENCE_S)
        return Reply(b"", status=503)


@pytest.fixture
def endpoint() -> Iterator[FalteringEndpoint]:
    endpoint = FalteringEndpoint(NOVELS)
    with answering(endpoint.answer) as endpoint.url:
        yield endpoint
        endpoint.ended.set()


def words_for(endpoint: FalteringEndpoint, folder: Path, store: Path) -> list[str]:
    file = ids(folder, "wd:Q476871", "wd:Q465360")
    return ["subgraph", "--graph", endpoint.url, "--entities", file, "--hops", "2", "--out", str(store)]


def test_a_source_that_fails_ends_with_1_and_says_to_run_it_again(
    cli: CommandLine, tmp_path: Path, endpoint: FalteringEndpoint
) -> None:
    never = {"KG_SEXTANT_ENDPOINT__MAX_RETRIES": "0"}
    whole = cli.run(*words_for(endpoint, tmp_path, tmp_path / "whole"), **never)
    assert whole.code == 0
    needed, store = endpoint.asked, tmp_path / "store"
    endpoint.asked, endpoint.answers = 0, needed // 2
    failed = cli.run(*words_for(endpoint, tmp_path, store), **never)
    assert (failed.code, failed.out, store.exists()) == (1, "", False)
    last = failed.err.splitlines()[-1]
    assert last.startswith(f"kg-sextant: The endpoint {urlsplit(endpoint.url).netloc} cannot serve now (HTTP 503)")
    assert last.endswith("What was fetched is kept: run the same command again to resume.")
    endpoint.asked, endpoint.answers = 0, needed
    again = cli.run(*words_for(endpoint, tmp_path, store), **never)
    assert again.code == 0
    assert 0 < endpoint.asked < needed
    assert content_of(store) == content_of(tmp_path / "whole")


def test_an_unfinished_run_is_thrown_away_only_when_that_is_asked_for(
    cli: CommandLine, tmp_path: Path, endpoint: FalteringEndpoint
) -> None:
    words = words_for(endpoint, tmp_path, tmp_path / "store")
    endpoint.answers = 3
    assert cli.run(*words, KG_SEXTANT_ENDPOINT__MAX_RETRIES="0").code == 1
    endpoint.answers = 1_000_000
    refused = cli.run(*words, "--hops", "1")
    assert (refused.code, "other bounds, --hops 2. Finish it as it was begun, add --restart" in refused.err) == (
        2,
        True,
    )
    assert cli.run(*words, "--hops", "1", "--restart").code == 0


@pytest.mark.parametrize("more", [[], ["--restart"]])
def test_a_folder_that_holds_something_else_is_left_as_it_is(cli: CommandLine, tmp_path: Path, more: list[str]) -> None:
    strange = tmp_path / "store.unfinished" / "thesis.txt"
    strange.parent.mkdir()
    strange.write_text("precious", encoding="utf-8")
    graph, store = str(write_graph(tmp_path)), str(tmp_path / "store")
    run = cli.run("subgraph", "--graph", graph, "--entities", ids(tmp_path, "Q1490"), "--out", store, *more)
    assert (run.code, "holds thesis.txt, which is not part of one. Move it away" in run.err) == (2, True)
    assert strange.read_text(encoding="utf-8") == "precious"


@pytest.mark.usefixtures("heard_interrupts")
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_an_interrupt_from_the_keyboard_says_how_to_go_on(tmp_path: Path, endpoint: FalteringEndpoint) -> None:
    endpoint.answers, endpoint.stalls = 3, True
    words = words_for(endpoint, tmp_path, tmp_path / "store")
    with subprocess.Popen([*COMMAND, *words], stderr=subprocess.PIPE, text=True, encoding="utf-8") as process:
        assert endpoint.stalled.wait(PATIENCE_S)
        process.send_signal(signal.SIGINT)
        # The endpoint goes on stalling: an answer, or a failure, could come before the signal.
        _, err = process.communicate(timeout=PATIENCE_S)
    endpoint.ended.set()
    assert process.returncode == 130
    assert "Interrupted; what was fetched is kept. Run the same command again to resume." in err


def test_what_cannot_be_is_refused_before_anything_is_asked(cli: CommandLine, tmp_path: Path) -> None:
    there = tmp_path / "full"
    there.mkdir()
    (there / "something").touch()
    known = ids(tmp_path, "Q1490")
    runs = [
        cli.run("subgraph", "--entities", known, "--out", str(there)),
        cli.run("subgraph", "--entities", str(tmp_path / "no"), "--out", str(tmp_path / "store")),
        cli.run("subgraph", "--entities", known, "--out", str(tmp_path / "store"), "--hops", "0"),
        cli.run("subgraph", "--entities", ids(tmp_path, "Nobody"), "--out", str(tmp_path / "store")),
    ]
    assert [run.code for run in runs] == [1, 1, 2, 2]
    assert "is neither a store nor empty" in runs[0].err
    assert "no cannot be read: No such file or directory. It names the entities." in runs[1].err
    assert "names no entity of the graph" in runs[3].err
    assert not (tmp_path / "store").exists()


def test_a_bar_begins_again_with_every_hop() -> None:
    screen = StringIO()
    with shown_progress(Console(file=screen, force_terminal=True, _environ={}, width=80)) as progress:
        progress(ExtractionProgress("walking", 1, 0, 10, 0))
        progress(ExtractionProgress("walking", 1, 5, 10, 1_000))
        progress(ExtractionProgress("walking", 2, 0, 20, 2_000))
    assert "Looking around, hop 1" in screen.getvalue()
    assert "Looking around, hop 2, 2,000 triples" in screen.getvalue()


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


def test_a_memory_database_that_cannot_be_reached_fails_without_its_password(
    cli: CommandLine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = "postgresql://ann:open-sesame@127.0.0.1:1/memories"
    run = cli.run("doctor", str(write_graph(tmp_path)), KG_SEXTANT_MEMORY__DATABASE=url)
    (failed,) = graded(run.out)["fail"]
    assert failed.startswith("The memory database cannot be used: connection failed: ")
    assert "port 1 failed" in failed
    assert "sesame" not in run.out + run.err + caplog.text


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
