"""An endpoint's graph is described once: counted where it is small, sampled where it is not, and kept on disk."""

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pyoxigraph
import pytest

from fault_endpoint import Asked, FaultEndpoint, Script, Wire, answering, opened, refusing, serving, stalling
from kg_adapters.caching import CachingAdapter
from kg_adapters.errors import RETRY_S, BackendTimeout, BackendUnavailable, InvalidRequest
from kg_adapters.http.options import EndpointOptions
from kg_adapters.labels import Vocabulary
from kg_adapters.models import ClassSummary, Count, FeatureSummary, GraphSchema, RelationSummary
from kg_adapters.prefixes import WELL_KNOWN, WIKIDATA, Prefixes
from kg_adapters.registry import OpenOptions
from kg_adapters.requests import NeighborRequest
from kg_adapters.sparql.adapter import SparqlAdapter
from kg_adapters.sparql.asking import QueryAsker
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.opening import open_sparql
from kg_adapters.sparql.queries import Queries
from kg_adapters.sparql.schema import FORMAT, SchemaFile, SurveyLimits, Surveyor, with_well_known
from kg_adapters.sparql.solutions import Solutions
from kg_adapters.terms import BlankNode, Node
from kg_adapters.testing import SUMMED, TOWNS, edge, edges, iri, ntriples, typed
from played_time import hang
from sparql_stand_in import PREFIXES, CannedEndpoint, LateEndpoint, StandInEndpoint, endpoint_of, parts_of

PLAIN = DIALECTS["standard"]
QUERIES = Queries.of(PLAIN, Vocabulary())
WHOLE = GraphSchema(
    entities=Count(2),
    triples=Count(1),
    classes=(ClassSummary(iri("City"), "city", Count(1), BlankNode("b0")),),
    relations=(RelationSummary(iri("near"), None, Count(1, exact=False), edge("a near b")),),
    features=(FeatureSummary(iri("size"), None, Count(3), typed("7", "integer")),),
    prefixes=Prefixes({"ex": "http://example.org/"}, WIKIDATA.entities, WIKIDATA.relations, blank_nodes=False),
)


def surveyor(endpoint: StandInEndpoint, limits: SurveyLimits | None = None) -> Surveyor:
    return Surveyor(QueryAsker(endpoint, PLAIN, 10.0), QUERIES.survey, limits)


async def city_alone(terms: Collection[Node]) -> Mapping[Node, str]:
    return {term: "city" for term in terms if term == iri("City")}


async def test_a_small_graph_is_counted_whole() -> None:
    found = await surveyor(endpoint_of(SUMMED)).schema(PREFIXES, city_alone)
    assert found.all_answered
    assert found.schema.complete
    assert (found.schema.entities, found.schema.triples) == (Count(5), Count(6))
    assert all(each.example is not None for each in found.schema.classes)
    assert all(each.example is not None for each in found.schema.relations)
    assert [each.label for each in found.schema.classes] == ["city", None]


async def test_a_sample_looks_at_no_more_statements_than_allowed() -> None:
    many = [f"a{number} near b{number}" for number in range(200)]
    found = (await surveyor(endpoint_of(many), SurveyLimits(counted=5, sampled=50)).schema(PREFIXES, city_alone)).schema
    assert [each.triples for each in found.relations] == [Count(50, exact=False)]


async def test_what_cannot_be_counted_in_time_is_sampled_instead() -> None:
    endpoint = LateEndpoint(ntriples(SUMMED), "(SAMPLE(?s) AS ?x) { ?s ?p ?o . FILTER(!isLiteral(?o))")
    found = await surveyor(endpoint).schema(PREFIXES, city_alone)
    assert [each.triples.exact for each in found.schema.relations] == [False, False, False]
    assert [each.instances.exact for each in found.schema.classes] == [True, True]
    assert not found.schema.complete
    assert found.all_answered


async def test_what_is_not_answered_at_all_is_left_out() -> None:
    endpoint = LateEndpoint(ntriples(SUMMED), "?s ?a ?c")
    found = await surveyor(endpoint).schema(PREFIXES, city_alone)
    assert (found.schema.classes, len(found.schema.features), found.schema.complete) == ((), 2, False)
    assert not found.all_answered


async def test_an_unknown_size_means_a_sample() -> None:
    endpoint = LateEndpoint(ntriples(SUMMED), "(COUNT(*) AS ?n) { ?s ?p ?o }")
    found = (await surveyor(endpoint).schema(PREFIXES, city_alone)).schema
    assert not found.complete
    assert len(found.classes) == 2


async def test_an_endpoint_that_answers_nothing_is_an_error() -> None:
    with pytest.raises(BackendTimeout):
        await surveyor(LateEndpoint("", "SELECT")).schema(PREFIXES, city_alone)


async def test_an_endpoint_that_cannot_be_reached_is_asked_one_question() -> None:
    async with serving(refusing(503, "down")) as server, opened(server) as endpoint:
        with pytest.raises(BackendUnavailable, match="down"):
            await Surveyor(QueryAsker(endpoint, PLAIN, 10.0), QUERIES.survey).schema(PREFIXES, city_alone)
        assert len(server.requests) == 1


async def test_no_more_is_listed_than_the_limits_allow() -> None:
    found = (
        await surveyor(endpoint_of(SUMMED), SurveyLimits(classes=1, relations=2)).schema(PREFIXES, city_alone)
    ).schema
    assert [each.iri for each in found.classes] == [iri("City")]
    assert [each.iri for each in found.relations] == [iri("type"), iri("country")]
    assert not found.complete
    assert not found.triples.exact


async def test_rows_without_a_subject_or_an_example_make_no_wrong_summary() -> None:
    number = typed("4", "integer")
    rows = ((iri("r"), number, None, iri("y"), None), (None, number, None, None, None))
    answer = Solutions(("p", "n", "x", "y", "c"), rows)
    found = (await surveyor(CannedEndpoint(answer)).schema(PREFIXES, city_alone)).schema
    assert found.relations == (RelationSummary(iri("r"), None, Count(4), None),)
    assert found.features == (FeatureSummary(iri("r"), None, Count(4), None),)
    assert found.classes == ()


async def test_prefixes_are_those_in_use_and_the_well_known_ones() -> None:
    item, relation = "<http://www.wikidata.org/entity/Q1>", "<http://www.wikidata.org/prop/direct/P1>"
    found = await surveyor(endpoint_of([*TOWNS, f"{item} {relation} {item}"])).prefixes(timeout_s=10)
    assert found is not None
    assert (found.entities, found.relations) == (WIKIDATA.entities, WIKIDATA.relations)
    assert found.namespaces["example"] == "http://example.org/"
    assert found.namespaces["wd"] == "http://www.wikidata.org/entity/"
    assert WELL_KNOWN.items() <= found.namespaces.items()
    assert not found.blank_nodes


async def test_prefixes_are_not_waited_for_longer_than_allowed() -> None:
    async with serving(stalling) as server, opened(server) as endpoint:
        with pytest.raises(BackendTimeout, match=r"0\.05 s"):
            await Surveyor(QueryAsker(endpoint, PLAIN, 10.0), QUERIES.survey).prefixes(timeout_s=0.05)


def test_well_known_prefixes_never_replace_those_in_use() -> None:
    used = Prefixes({"dbr": "http://other.org/", "x": WELL_KNOWN["foaf"]})
    found = with_well_known(used, blank_nodes=True)
    assert found.namespaces["dbr"] == "http://other.org/"
    assert "foaf" not in found.namespaces
    assert "wd" not in found.namespaces
    assert found.blank_nodes


def test_a_schema_is_read_back_as_it_was_kept(tmp_path: Path) -> None:
    file = SchemaFile(tmp_path / "new", ("http://example.org/sparql",))
    assert (file.prefixes(), file.schema()) == (None, None)
    file.keep_prefixes(WHOLE.prefixes)
    assert (file.prefixes(), file.schema()) == (WHOLE.prefixes, None)
    file.keep_schema(WHOLE)
    assert (file.prefixes(), file.schema()) == (WHOLE.prefixes, WHOLE)
    assert [path.name for path in file.path.parent.iterdir()] == [file.path.name]


def test_a_schema_expires_and_its_prefixes_do_not(tmp_path: Path) -> None:
    now = [1_000.0]
    file = SchemaFile(tmp_path, ("x",), expiry_s=60, clock=lambda: now[0])
    file.keep_schema(WHOLE)
    now[0] = 1_059.0
    assert file.schema() == WHOLE
    for later in (1_060.0, 900.0):
        now[0] = later
        assert file.schema() is None
    assert file.prefixes() == WHOLE.prefixes


def test_another_endpoint_or_choice_of_graphs_has_a_file_of_its_own(tmp_path: Path) -> None:
    paths = {SchemaFile(tmp_path, key).path for key in (("a", "b"), ("a", "c"), ("a", "b", ""), ("ab",))}
    assert len(paths) == 4


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"\xff\xfe", b'{"format": 1}'])
def test_a_damaged_file_counts_as_missing(tmp_path: Path, damage: bytes) -> None:
    file = SchemaFile(tmp_path, ("x",))
    file.keep_schema(WHOLE)
    file.path.write_bytes(damage)
    assert (file.prefixes(), file.schema()) == (None, None)


def test_a_file_of_another_version_or_with_a_wrong_iri_counts_as_missing(tmp_path: Path) -> None:
    file = SchemaFile(tmp_path, ("x",))
    file.keep_schema(WHOLE)
    written = file.path.read_text()
    file.path.write_text(written.replace(f'"format":{FORMAT}', '"format":99'))
    assert file.prefixes() is None
    file.path.write_text(written.replace("http://example.org/near", "no iri"))
    assert file.schema() is None


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "endpoints").write_text("in the way")
    file = SchemaFile(tmp_path, ("x",))
    file.keep_schema(WHOLE)
    assert file.schema() is None


async def test_the_adapter_asks_once_and_remembers_across_sessions(tmp_path: Path) -> None:
    endpoint, later = endpoint_of(SUMMED), endpoint_of(SUMMED)
    parts = replace(parts_of(endpoint, QUERIES), file=SchemaFile(tmp_path, ("x",)))
    graph = SparqlAdapter(parts)
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(graph.schema)
    found = await graph.schema()
    assert len(endpoint.asked) == 6
    assert await SparqlAdapter(replace(parts, endpoint=later)).schema() == found
    assert later.asked == []


async def test_a_schema_with_gaps_is_not_kept_for_later(tmp_path: Path) -> None:
    late = LateEndpoint(ntriples(SUMMED), "?s ?a ?c")
    file = SchemaFile(tmp_path, ("x",))
    graph = SparqlAdapter(replace(parts_of(late, QUERIES), file=file, retry_s=0.0))
    assert (await graph.schema()).classes == ()
    assert file.schema() is None
    asked = len(late.asked)
    await graph.schema()
    assert len(late.asked) > asked


async def test_a_schema_with_gaps_is_asked_for_again_as_soon_as_the_endpoint_is_well() -> None:
    late = LateEndpoint(ntriples(SUMMED), "?s ?a ?c")
    graph = CachingAdapter(SparqlAdapter(replace(parts_of(late, QUERIES), retry_s=0.0)))
    assert (await graph.schema()).classes == ()
    late.recover()
    whole = await graph.schema()
    assert whole.classes
    asked = len(late.asked)
    assert await graph.schema() == whole
    assert len(late.asked) == asked


async def test_an_endpoint_that_leaves_gaps_is_not_surveyed_by_every_call() -> None:
    late = LateEndpoint(ntriples(SUMMED), "?s ?a ?c")
    graph = CachingAdapter(SparqlAdapter(parts_of(late, QUERIES)))
    await graph.schema()
    asked = len(late.asked)
    assert (await graph.schema()).classes == ()
    assert len(late.asked) == asked
    assert RETRY_S <= 10


async def test_an_endpoint_that_cannot_read_a_query_leaves_a_gap_and_no_group_of_errors() -> None:
    class Picky(StandInEndpoint):
        async def query(self, text: str, **options: object) -> Solutions:
            if "SAMPLE" in text:
                raise InvalidRequest("The endpoint says that the query is wrong.")
            return await super().query(text)

    with pytest.raises(InvalidRequest):
        await surveyor(Picky(ntriples(SUMMED))).schema(PREFIXES, city_alone)


async def test_all_questions_together_take_no_longer_than_allowed() -> None:
    class Silent(StandInEndpoint):
        async def query(self, text: str, *, timeout_s: float | None = None, **options: object) -> Solutions:
            allowed_s = timeout_s or 0.0
            given.append(allowed_s)
            if len(given) == 1:
                return await super().query(text)
            with anyio.move_on_after(allowed_s):
                await hang()
            raise BackendTimeout("late")

    given: list[float] = []
    with pytest.raises(BackendTimeout):
        await surveyor(Silent(ntriples(SUMMED)), SurveyLimits(timeout_s=40)).schema(PREFIXES, city_alone)
    size, *others = given
    whole, sampled = others[:3], others[-3:]
    assert len(others) == 7
    assert size <= 10
    assert max(whole) + max(sampled) <= 40


NAMED = ntriples((*TOWNS, 'kyoto label "Kyoto"@en', 'kyoto label "Kioto"@de'))


@asynccontextmanager
async def opened_graph(
    server: FaultEndpoint,
    cache: Path,
    endpoint: EndpointOptions | None = None,
    languages: tuple[str, ...] | None = None,
) -> AsyncGenerator[SparqlAdapter]:
    graph = await open_sparql(server.url, OpenOptions(cache, languages=languages), endpoint=endpoint)
    try:
        yield graph
    finally:
        await graph.aclose()


def oxigraph(triples: str) -> Script:
    """Answer SELECT queries about a graph."""
    store = pyoxigraph.Store()
    store.load(triples, pyoxigraph.RdfFormat.N_TRIPLES)

    async def answer(asked: Asked, wire: Wire) -> None:
        found = store.query(asked.query)
        assert isinstance(found, pyoxigraph.QuerySolutions)
        body = found.serialize(format=pyoxigraph.QueryResultsFormat.JSON)
        assert body is not None
        await answering(body)(asked, wire)

    return answer


async def test_an_endpoint_is_opened_by_its_url_alone(tmp_path: Path) -> None:
    async with serving(oxigraph(NAMED)) as server, opened_graph(server, tmp_path) as graph:
        page = (await graph.neighbors(NeighborRequest((iri("paris"),), direction="out", limit=9)))[iri("paris")]
        assert page.triples == edges("paris country france", "paris twin kyoto")
        assert graph.name == f"{server.host}/sparql"
        assert graph.prefixes.namespaces["example"] == "http://example.org/"
        assert not graph.prefixes.blank_nodes
        assert await graph.labels([iri("kyoto")]) == {iri("kyoto"): "Kyoto"}


async def test_labels_follow_the_languages_of_the_options(tmp_path: Path) -> None:
    async with serving(oxigraph(NAMED)) as server, opened_graph(server, tmp_path, languages=("de",)) as graph:
        assert graph.vocabulary.languages == ("de",)
        assert await graph.labels([iri("kyoto")]) == {iri("kyoto"): "Kioto"}


async def test_what_was_learned_costs_no_request_the_next_time(tmp_path: Path) -> None:
    async with serving(oxigraph(NAMED)) as server:
        async with opened_graph(server, tmp_path) as graph:
            schema = await graph.schema()
        asked = len(server.requests)
        async with opened_graph(server, tmp_path) as graph:
            assert (await graph.schema(), graph.prefixes) == (schema, schema.prefixes)
        assert len(server.requests) == asked


async def test_an_endpoint_that_does_not_answer_is_opened_and_its_calls_say_what_is_wrong(tmp_path: Path) -> None:
    async with serving(refusing(503, "maintenance")) as server:
        options = EndpointOptions(url=server.url, max_retries=0)
        async with opened_graph(server, tmp_path, options) as graph:
            assert graph.prefixes.entities == WIKIDATA.entities
            assert WELL_KNOWN.items() <= graph.prefixes.namespaces.items()
            with pytest.raises(BackendUnavailable, match="maintenance"):
                await graph.labels([iri("kyoto")])
            server.follow(oxigraph(NAMED))
            assert await graph.labels([iri("kyoto")]) == {iri("kyoto"): "Kyoto"}
        async with opened_graph(server, tmp_path, options) as graph:
            assert graph.prefixes.entities is None


async def test_the_prefixes_of_a_graph_that_is_still_empty_are_not_kept(tmp_path: Path) -> None:
    async with serving(oxigraph("")) as server:
        async with opened_graph(server, tmp_path) as graph:
            assert graph.prefixes.entities == WIKIDATA.entities
        server.follow(oxigraph(NAMED))
        async with opened_graph(server, tmp_path) as graph:
            assert graph.prefixes.namespaces["example"] == "http://example.org/"


async def test_the_settings_of_the_endpoint_reach_every_request(tmp_path: Path) -> None:
    graphs = ("http://example.org/graph",)
    async with serving(oxigraph(NAMED)) as server:
        options = EndpointOptions(
            url=server.url, default_graphs=graphs, dialect="virtuoso", text_search="virtuoso", timeout_s=5
        )
        async with opened_graph(server, tmp_path, options) as graph:
            await graph.describe([BlankNode("b1"), BlankNode("nobody")])
            assert "full-text index" in graph.search_note
            assert graph.prefixes.blank_nodes
            with pytest.raises(InvalidRequest, match="FROM"):
                await graph.select("ASK FROM <http://example.org/other> {}", timeout_s=5, max_rows=1)
        assert [asked.parameters["default-graph-uri"] for asked in server.requests] == [list(graphs)] * 2
        # The question for its prefixes, before it is open, has less time.
        assert [asked.parameters["timeout"] for asked in server.requests] == [["2700"], ["4500"]]


async def test_graphs_of_the_options_are_the_default_graphs(tmp_path: Path) -> None:
    async with serving(oxigraph(NAMED)) as server:
        options = OpenOptions(tmp_path, graphs=("http://example.org/graph",))
        graph = await open_sparql(server.url, options)
        await graph.aclose()
        assert server.requests[0].parameters["default-graph-uri"] == ["http://example.org/graph"]


@pytest.mark.parametrize("url", ["ftp://example.org/sparql", "http://", "https://user:secret@example.org/sparql"])
async def test_what_is_no_url_of_an_endpoint_is_refused_with_the_reason(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidRequest, match="cannot be used: it") as caught:
        await open_sparql(url, OpenOptions(tmp_path))
    assert "secret" not in str(caught.value)
