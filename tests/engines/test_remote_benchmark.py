"""The benchmark of a distant endpoint runs from end to end."""

from pathlib import Path

import pytest
from benchmarks.bench import Bench
from benchmarks.graphs import open_source
from benchmarks.remote import measure_distant
from rich.console import Console

pytestmark = pytest.mark.xdist_group("engines")


async def test_the_adapter_is_measured_beside_the_bare_request_and_plain_sparqlwrapper(tmp_path: Path) -> None:
    source = tmp_path / "stars.nt"
    source.write_text("".join(spoke(star, number) for star in range(4) for number in range(40)), encoding="utf-8")
    graph = open_source(source, tmp_path / "stores")
    bench = Bench(graph, cache=tmp_path, console=Console(quiet=True), size=3, repeats=1, with_peers=True)

    section = await measure_distant(bench, graph)

    assert [line.what for line in section.lines] == ["GetNeighbor, low degree", "GetNeighbor, hub, incoming"]
    for line in section.lines:
        assert line.base is not None
        # Nobody is faster than the way there and back.
        assert min(line.ours.median, line.base.figure.median, line.peers["SPARQLWrapper"].figure.median) >= 0.02


def spoke(star: int, number: int) -> str:
    return f"<http://ex.org/{star}-{number}> <http://ex.org/near> <http://ex.org/star{star}> .\n"
