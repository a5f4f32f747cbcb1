"""An import leaves a whole store behind, or what was there before."""

import gzip
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyoxigraph as ox
import pytest

from kg_adapters.errors import InvalidSource
from kg_adapters.importing.build import ImportReport, build_store
from kg_adapters.importing.naming import NamingReport
from kg_adapters.labels import Vocabulary
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import Counts, LocalStore, open_store
from kg_adapters.local.swap import exclusively
from kg_adapters.open_options import Progress, Stage
from kg_adapters.prefixes import WIKIDATA

EDGE = "<http://e/a> <http://e/p> <http://e/b> .\n"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"

KILLED_IMPORT = """
import os, signal, sys
from pathlib import Path
from kg_adapters.importing.build import build_store
from kg_adapters.local.import_options import ImportOptions

def die(progress):
    if progress.stage == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)

build_store([Path(sys.argv[1])], Path(sys.argv[2]), ImportOptions(), die)
"""

CRAMPED_IMPORT = """
import resource, sys
from pathlib import Path
from kg_adapters.errors import InvalidSource
from kg_adapters.importing.build import build_store
from kg_adapters.local.import_options import ImportOptions

room, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, most))
try:
    build_store([Path(sys.argv[1])], Path(sys.argv[2]), ImportOptions(sparql=False))
except InvalidSource as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (room, most))  # coverage is written at the end
"""


def write(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def imported(source: Path, target: Path, options: ImportOptions | None = None) -> LocalStore:
    return open_store(build_store([source], target, options or ImportOptions()).folder)


def nodes(store: LocalStore) -> list[str]:
    return [store.index.nodes[row] for row in range(len(store.index.nodes))]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.endswith(".lock")}


def test_an_import_reports_what_the_store_holds(tmp_path: Path) -> None:
    source = write(tmp_path, "g.nt", EDGE + EDGE + f'<http://e/a> {LABEL} "A" .\n')
    (tmp_path / "new" / "store").mkdir(parents=True)
    report = build_store([source], tmp_path / "new" / "store", ImportOptions())
    counts = Counts(entities=2, relations=1, triples=1, features=1)
    assert report == ImportReport(tmp_path / "new" / "store", counts, 0, (), NamingReport(1, 1, ()))
    info = open_store(report.folder).info
    assert (info.counts, info.name, info.skipped) == (counts, "g", 0)
    assert [(file.name, file.size) for file in info.sources] == [("g.nt", source.stat().st_size)]


def test_several_files_make_one_graph(tmp_path: Path) -> None:
    write(tmp_path, "1.nt", "<http://e/a> <http://e/p> _:x .")
    (tmp_path / "2.ttl.gz").write_bytes(gzip.compress(b"<http://e/a> <http://e/p> <http://e/c>, _:x ."))
    store = imported(tmp_path, tmp_path / "store", ImportOptions(name="both"))
    assert nodes(store) == ["_:f1-x", "_:f2-x", "http://e/a", "http://e/c"]
    assert (store.info.name, [file.name for file in store.info.sources]) == ("both", ["1.nt", "2.ttl.gz"])


def test_sparql_sees_the_merged_graph_with_the_ids_of_the_index(tmp_path: Path) -> None:
    source = write(tmp_path, "g.nq", '_:x <http://e/p> <http://e/b> <http://e/g> .\n_:x <http://e/p> "v"@en .')
    folder = build_store([source], tmp_path / "store", ImportOptions()).folder
    quads = {str(quad) for quad in ox.Store.read_only(str(folder / "oxigraph"))}
    assert quads == {
        "_:x <http://e/p> <http://e/b>",
        "_:x <http://e/p> <http://e/b> <http://e/g>",
        '_:x <http://e/p> "v"@en',
    }


def test_an_empty_file_makes_an_empty_store(tmp_path: Path) -> None:
    store = imported(write(tmp_path, "g.nt", ""), tmp_path / "store")
    assert store.info.counts == Counts(entities=0, relations=0, triples=0, features=0)


def test_skipped_statements_are_counted_in_the_report_and_in_the_store(tmp_path: Path) -> None:
    source = write(tmp_path, "g.nt", EDGE + "<oops> .\n")
    report = build_store([source], tmp_path / "store", ImportOptions(skip_errors=True))
    assert (report.skipped, len(report.problems), open_store(report.folder).info.skipped) == (1, 1, 1)


def test_labels_are_chosen_in_the_languages_of_the_options(tmp_path: Path) -> None:
    source = write(tmp_path, "g.nt", f'<http://e/a> {LABEL} "Tokyo"@en .\n<http://e/a> {LABEL} "Tokio"@de .\n')
    options = ImportOptions(vocabulary=Vocabulary(languages=("de",)))
    store = imported(source, tmp_path / "store", options)
    assert store.info.vocabulary == options.vocabulary
    assert store.index.features.values[int(store.index.labels[0])] == "Tokio"


def test_chosen_graphs_alone_are_imported(tmp_path: Path) -> None:
    source = write(tmp_path, "g.nq", EDGE + "<http://e/c> <http://e/p> <http://e/d> <http://e/g> .\n")
    assert nodes(imported(source, tmp_path / "store", ImportOptions(graphs=("http://e/g",)))) == [
        "http://e/c",
        "http://e/d",
    ]
    with pytest.raises(InvalidSource, match="No statement is in a graph <http://e/h>"):
        imported(source, tmp_path / "other", ImportOptions(graphs=("http://e/h",)))


def test_a_graph_of_wikidata_gets_bare_ids(tmp_path: Path) -> None:
    wikidata = "http://www.wikidata.org"
    source = write(tmp_path, "g.nt", f"<{wikidata}/entity/Q1> <{wikidata}/prop/direct/P1> <{wikidata}/entity/Q2> .")
    prefixes = imported(source, tmp_path / "store").info.prefixes
    assert (prefixes.entities, prefixes.relations) == (WIKIDATA.entities, WIKIDATA.relations)


def test_progress_goes_through_the_stages_to_the_last_byte(tmp_path: Path) -> None:
    source = write(tmp_path, "g.nt", EDGE * 3)
    size = source.stat().st_size
    seen: list[Progress] = []
    build_store([source], tmp_path / "store", ImportOptions(), seen.append)
    stages: tuple[Stage, ...] = ("indexing", "searching", "saving", "saving")
    assert seen == [
        Progress("reading", 0, size, 0),
        Progress("reading", size, size, 3),
        *(Progress(stage, size, size, 3) for stage in stages),
    ]


def test_a_store_is_replaced_as_a_whole(tmp_path: Path) -> None:
    imported(write(tmp_path, "old.nt", EDGE), tmp_path / "store")
    (tmp_path / "store" / "extra").touch()
    store = imported(write(tmp_path, "new.nt", "<http://e/c> <http://e/p> <http://e/c> ."), tmp_path / "store")
    assert nodes(store) == ["http://e/c"]
    assert not (tmp_path / "store" / "extra").exists()
    assert names(tmp_path) == {"old.nt", "new.nt", "store"}


def test_only_a_store_or_an_empty_folder_is_replaced(tmp_path: Path) -> None:
    source = write(tmp_path, "g.nt", EDGE)
    with pytest.raises(InvalidSource, match="neither a store nor empty"):
        build_store([source], tmp_path, ImportOptions())
    with pytest.raises(InvalidSource, match="is a file"):
        build_store([source], source, ImportOptions())
    with pytest.raises(InvalidSource, match="cannot be written to"):
        build_store([source], source / "store", ImportOptions())
    if sys.platform == "linux":
        with pytest.raises(InvalidSource, match="/proc cannot be written to"):
            build_store([source], Path("/proc/store"), ImportOptions())
    assert source.read_text(encoding="utf-8") == EDGE
    assert [path.name for path in tmp_path.iterdir()] == ["g.nt"]


def test_a_mounted_disk_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidSource, match=r"is a disk of its own, which nothing can replace\. Choose a folder inside"
    ):
        build_store([write(tmp_path, "bad.nt", "oops")], Path("/"), ImportOptions())


@pytest.mark.parametrize("there", [True, False])
def test_through_a_link_the_folder_is_replaced_that_it_stands_for(tmp_path: Path, there: bool) -> None:
    source, link = write(tmp_path, "g.nt", EDGE), tmp_path / "link"
    if there:
        imported(source, tmp_path / "store")
    link.symlink_to("store")
    for _ in range(2):
        build_store([source], link, ImportOptions())
    assert link.readlink() == Path("store")
    assert nodes(open_store(tmp_path / "store")) == nodes(open_store(link)) == ["http://e/a", "http://e/b"]
    assert names(tmp_path) == {"g.nt", "link", "store"}


def test_a_ruin_of_a_store_can_be_replaced(tmp_path: Path) -> None:
    source = write(tmp_path, "g.nt", EDGE)
    (imported(source, tmp_path / "store").folder / "store.json").unlink()
    assert nodes(imported(source, tmp_path / "store")) == ["http://e/a", "http://e/b"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_disk_without_room_is_an_error_that_leaves_the_old_store(tmp_path: Path) -> None:
    target = tmp_path / "store"
    imported(write(tmp_path, "old.nt", EDGE), target)
    source = write(tmp_path, "new.nt", "".join(f'<http://e/{n}> <http://e/p> "{n}" .\n' for n in range(20_000)))
    ended = subprocess.run([sys.executable, "-c", CRAMPED_IMPORT, source, target], check=False, capture_output=True)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout.decode().startswith(f"{target} cannot be written: ")
    assert nodes(open_store(target)) == ["http://e/a", "http://e/b"]
    assert names(tmp_path) == {"old.nt", "new.nt", "store"}


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    source = write(tmp_path, "g.nt", EDGE)

    def append(progress: Progress) -> None:
        if progress.stage == "indexing":
            source.write_text(EDGE * 2, encoding="utf-8")

    with pytest.raises(InvalidSource, match=r"g\.nt was changed while it was read\. Import it again"):
        build_store([source], tmp_path / "store", ImportOptions(), append)
    assert names(tmp_path) == {"g.nt"}


def test_a_failed_import_leaves_the_old_store_and_nothing_else(tmp_path: Path) -> None:
    imported(write(tmp_path, "old.nt", EDGE), tmp_path / "store")
    with pytest.raises(InvalidSource, match="line 1"):
        build_store([write(tmp_path, "bad.nt", "oops")], tmp_path / "store", ImportOptions())
    assert nodes(open_store(tmp_path / "store")) == ["http://e/a", "http://e/b"]
    assert names(tmp_path) == {"old.nt", "bad.nt", "store"}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("stage", ["reading", "saving"])
def test_a_killed_import_leaves_the_old_store_and_the_next_one_clears_up(tmp_path: Path, stage: str) -> None:
    target = tmp_path / "store"
    imported(write(tmp_path, "old.nt", EDGE), target)
    source = write(tmp_path, "new.nt", "<http://e/c> <http://e/p> <http://e/c> .")
    died = subprocess.run([sys.executable, "-c", KILLED_IMPORT, source, target, stage], check=False)
    assert died.returncode == -signal.SIGKILL
    assert nodes(open_store(target)) == ["http://e/a", "http://e/b"]
    assert len(names(tmp_path)) == 4
    assert nodes(imported(source, target)) == ["http://e/c"]
    assert names(tmp_path) == {"old.nt", "new.nt", "store"}


def test_a_store_that_was_moved_aside_by_a_dead_import_comes_back(tmp_path: Path) -> None:
    store = imported(write(tmp_path, "g.nt", EDGE), tmp_path / "store")
    store.folder.rename(tmp_path / ".store.old-1234")
    assert nodes(open_store(tmp_path / "store")) == ["http://e/a", "http://e/b"]
    assert names(tmp_path) == {"g.nt", "store"}


def test_imports_into_one_store_take_turns(tmp_path: Path) -> None:
    sources = [write(tmp_path, f"{n}.nt", f"<http://e/{n}> <http://e/p> <http://e/{n}> .") for n in range(4)]
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(build_store, [source], tmp_path / "store", ImportOptions()) for source in sources]
        reports = [one.result() for one in asked]
    assert {report.counts.entities for report in reports} == {1}
    assert nodes(open_store(tmp_path / "store")) in [[f"http://e/{n}"] for n in range(4)]


def test_an_import_that_has_to_wait_says_so(tmp_path: Path) -> None:
    source = write(tmp_path, "g.nt", EDGE)
    seen: list[Stage] = []
    with ThreadPoolExecutor(1) as pool:
        with exclusively(tmp_path / "store"):
            waiting = pool.submit(
                build_store, [source], tmp_path / "store", ImportOptions(), lambda progress: seen.append(progress.stage)
            )
            while not seen:
                assert not waiting.done()
        waiting.result()
    assert seen[:2] == ["waiting", "reading"]
