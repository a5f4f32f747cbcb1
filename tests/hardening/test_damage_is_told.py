"""Whatever happens to the files of a store: an answer is the right one, or it says that the store is damaged."""

import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import numpy as np
import numpy.typing as npt
import pytest
from mcp import Client

from calls import reply_of
from embedders import RecordingEmbedder
from kg_adapters.errors import InvalidSource
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.building.build import build_store
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store, read_store_info, stored_files, write_store_info
from kg_adapters.local.vectors.embed import embed_store
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import SurroundingsRequest
from kg_adapters.surroundings import StoreIds
from kg_adapters.testing import iri, ntriples
from kg_server.app import build_server
from kg_server.settings import Settings

GRAPH = (
    'tokyo label "Tokyo"@en',
    'kyoto label "Kyōto"@en',
    'japan label "Japan"@en',
    'City label "city"@en',
    'country label "country"@en',
    'tokyo population "13960000"^^<http://www.w3.org/2001/XMLSchema#integer>',
    'tokyo motto "短い"@ja',
    "tokyo type City",
    "kyoto type City",
    "tokyo country japan",
    "kyoto country japan",
    "japan capital tokyo",
    "tokyo twin tokyo",
    "_:b0 near kyoto",
)
TOKYO, KYOTO, JAPAN = (f"http://example.org/{name}" for name in ("tokyo", "kyoto", "japan"))
CALLS: Mapping[str, tuple[str, dict[str, object]]] = {
    "exact name": ("Retrieve", {"text": "Tokyo"}),
    "like a name": ("Retrieve", {"text": "kioto", "type": "http://example.org/City"}),
    "neighbours": ("GetNeighbor", {"entity": TOKYO}),
    "by relation": ("GetNeighbor", {"entity": JAPAN, "relation": "http://example.org/country", "direction": "in"}),
    "degree": ("Degree", {"entity": TOKYO}),
    "degree one way": ("Degree", {"entity": JAPAN, "direction": "in"}),
    "feature": ("Feature", {"entity": TOKYO}),
    "paths": ("GetPath", {"source": TOKYO, "target": KYOTO}),
    "schema": ("Schema", {}),
    "observe": ("observe", {"question": "Which country is it in?", "entities": [KYOTO]}),
    "compose": ("Compose", {"expression": f"Count[Neighbor[{JAPAN}, http://example.org/country]]"}),
    "sparql": ("Sparql", {"query": "SELECT ?s ?o { ?s <http://example.org/country> ?o } ORDER BY ?s"}),
    "sparql labels": (
        "Sparql",
        {"query": "SELECT ?l { ?s <http://www.w3.org/2000/01/rdf-schema#label> ?l } ORDER BY ?l"},
    ),
}
READERS: Mapping[str, frozenset[str]] = {
    "text/": frozenset({"exact name", "like a name"}),
    "schema.json": frozenset({"schema"}),
    "profile.json": frozenset({"schema"}),
    "vectors/": frozenset(),
    "oxigraph/": frozenset({"sparql", "sparql labels"}),
    "index/": frozenset(CALLS) - {"sparql", "sparql labels"},
}
INTERNAL = "because of an internal error"
MODEL = "recording-1"
NOTHING = np.zeros(0, dtype=np.int32)

Values: TypeAlias = npt.NDArray[Any]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings that keep what is written in a folder of its own, and load no model."""
    folder = tmp_path_factory.mktemp("settings")
    return Settings(embedder="lexical", cache_folder=folder / "cache", data_folder=folder / "data")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that has everything, vectors included."""
    folder = tmp_path_factory.mktemp("intact")
    imported(folder / "store", GRAPH)
    anyio.run(embedded, folder / "store")
    return folder / "store"


async def embedded(folder: Path) -> None:
    await embed_store(open_store(folder), RecordingEmbedder(MODEL))


def imported(target: Path, statements: tuple[str, ...]) -> None:
    source = target.with_name("graph.nt")
    source.write_text(ntriples(statements), encoding="utf-8")
    build_store([source], target, ImportOptions())


def files_of(store: Path) -> Iterator[str]:
    files = (path for path in sorted(store.rglob("*")) if path.is_file() and path.stat().st_size)
    return (path.relative_to(store).as_posix() for path in files)


def asked_about(path: str) -> frozenset[str]:
    """Return the names of the calls that read a file, or that may."""
    for start, calls in READERS.items():
        if path.startswith(start):
            return calls
    return frozenset(CALLS)


async def answers(graph: KGAdapter, settings: Settings, calls: Collection[str]) -> dict[str, tuple[bool, str]]:
    """Return what some calls say, and whether it is an error."""
    if not calls:
        return {}
    async with Client(build_server(graph, settings)) as client:
        replies = {name: reply_of(await client.call_tool(*CALLS[name])) for name in calls}
    return {name: (reply.is_error, reply.text) for name, reply in replies.items()}


async def meanings(graph: LocalAdapter) -> dict[str, tuple[bool, str]]:
    """Return what comes from vectors, and whether it is an error."""
    said: dict[str, tuple[bool, str]] = {}
    (vector,) = await RecordingEmbedder().embed(["Kyōto: city"])
    try:
        around = await graph.surroundings(SurroundingsRequest((iri("tokyo"),), per_relation=9, per_entity=9))
    except InvalidSource as error:
        return {"around": (True, str(error))}
    ids = around.ids or StoreIds(NOTHING, NOTHING)
    try:
        vectors = await graph.label_vectors(MODEL)
        assert vectors is not None
        said["labels"] = False, repr((vectors.nodes(ids.far).tolist(), vectors.relations(ids.relations).tolist()))
    except InvalidSource as error:
        said["labels"] = True, str(error)
    try:
        found = await graph.search_vectors(vector, fingerprint=MODEL, limit=3)
        said["entities"] = False, repr(found)
    except InvalidSource as error:
        said["entities"] = True, str(error)
    return said


async def everything(folder: Path, settings: Settings, calls: Collection[str]) -> dict[str, tuple[bool, str]]:
    """Return what a store says when it is opened anew."""
    try:
        opened = open_store(folder)
    except InvalidSource as error:
        return {"opening": (True, str(error))}
    async with aclosing(LocalAdapter(opened)) as graph:
        return {**await answers(graph, settings, calls), **await meanings(graph)}


def wrong(found: Mapping[str, tuple[bool, str]], right: Mapping[str, tuple[bool, str]]) -> list[str]:
    """Return what is neither right nor says that the store is damaged."""
    told = ("is damaged", "was built by", "was imported again or removed")
    return [
        f"{name}: {text}"
        for name, (is_error, text) in found.items()
        if (is_error, text) != right.get(name) and not (is_error and any(each in text for each in told))
    ]


@pytest.fixture
async def right(store: Path, settings: Settings, tmp_path: Path) -> dict[str, tuple[bool, str]]:
    """What the intact store says."""
    shutil.copytree(store, tmp_path / "right")
    found = await everything(tmp_path / "right", settings, CALLS)
    assert not any(is_error for is_error, _ in found.values()), found
    return found


async def test_a_flipped_byte_in_any_file_never_makes_another_answer(
    store: Path, settings: Settings, right: dict[str, tuple[bool, str]], tmp_path: Path
) -> None:
    chance, told = random.Random(11), set[str]()  # noqa: S311 - no secret
    for path in files_of(store):
        damaged = tmp_path / "store"
        shutil.copytree(store, damaged)
        content = bytearray((damaged / path).read_bytes())
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        (damaged / path).write_bytes(content)
        found = await everything(damaged, settings, asked_about(path))
        assert wrong(found, right) == [], path
        if any(is_error for is_error, _ in found.values()):
            told.add(path)
        shutil.rmtree(damaged)
    # Oxigraph's files are made anew, or a byte means nothing; the journals of vectors are for the next import.
    untold = {path for path in files_of(store) if path not in told}
    assert {path for path in untold if not path.startswith("oxigraph/") and ".journal." not in path} == set()


async def test_a_file_that_is_cut_off_under_an_open_graph_is_told_or_was_read_before(
    store: Path, settings: Settings, right: dict[str, tuple[bool, str]], tmp_path: Path
) -> None:
    # What is read into memory at opening is not looked at again; mapped files are cut off below.
    for path in (path for path in files_of(store) if not path.startswith("index/")):
        calls, cut = asked_about(path), tmp_path / "store"
        shutil.copytree(store, cut)
        async with aclosing(LocalAdapter(open_store(cut))) as graph:
            if path.startswith("text/"):
                await answers(graph, settings, calls)
            with (cut / path).open("r+b") as file:
                file.truncate(file.seek(0, 2) // 2)
            found = {**await answers(graph, settings, calls), **await meanings(graph)}
        assert wrong(found, right) == [], path
        shutil.rmtree(cut)


ASK_AFTER_EACH_CUT = """
import sys
from pathlib import Path
import anyio
from kg_adapters.errors import InvalidSource
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.store import open_store
from kg_adapters.requests import FeatureRequest
from kg_adapters.testing import iri

TOKYO = FeatureRequest((iri("tokyo"),))

async def main(folder):
    for path in sorted((folder / "index").iterdir()):
        content = path.read_bytes()
        graph = LocalAdapter(open_store(folder, copied_bytes=0))
        before = await graph.degrees([iri("tokyo")]), await graph.features(TOKYO)
        path.write_bytes(b"") if path.name < "n" else path.open("r+b").truncate(len(content) // 2)
        try:
            assert (await graph.degrees([iri("tokyo")]), await graph.features(TOKYO)) == before
            print("unnoticed", path.name)
        except InvalidSource as error:
            assert "was cut off to" in str(error), error
        path.write_bytes(content)
    print("alive")

anyio.run(main, Path(sys.argv[1]))
"""


def test_a_mapped_file_that_is_cut_off_does_not_end_the_process(store: Path, tmp_path: Path) -> None:
    shutil.copytree(store, tmp_path / "store")
    command = [sys.executable, "-c", ASK_AFTER_EACH_CUT, str(tmp_path / "store")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "alive\n", "")


def forge(store: Path, path: str, change: Callable[[Values], Values]) -> None:
    """Change an array of a store, and seal the store as if that were right."""
    np.save(store / path, change(np.load(store / path)), allow_pickle=False)
    info = read_store_info(store)
    write_store_info(store, info.model_copy(update={"files": stored_files(store)}))


def last(value: int) -> Callable[[Values], Values]:
    return lambda values: np.append(values[:-1], np.array([value], dtype=values.dtype))


FORGERIES: tuple[tuple[str, Callable[[Values], Values]], ...] = (
    ("index/nodes.offsets.npy", lambda values: values[::-1]),
    ("index/nodes.offsets.npy", last(10**9)),
    ("index/nodes.offsets.npy", last(-1)),
    ("index/nodes.offsets.npy", lambda values: values[:0]),
    ("index/nodes.text.npy", lambda values: np.full_like(values, 0xFF)),
    ("index/features.values.text.npy", lambda values: values[:-1]),
    ("index/out.groups.npy", last(10**6)),
    ("index/out.relations.npy", last(10**6)),
    ("index/out.starts.npy", lambda values: np.where(values == 1, -1, values).astype(values.dtype)),
    ("index/out.neighbors.npy", last(-7)),
    ("index/into.neighbors.npy", last(2**30)),
    ("index/into.neighbors.npy", lambda values: values.astype(np.int64)),
    ("index/links.edges.npy", last(-16_777_212)),
    ("index/links.edges.npy", lambda values: values[:-1]),
    ("index/walks.starts.npy", lambda values: values.reshape(1, -1)),
    ("index/features.relations.npy", last(99)),
    ("index/features.datatypes.npy", last(-1)),
    ("index/features.languages.npy", last(-2)),
    ("index/relation_nodes.npy", last(10**6)),
    ("index/labels.npy", last(10**6)),
    ("index/descriptions.npy", last(-2)),
    ("text/nodes.bearers.npy", last(10**6)),
    ("text/nodes.rows.npy", last(10**6)),
    ("text/nodes.starts.npy", last(3)),
    ("text/nodes.aliases.npy", last(2)),
    ("text/relations.offsets.npy", last(-1)),
)


async def test_a_value_that_stands_for_nothing_is_damage_whatever_the_hashes_say(
    store: Path, settings: Settings, tmp_path: Path
) -> None:
    for path, change in FORGERIES:
        forged = tmp_path / "store"
        shutil.copytree(store, forged)
        forge(forged, path, change)
        found = await everything(forged, settings, asked_about(path))
        table = path.rpartition(".npy")[0].rpartition(".")[0] or path
        assert any(is_error and f"is damaged: {table}" in text for is_error, text in found.values()), (path, found)
        assert not any(INTERNAL in text for _, text in found.values()), path
        shutil.rmtree(forged)


async def test_no_numbers_in_an_index_make_an_internal_error(store: Path, settings: Settings, tmp_path: Path) -> None:
    chance = random.Random(4)  # noqa: S311 - no secret
    arrays = [path for path in files_of(store) if path.startswith(("index/", "text/")) and path.endswith(".npy")]
    forged = tmp_path / "store"
    shutil.copytree(store, forged)
    for path in arrays:
        intact = (forged / path).read_bytes()

        def change(values: Values) -> Values:
            place = chance.randrange(len(values)) if len(values) else 0
            value = chance.choice((0, 1, 2, 3, 5, 8, 100))
            return np.concatenate((values[:place], np.array([value], values.dtype), values[place + 1 :]))

        forge(forged, path, change)
        found = await everything(forged, settings, asked_about(path))
        assert not any(INTERNAL in text for _, text in found.values()), (path, found)
        (forged / path).write_bytes(intact)
