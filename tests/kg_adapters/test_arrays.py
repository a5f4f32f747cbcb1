"""The arrays say what the statements say, however they came in."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_adapters.errors import InvalidSource
from kg_adapters.files.rows import Row
from kg_adapters.importing.import_builder import ImportBuilder
from kg_adapters.importing.lists import RDF
from kg_adapters.index.graph_index import EdgeTable, GraphIndex, LinkTable, StringTable
from kg_adapters.index.storage import GrowingArray, IndexStorage, Room, merge_tables
from kg_adapters.labels import RDF_TYPE, Vocabulary
from kg_adapters.local.array_files import ArrayFiles, open_index
from kg_adapters.terms import Iri, Literal

Edge: TypeAlias = tuple[str, str, str]
Feature: TypeAlias = tuple[str, str, str, str, str | None]

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
ALTERNATIVE = "http://www.w3.org/2004/02/skos/core#prefLabel"
COMMENT = "http://www.w3.org/2000/01/rdf-schema#comment"
STRING = "http://www.w3.org/2001/XMLSchema#string"

NODES = st.sampled_from(["http://e/a", "http://e/b", "http://e/é", "http://e/\U0001f600", "_:b0", LABEL])
RELATIONS = st.sampled_from(["http://e/r", "http://e/s", RDF_TYPE.value, "http://e/a"])
EDGES = st.lists(st.tuples(NODES, RELATIONS, NODES), max_size=40)
FEATURES = st.lists(
    st.tuples(
        NODES,
        st.sampled_from([LABEL, ALTERNATIVE, COMMENT, "http://e/r"]),
        st.sampled_from(["", "x", "y", "\ue000", "\U0001f600", "x\n"]),
        st.sampled_from([STRING, "http://e/type"]),
        st.sampled_from([None, "en", "en-gb", "mul", "de"]),
    ),
    max_size=40,
)


def build(
    edges: Iterable[Edge],
    features: Iterable[Feature] = (),
    storage: IndexStorage | None = None,
    *,
    unfold: bool = False,
) -> GraphIndex:
    builder = ImportBuilder(Vocabulary(), storage)
    for edge in edges:
        builder.add_edge(*edge)
    for feature in features:
        builder.add_feature(*feature)
    return builder.finish_import(Vocabulary()) if unfold else builder.finish()


def texts(table: StringTable) -> list[str]:
    return [table[row] for row in range(len(table))]


def edges_of(index: GraphIndex, table: EdgeTable) -> list[Edge]:
    """The edges in the order in which the table has them, as owner, relation, other."""
    return [
        (index.nodes[node], index.relations[int(table.relations[group])], index.nodes[int(other)])
        for node in range(len(index.nodes))
        for group in range(table.groups[node], table.groups[node + 1])
        for other in table.neighbors[table.starts[group] : table.starts[group + 1]]
    ]


def links_of(index: GraphIndex, table: LinkTable) -> list[tuple[str, str, int]]:
    return [
        (index.nodes[node], index.nodes[int(table.neighbors[row])], int(table.edges[row]))
        for node in range(len(index.nodes))
        for row in range(table.starts[node], table.starts[node + 1])
    ]


def features_of(index: GraphIndex) -> list[Feature]:
    table = index.features
    return [
        (
            index.nodes[node],
            index.relations[int(table.relations[row])],
            table.values[row],
            index.datatypes[int(table.datatypes[row])],
            index.languages[int(table.languages[row])] if table.languages[row] >= 0 else None,
        )
        for node in range(len(index.nodes))
        for row in range(table.starts[node], table.starts[node + 1])
    ]


def expected_links(edges: set[Edge]) -> list[tuple[str, str, int]]:
    pairs = Counter(pair for head, _, tail in edges if head != tail for pair in ((head, tail), (tail, head)))
    return sorted((one, two, count) for (one, two), count in pairs.items())


def chosen(index: GraphIndex, rows: Iterable[int]) -> dict[str, Literal]:
    all_features = features_of(index)
    found = [(node, all_features[row]) for node, row in enumerate(rows) if row >= 0]
    return {index.nodes[node]: Literal(row[2], Iri(row[3]), row[4]) for node, row in found}


def by_node(features: Iterable[Feature]) -> dict[str, dict[Iri, list[Literal]]]:
    nodes: dict[str, dict[Iri, list[Literal]]] = {}
    for head, relation, value, datatype, language in features:
        nodes.setdefault(head, {}).setdefault(Iri(relation), []).append(Literal(value, Iri(datatype), language))
    return nodes


@settings(derandomize=True, deadline=None)
@given(EDGES, FEATURES)
def test_an_index_holds_each_statement_once_and_sorted(edges: list[Edge], features: list[Feature]) -> None:
    index = build(edges, features)
    distinct = set(edges)
    assert texts(index.nodes) == sorted(
        {node for head, _, tail in edges for node in (head, tail)} | {f[0] for f in features}
    )
    assert texts(index.relations) == sorted({edge[1] for edge in edges} | {feature[1] for feature in features})
    assert edges_of(index, index.out) == sorted(distinct)
    assert edges_of(index, index.into) == sorted((tail, relation, head) for head, relation, tail in distinct)
    assert features_of(index) == sorted(set(features), key=lambda f: (f[0], f[1], f[2], f[4] or "", f[3]))
    assert texts(index.datatypes) == sorted({feature[3] for feature in features})
    assert texts(index.languages) == sorted({feature[4] for feature in features if feature[4] is not None})


@settings(derandomize=True, deadline=None)
@given(EDGES)
def test_links_count_the_edges_between_two_nodes_and_walks_leave_types_out(edges: list[Edge]) -> None:
    index = build(edges)
    assert links_of(index, index.links) == expected_links(set(edges))
    assert links_of(index, index.walks) == expected_links({edge for edge in edges if edge[1] != RDF_TYPE.value})


@settings(derandomize=True, deadline=None)
@given(FEATURES)
def test_labels_and_descriptions_are_those_that_the_vocabulary_chooses(features: list[Feature]) -> None:
    vocabulary = Vocabulary()
    index = build([], features)
    nodes = by_node(features_of(index))
    labels = {node: label for node, found in nodes.items() if (label := vocabulary.label(found)) is not None}
    descriptions = {node: text for node, found in nodes.items() if (text := vocabulary.description(found)) is not None}
    assert chosen(index, index.labels.tolist()) == labels
    assert chosen(index, index.descriptions.tolist()) == descriptions


def test_each_group_holds_one_relation_of_one_node() -> None:
    index = build([("http://e/a", "http://e/r", "http://e/b"), ("http://e/a", "http://e/s", "http://e/b")])
    assert index.out.groups.tolist() == [0, 2, 2]
    assert index.out.relations.tolist() == [0, 1]
    assert index.out.starts.tolist() == [0, 1, 2]


def test_a_relation_is_a_node_only_where_something_is_said_about_it() -> None:
    index = build([("http://e/a", "http://e/r", "http://e/b")], [("http://e/r", LABEL, "R", STRING, None)])
    assert texts(index.nodes) == ["http://e/a", "http://e/b", "http://e/r"]
    assert texts(index.relations) == ["http://e/r", LABEL]
    assert index.relation_nodes.tolist() == [2, -1]


def test_the_ids_are_32_bit_and_the_positions_64_bit_numbers() -> None:
    index = build([("http://e/a", "http://e/r", "http://e/b")], [("http://e/a", LABEL, "A", STRING, None)])
    ids = (index.out.neighbors, index.into.relations, index.links.edges, index.relation_nodes, index.features.languages)
    positions = (index.out.groups, index.into.starts, index.links.starts, index.features.starts, index.labels)
    assert {array.dtype for array in ids} == {np.dtype(np.int32)}
    assert {array.dtype for array in positions} == {np.dtype(np.int64)}


def saved(folder: Path, edges: Iterable[Edge], features: Iterable[Feature]) -> GraphIndex:
    (folder / "index").mkdir()
    build(edges, features, IndexStorage(folder / "index"))
    return open_index(ArrayFiles(folder, "index"))


def test_an_index_of_nothing_can_be_saved_and_opened(tmp_path: Path) -> None:
    index = saved(tmp_path, [], [])
    assert (len(index.nodes), len(index.relations), len(index.out.neighbors), len(index.labels)) == (0, 0, 0, 0)
    assert index.nodes.find("http://e/a") is None


def test_an_opened_index_says_what_was_saved(tmp_path: Path) -> None:
    edges, features = [("http://e/a", "http://e/r", "http://e/b")], [("http://e/a", LABEL, "A", STRING, "en")]
    opened = saved(tmp_path, edges, features)
    assert edges_of(opened, opened.into) == [("http://e/b", "http://e/r", "http://e/a")]
    assert features_of(opened) == [("http://e/a", LABEL, "A", STRING, "en")]
    assert opened.labels.tolist() == [0, -1]


def arrays_of(table: object) -> dict[str, list[object]]:
    """All arrays of an index or of a table in it, by name."""
    found: dict[str, list[object]] = {}
    for item in fields(table) if is_dataclass(table) else ():
        value = getattr(table, item.name)
        inner = {"": value.tolist()} if isinstance(value, np.ndarray) else arrays_of(value)
        found.update({f"{item.name}.{name}": numbers for name, numbers in inner.items()})
    return found


LISTED = st.lists(
    st.tuples(
        st.sampled_from(["_:l0", "_:l1", "_:l2", "http://e/a"]),
        st.sampled_from([f"{RDF}first", f"{RDF}rest", f"{RDF}_1", "http://e/r"]),
        st.sampled_from(["_:l0", "_:l1", "_:l2", f"{RDF}nil", "http://e/a", "http://e/b"]),
    ),
    max_size=12,
)
NUMBERED = st.lists(
    st.tuples(
        st.sampled_from(["_:l0", "_:l1", "_:l2"]),
        st.just(f"{RDF}first"),
        st.sampled_from(["1", "2.5"]),
        st.just("http://www.w3.org/2001/XMLSchema#decimal"),
        st.none(),
    ),
    max_size=3,
)


@settings(derandomize=True, deadline=None)
@given(EDGES, FEATURES, LISTED, NUMBERED, st.integers(1, 5), st.integers(1, 9))
def test_with_little_room_the_index_is_the_same(
    edges: list[Edge],
    features: list[Feature],
    listed: list[Edge],
    numbered: list[Feature],
    most_texts: int,
    most_rows: int,
) -> None:
    said = build([*edges, *listed], [*features, *numbered], unfold=True)
    with TemporaryDirectory() as folder, TemporaryDirectory() as scratch:
        storage = IndexStorage(Path(folder), Path(scratch), Room(most_texts, most_rows, merged_bytes=300))
        builder = ImportBuilder(Vocabulary(), storage)
        # A feature after every edge, so that runs end in the middle of both.
        for edge, feature in zip_longest([*edges, *listed], [*features, *numbered]):
            rows: list[Row] = [] if edge is None else [(edge[0], edge[1], edge[2], None, None)]
            builder.add_rows(rows if feature is None else [*rows, feature])
        built = arrays_of(builder.finish_import(Vocabulary()))
        assert built == arrays_of(said)


SORTED = st.lists(st.lists(st.text("ab\ue000\U0001f600", max_size=4), unique=True).map(sorted), min_size=1, max_size=4)


def table_of(lines: Iterable[str]) -> StringTable:
    strings = IndexStorage().passing_strings()
    strings.extend([line.encode() for line in lines])
    return strings.finish()


@settings(derandomize=True, deadline=None)
@given(SORTED, st.integers(1, 3_000))
def test_merged_tables_hold_each_text_once_and_say_where(tables: list[list[str]], most_bytes: int) -> None:
    strings = IndexStorage().passing_strings()
    places = merge_tables([table_of(each) for each in tables], strings, most_bytes)
    merged = texts(strings.finish())
    assert merged == sorted({text for each in tables for text in each})
    assert [[merged[place] for place in own] for own in places] == tables


@pytest.mark.parametrize("length", [0, 1, 99_999])
def test_an_array_that_grew_in_a_file_is_as_numpy_writes_it(tmp_path: Path, length: int) -> None:
    numbers = np.arange(length, dtype=np.int64)
    grown = GrowingArray(np.int64, tmp_path / "grown.npy")
    for piece in np.array_split(numbers, 3):
        grown.append(piece)
    assert grown.finish().tolist() == numbers.tolist()
    np.save(tmp_path / "saved.npy", numbers)
    assert (tmp_path / "grown.npy").read_bytes() == (tmp_path / "saved.npy").read_bytes()


def test_a_storage_closes_the_files_that_are_not_whole(tmp_path: Path) -> None:
    with IndexStorage(tmp_path) as storage:
        begun = storage.array("begun", np.int64)
    with pytest.raises(ValueError, match="closed file"):
        begun.append(np.arange(3))


def test_more_texts_than_can_be_numbered_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kg_adapters.index.storage._MOST_TEXTS", 2)
    tables = [table_of(each) for each in (["a", "b"], ["c"])]
    with pytest.raises(InvalidSource, match="more than 2 different names or texts"):
        merge_tables(tables, IndexStorage().passing_strings(), 100)
