"""Graphs are opened by name."""

import importlib
import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from kg_adapters.errors import InvalidRequest, Unsupported
from kg_adapters.importing.build import build_store
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.reloading import ReloadingAdapter
from kg_adapters.registry import OpenOptions, hidden_path, open_graph, path_of
from kg_adapters.terms import Iri

EDGE = "<http://e/a> <http://e/p> <http://e/b> .\n"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"


@pytest.fixture
def options(tmp_path: Path) -> OpenOptions:
    return OpenOptions(cache_folder=tmp_path / "cache")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "g.nq"
    text = f'{EDGE}<http://e/a> {LABEL} "Tokyo"@en .\n<http://e/a> {LABEL} "Tokio"@de <http://e/g> .\n'
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.nt"
    path.write_text("oops", encoding="utf-8")
    return path


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that somebody installed, with adapters that work and adapters that do not."""
    site = tmp_path / "site"
    (site / "stranger-1.0.dist-info").mkdir(parents=True)
    (site / "stranger-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    entries = (
        "[kg_sextant.adapters]\nstrange = stranger:open_strange\nmissing = stranger:gone\nnumber = stranger:NUMBER\n"
    )
    (site / "stranger-1.0.dist-info" / "entry_points.txt").write_text(entries)
    (site / "stranger.py").write_text(
        textwrap.dedent("""
            from pathlib import Path
            from kg_adapters.local import open_local

            NUMBER = 1

            async def open_strange(rest, options):
                return await open_local(rest.removeprefix("//"), options)
        """)
    )
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    importlib.invalidate_caches()
    yield site
    sys.modules.pop("stranger", None)


async def label(name: str | Path, options: OpenOptions, node: str = "http://e/a") -> str | None:
    graph = await open_graph(str(name), options)
    try:
        return (await graph.labels([Iri(node)])).get(Iri(node))
    finally:
        await graph.aclose()


async def test_the_sample_opens_by_its_name(options: OpenOptions) -> None:
    assert await label("sample", options, "http://www.wikidata.org/entity/Q1490") == "Tokyo"


async def test_the_world_opens_by_its_name(options: OpenOptions) -> None:
    assert await label("sample:world", options, "http://world.example/E3553") == "Turnov Bridge"


async def test_a_file_opens_through_the_cache(source: Path, options: OpenOptions) -> None:
    assert await label(source, options) == "Tokyo"
    assert len([path for path in options.cache_folder.iterdir() if path.is_dir()]) == 1


async def test_a_folder_of_files_opens(source: Path, options: OpenOptions) -> None:
    assert await label(source.parent, options) == "Tokyo"


async def test_a_store_opens_where_it_is(source: Path, options: OpenOptions) -> None:
    store = build_store([source], source.parent / "store", ImportOptions(sparql=False)).folder
    assert await label(store, options) == "Tokyo"
    assert not options.cache_folder.exists()


async def test_a_store_opens_that_a_killed_import_moved_aside(source: Path, options: OpenOptions) -> None:
    store = build_store([source], source.with_name("store"), ImportOptions(sparql=False)).folder
    store.rename(source.with_name(".store.old-1234"))
    graph = await open_graph(str(store), options)
    assert (graph.name, store.is_dir()) == ("g", True)


async def test_languages_and_graphs_reach_the_import(source: Path, tmp_path: Path) -> None:
    assert await label(source, OpenOptions(tmp_path / "cache", languages=("de",))) == "Tokio"
    assert await label(source, OpenOptions(tmp_path / "cache", graphs=("http://e/g",))) == "Tokio"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", ["sample", "sample:world", "wikidata", "wikidata:x", "strange", "strange:x"])
async def test_the_name_of_a_graph_comes_before_a_folder_that_is_called_so(
    source: Path, options: OpenOptions, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(source.parent)
    build_store([source], Path(name), ImportOptions(sparql=False))
    assert (path_of(name), hidden_path(name)) == (None, Path(name))
    assert (path_of(f"./{name}"), hidden_path(f"./{name}")) == (Path(name), None)
    assert await label(f"./{name}", options) == "Tokyo"


async def test_a_folder_called_like_a_kind_of_graph_alone_opens(
    source: Path, options: OpenOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(source.parent)
    for name in ("local", "sparql", "people"):
        build_store([source], Path(name), ImportOptions(sparql=False))
        assert hidden_path(name) is None
        assert await label(name, options) == "Tokyo"


@pytest.mark.usefixtures("installed")
async def test_an_installed_adapter_opens_what_its_name_stands_for(source: Path, options: OpenOptions) -> None:
    assert await label(f"strange:{source}", options) == "Tokyo"


async def test_the_local_adapter_can_be_named(source: Path, options: OpenOptions) -> None:
    assert isinstance(await open_graph(f"local:{source}", options), ReloadingAdapter)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    "name", ["", "nowhere.nt", "unknown:thing", "Tokyo", "x" * 9_000, "x" * 300, "a\0b", "samples"]
)
async def test_any_other_name_is_an_error_that_lists_what_is_possible(name: str, options: OpenOptions) -> None:
    with pytest.raises(
        InvalidRequest, match=r"There is no graph .* Expected sample, sample:world, the path of .*, strange:…\."
    ):
        await open_graph(name, options)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(("name", "message"), [("missing", "cannot be loaded from"), ("number", "is not a function")])
async def test_a_broken_adapter_is_an_error_that_names_it(name: str, message: str, options: OpenOptions) -> None:
    with pytest.raises(Unsupported, match=f"adapter '{name}' .*{message}"):
        await open_graph(f"{name}:x", options)


def test_importing_the_registry_loads_nothing_heavy() -> None:
    code = "import json, sys, kg_adapters.registry; print(json.dumps(sorted(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert not {"numpy", "pyoxigraph", "tantivy", "rdflib", "mcp"} & set(json.loads(ran.stdout))
