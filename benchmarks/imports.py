"""Import and open: how long, and how much memory."""

import tempfile
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.child import Usage
from benchmarks.figures import Line, Section, Target
from benchmarks.processes import beside, held_of, peak_of, run_job, seconds_of


async def measure_import(bench: Bench) -> Section:
    """Import the graph's file once, each library in a process of its own; what was imported just now is not again."""
    source = str(bench.graph.source)
    with tempfile.TemporaryDirectory(dir=bench.cache) as scratch:
        ours = [bench.graph.built or run_job(("import", source, str(Path(scratch, "ours"))))]
        theirs: list[Usage] = []
        if bench.with_peers:
            bench.tell("Importing with Oxigraph …")
            theirs.append(run_job(("import-oxigraph", source, str(Path(scratch, "oxigraph")))))
    seconds, peak = seconds_of(ours), peak_of(ours)
    times = {"Oxigraph": beside(seconds, seconds_of(theirs))} if theirs else {}
    peaks = {"Oxigraph": beside(peak, peak_of(theirs))} if theirs else {}
    lines = (
        Line("import, all indexes and SPARQL", seconds, (Target("median", 20),), peers=times),
        Line("import, peak memory", peak, (Target("median", 1_000),), peers=peaks),
    )
    notes = ("Oxigraph: bulk load on disk.",)
    return Section("import", f"Import of {bench.graph.name}, fresh processes", lines, notes)


async def measure_open(bench: Bench) -> Section:
    """Open the store and look up one entity, in fresh processes."""
    entity = bench.work.low[0]
    store = bench.graph.store
    ours: list[Usage] = []
    theirs: list[Usage] = []
    for _ in range(bench.repeats):
        ours.append(run_job(("open", str(store), entity)))
        if bench.with_peers:
            theirs.append(run_job(("open-oxigraph", str(store / "oxigraph"), entity)))
    seconds, held = seconds_of(ours), held_of(ours)
    lines = (
        Line(
            "open a store and answer one look-up",
            seconds,
            (Target("median", 0.1),),
            peers={"Oxigraph": beside(seconds, seconds_of(theirs))} if theirs else {},
        ),
        Line(
            "memory of the whole process then",
            held,
            (Target("median", 100),),
            peers={"Oxigraph": beside(held, held_of(theirs))} if theirs else {},
        ),
    )
    return Section(
        "open", "Opening an imported store, fresh processes", lines, ("Oxigraph: on disk, opened read-only.",)
    )
