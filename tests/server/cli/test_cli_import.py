"""`kg-sextant import`, with --update, --watch and --embed."""

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from io import StringIO
from itertools import chain, repeat
from pathlib import Path

import anyio
import pytest
from rich.console import Console

from cli_runs import COMMAND, CommandLine, write_graph
from embedders import Asked, serving
from kg_adapters.embedding import MiniLmEmbedder
from kg_adapters.importing.build import ImportReport, build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_adapters.open_options import Progress
from kg_server.commands.import_ import Change, Watch, end_lines
from kg_server.commands.output import PlainProgress, shown_progress
from kg_server.settings import Settings
from loopback_service import Reply
from patience import PATIENCE_S


def test_an_import_says_what_it_built_and_how_to_serve_it(cli: CommandLine, tmp_path: Path) -> None:
    store = tmp_path / "my store"
    run = cli.run("import", str(write_graph(tmp_path)), "--to", str(store))
    built, held, *_, tried, serve = run.out.splitlines()
    assert (run.code, built, serve) == (
        0,
        f"{store}: 2 triples between 2 entities over 2 relations, and 5 literals.",
        f"Serve it: kg-sextant serve '{store}'",
    )
    assert held.startswith("Graph 'japan': 2 entities, 2 triples, 0 classes, 2 relations, 1 feature; all here.")
    stages = ["Reading", "Building the adjacency index", "Building the text search", "Saving"]
    assert [line.partition(",")[0].rstrip(" …") for line in run.err.splitlines()] == stages
    command = shlex.split(tried.removeprefix("Try: kg-sextant "))
    assert cli.run(*command).code == 0


def test_an_imported_store_answers_under_its_own_name(cli: CommandLine, tmp_path: Path) -> None:
    store = tmp_path / "store"
    cli.run("import", str(write_graph(tmp_path)), "--to", str(store), "--name", "islands", "--languages", "de")
    run = cli.run("call", "Retrieve", "text=Tokio", "--graph", str(store))
    assert (run.code, "Tokio" in run.out) == (0, True)
    assert "islands" in (store / "store.json").read_text(encoding="utf-8")


def test_an_import_may_leave_what_sparql_needs_to_the_first_query(cli: CommandLine, tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert cli.run("import", str(write_graph(tmp_path)), "--to", str(store), "--no-sparql").code == 0
    assert not (store / "oxigraph").exists()
    query = "query=SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"
    run = cli.run("call", "Sparql", query, "--graph", str(store))
    assert (run.code, (store / "oxigraph").is_dir()) == (0, True)
    assert "7" in run.out


def test_an_error_ends_with_its_place_and_errors_that_are_skipped_are_counted(cli: CommandLine, tmp_path: Path) -> None:
    broken, store = tmp_path / "broken.nt", tmp_path / "store"
    broken.write_text("<http://a> <http://b> <http://c> .\n<http://a> <http://b> .\n", encoding="utf-8")
    words = ("import", str(broken), "--to", str(store))
    run = cli.run(*words)
    assert (run.code, run.out, store.exists(), "broken.nt, line 2" in run.err) == (1, "", False, True)
    report = json.loads(cli.run(*words, "--skip-errors", "--json").out)
    assert (report["counts"]["triples"], report["skipped"], len(report["problems"])) == (1, 1, 1)
    run = cli.run(*words, "--skip-errors")
    assert (run.code, "Skipped: 1 unreadable statement. The first reasons:" in run.out) == (0, True)


def test_only_the_named_graphs_that_were_asked_for_are_imported(cli: CommandLine, tmp_path: Path) -> None:
    quads = tmp_path / "quads.nq"
    quads.write_text("".join(f"<http://a> <http://b> <http://{n}> <http://g{n}> .\n" for n in "123"), encoding="utf-8")
    store = str(tmp_path / "store")
    run = cli.run("import", str(quads), "--to", store, "--graph-name", "http://g1", "--graph-name", "http://g3")
    assert "2 triples between 3 entities" in run.out


def test_a_stage_is_printed_once(cli: CommandLine) -> None:
    told = PlainProgress()
    for done in (0, 5, 9):
        told(Progress("reading", done, 9, done))
    assert cli.capture.readouterr().err == "Reading …\n"


def test_on_a_terminal_a_bar_moves_and_disappears() -> None:
    screen = StringIO()
    with shown_progress(Console(file=screen, force_terminal=True, _environ={}, width=80)) as progress:
        progress(Progress("reading", 3, 9, 1_000))
        progress(Progress("indexing", 9, 9, 2_000))
    assert "Reading, 1,000 statements" in screen.getvalue()
    assert "Building the adjacency index, 2,000 statements" in screen.getvalue()


def test_nothing_is_shown_when_there_is_nothing_to_report(cli: CommandLine) -> None:
    screen = StringIO()
    with shown_progress(Console(file=screen, force_terminal=True, _environ={}, width=80)), shown_progress():
        pass
    assert (screen.getvalue(), *cli.capture.readouterr()) == ("", "", "")


def test_links_that_lead_outside_of_a_folder_are_counted_and_followed_when_asked_for(
    cli: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    write_graph(tmp_path / "data")
    (tmp_path / "other.nt").write_text("<http://e/a> <http://e/p> <http://e/b> .", encoding="utf-8")
    (tmp_path / "data" / "link.nt").symlink_to("../other.nt")
    (tmp_path / "data" / "more.json").write_text('[{"id": "a", "size": 1}]', encoding="utf-8")
    words = ["import", str(tmp_path / "data"), "--to", str(tmp_path / "store")]
    assert "link.nt is a link that leads outside of the folder" in cli.run(*words).out
    assert "/data/more.json was not read, since that may be no graph: to import it too, name it" in cli.run(*words).out
    named = cli.run("import", str(tmp_path / "data"), str(tmp_path / "data" / "more.json"), *words[2:])
    assert ("not read" in named.out, "more.json: 1 entity" in named.out) == (False, True)
    followed = cli.run(*words, "--follow-links")
    assert ("3 triples between 4 entities" in followed.out, "Left out" in followed.out) == (True, False)


OSAKA = '<http://www.wikidata.org/entity/Q35765> <http://www.w3.org/2000/01/rdf-schema#label> "Osaka"@en .\n'


def test_files_are_added_to_a_store(cli: CommandLine, tmp_path: Path) -> None:
    store, more = str(tmp_path / "store"), tmp_path / "more.nt"
    more.write_text(OSAKA, encoding="utf-8")
    cli.run("import", str(write_graph(tmp_path)), "--to", store)
    run = cli.run("import", str(more), "--to", store, "--update")
    assert run.out.splitlines()[0] == f"{store}: 2 triples between 3 entities over 2 relations, and 6 literals."
    assert "Q35765" in cli.run("call", "Retrieve", "text=Osaka", "--graph", store).out


def test_a_store_that_is_not_there_is_not_updated(cli: CommandLine, tmp_path: Path) -> None:
    store = tmp_path / "store"
    run = cli.run("import", str(write_graph(tmp_path)), "--to", str(store), "--update")
    assert (run.code, store.exists()) == (1, False)
    assert f"There is no store {store} to be updated. Build it first: leave out --update." in run.err


def test_standard_input_cannot_be_watched(cli: CommandLine, tmp_path: Path) -> None:
    run = cli.run_given("", "import", "-", "--to", str(tmp_path / "store"), "--watch")
    assert (run.code, "Standard input cannot be watched." in run.err) == (2, True)


def test_vectors_of_what_a_store_held_are_told_to_be_gone(cli: CommandLine, tmp_path: Path) -> None:
    store, more = tmp_path / "store", tmp_path / "more.nt"
    more.write_text(OSAKA, encoding="utf-8")
    cli.run("import", str(write_graph(tmp_path)), "--to", str(store))
    (store / "vectors").mkdir()
    assert "Compute them anew with --embed." in cli.run("import", str(more), "--to", str(store), "--update").out


def changes(watch: Watch, *steps: Callable[[], object]) -> list[Change]:
    """Return what a watch tells while these steps are taken, one in each pause, and two pauses behind them."""
    found: list[Change] = []
    left: Iterator[Callable[[], object]] = chain(steps, repeat(lambda: None, 2))

    def pause() -> None:
        step = next(left, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    told = watch.changes(pause)
    with suppress(KeyboardInterrupt):
        while True:
            found.append(next(told))
    return found


def test_a_watch_tells_what_came_what_changed_and_what_went(tmp_path: Path) -> None:
    old, new = tmp_path / "old.nt", tmp_path / "new.nt"
    old.write_text("", encoding="utf-8")
    assert changes(Watch([tmp_path])) == []
    assert changes(Watch([tmp_path]), lambda: new.write_text("x", encoding="utf-8")) == [Change((new,), False)]
    assert changes(Watch([tmp_path]), lambda: old.write_text("longer", encoding="utf-8")) == [Change((old,), True)]
    assert changes(Watch([tmp_path]), new.unlink) == [Change((), True)]


def test_a_watch_waits_until_a_file_is_written_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "old.nt").touch()
    new = tmp_path / "new.nt"
    parts = (partial(new.write_text, "x" * size, encoding="utf-8") for size in (1, 2, 3))
    assert changes(Watch([tmp_path]), *parts) == [Change((new,), False)]


def test_a_file_that_is_gone_for_a_moment_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "only.nt"
    file.write_text("before", encoding="utf-8")
    steps = (file.unlink, lambda: None, lambda: file.write_text("after it", encoding="utf-8"))
    assert changes(Watch([file]), *steps) == [Change((file,), True)]


def until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not condition():
        assert process.poll() is None
        time.sleep(0.05)


def entities(store: Path) -> int:
    return open_store(store).info.counts.entities if (store / "store.json").is_file() else 0


@pytest.mark.usefixtures("heard_interrupts")
def test_a_watched_folder_is_imported_as_it_changes_until_an_interrupt(tmp_path: Path) -> None:
    folder, store = tmp_path / "files", tmp_path / "store"
    folder.mkdir()
    graph = write_graph(folder)
    words = [*COMMAND, "import", str(folder), "--to", str(store), "--no-sparql", "--watch"]
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    pipe, both = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(words, env={**os.environ, **home}, stdout=pipe, stderr=both, text=True) as process:
        try:
            assert process.stdout is not None
            while not process.stdout.readline().startswith("Watching "):
                assert process.poll() is None
            assert entities(store) == 2
            (folder / "osaka.nt").write_text(OSAKA, encoding="utf-8")
            until(lambda: entities(store) == 3, process)
            graph.write_text("this is no Turtle", encoding="utf-8")
            while "Watching goes on." not in process.stdout.readline():
                assert process.poll() is None
            assert entities(store) == 3
            graph.unlink()
            until(lambda: entities(store) == 1, process)
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()


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


def test_a_store_that_is_there_gets_its_vectors_from_a_service(cli: CommandLine, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    cli.run("import", str(write_graph(tmp_path)), "--to", store)
    with serving(in_three_dimensions) as service:
        environ = {
            "KG_SEXTANT_EMBEDDING__EMBEDDER": "openai",
            "KG_SEXTANT_EMBEDDING__DIMENSIONS": "3",
            "KG_SEXTANT_EMBEDDING__BASE_URL": service.url,
        }
        run = cli.run("import", store, "--embed", **environ)
    assert (run.code, run.out.splitlines()) == (
        0,
        ["7 texts, 15 tokens.", f"{store}: the vectors are complete."],
    )


def test_the_sample_is_a_store_too(cli: CommandLine) -> None:
    with serving(lambda _: Reply({"error": {"message": "out of money"}}, status=400)) as service:
        environ = {"KG_SEXTANT_EMBEDDING__EMBEDDER": "openai", "KG_SEXTANT_EMBEDDING__BASE_URL": service.url}
        run = cli.run("import", "sample", "--embed", **environ)
    assert (run.code, "out of money" in run.err) == (1, True)


def test_an_import_does_not_show_what_another_one_put_into_its_folder_since(tmp_path: Path) -> None:
    texts = {
        "a": "<http://e/a> <http://e/p> <http://e/b> .",
        "b": "<http://e/a> <http://e/p> <http://e/b>, <http://e/c> .",
    }
    reports: list[ImportReport] = []
    for name, text in texts.items():
        (tmp_path / f"{name}.ttl").write_text(text, encoding="utf-8")
        reports.append(build_store([tmp_path / f"{name}.ttl"], tmp_path / "store", ImportOptions(sparql=False)))
    first, last = ([*end_lines(tmp_path / "store", Settings(), report)] for report in reports)
    assert first[:-1] == [f"Another import has changed {tmp_path / 'store'} since."]
    assert last[0].startswith("Graph 'b': 3 entities")


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_vectors_that_fail_take_no_report_with_them(cli: CommandLine, tmp_path: Path, form: Sequence[str]) -> None:
    store = tmp_path / "store"
    with serving(lambda _: Reply({"error": {"message": "out of money"}}, status=400)) as service:
        environ = {"KG_SEXTANT_EMBEDDING__EMBEDDER": "openai", "KG_SEXTANT_EMBEDDING__BASE_URL": service.url}
        run = cli.run("import", str(write_graph(tmp_path)), "--to", str(store), "--embed", *form, **environ)
    assert (run.code, "out of money" in run.err) == (1, True)
    folder = json.loads(run.out)["folder"] if form else run.out.partition(":")[0]
    assert folder == str(store)


def test_letters_need_no_vectors_and_an_import_needs_a_place(cli: CommandLine, tmp_path: Path) -> None:
    source = str(write_graph(tmp_path))
    words = ("import", source, "--to", str(tmp_path / "store"), "--embed")
    run = cli.run(*words, KG_SEXTANT_EMBEDDING__EMBEDDER="lexical")
    assert (run.code, "--embed needs a model" in run.err) == (2, True)
    for wrong in ((source,), (source, "--embed"), (source, source, "--embed")):
        run = cli.run("import", *wrong)
        assert (run.code, run.err) == (2, "kg-sextant: Name the folder of the store, as in --to FOLDER.\n")


def test_the_world_is_a_store_with_its_vectors_too(cli: CommandLine) -> None:
    run = cli.run("doctor", "sample:world", "--deep")
    assert (run.code, run.err) == (0, "")
    assert "compared: 40,512 triples, 8,041 entities, 0 skipped at import" in run.out
