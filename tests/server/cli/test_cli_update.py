"""`import --update` and `import --watch`: a store that grows."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain, repeat
from pathlib import Path

import pytest

from cli_runs import COMMAND, CommandLine, write_graph
from kg_adapters.local.store import open_store
from kg_server.commands.import_ import Change, Watch

OSAKA = '<http://www.wikidata.org/entity/Q35765> <http://www.w3.org/2000/01/rdf-schema#label> "Osaka"@en .\n'


def test_files_are_added_to_a_store(cli: CommandLine, tmp_path: Path) -> None:
    store, more = str(tmp_path / "store"), tmp_path / "more.nt"
    more.write_text(OSAKA, encoding="utf-8")
    cli.run("import", str(write_graph(tmp_path)), "--to", store)
    run = cli.run("import", str(more), "--to", store, "--update")
    assert run.out.splitlines()[0] == f"{store}: 2 triples between 3 entities over 2 relations, and 6 literals."
    assert "Osaka (Q35765)" in cli.run("call", "Retrieve", "text=Osaka", "--graph", store).out


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
    with subprocess.Popen(words, env={**os.environ, **home}, stdout=subprocess.PIPE, text=True) as process:
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
            assert process.wait(900) == 0
        finally:
            process.kill()
