"""Damage to the files of a store: what is done to them when, and what a server then answers.

As a program it makes trials in a process of its own, since damage may hang or end whoever reads it.
"""

import random
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import aclosing
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import anyio
import numpy as np
from mcp import Client

from calls import reply_of
from embedders import LEXICAL, RecordingEmbedder
from kg_adapters.errors import InvalidSource
from kg_adapters.importing.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.reloading import ReloadingAdapter
from kg_adapters.local.store import open_store
from kg_adapters.local.vectors.entities import embed_store
from kg_adapters.requests import SurroundingsRequest
from kg_adapters.surroundings import StoreIds
from kg_adapters.testing import iri, ntriples
from kg_server.app import build_server
from kg_server.settings import Settings

Answers: TypeAlias = dict[str, tuple[bool, str]]
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
MODEL = "recording-1"
NOTHING = np.zeros(0, dtype=np.int32)

KINDS: Final = ("flip", "zero", "truncate", "empty")
MOMENTS: Final = ("before opening", "after opening", "after first use")
TIMEOUT_S: Final = 20.0
GRACE_S: Final = 20.0


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


def settings_in(folder: Path) -> Settings:
    """Return settings that keep what is written below a folder, and load no model."""
    return Settings(embedding=LEXICAL, cache_folder=folder / "cache", data_folder=folder / "data", timeout_s=TIMEOUT_S)


async def ask(client: Client, calls: Collection[str]) -> Answers:
    """Return what some calls answer, and whether it is an error; each within its deadline and a little more."""
    found: Answers = {}
    for name in calls:
        with anyio.fail_after(TIMEOUT_S + GRACE_S):
            reply = reply_of(await client.call_tool(*CALLS[name]))
        found[name] = reply.is_error, reply.text
    return found


async def meanings(graph: LocalAdapter | ReloadingAdapter) -> Answers:
    """Return what comes from vectors, and whether it is an error."""
    found: Answers = {}
    (vector,) = await RecordingEmbedder().embed(["Kyōto: city"])
    try:
        around = await graph.surroundings(SurroundingsRequest((iri("tokyo"),), per_relation=9, per_entity=9))
        ids = around.ids or StoreIds(NOTHING, NOTHING)
        vectors = await graph.label_vectors(MODEL)
        assert vectors is not None
        found["labels"] = False, repr((vectors.nodes(ids.far).tolist(), vectors.relations(ids.relations).tolist()))
    except InvalidSource as error:
        found["labels"] = True, str(error)
    try:
        nearest = await graph.search_vectors(vector, fingerprint=MODEL, limit=3)
        found["entities"] = False, repr(nearest)
    except InvalidSource as error:
        found["entities"] = True, str(error)
    return found


async def everything(folder: Path, settings: Settings, calls: Collection[str]) -> Answers:
    """Return what a store answers when it is opened now."""
    try:
        opened = open_store(folder)
    except InvalidSource as error:
        return {"opening": (True, str(error))}
    async with aclosing(LocalAdapter(opened)) as graph, Client(build_server(graph, settings)) as client:
        return {**await ask(client, calls), **await meanings(graph)}


def wrong(found: Answers, right: Answers) -> list[str]:
    """Return what is neither right nor reports that the store is damaged, as a right count may do of its evidence."""
    reasons = ("is damaged", "was built by", "was imported again or removed")
    return [
        f"{name}: {text}"
        for name, (is_error, text) in found.items()
        if (is_error, text) != right.get(name) and not any(each in text for each in reasons)
    ]


class Trial(NamedTuple):
    """One kind of damage to one file at one moment."""

    path: str
    kind: str
    moment: str


def trials_of(store: Path) -> list[Trial]:
    """Return more than half of all combinations, some for every file of a store."""
    chance = random.Random(3)  # noqa: S311 - no secret
    every = [Trial(*each) for each in product(files_of(store), KINDS, MOMENTS)]
    return chance.sample(every, 560)


def damage(file: Path, kind: str, chance: random.Random) -> None:
    """Change a file in place."""
    content = bytearray(file.read_bytes())
    match kind:
        case "flip":
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        case "zero":
            content = bytearray(len(content))
        case "truncate":
            content = content[: len(content) // 2]
        case _:
            content.clear()
    with file.open("r+b") as changed:
        changed.write(content)
        changed.truncate()


async def tried(trial: Trial, folder: Path, settings: Settings, right: Answers, chance: random.Random) -> list[str]:
    """Return what a damaged store answers wrongly, or which damage before opening nothing reports."""
    calls, file = sorted(asked_about(trial.path)), folder / trial.path
    if trial.moment == "before opening":
        damage(file, trial.kind, chance)
    try:
        store = open_store(folder)
    except InvalidSource as error:
        return wrong({"opening": (True, str(error))}, right)
    async with aclosing(ReloadingAdapter(store)) as graph, Client(build_server(graph, settings)) as client:
        if trial.moment == "after first use":
            before = {**await ask(client, calls), **await meanings(graph)}
            if bad := [name for name in before if before[name] != right[name]]:
                return [f"{bad} differ before the damage"]
        if trial.moment != "before opening":
            damage(file, trial.kind, chance)
        found = {**await ask(client, calls), **await meanings(graph)}
    unread = trial.path.startswith("oxigraph/") or ".journal." in trial.path
    if trial.moment == "before opening" and not unread and not any(is_error for is_error, _ in found.values()):
        return ["nothing reports it"]
    return wrong(found, right)


async def make_trials(store: Path, scratch: Path, shard: int, shards: int, seed: int) -> None:
    """Make one part of all trials, and print a line for each once it is done."""
    settings = settings_in(scratch)
    chance = random.Random(f"{seed} {shard}")  # noqa: S311 - no secret
    copied = scratch / "store"
    shutil.copytree(store, copied)
    right = await everything(copied, settings, CALLS)
    for trial in trials_of(store)[shard::shards]:
        shutil.rmtree(copied)
        shutil.copytree(store, copied)
        problems = await tried(trial, copied, settings, right, chance)
        sys.stdout.write(f"{' | '.join(map(str, trial))}: {problems}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[3:]]
    anyio.run(make_trials, Path(sys.argv[1]), Path(sys.argv[2]), numbers[0], numbers[1], numbers[2])
