"""Several graphs as one: what is split over two graphs is answered as the whole, and links join what is one thing."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from zlib import crc32

import anyio
import pyoxigraph
import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_adapters.errors import BackendError, BackendUnavailable, InvalidRequest
from kg_adapters.federated import FederatedGraph
from kg_adapters.joined_answers import joined_degree
from kg_adapters.labels import RDF_TYPE
from kg_adapters.links import LinkRules, same_things
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.models import Count, Degree, NeighborPage, PathRequest, PathsFound, RelationCount
from kg_adapters.prefixes import Prefixes
from kg_adapters.protocol import KGAdapter
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.set_requests import Computed, SetRequest
from kg_adapters.set_walking import walked_sets
from kg_adapters.terms import Iri, Node, Triple
from kg_adapters.testing import SUMMED, TANGLE, KGAdapterContract, ValuesContract, edges, iri
from kg_adapters.testing.graphs import allows
from kg_server.answers.paths import find_paths
from path_reference import reference_paths
from small_graphs import shared_store


class Searching(FederatedGraph):
    """Several graphs with the searches that any graph gets."""

    async def paths(self, request: PathRequest) -> PathsFound:
        return await find_paths(self, request)

    async def compute(self, request: SetRequest) -> Computed:
        return await walked_sets(self, request)


def halves(triples: str) -> tuple[str, str]:
    """Return the edges of a graph in two parts, all values of a node in one, and the names of relations in both."""
    statements = list(pyoxigraph.parse(triples, format=pyoxigraph.RdfFormat.N_TRIPLES))
    relations = {str(statement.predicate) for statement in statements}
    parts: tuple[list[str], list[str]] = ([], [])
    for statement in statements:
        blank = isinstance(statement.subject, pyoxigraph.BlankNode) or isinstance(
            statement.object, pyoxigraph.BlankNode
        )
        value = isinstance(statement.object, pyoxigraph.Literal)
        place = crc32(str(statement.subject if value else statement).encode()) % 2
        for number, part in enumerate(parts):
            if (value and str(statement.subject) in relations) or number == (0 if blank else place):
                part.append(f"{statement.subject} {statement.predicate} {statement.object} .\n")
    return "".join(parts[0]), "".join(parts[1])


class TestSplitGraph(ValuesContract, KGAdapterContract):
    """The whole contract, but for the counts of the definition: they are lower bounds."""

    async def open_graph(self, triples: str) -> KGAdapter:
        one, other = (LocalAdapter(shared_store(part, form="nt")) for part in halves(triples))
        return Searching({"one": one, "other": other})

    async def test_the_schema_counts_classes_relations_and_features(self) -> None:
        async with self.opened(SUMMED) as graph:
            found = await graph.schema()
        assert [each.iri for each in found.classes] == [iri("City"), iri("Port")]
        assert {each.iri for each in found.relations} == {iri("type"), iri("country"), iri("near")}
        assert all(not each.triples.exact and 1 <= each.triples.value <= 3 for each in found.relations)

    async def test_the_schema_counts_entities_whether_they_have_names_or_not(self) -> None:
        async with self.opened([*TANGLE, 'hermit label "A hermit"@en']) as graph:
            assert allows((await graph.schema()).entities, 13)

    async def test_an_empty_graph_has_an_empty_schema(self) -> None:
        async with self.opened([]) as graph:
            assert (await graph.schema()).relations == ()


NODES = tuple(iri(f"n{number}") for number in range(6))
RELATIONS = (iri("r"), iri("a"), RDF_TYPE)
SAME = Iri("http://www.w3.org/2002/07/owl#sameAs")
triples = st.builds(Triple, st.sampled_from(NODES), st.sampled_from(RELATIONS), st.sampled_from(NODES))


def graph_of(facts: Iterable[Triple]) -> RdflibAdapter:
    text = "".join(f"<{fact.head}> <{fact.relation}> <{fact.tail}> .\n" for fact in facts)
    return RdflibAdapter(rdflib.Graph().parse(data=text, format="nt"))


def there(node: Node) -> Iri:
    """Return what a node is called in the other graph."""
    return Iri(f"{node}x")


def here(found: PathsFound) -> PathsFound:
    """Return paths with the names of the first graph."""
    back: dict[Node, Node] = {there(node): node for node in NODES}

    def named(triple: Triple) -> Triple:
        return Triple(back.get(triple.head, triple.head), triple.relation, back.get(triple.tail, triple.tail))

    return replace(
        found,
        paths=tuple(
            replace(
                path, nodes=tuple(back.get(node, node) for node in path.nodes), triples=tuple(map(named, path.triples))
            )
            for path in found.paths
        ),
        skipped_hubs=tuple(back.get(hub, hub) for hub in found.skipped_hubs),
    )


@settings(max_examples=100, derandomize=True, deadline=None, database=None)
@given(
    st.lists(st.tuples(triples, st.sampled_from(("one", "other", "both"))), min_size=4, max_size=30),
    st.integers(0, 2**6 - 1),
    st.integers(1, 4),
    st.integers(1, 6),
    st.booleans(),
)
def test_paths_over_linked_graphs_are_those_of_the_whole(
    placed: list[tuple[Triple, str]], stated_here: int, hops: int, hub_degree: int, avoid_hubs: bool
) -> None:
    """Each node has another name in the other graph, and the link is stated in either of them, in either direction."""
    whole = list(dict.fromkeys(triple for triple, _ in placed))
    one = [triple for triple, place in placed if place != "other"]
    other = [
        Triple(there(triple.head), triple.relation, there(triple.tail)) for triple, place in placed if place != "one"
    ]
    for number, node in enumerate(NODES):
        if stated_here >> number & 1:
            one.append(Triple(node, SAME, there(node)))
        else:
            other.append(Triple(node, SAME, there(node)))
    request = PathRequest(NODES[0], NODES[1], max_hops=hops, limit=10_000, hub_degree=hub_degree, avoid_hubs=avoid_hubs)

    async def search() -> PathsFound:
        graph = await FederatedGraph.over({"one": graph_of(one), "other": graph_of(other)})
        ends = await graph.known([f"<{NODES[0]}>", f"<{there(NODES[1])}>"])
        source, target = (ends.get(f"<{end}>", (end,))[0] for end in (NODES[0], there(NODES[1])))
        return here(await find_paths(graph, replace(request, source=source, target=target)))

    assert anyio.run(search) == reference_paths(whole, request)


PEOPLE = """@prefix p: <http://people.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix wd: <http://www.wikidata.org/entity/> .
p:einstein rdfs:label "Albert Einstein"@en ; p:bornIn p:ulm ; owl:sameAs wd:Q937 .
p:ulm rdfs:label "Ulm"@en ; p:wikidata "Q3012" .
p:mileva p:spouse p:einstein .
"""
FACTS = """@prefix wd: <http://www.wikidata.org/entity/> . @prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
wd:Q937 rdfs:label "Einstein"@en ; wdt:P166 wd:Q38104 ; wdt:P19 wd:Q3012 ; wdt:P26 <http://people.org/mileva> .
wd:Q3012 rdfs:label "Ulm"@en ; wdt:P17 wd:Q183 .
wd:Q183 rdfs:label "Germany"@en .
wd:Q38104 rdfs:label "Nobel Prize in Physics"@en .
"""
BY_ID = LinkRules.of(["p:wikidata=http://www.wikidata.org/entity/{}"], Prefixes({"p": "http://people.org/"}))


def people_and_facts() -> FederatedGraph:
    graphs = {"people": LocalAdapter(shared_store(PEOPLE)), "facts": LocalAdapter(shared_store(FACTS))}
    return FederatedGraph(graphs, {"people": BY_ID})


async def test_what_is_linked_or_has_an_identifier_is_one_thing_and_every_fact_knows_its_graphs() -> None:
    graph = people_and_facts()
    known = await graph.known(["Q937", "p:ulm", "Q183", "Q1", "nothing"])
    ends = {text: node for text, (node,) in known.items()}
    assert {text: str(node) for text, node in ends.items()} == {
        "Q937": "http://people.org/einstein",
        "p:ulm": "http://people.org/ulm",
        "Q183": "http://www.wikidata.org/entity/Q183",
    }
    page = (await graph.neighbors(NeighborRequest((ends["Q937"],))))[ends["Q937"]]
    shorten = graph.prefixes.shorten
    assert [
        (shorten(each.head), shorten(each.relation, "relation"), shorten(each.tail), graph.origins[each])
        for each in page.triples
    ] == [
        ("p:einstein", "p:bornIn", "p:ulm", ("people",)),
        ("p:einstein", "P166", "Q38104", ("facts",)),
        ("p:einstein", "P19", "p:ulm", ("facts",)),
        ("p:einstein", "P26", "p:mileva", ("facts",)),
        ("p:mileva", "p:spouse", "p:einstein", ("people",)),
    ]
    assert page.total == Count(5)
    assert [each.entity for each in await graph.search("Ulm", limit=5)] == [ends["p:ulm"]]
    found = await find_paths(graph, PathRequest(ends["p:ulm"], Iri("http://www.wikidata.org/entity/Q38104")))
    assert [shorten(node) for node in found.paths[0].nodes] == ["p:ulm", "p:einstein", "Q38104"]


def test_a_relation_that_one_graph_counted_is_a_lower_bound_where_another_did_not_count_to_the_end() -> None:
    counted = Degree(Count(6_000), (RelationCount(iri("r"), "out", Count(6_000)),))
    cut, none = Degree(Count(3, exact=False), ()), Degree(Count(0), ())
    assert joined_degree([counted, none]) == counted
    (relation,) = joined_degree([counted, cut]).relations
    assert (relation.count, joined_degree([none, cut]).is_none) == (Count(6_000, exact=False), False)


async def test_what_only_links_to_a_thing_does_not_have_it() -> None:
    graphs = {"people": LocalAdapter(shared_store(PEOPLE)), "facts": LocalAdapter(shared_store(FACTS))}
    einstein = Iri("http://people.org/einstein")
    asked = [einstein, Iri("http://www.wikidata.org/entity/Q38104"), Iri("http://people.org/mileva")]
    found = await same_things(graphs, {}, asked)
    assert {str(term): {name: [*map(str, of)] for name, of in found[term].terms.items()} for term in asked} == {
        "http://people.org/einstein": {
            "people": ["http://people.org/einstein"],
            "facts": ["http://www.wikidata.org/entity/Q937"],
        },
        "http://www.wikidata.org/entity/Q38104": {"facts": ["http://www.wikidata.org/entity/Q38104"]},
        "http://people.org/mileva": {"people": ["http://people.org/mileva"], "facts": ["http://people.org/mileva"]},
    }


async def test_links_are_followed_three_in_a_row_and_no_further() -> None:
    chain = graph_of(Triple(iri(f"n{number}"), SAME, iri(f"n{number + 1}")) for number in range(5))
    found = await same_things({"chain": chain}, {}, [iri("n0")])
    assert found[iri("n0")].iris == {iri(f"n{number}") for number in range(4)}


class Failing(RdflibAdapter):
    """A graph that fails, or that never answers."""

    def __init__(self, fault: BackendError | None) -> None:
        super().__init__(rdflib.Graph())
        self._fault = fault

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        if self._fault is None:
            await anyio.sleep_forever()
            raise AssertionError
        raise self._fault


@pytest.mark.parametrize("fault", [BackendUnavailable("Connection refused."), None])
async def test_a_graph_that_fails_or_hangs_is_named_or_left_out_where_that_is_wanted(
    fault: BackendError | None,
) -> None:
    graphs = {"whole": graph_of(edges("a r b")), "broken": Failing(fault)}
    await graphs["whole"].labels([iri("a")])
    with pytest.raises(BackendError, match="The graph broken"), anyio.fail_after(0.5):
        await FederatedGraph(graphs).describe([iri("a")])
    missing: list[str] = []
    found = await same_things(
        graphs, {}, [iri("a")], left_out=lambda name, _: missing.append(name), timeouts_s={"broken": 0.5}
    )
    assert (dict(found[iri("a")].terms), missing) == ({"whole": (iri("a"),)}, ["broken"])


@pytest.mark.parametrize(
    "text",
    [
        *("p:id=", "p:id=no iri {}", "p:id=http://e.org/", "nobody knows", "p:id=http://e.org/{}{}"),
        *("p:id=b:{}", "p:id=javascript:{}"),
    ],
)
def test_a_rule_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        LinkRules.of([text], Prefixes({"p": "http://people.org/"}))
