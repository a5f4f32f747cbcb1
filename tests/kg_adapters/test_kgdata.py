"""The subgraphs of KGdata: triples below their topics, as one graph."""

import json
from io import BytesIO
from pathlib import Path

import pytest

from kg_adapters.errors import InvalidSource
from kg_adapters.files.json_graphs import read_subgraphs
from kg_adapters.index.build.build import build_store
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store

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
    quads = list(read_subgraphs(BytesIO(text.encode()), "k.json", refuse, told.append))
    assert len({str(quad) for quad in quads}) == len(quads) == 8
    assert len(told) == 1


def refuse(message: str, cause: BaseException) -> None:
    raise InvalidSource(message) from cause


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
    quads = list(read_subgraphs(BytesIO(text), "k.json", lambda message, _: left.append(message), lambda _: None))
    assert [len(left), len(quads)] == [2, 6]
