"""The profile of a graph behind an endpoint: counted where it can be read, sampled where it cannot, and kept."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest

from kg_adapters.caching import CachingAdapter
from kg_adapters.errors import BackendTimeout, BackendUnavailable
from kg_adapters.labels import Vocabulary
from kg_adapters.profile import unknown_profile
from kg_adapters.protocol import SupportsLearning
from kg_adapters.sparql.adapter import SparqlAdapter
from kg_adapters.sparql.asking import QueryAsker
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.profile_reading import Profiler
from kg_adapters.sparql.profile_survey import ProfileLimits
from kg_adapters.sparql.queries import Queries
from kg_adapters.sparql.schema import EXPIRY_S, SchemaFile
from kg_adapters.terms import XSD
from kg_adapters.testing import iri, ntriples
from sparql_stand_in import LateEndpoint, SlowEndpoint, StandInEndpoint, endpoint_of, parts_of

FLEET = ('s1 label "Ship"@en', "s1 type Ship", "s2 type Ship", 's1 built "1905"', "s1 owner o1", 'Ship label "ship"@en')


def queries() -> Queries:
    return Queries.of(DIALECTS["standard"], Vocabulary())


def profiler(endpoint: StandInEndpoint, most_read: int) -> Profiler:
    return Profiler(QueryAsker(endpoint, DIALECTS["standard"], 10.0), queries().survey, most_read)


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
    file.write_text(file.read_text(encoding="utf-8").replace("everything", "nothing"), encoding="utf-8")
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


async def test_an_endpoint_that_is_well_again_is_profiled_by_the_next_call() -> None:
    endpoint = StandInEndpoint(endpoint_of(FLEET).triples, [BackendTimeout("late")])
    graph = SparqlAdapter(replace(parts_of(endpoint, queries()), retry_s=0.0))
    assert await graph.profile() == unknown_profile()
    assert (await graph.profile()).profile_of(iri("Ship")) is not None


async def test_a_slow_endpoint_is_asked_for_few_statements_one_query_at_a_time_and_has_no_profile() -> None:
    many = ntriples((*(f"ship{n} type Ship" for n in range(6_000)), *(f"ship{n} near ship0" for n in range(6_000))))
    endpoint = SlowEndpoint(many, seconds=0.5)
    graph = SparqlAdapter(replace(parts_of(endpoint, queries()), clock=endpoint.clock))
    await graph.learn_profile()
    schema = await graph.schema()
    assert graph.known_profile() == await graph.profile() == unknown_profile()
    assert endpoint.most_at_once == 1
    count, again, read, labels = endpoint.asked
    assert (count, "LIMIT 10000" in read, "VALUES" in labels) == (again, True, True)
    assert schema.note.startswith("The endpoint is slow: it took 0.5 s to count its 12,000 statements. So this")
    assert sum(each.triples.value for each in schema.relations) == 10_000
    assert not any(each.triples.exact for each in schema.relations)
    quick = StandInEndpoint(many)
    await SparqlAdapter(replace(parts_of(quick, queries()), clock=lambda: 0.0)).schema()
    assert "LIMIT 10000" not in " ".join(quick.asked)


EX = "http://example.org/"
TOWNS = (
    *(f"t{n} type {'Town' if n % 2 else 'City'}" for n in range(40)),
    "City subClassOf Town",
    *(f't{n} founded "{1000 + n}"^^<{XSD}gYear>' for n in range(0, 40, 4)),
    *(f't{n} area "{n + 0.5}"^^<{EX}{"km2" if n % 3 else "acre"}>' for n in range(0, 40, 5)),
    *(f't{n} height "{n}"^^<{EX}metre>' for n in range(0, 40, 8)),
    *(f"t{n} twin t{n + 1}" for n in range(30)),
    *(f"t{n + 1} twin t{n}" for n in range(25)),
    "m0 mayor t0",
)
FEW = ProfileLimits(read=0, pause_s=0.0)


def large(endpoint: StandInEndpoint, limits: ProfileLimits = FEW, file: SchemaFile | None = None) -> SparqlAdapter:
    """Return an adapter that takes its graph for too large to be read."""
    return SparqlAdapter(replace(parts_of(endpoint, queries()), profiled=limits, file=file))


async def test_a_large_graph_is_surveyed_once_by_bounded_queries_and_kept(tmp_path: Path) -> None:
    endpoint, file = endpoint_of(TOWNS), SchemaFile(tmp_path, ("towns",))
    graph = large(endpoint, file=file)
    assert await graph.profile() == unknown_profile()
    assert endpoint.asked == []
    await graph.learn_profile()
    profile, asked = await graph.profile(), len(endpoint.asked)
    assert asked <= 12
    whole = await profiler(endpoint_of(TOWNS), 1_000).profile()
    assert whole is not None
    assert profile.classes == whole.classes
    assert (profile.inverses, profile.values) == (whole.inverses, whole.values)
    assert (profile.complete, profile.sampled, profile.everything.complete) == (True, True, False)
    assert await large(endpoint, file=file).profile() == profile
    assert len(endpoint.asked) == asked


async def test_what_was_counted_over_some_instances_only_says_so() -> None:
    graph = large(endpoint_of(TOWNS), replace(FEW, instances=10, pairs=22, classes=1))
    await graph.learn_profile()
    profile = await graph.profile()
    (town,) = profile.classes
    assert (town.instances, town.direct, town.looked_at, town.counted_over) == (40, 20, 10, 10)
    assert (profile.complete, profile.sampled) == (False, True)
    coverage = profile.coverage(iri("Town"), iri("founded"))
    assert coverage is not None
    assert (coverage.instances, coverage.sampled) == (10, True)
    assert coverage.having <= 10
    assert profile.inverse_of(iri("twin")) == iri("twin")


async def test_where_counting_takes_too_long_fewer_instances_are_looked_at() -> None:
    late = LateEndpoint(endpoint_of(TOWNS).triples, "LIMIT 40")
    graph = large(late, replace(FEW, instances=40))
    await graph.learn_profile()
    profile = await graph.profile()
    town = profile.profile_of(iri("Town"))
    assert town is not None
    assert (town.instances, town.looked_at) == (40, 2)
    assert town.coverage(iri("type")) is not None


async def test_a_survey_ends_after_some_queries_and_keeps_what_it_has() -> None:
    endpoint = endpoint_of(TOWNS)
    graph = large(endpoint, replace(FEW, queries=3))
    await graph.learn_profile()
    profile = await graph.profile()
    assert [(each.iri, each.instances, each.complete) for each in profile.classes] == [
        (iri("Town"), 40, False),
        (iri("City"), 20, False),
    ]
    assert profile.coverage(iri("Town"), iri("founded")) is None
    assert len(endpoint.asked) <= 3 + 2  # and for labels and other names


async def test_an_endpoint_that_refuses_everything_is_soon_left_alone() -> None:
    endpoint = LateEndpoint(endpoint_of(TOWNS).triples, "SELECT")
    graph = large(endpoint)
    await graph.learn_profile()
    assert await graph.profile() == unknown_profile()
    assert len(endpoint.asked) == 3


async def test_a_survey_that_the_endpoint_ends_is_used_but_neither_kept_nor_the_last(tmp_path: Path) -> None:
    endpoint = StandInEndpoint(endpoint_of(TOWNS).triples, [None, None, *([BackendTimeout("late")] * 3)])
    file = SchemaFile(tmp_path, ("towns",))
    graph = large(endpoint, file=file)
    await graph.learn_profile()
    assert (await graph.profile()).profile_of(iri("Town")) is not None
    assert file.profile() is None
    endpoint.failures = []
    await graph.learn_profile()
    kept = file.profile()
    assert kept is not None
    assert kept == await graph.profile()


async def test_who_asks_first_does_not_wait_long_for_what_is_learned_behind() -> None:
    endpoint = endpoint_of(TOWNS)
    graph = CachingAdapter(large(endpoint))
    assert isinstance(graph, SupportsLearning)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(graph.learn_profile, when_asked=True))
        await anyio.wait_all_tasks_blocked()
        assert endpoint.asked == []
        assert (await graph.profile()).profile_of(iri("Town")) is not None


async def test_an_endpoint_that_is_away_is_no_empty_profile() -> None:
    with pytest.raises(BackendUnavailable):
        await profiler(StandInEndpoint("", [BackendUnavailable("away")]), 9).profile()
