"""The `graph.json` of GRBench: ids, features and neighbours as the file spells them."""

import json
from io import BytesIO
from itertools import chain
from pathlib import Path

import pytest

from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.files.json_graphs import LabelKeys, read_graph_json, read_subgraphs
from kg_adapters.importing.build import build_store
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_adapters.terms import Iri, node_from_key

NODE, RELATION, TYPE = (f"urn:graph-json:{kind}:" for kind in ("node", "relation", "type"))

XSD = "http://www.w3.org/2001/XMLSchema#"


def refuse(message: str, cause: BaseException) -> None:
    raise InvalidSource(message) from cause


def read(content: object) -> list[str]:
    return read_text(json.dumps(content).encode())


def read_text(content: bytes) -> list[str]:
    return [str(quad) for quad in read_graph_json(BytesIO(content), "g.json", refuse)]


def about(name: str, rest: str) -> str:
    return f"<{NODE}{name}> {rest}"


def of_type(name: str, kind: str) -> str:
    return about(name, f"<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{TYPE}{kind}>")


def labelled(name: str, label: str) -> str:
    return about(name, f'<http://www.w3.org/2000/01/rdf-schema#label> "{label}"')


def test_a_node_has_its_type_its_label_its_features_and_its_neighbours() -> None:
    graph = {
        "paper_nodes": {"p1": {"features": {"title": "Oxen", "year": 1999}, "neighbors": {"author": ["a1", "a2"]}}}
    }
    assert read(graph) == [
        of_type("p1", "paper"),
        labelled("p1", "Oxen"),
        about("p1", f'<{RELATION}title> "Oxen"'),
        about("p1", f'<{RELATION}year> "1999"^^<{XSD}integer>'),
        about("p1", f"<{RELATION}author> <{NODE}a1>"),
        about("p1", f"<{RELATION}author> <{NODE}a2>"),
    ]


def test_each_kind_of_value_becomes_a_literal_of_its_datatype() -> None:
    values = {
        "b": [True, False],
        "d": [1.5, float("inf"), float("-inf"), float("nan")],
        "n": None,
        "o": {"k": [1]},
        "l": [[2]],
    }
    lines = read({"x": {"i": {"features": values}}})
    json_type = "http://www.w3.org/1999/02/22-rdf-syntax-ns#JSON"
    assert lines == [
        of_type("i", "x"),
        *(about("i", f'<{RELATION}b> "{text}"^^<{XSD}boolean>') for text in ("true", "false")),
        *(about("i", f'<{RELATION}d> "{text}"^^<{XSD}double>') for text in ("1.5", "INF", "-INF", "NaN")),
        about("i", f'<{RELATION}o> "{{\\"k\\": [1]}}"^^<{json_type}>'),
        about("i", f'<{RELATION}l> "[2]"^^<{json_type}>'),
    ]


@pytest.mark.parametrize(
    ("features", "label"),
    [
        ({"title": "T", "name": "N"}, "N"),
        ({"plain": "P", "case_name": "C"}, "C"),
        ({"text": "t" * 300, "court": "C", "empty": ""}, "C"),
        ({"name": " ", "title": "T"}, "T"),
    ],
)
def test_the_label_is_the_name_or_what_comes_nearest(features: dict[str, str], label: str) -> None:
    lines = read({"x_nodes": {"i": {"features": features}}})
    assert labelled("i", label) in lines


def test_a_node_without_a_short_text_has_no_label() -> None:
    assert read({"x_nodes": {"i": {"features": {"text": "t" * 300}}, "j": {}}}) == [
        of_type("i", "x"),
        about("i", f'<{RELATION}text> "{"t" * 300}"'),
        of_type("j", "x"),
    ]


def test_the_graphs_of_grbench_name_their_opinions_clusters_dockets_and_courts() -> None:
    text = "In re\n  Smith,  " + "v " * 200
    legal = {
        "opinion_nodes": {"o": {"features": {"plain_text": text, "author": "A"}}},
        "opinion_cluster_nodes": {"k": {"features": {"syllabus": "Held.", "slug": "held"}}},
        "docket_nodes": {
            "d": {"features": {"pacer_case_id": 7, "case_name": "A v. B"}},
            "e": {"features": {"pacer_case_id": 8}},
        },
        "court_nodes": {"c": {"features": {"name": "SCOTUS", "full_name": "Supreme Court"}}},
    }
    lines = read(legal)
    alias = "<http://www.w3.org/2004/02/skos/core#altLabel>"
    cut = "In re Smith, " + "v " * 92 + "v…"
    assert 195 < len(cut) <= 200
    assert [line for line in lines if "#label>" in line or alias in line] == [
        labelled("o", cut),
        labelled("k", "Held."),
        labelled("d", "A v. B"),
        about("d", f'{alias} "7"'),
        labelled("e", "8"),
        labelled("c", "Supreme Court"),
    ]


def test_chosen_features_come_before_the_known_ones() -> None:
    graph = {"opinion_nodes": {"o": {"features": {"plain_text": "T", "slug": "s"}}, "p": {"features": {"name": "N"}}}}
    keys = LabelKeys(["opinion=slug", "opinion_nodes=plain_text"])
    lines = [str(quad) for quad in read_graph_json(BytesIO(json.dumps(graph).encode()), "g.json", refuse, keys)]
    assert [line for line in lines if "abel>" in line] == [
        labelled("o", "s"),
        about("o", '<http://www.w3.org/2004/02/skos/core#altLabel> "T"'),
        labelled("p", "N"),
    ]


@pytest.mark.parametrize("text", ["opinion", "=plain_text", "opinion= ", ""])
def test_a_label_key_without_type_or_feature_is_an_error(text: str) -> None:
    with pytest.raises(InvalidRequest, match="Write it as TYPE=FEATURE: opinion=plain_text"):
        LabelKeys([text])


def test_numbers_and_single_ids_are_taken_as_neighbours() -> None:
    assert read({"x": {"i": {"neighbors": {"to": [1], "at": "z"}}}})[1:] == [
        about("i", f"<{RELATION}to> <{NODE}1>"),
        about("i", f"<{RELATION}at> <{NODE}z>"),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], r"g\.json: expected an object \{…\}, found \[\]"),
        ([1, 2, 3, "x"], r"g\.json: expected an object \{…\}, found \[1, 2, 3, \"x\"\]"),
        ({"x": [1]}, r"g\.json, 'x': expected an object \{…\}, found \[1\]"),
        ({"x": {"i": 3}}, r"g\.json, 'x', node 'i': expected an object"),
        ({"x": {"i": {"features": "f" * 99}}}, r"node 'i', 'features': expected an object \{…\}, found \"f+…"),
        ({"x": {"i": {"neighbors": [1]}}}, r"node 'i', 'neighbors': expected an object"),
        ({"x": {"i": {"neighbors": {"to": [["a"]]}}}}, r"neighbors 'to': expected a list of ids, found"),
        ({"x": {"i": {"neighbors": {"to": [None]}}}}, r"neighbors 'to': expected a list of ids, found"),
        ({"x": {"i": {"neighbors": {"to": [""]}}}}, r"neighbors 'to': an id or name is empty"),
        ({"x": {"": {}}}, r"node '': an id or name is empty"),
        ({"x": {"i": {"features": {"name": "\ud800"}}}}, r"g\.json, 'x', node 'i': a text holds half of a surrogate"),
        ({"@context": {}, "@id": "http://e/a"}, r"looks like JSON-LD"),
    ],
)
def test_a_wrong_shape_is_an_error_that_names_the_place(content: object, message: str) -> None:
    with pytest.raises(InvalidSource, match=message):
        read(content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"x": {\n"i": }', r"g\.json, line 2, column 6: Expecting value"),
        (b'{"x": "\xff"}', r"g\.json is not UTF-8 text: byte 7"),
        (b'{"x": {"i": ' + b"[" * 200_000, r"g\.json is nested too deeply"),
        (b'{"x": {"i": {"features": {"n": "never closed', r"g\.json, line 1, column 32: Unterminated string"),
        (b'{"x": {}}\n{}', r"g\.json, line 2, column 1: Extra data"),
        (b"", "line 1, column 1"),
        (b'{"x": {"i": ' + b"9" * 5_000 + b"}}", r"g\.json holds a whole number with more digits than can be read"),
    ],
)
def test_broken_json_is_an_error_that_names_the_place(content: bytes, message: str) -> None:
    with pytest.raises(InvalidSource, match=message):
        read_text(content)


def test_a_misshapen_node_is_skipped_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_text('{"x_nodes": {"bad": {"features": {"name": "N"}, "neighbors": 1}, "good": {}}}', encoding="utf-8")
    report = build_store([path], tmp_path / "store", ImportOptions(skip_errors=True, sparql=False))
    assert (report.counts.triples, report.counts.features, report.skipped) == (1, 0, 1)


def test_ids_are_shown_and_accepted_as_the_file_spells_them(tmp_path: Path) -> None:
    ids = ["p1", "Gene::9021", "a b", "é%/#?", "rdf:type", "_:x", "<i>", "http://e/a", " pad", "urn:x", "type:paper"]
    path = tmp_path / "graph.json"
    path.write_text(
        json.dumps({"paper_nodes": {text: {"neighbors": {"cites": ids}} for text in ids}}), encoding="utf-8"
    )
    store = open_store(build_store([path], tmp_path / "store", ImportOptions(sparql=False)).folder)
    prefixes = store.info.prefixes
    nodes = [node_from_key(store.index.nodes[row]) for row in range(len(store.index.nodes))]
    assert [prefixes.expand(prefixes.shorten(node)) for node in nodes] == nodes
    assert {prefixes.shorten(node) for node in nodes} >= {"p1", "Gene::9021", "a b", "é%/#?"}
    assert prefixes.expand("cites", "relation") == Iri(RELATION + "cites")
    assert prefixes.expand("rdf:type", "relation") == Iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
    assert prefixes.shorten(Iri(TYPE + "paper")) == "type:paper"


TOPICS = {
    "Paris": [["Paris", "capital of", "France"], ["France", "founded", "0843-08-10"], ["Paris", "people", 2_100_000]],
    "France": [["Paris", "capital of", "France"]],
    "Nowhere": [],
}


def test_a_file_of_topics_is_one_graph_with_names_and_values(tmp_path: Path) -> None:
    file = tmp_path / "subgraphs.json"
    file.write_text(json.dumps(TOPICS), encoding="utf-8")
    report = build_store([file], tmp_path / "store", ImportOptions(sparql=False))
    assert (report.counts.entities, report.counts.triples) == (2, 1)
    note = "3 edges, each once. Relations: capital of (edges), founded (date), people (whole number)."
    assert report.notes == (f"{file}: {note}",)
    assert open_store(report.folder).info.prefixes.namespaces["entity"] == "urn:table:entity:"


@pytest.mark.parametrize("between", ["\n", " "])
def test_objects_may_stand_one_after_the_other(between: str) -> None:
    text = between.join(json.dumps({topic: triples}) for topic, triples in TOPICS.items())
    told: list[str] = []
    columns = chain.from_iterable(read_subgraphs(BytesIO(text.encode()), "k.json", refuse, told.append))
    rows = [row for column in columns for row in column.rows()]
    assert len(set(rows)) == len(rows) == 8
    assert len(told) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": [["h", "r"]]}', r"k\.json, the topic 'a', triple 1: a triple is three texts or numbers"),
        ('{"a": [["h", "r", "t"], ["h", "", "t"]]}', r"the topic 'a', triple 2: a triple is three"),
        ('{"a": []}', r"k\.json holds no triple\."),
        ('{"a": [], "b": {"c": 1}}', r"the topic 'b' has no list of triples, but \{\"c\": 1\}"),
        ('{"a": [["h", "r", "t"]', r"k\.json, line 1, column 23: Expecting ',' delimiter\. Expected topics"),
    ],
)
def test_what_is_no_triple_is_an_error_with_its_topic(text: str, message: str) -> None:
    with pytest.raises(InvalidSource, match=message):
        list(read_subgraphs(BytesIO(text.encode()), "k.json", refuse, lambda _: None))


def test_what_is_no_triple_is_left_out_where_that_is_allowed() -> None:
    left: list[str] = []
    text = b'{"a": 5, "b": [["h", "r", "t"], 5, ["h", "r", "u"]]}'
    found = read_subgraphs(BytesIO(text), "k.json", lambda message, _: left.append(message), lambda _: None)
    assert sum(len(column.heads) for column in chain.from_iterable(found)) == 6
    assert len(left) == 2
