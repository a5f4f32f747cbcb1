"""The world with three misleading names of relations, and what notes about it put right."""

import gzip
import re
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from mcp import Client

from benchmarks.figures import Figure, Line, Section, Target
from benchmarks.graphs import Bench
from benchmarks.world.findings import WORLD
from benchmarks.world.one_call import WAYS, Outcome, outcomes
from benchmarks.world.questions import GRAPH, read_questions
from kg_adapters.importing.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import LocalStore, open_store
from kg_server.app import build_server
from kg_server.settings import Settings

MISLEADING: Final = {
    "directed by": ("w:R26", "produced by"),
    "headquarters": ("w:R123", "located in"),
    "born on": ("w:R60", "date of death"),
}
"""Names that questions use, with the relation that each means, and the name of the relation that bears it instead."""
NOTES: Final = "## Prefer\n" + "".join(f"- {name}: {meant}\n" for name, (meant, _) in MISLEADING.items())
PLAIN, MISLED, NOTED = "the names of the world", "three misleading names", "the same with notes"


def misleading_store(folder: Path) -> LocalStore:
    """Import the world with the misleading names into a folder."""
    swapped = {name: other for name, (_, other) in MISLEADING.items()}
    swapped |= {other: name for name, other in swapped.items()}
    label = re.compile(f'(?<=rdfs:label ")({"|".join(map(re.escape, swapped))})(?="@en)')
    source = folder / "world.ttl"
    text = gzip.decompress(GRAPH.read_bytes()).decode()
    source.write_text(label.sub(lambda found: swapped[found[1]], text), encoding="utf-8")
    build_store([source], folder / "store", ImportOptions())
    return open_store(folder / "store")


async def misled_outcomes(cache: Path, way: str) -> Mapping[str, list[Outcome]]:
    """Make the recorded call for each question, which names relations as questions do, over the world and the other.

    Args:
        cache: Where the world is imported.
        way: One of `WAYS`.
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        notes = folder / "notes.md"
        notes.write_text(NOTES, encoding="utf-8")
        misled = misleading_store(folder)
        served = {PLAIN: (open_sample(cache, WORLD), None), MISLED: (misled, None), NOTED: (misled, notes)}
        found: dict[str, list[Outcome]] = {}
        for kind, (store, noted) in served.items():
            settings = Settings(cache_folder=cache, data_folder=folder, notes=noted, timeout_s=120)
            async with (
                aclosing(LocalAdapter(store)) as graph,
                Client(build_server(graph, settings)) as client,
            ):
                found[kind] = await outcomes(client, read_questions(), way)
    return found


async def measure_notes(bench: Bench) -> Section:
    """Count right answers with the names of the world, with misleading ones, and with notes about these."""
    lines: list[Line] = []
    for way in WAYS:
        found = await misled_outcomes(bench.cache, way)
        least = sum(each.right for each in found[PLAIN])
        for kind, ours in found.items():
            right = sum(each.right for each in ours)
            target = Target(least / len(ours), least=True) if kind == NOTED else None
            lines.append(
                Line(f"{way}, {kind}: {right} of {len(ours)} right", Figure(right / len(ours), "share"), target)
            )
    return Section("notes", f"{len(MISLEADING)} misleading names of relations of {WORLD}, and notes about them", lines)
