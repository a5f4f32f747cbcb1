"""RDF files are imported once, and a sample is unpacked once."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path

import pytest

from kg_adapters.errors import InvalidSource
from kg_adapters.importing.build import build_store
from kg_adapters.labels import Vocabulary
from kg_adapters.local.cache import open_cached, open_sample
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import FORMAT, Counts, open_store, verify_store
from kg_adapters.open_options import Progress, ReadingLimits, Stage
from kg_adapters.registry import SAMPLES, OpenOptions, open_graph

EDGE = "<http://e/a> <http://e/p> <http://e/b> .\n"
OPTIONS = ImportOptions(sparql=False)
SAMPLE_VALUES = Path(__file__).parents[2] / "tools" / "sample_values.ttl"
WORLD = "sample:world"
WORLD_SOURCE = Path(__file__).parents[2] / "benchmarks" / "world" / "graph.ttl.gz"


class Imports:
    """Remembers which stages were reported, to tell an import from a look into the cache."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []

    def __call__(self, progress: Progress) -> None:
        self.stages.append(progress.stage)

    @property
    def count(self) -> int:
        return self.stages.count("searching")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "my.graph.nt"
    path.write_text(EDGE, encoding="utf-8")
    return path


def test_a_file_is_imported_once(source: Path, tmp_path: Path) -> None:
    imports = Imports()
    first = open_cached([source], tmp_path / "cache", OPTIONS, imports).folder
    assert open_cached([source], tmp_path / "cache", OPTIONS, imports).folder == first
    assert imports.count == 1
    assert first.parent == tmp_path / "cache"
    assert open_store(first).info.counts.triples == 1


@pytest.mark.parametrize("longer", ["<http://e/b> <http://e/p> <http://e/a> .\n", ""])
def test_a_changed_file_is_imported_again(source: Path, tmp_path: Path, longer: str) -> None:
    imports = Imports()
    store = open_cached([source], tmp_path / "cache", OPTIONS, imports).folder
    source.write_text(EDGE.replace("/b>", "/c>") + longer, encoding="utf-8")
    os.utime(source, ns=(1, 1))
    assert open_cached([source], tmp_path / "cache", OPTIONS, imports).folder == store
    assert open_store(store).index.nodes.find("http://e/c") is not None
    assert imports.count == 2


def test_a_file_that_was_only_touched_is_not_imported_again(source: Path, tmp_path: Path) -> None:
    imports = Imports()
    open_cached([source], tmp_path / "cache", OPTIONS, imports)
    os.utime(source, ns=(1, 1))
    open_cached([source], tmp_path / "cache", OPTIONS, imports)
    assert imports.count == 1


def test_a_folder_is_imported_again_when_a_file_comes_or_goes(source: Path, tmp_path: Path) -> None:
    imports = Imports()
    (tmp_path / "folder").mkdir()
    source.rename(tmp_path / "folder" / "1.nt")
    open_cached([tmp_path / "folder"], tmp_path / "cache", OPTIONS, imports)
    (tmp_path / "folder" / "2.nt").write_text(EDGE, encoding="utf-8")
    store = open_cached([tmp_path / "folder"], tmp_path / "cache", OPTIONS, imports).folder
    assert ([file.name for file in open_store(store).info.sources], imports.count) == (["1.nt", "2.nt"], 2)


def test_other_options_make_another_store_and_other_limits_do_not(source: Path, tmp_path: Path) -> None:
    german = ImportOptions(sparql=False, vocabulary=Vocabulary(languages=("de",)))
    limited = ImportOptions(sparql=False, limits=ReadingLimits(literal_mb=1))
    first, same, other = (
        open_cached([source], tmp_path / "cache", options).folder for options in (OPTIONS, limited, german)
    )
    assert first == same != other


@pytest.mark.parametrize("damage", ["store.json", "index/nodes.text.npy", "", "text"])
def test_a_store_that_is_damaged_or_gone_is_imported_again(source: Path, tmp_path: Path, damage: str) -> None:
    store = open_cached([source], tmp_path / "cache", OPTIONS).folder
    if "." in damage:
        (store / damage).unlink()
    else:
        shutil.rmtree(store)
        (store / damage).mkdir(parents=True)
    verify_store(open_cached([source], tmp_path / "cache", OPTIONS).folder)


@pytest.mark.parametrize("damaged", ["schema.json", "profile.json", "text/nodes.names.text.npy"])
async def test_a_cached_store_whose_damage_shows_in_use_is_imported_again_and_answers(
    source: Path, tmp_path: Path, damaged: str
) -> None:
    options = OpenOptions(cache_folder=tmp_path / "cache")
    async with aclosing(await open_graph(str(source), options)) as graph:
        expected = await graph.schema(), await graph.profile(), await graph.search("a", limit=1)
    (file,) = (tmp_path / "cache").glob(f"*/{damaged}")
    file.write_bytes(bytes(file.stat().st_size))
    async with aclosing(await open_graph(str(source), options)) as graph:
        assert (await graph.schema(), await graph.profile(), await graph.search("a", limit=1)) == expected
    verify_store(file.parents[damaged.count("/")])


async def test_a_damaged_sample_is_unpacked_again_once_its_damage_shows(tmp_path: Path) -> None:
    folder = open_sample(tmp_path / "cache").folder
    (folder / "schema.json").write_bytes(b"{}")
    (folder / "profile.json").write_bytes(b"{}" * ((folder / "profile.json").stat().st_size // 2))
    async with aclosing(await open_graph(SAMPLES[0], OpenOptions(cache_folder=tmp_path / "cache"))) as graph:
        assert (await graph.schema()).entities.value == (await graph.profile()).everything.instances
    verify_store(folder)


def test_several_at_once_import_once(source: Path, tmp_path: Path) -> None:
    imports = Imports()
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(open_cached, [source], tmp_path / "cache", OPTIONS, imports) for _ in range(4)]
        stores = {one.result().folder for one in asked}
    assert (len(stores), imports.count) == (1, 1)


def test_a_cache_that_cannot_be_written_is_an_error(source: Path) -> None:
    with pytest.raises(InvalidSource, match="cannot be written to"):
        open_cached([source], source / "cache", OPTIONS)
    with pytest.raises(InvalidSource, match="cannot be written to"):
        open_sample(source / "cache")


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_unpacked_once_and_whole(name: str, tmp_path: Path) -> None:
    store = open_sample(tmp_path, name).folder
    made = store.stat().st_ino
    assert open_sample(tmp_path, name).folder == store
    assert store.stat().st_ino == made
    assert "CC0" in (store / "SOURCE.txt").read_text(encoding="utf-8")
    info = verify_store(store).info
    assert (info.format, info.name, info.skipped) == (FORMAT, name, 0)


def test_a_damaged_sample_is_unpacked_again(tmp_path: Path) -> None:
    store = open_sample(tmp_path).folder
    (store / "schema.json").unlink()
    verify_store(open_sample(tmp_path).folder)


def test_several_at_once_unpack_one_sample(tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(open_sample, tmp_path) for _ in range(3)]
        stores = {one.result().folder for one in asked}
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == list(stores)


def test_the_sample_files_is_what_an_import_of_its_source_makes(sample_source: Path, tmp_path: Path) -> None:
    shipped = open_sample(tmp_path / "cache").info
    report = build_store([sample_source, SAMPLE_VALUES], tmp_path / "store", ImportOptions(sparql=False, name="sample"))
    fresh = open_store(report.folder).info
    assert shipped.counts == Counts(entities=15_777, relations=304, triples=149_827, features=53_872)
    assert (shipped.counts, shipped.prefixes, shipped.vocabulary) == (fresh.counts, fresh.prefixes, fresh.vocabulary)
    assert [file for file in shipped.files if file.path.startswith("index/")] == [
        file for file in fresh.files if file.path.startswith("index/")
    ]
    assert shipped.sources == fresh.sources


def test_the_shipped_world_is_byte_for_byte_what_an_import_of_its_source_makes(tmp_path: Path) -> None:
    shipped = open_sample(tmp_path / "cache", WORLD).info
    report = build_store([WORLD_SOURCE], tmp_path / "store", ImportOptions(sparql=False, name=WORLD))
    assert open_store(report.folder).info == shipped


def test_a_link_is_read_by_its_own_ending_though_another_led_to_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "blob").write_text("@prefix e: <http://e/> . e:a e:p e:b .", encoding="utf-8")
    for name in ("g.ttl", "g.nt"):
        (tmp_path / name).symlink_to("blob")
    assert open_cached([tmp_path / "g.ttl"], tmp_path / "cache", ImportOptions()).info.counts.triples == 1
    with pytest.raises(InvalidSource, match=r"blob, line 1, column 1: "):
        open_cached([tmp_path / "g.nt"], tmp_path / "cache", ImportOptions())
