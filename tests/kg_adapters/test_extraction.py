"""What lies around entities is taken out of a graph, within bounds, and answers as it did there."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from extractions import WatchedGraph, content_of, extracted, offline, order_for
from kg_adapters.errors import BackendTimeout, InvalidRequest, InvalidSource
from kg_adapters.extraction.extract import Order
from kg_adapters.extraction.journal import Bounds, Cut, Unknown
from kg_adapters.extraction.seeds import FIELDS, Mention, find_mentions, read_entities
from kg_adapters.local.store import Counts, LocalStore, SourceFile, open_store
from kg_adapters.models import Count, Feature, FeaturePage, NeighborPage
from kg_adapters.open_options import ExtractionProgress, Progress
from kg_adapters.prefixes import Prefixes
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest, NeighborRequest
from kg_adapters.terms import RDF_LANG_STRING, XSD_STRING, Literal, Node, Triple, node_from_key, node_key
from kg_adapters.testing import (
    BLANKS,
    DESCRIBED,
    LOOPS,
    NAMED,
    TANGLE,
    TOWNS,
    UNICODE,
    VALUES,
    edges,
    feature_page,
    iri,
    ntriples,
)
from small_graphs import store_of
from sparql_stand_in import adapter_over, endpoint_of

CHAIN = ("a near b", "b near c", "c near d", "d near e", "x near a")
STAR = ("a near hub", "hub near z", *(f"p{number} near hub" for number in range(20)), "hub type Place", "a near b")


def source_of(folder: Path, *statements: str) -> WatchedGraph:
    folder.mkdir()
    return WatchedGraph(store_of(folder, ntriples(statements)))


def named(*names: str, bounds: Bounds | None = None) -> Order:
    return order_for(*(f"<{iri(name)}>" for name in names), bounds=bounds)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def triples_of(graph: KGAdapter, *names: str) -> set[Triple]:
    pages = await graph.neighbors(NeighborRequest(tuple(iri(name) for name in names), limit=10_000))
    return {triple for page in pages.values() for triple in page.triples}


async def said_of(graph: KGAdapter, terms: list[Node]) -> list[object]:
    """Return everything that a graph answers about terms."""
    return [
        await graph.labels(terms),
        await graph.describe(terms),
        await graph.neighbors(NeighborRequest(tuple(terms), limit=1_000)),
        [await feature_page(graph, term) for term in terms],
        await graph.degrees(terms),
    ]


async def test_all_triples_within_the_hops_are_taken_and_none_beyond(tmp_path: Path) -> None:
    source = source_of(tmp_path / "source", *CHAIN)
    report = await extracted(source, named("a", bounds=Bounds(hops=2)), tmp_path / "store")
    around = await triples_of(offline(report.folder), "a", "b", "c", "d", "e", "x")
    assert around == set(edges("a near b", "b near c", "x near a"))
    assert (report.counts, report.seeds) == (Counts(entities=4, relations=1, triples=3, features=0), 1)


@pytest.mark.parametrize("statements", [DESCRIBED, LOOPS, NAMED, TANGLE, TOWNS, UNICODE, VALUES, BLANKS])
async def test_within_the_hops_everything_is_answered_as_the_source_does(
    tmp_path: Path, statements: tuple[str, ...]
) -> None:
    source = source_of(tmp_path / "source", *statements)
    index = open_store(tmp_path / "source" / "store").index
    keys = [index.nodes[row] for row in range(len(index.nodes))]
    order = order_for(*(key if key.startswith("_:") else f"<{key}>" for key in keys), bounds=Bounds(hops=1))
    graph = offline((await extracted(source, order, tmp_path / "store")).folder)
    terms = [node_from_key(key) for key in keys]
    assert await said_of(graph, terms) == await said_of(source, terms)
    assert (graph.prefixes, graph.vocabulary) == (source.prefixes, source.vocabulary)
    mine, theirs = await graph.schema(), await source.schema()
    assert (mine.classes, mine.relations, mine.features) == (theirs.classes, theirs.relations, theirs.features)


async def test_what_lies_outermost_has_its_types_labels_descriptions_and_literals(tmp_path: Path) -> None:
    source = source_of(tmp_path / "source", *DESCRIBED, "osaka near kobe", 'tokyo area "3"', 'City label "city"@en')
    graph = offline(
        (await extracted(source, named("osaka", bounds=Bounds(hops=2)), tmp_path / "store")).folder,
    )
    terms: list[Node] = [iri("tokyo"), iri("City"), iri("country"), iri("kobe")]
    assert await graph.describe(terms) == await source.describe(terms)
    assert await feature_page(graph, iri("tokyo")) == await feature_page(source, iri("tokyo"))


async def test_a_hub_is_kept_but_not_expanded_and_what_it_lacks_is_counted(tmp_path: Path) -> None:
    source = source_of(tmp_path / "source", *STAR, 'hub label "Hub"@en')
    bounds = Bounds(hops=3, max_degree=10)
    report = await extracted(source, named("a", bounds=bounds), tmp_path / "store")
    graph = offline(report.folder)
    assert await triples_of(graph, "a", "b", "hub", "z") == set(edges("a near hub", "a near b", "hub type Place"))
    hub = iri("hub")
    assert await graph.describe([hub]) == await source.describe([hub])
    assert report.cut == (Cut(node=node_key(hub), total=23, exact=True, hub=True),)
    assert report.triples_left_out == Count(21)


async def test_a_hub_that_was_named_is_expanded_relation_by_relation(tmp_path: Path) -> None:
    source = source_of(tmp_path / "source", *STAR)
    bounds = Bounds(hops=1, max_degree=4, per_relation=2)
    report = await extracted(source, named("hub", bounds=bounds), tmp_path / "store")
    assert await triples_of(offline(report.folder), "hub") == set(
        edges("hub type Place", "hub near z", "a near hub", "p0 near hub")
    )
    assert report.cut == (Cut(node=node_key(iri("hub")), total=23, exact=True, hub=False),)
    assert report.triples_left_out == Count(19)


async def test_a_hop_costs_one_request_per_batch_however_many_entities_it_has(tmp_path: Path) -> None:
    many = (f"s{number} near t{number}" for number in range(25))
    source = source_of(tmp_path / "source", *many)
    order = named(*(f"s{number}" for number in range(25)), bounds=Bounds(hops=3, batch=10))
    report = await extracted(source, order, tmp_path / "store")
    assert [len(asked) for asked in source.calls("neighbors")] == [10, 10, 5, 10, 10, 5]
    # Once for the seeds, and once for the 50 nodes and their relation.
    assert [len(asked) for asked in source.calls("describe")] == [10, 10, 5, 10, 10, 10, 10, 10, 1]
    assert (report.requests, report.value_requests) == (12, 6)


@pytest.mark.parametrize(
    ("values", "asked"), [("all", ["a", "b", "c", "near"]), ("inner", ["a", "b"]), ("none", list[str]())]
)
async def test_literals_are_read_of_those_that_were_chosen(tmp_path: Path, values: str, asked: list[str]) -> None:
    source = source_of(tmp_path / "source", "a near b", "b near c", 'c label "C"@de', 'near label "near"@en')
    order = order_for(f"<{iri('a')}>", bounds=Bounds(hops=2))
    order = Order(order.request, order.content, "all" if values == "all" else "inner" if values == "inner" else "none")
    report = await extracted(source, order, tmp_path / "store")
    assert sorted(node for batch in source.calls("features") for node in batch) == [iri(name) for name in asked]
    graph = offline(report.folder)
    assert await graph.labels([iri("c"), iri("near")]) == {iri("c"): "C", iri("near"): "near"}
    found = await feature_page(graph, iri("c"))
    literal = Literal("C", (await feature_page(source, iri("c"))).features[0].value.datatype, "de")
    plain = Literal("C", XSD_STRING)
    assert found == FeaturePage((Feature(iri("label"), literal if values == "all" else plain),), Count(1))


async def test_literals_beyond_the_bound_are_counted_and_the_label_stays(tmp_path: Path) -> None:
    many = (f'a aaa "{number:04}"' for number in range(1_200))
    source = source_of(tmp_path / "source", *many, "a near b", 'a label "A"@en')
    report = await extracted(source, named("a"), tmp_path / "store")
    assert report.values_left_out == Count(201)
    assert await offline(report.folder).labels([iri("a")]) == {iri("a"): "A"}


async def test_lines_that_name_no_entity_are_reported_and_the_rest_is_extracted(tmp_path: Path) -> None:
    source = source_of(tmp_path / "source", *CHAIN)
    order = order_for("", "Tokyo", f"<{iri('b')}>", f"<{iri('b')}>", f"<{iri('gone')}>", f"<{iri('near')}>", '{"x": 1}')
    report = await extracted(source, order, tmp_path / "store")
    assert report.seeds == 1
    assert [(each.line, each.text) for each in report.unknown] == [
        (2, "Tokyo"),
        (5, f"<{iri('gone')}>"),
        (6, f"<{iri('near')}>"),
        (7, '{"x": 1}'),
    ]
    assert report.unknown[1] == Unknown(line=5, text=f"<{iri('gone')}>", reason="The graph has no such entity.")


async def test_a_file_without_any_entity_of_the_graph_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    source = source_of(tmp_path / "source", *CHAIN)
    with pytest.raises(InvalidRequest, match=r"no entity of the graph 'graph'\. Line 1, '<http://e/z>': The graph has"):
        await extracted(source, order_for("<http://e/z>"), tmp_path / "store")
    with pytest.raises(InvalidRequest, match=r"no entity of the graph 'graph'\.$"):
        await extracted(source, order_for("# nobody"), tmp_path / "store")
    assert names(tmp_path) == [".store.lock", "source"]


async def test_progress_goes_hop_by_hop_to_the_saving_of_the_store(tmp_path: Path) -> None:
    source, seen = source_of(tmp_path / "source", *CHAIN), list[Progress | ExtractionProgress]()
    await extracted(source, named("a", bounds=Bounds(hops=2)), tmp_path / "store", seen.append)
    assert [each for each in seen if isinstance(each, ExtractionProgress)] == [
        ExtractionProgress("walking", 1, 0, 1, 0),
        ExtractionProgress("walking", 2, 0, 2, 2),
        ExtractionProgress("typing", 0, 0, 1, 5),
        ExtractionProgress("valuing", 0, 0, 5, 5),
        ExtractionProgress("describing", 0, 0, 5, 5),
    ]
    imported = [each.stage for each in seen if isinstance(each, Progress)]
    assert list(dict.fromkeys(imported)) == ["reading", "indexing", "searching", "saving"]


async def test_an_endpoint_gives_the_same_subgraph_as_a_file(tmp_path: Path) -> None:
    statements = (*TOWNS, *DESCRIBED, *VALUES)
    order = named("tokyo", bounds=Bounds(hops=2))
    near = await extracted(source_of(tmp_path / "source", *statements), order, tmp_path / "near")
    endpoint = endpoint_of(statements)
    far = await extracted(adapter_over(endpoint), order, tmp_path / "far")
    assert far.counts == near.counts
    terms: list[Node] = [iri(name) for name in ("tokyo", "japan", "kyoto", "City", "country")]
    assert await said_of(offline(far.folder), terms) == await said_of(offline(near.folder), terms)
    assert offline(far.folder).prefixes == Prefixes({"ex": "http://example.org/"})


async def test_blank_nodes_that_do_not_last_are_kept_apart_from_those_of_other_answers(tmp_path: Path) -> None:
    graph = adapter_over(endpoint_of(["a has _:x", "a near b", "b has _:y", "_:y has c"]))
    report = await extracted(graph, named("a", bounds=Bounds(hops=3)), tmp_path / "store")
    found = await triples_of(offline(report.folder), "a", "b")
    tails = sorted(node_key(triple.tail) for triple in found if triple.relation == iri("has"))
    assert tails == ["_:hop-1-000000-0", "_:hop-2-000000-0"]
    assert report.counts.triples == 3


NAMES = tuple(f"s{number}" for number in range(8))
ORDER = order_for(*(f"<{iri(name)}>" for name in NAMES), bounds=Bounds(hops=1))


class SlowGraph(WatchedGraph):
    """Answers in time about so many entities at most."""

    most = 2

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        pages = await super().neighbors(request)
        return pages if request.relations is not None or len(pages) <= self.most else self.too_much(pages)

    def too_much(self, pages: Mapping[Node, NeighborPage]) -> Mapping[Node, NeighborPage]:
        """Answer about too many."""
        raise BackendTimeout("The graph gave no answer in time.")


class CutGraph(SlowGraph):
    """Answers in full about so many entities at most, and of more has lost one triple each."""

    def too_much(self, pages: Mapping[Node, NeighborPage]) -> Mapping[Node, NeighborPage]:
        return {
            node: replace(page, facts=page.triples[1:], total=Count(len(page.triples) - 1, exact=False))
            for node, page in pages.items()
        }


@pytest.fixture
def source(tmp_path: Path) -> LocalStore:
    (tmp_path / "source").mkdir()
    return store_of(tmp_path / "source", ntriples(f"{name} r{n} t{n}" for name in NAMES for n in range(3)))


@pytest.mark.parametrize("kind", [SlowGraph, CutGraph])
async def test_what_it_does_not_answer_in_full_it_is_asked_for_in_halves(
    source: LocalStore, tmp_path: Path, kind: type[SlowGraph]
) -> None:
    graph = kind(source)
    await extracted(graph, ORDER, tmp_path / "store")
    await extracted(WatchedGraph(source), ORDER, tmp_path / "whole")
    assert content_of(tmp_path / "store") == content_of(tmp_path / "whole")
    assert [len(asked) for asked in graph.calls("neighbors")] == [8, 4, 2, 2, 4, 2, 2]


async def test_a_graph_that_cannot_answer_for_one_entity_ends_the_run(source: LocalStore, tmp_path: Path) -> None:
    graph = SlowGraph(source)
    graph.most = 0
    with pytest.raises(BackendTimeout, match="gave no answer in time"):
        await extracted(graph, ORDER, tmp_path / "store")
    assert [len(asked) for asked in graph.calls("neighbors")] == [8, 4, 2, 1]


async def test_what_stays_uncertain_is_taken_and_said(source: LocalStore, tmp_path: Path) -> None:
    graph = CutGraph(source)
    graph.most = 0
    report = await extracted(graph, ORDER, tmp_path / "store")
    assert (report.counts.triples, report.triples_left_out) == (16, Count(0))
    assert len(graph.calls("neighbors")) == 15


class Garbled(WatchedGraph):
    """Has a text in a language whose tag no file can hold."""

    async def features(self, request: FeatureRequest) -> Mapping[Node, FeaturePage]:
        text = Literal("Ada", RDF_LANG_STRING, "no tag")
        page = FeaturePage((Feature(iri("name"), text),), Count(1))
        return dict.fromkeys(request.entities, page)


async def test_statements_that_no_file_can_hold_are_skipped_and_reported(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    source = Garbled(store_of(tmp_path / "source", ntriples(["a near b"])))
    report = await extracted(source, named("a", bounds=Bounds(hops=1)), tmp_path / "store")
    assert (report.counts.triples, report.skipped, len(report.problems)) == (1, 3, 3)


NO_IDS = "It is not a JSON object whose fields hold an id or a list of ids."


def test_every_line_is_an_id_but_empty_ones_and_comments() -> None:
    content = "\ufeffQ1490\r\n\n  wd:Q5879  \n# a comment\n<http://e/an id>\n".encode()
    assert find_mentions(content, FIELDS) == (
        [Mention(1, "Q1490"), Mention(3, "wd:Q5879"), Mention(5, "<http://e/an id>")],
        [],
    )


def test_a_json_line_holds_ids_in_its_fields() -> None:
    content = b'{"topic": "Q1", "answer": "Q2"}\n{"entities": ["Q3", "Q4"], "entity": null}\n{"entity": "Q5"}\n'
    assert find_mentions(content, FIELDS) == (
        [Mention(1, "Q1"), Mention(2, "Q3"), Mention(2, "Q4"), Mention(3, "Q5")],
        [],
    )
    assert find_mentions(content, ["answer"])[0] == [Mention(1, "Q2")]


@pytest.mark.parametrize("line", ['{"topic": "Q1"', '{"topic": 1}', '{"topic": [["Q1"]]}', '{"topic": {"id": "Q1"}}'])
def test_a_json_line_that_cannot_be_read_is_reported(line: str) -> None:
    assert find_mentions(f"Q1\n{line}\n".encode(), FIELDS) == (
        [Mention(1, "Q1")],
        [Unknown(line=2, text=line, reason=NO_IDS)],
    )


def test_a_published_file_is_one_array_whose_objects_hold_ids_with_their_labels() -> None:
    content = b"""[
{"question": "Who?", "entity": "Earth", "qid_topic_entity": {"Q1": "Universe", "Q2": "Earth"}},

{"topic_entity": {"m.0f8l9c": "France"}}, " Q3 ",
{"qid_topic_entity": {"UnknownQID": "nobody"}},
5]"""
    mentions, wrong = find_mentions(content, FIELDS)
    assert mentions == [Mention(2, "Q1"), Mention(2, "Q2"), Mention(4, "m.0f8l9c"), Mention(4, "Q3")]
    assert [(each.line, each.reason) for each in wrong] == [(5, NO_IDS), (6, NO_IDS)]
    assert [each.text for each in wrong] == ['{"qid_topic_entity": {"UnknownQID": "nobody"}}', "5"]


@pytest.mark.parametrize("content", [b'["Q1", "Q2"]', b'\xef\xbb\xbf[ "Q1",\n"Q2" ]', b'{"Q1": "one",\n"Q2": "two"}'])
def test_a_file_may_be_an_array_of_ids_or_an_object_of_ids_with_labels(content: bytes) -> None:
    mentions, wrong = find_mentions(content, FIELDS)
    assert ([each.text for each in mentions], wrong) == (["Q1", "Q2"], [])


def test_a_broken_array_is_an_error_with_its_place() -> None:
    with pytest.raises(InvalidRequest, match="The file of entities, line 2, column 1: Expecting ',' delimiter"):
        find_mentions(b'["Q1"\n"Q2"]', FIELDS)


def test_a_json_line_without_the_fields_says_how_to_name_them() -> None:
    _, wrong = find_mentions(b'{"question": "' + b"who " * 50 + b'"}', FIELDS)
    text = '{"question": "' + ("who " * 50)[:66] + "…"
    reason = f"It has none of the fields {', '.join(FIELDS)}. Name the one that holds ids with --field."
    assert wrong == [Unknown(line=1, text=text, reason=reason)]


def test_bytes_that_are_no_text_spoil_their_line_alone() -> None:
    assert find_mentions(b"Q1\n\xff\xfe\nQ2", FIELDS) == ([Mention(1, "Q1"), Mention(2, "��"), Mention(3, "Q2")], [])


def test_a_file_comes_with_its_fingerprint(tmp_path: Path) -> None:
    file = tmp_path / "people.txt"
    file.write_bytes(b"Q1\n")
    fingerprint = SourceFile(name="people.txt", size=3, sha256=hashlib.sha256(b"Q1\n").hexdigest())
    assert read_entities(file) == (b"Q1\n", fingerprint)


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidSource, match=r"nothing\.txt cannot be read: No such file or directory"):
        read_entities(tmp_path / "nothing.txt")
