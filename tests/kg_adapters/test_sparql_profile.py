"""The profile of a graph behind an endpoint: counted where it can be read, kept, and never about a part of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from kg_adapters.errors import BackendTimeout, BackendUnavailable
from kg_adapters.labels import Vocabulary
from kg_adapters.profile import unknown_profile
from kg_adapters.sparql.adapter import SparqlAdapter
from kg_adapters.sparql.asking import Asker
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.profiling import Profiler
from kg_adapters.sparql.queries import Queries
from kg_adapters.sparql.schema_file import EXPIRY_S, SchemaFile
from kg_adapters.testing import iri
from sparql_stand_in import StandInEndpoint, endpoint_of, parts_of

FLEET = ('s1 label "Ship"@en', "s1 type Ship", "s2 type Ship", 's1 built "1905"', "s1 owner o1", 'Ship label "ship"@en')


def queries() -> Queries:
    return Queries.of(DIALECTS["standard"], Vocabulary())


def profiler(endpoint: StandInEndpoint, most_read: int) -> Profiler:
    return Profiler(Asker(endpoint, DIALECTS["standard"], 10.0), queries().survey, most_read)


async def test_what_instances_have_is_counted_by_two_requests_and_kept(tmp_path: Path) -> None:
    endpoint, now = endpoint_of(FLEET), [1_000.0]
    parts = parts_of(endpoint, queries())
    parts = replace(parts, file=SchemaFile(tmp_path, ("fleet",), clock=lambda: now[0]))
    profile = await SparqlAdapter(parts).profile()
    ship = profile.profile_of(iri("Ship"))
    assert ship is not None
    assert (ship.label, ship.instances, [(each.relation.local_part, each.instances) for each in ship.properties]) == (
        "ship",
        2,
        [("type", 2), ("built", 1), ("owner", 1), ("label", 1)],
    )
    assert len(endpoint.asked) == 2
    again = SparqlAdapter(parts)
    assert await again.profile() == profile
    assert await again.profile() is await again.profile()
    assert len(endpoint.asked) == 2
    now[0] += EXPIRY_S
    await SparqlAdapter(parts).profile()
    assert len(endpoint.asked) == 4


async def test_a_damaged_file_is_counted_again(tmp_path: Path) -> None:
    endpoint = endpoint_of(FLEET)
    parts = replace(parts_of(endpoint, queries()), file=SchemaFile(tmp_path, ("fleet",)))
    profile = await SparqlAdapter(parts).profile()
    (file,) = (tmp_path / "endpoints").glob("*-profile.json")
    file.write_text(file.read_text(encoding="utf-8").replace("terms", "nothing"), encoding="utf-8")
    assert await SparqlAdapter(parts).profile() == profile
    assert len(endpoint.asked) == 4


async def test_of_a_graph_that_is_too_large_nothing_is_said() -> None:
    endpoint = endpoint_of(FLEET)
    profile = await profiler(endpoint, len(FLEET) - 1).profile()
    assert profile is not None
    assert profile == unknown_profile()
    assert profile.coverage(iri("Ship"), iri("built")) is None
    assert len(endpoint.asked) == 1
    whole = await profiler(endpoint, len(FLEET)).profile()
    assert whole is not None
    assert whole.complete


async def test_an_endpoint_that_is_too_slow_is_left_alone_for_a_while_and_nothing_is_kept(tmp_path: Path) -> None:
    endpoint = StandInEndpoint(endpoint_of(FLEET).triples, [BackendTimeout("late")])
    parts = replace(parts_of(endpoint, queries()), file=SchemaFile(tmp_path, ("fleet",)))
    graph = SparqlAdapter(parts)
    assert await graph.profile() == await graph.profile() == unknown_profile()
    assert len(endpoint.asked) == 1
    assert (await SparqlAdapter(parts).profile()).complete


async def test_an_endpoint_that_is_away_is_no_empty_profile() -> None:
    with pytest.raises(BackendUnavailable):
        await profiler(StandInEndpoint("", [BackendUnavailable("away")]), 9).profile()
