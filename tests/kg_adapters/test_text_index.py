from pathlib import Path

import pytest

from kg_adapters.index.graph_index import GraphIndex
from kg_adapters.labels import Vocabulary
from kg_adapters.local.names.fuzzy import FuzzyNames, build_fuzzy_names
from kg_adapters.local.names.search import NameHit, TextIndex, build_text_index
from kg_adapters.models import RelationCandidate
from kg_adapters.testing import EXAMPLE, iri
from small_graphs import index_of

GRAPH = (
    'goethe label "Johann Wolfgang von Goethe"@en',
    'goethe altLabel "Goethe"@en',
    'university label "Goethe University"@en',
    'family label "Goethe"@en',
    'paris label "Paris"@en',
    'paris label "París"@es',
    'texas label "Paris"@en',
    'helen altLabel "Paris"@en',
    'spider label "Spider-Man"@en',
    'band label "!!!"@en',
    'tokyo label "東京"@ja',
    "paris country france",
    "paris near <http://example.org/Saint_Denis%20%28city%29>",
    "helen knows texas",
    "helen knows goethe",
    "helen knows spider",
    'near label "is close to"@en',
    'near altLabel "adjacent"@en',
    "_:somewhere near tokyo",
)
HOSTILE = (
    "",
    " ",
    "?",
    "().,;",
    '"unclosed AND (title:*) ~2 ^3 [a TO b] \\',
    "\x00\x01\x1b\x7f",
    "\ud800\udfff",
    "🪐" * 1_000,
    "东京 عطارد हिन्दी",
    "a" * 1_000_000,
    "goethe " * 150_000,
    " ".join(str(number) for number in range(150_000)),
    "\n" * 1_000_000,
)


@pytest.fixture
def index() -> GraphIndex:
    return index_of(GRAPH)


@pytest.fixture
def names(tmp_path: Path, index: GraphIndex) -> TextIndex:
    build_text_index(tmp_path, index, Vocabulary())
    return TextIndex.open(tmp_path, index)


def node(index: GraphIndex, name: str) -> int:
    number = index.nodes.find(iri(name).value)
    assert number is not None
    return number


def found(index: GraphIndex, hits: list[NameHit]) -> list[tuple[str, str, str]]:
    return [(index.nodes[hit.bearer].removeprefix(EXAMPLE), hit.matched_by, hit.matched_text) for hit in hits]


def test_labels_come_before_aliases_and_the_better_connected_before_others(index: GraphIndex, names: TextIndex) -> None:
    hits = names.search("PARIS", limit=9)
    assert found(index, hits)[:3] == [
        ("paris", "label", "Paris"),
        ("texas", "label", "Paris"),
        ("helen", "alias", "Paris"),
    ]
    assert [hit.score for hit in hits][:3] == [1.0, 1.0, 1.0]


def test_an_exact_name_comes_before_names_that_hold_it(index: GraphIndex, names: TextIndex) -> None:
    assert found(index, names.search("goethe", limit=5)) == [
        ("family", "label", "Goethe"),
        ("goethe", "alias", "Goethe"),
        ("university", "text", "Goethe University"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Johan Wolfgang von Goethe",
        "von Goethe, Johann Wolfgang",
        "Johann Goethe",
        "Johann Wolfgnag von Gothe",
        "the poet Johann Wolfgang von Goethe",
    ],
)
def test_typos_other_orders_missing_words_and_words_too_many_are_forgiven(
    index: GraphIndex, names: TextIndex, text: str
) -> None:
    first = names.search(text, limit=1)
    assert found(index, first) == [("goethe", "text", "Johann Wolfgang von Goethe")]
    assert 0.5 < first[0].score < 1


def test_punctuation_does_not_hide_a_name(index: GraphIndex, names: TextIndex) -> None:
    assert found(index, names.search("spider man", limit=1)) == [("spider", "text", "Spider-Man")]
    assert found(index, names.search("!!!", limit=1)) == [("band", "label", "!!!")]
    assert found(index, names.search("東京", limit=1)) == [("tokyo", "label", "東京")]


def test_an_entity_without_a_name_is_found_by_its_local_part(index: GraphIndex, names: TextIndex) -> None:
    assert found(index, names.search("france", limit=1)) == [("france", "id", "france")]
    assert found(index, names.search("saint denis (city)", limit=1)) == [
        ("Saint_Denis%20%28city%29", "id", "Saint Denis (city)")
    ]


def test_only_accepted_entities_are_found(index: GraphIndex, names: TextIndex) -> None:
    wanted = node(index, "helen")
    assert found(index, names.search("paris", limit=5, accept=lambda number: number == wanted)) == [
        ("helen", "alias", "Paris")
    ]
    assert names.search("paris", limit=5, accept=lambda _: False) == []


def test_relations_are_found_apart_from_entities(index: GraphIndex, names: TextIndex) -> None:
    assert names.search("is close to", limit=5) == []
    assert names.relations.find("Is close to", 1) == [RelationCandidate(iri("near"), 1.0, "label", "is close to")]
    assert names.relations.find("adjacent", 1) == [RelationCandidate(iri("near"), 1.0, "alias", "adjacent")]


def test_a_relation_that_edges_are_about_is_found_as_entity(tmp_path: Path) -> None:
    index = index_of(['near label "is close to"@en', "near type Property", "a near b"])
    build_text_index(tmp_path, index, Vocabulary())
    hits = TextIndex.open(tmp_path, index).search("is close to", limit=1)
    assert found(index, hits) == [("near", "label", "is close to")]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_any_text_may_be_searched_for(names: TextIndex, text: str) -> None:
    assert len(names.search(text, limit=3)) <= 3
    assert len(names.relations.find(text, 3)) <= 3


def test_a_limit_is_kept_however_many_bear_a_name(tmp_path: Path) -> None:
    index = index_of(f'smith{number} label "John Smith"@en' for number in range(3_000))
    build_text_index(tmp_path, index, Vocabulary())
    names = TextIndex.open(tmp_path, index)
    assert [hit.bearer for hit in names.search("john smith", limit=4)] == [0, 1, 2, 3]
    assert names.search("john smith", limit=0) == []
    assert names.relations.find("label", 0) == []
    assert len(names.search("john smith", limit=1_000_000)) == 2_000
    assert names.search("john smith", limit=5, accept=lambda number: number == 2_999) == []


def test_a_graph_without_names_finds_nothing(tmp_path: Path) -> None:
    index = index_of([])
    build_text_index(tmp_path, index, Vocabulary())
    names = TextIndex.open(tmp_path, index)
    assert (names.search("x", limit=5), names.relations.find("x", 5)) == ([], [])


def test_a_name_that_cannot_be_folded_is_left_out(tmp_path: Path) -> None:
    index = index_of([r'a label "\u0007"@en', 'b label "B"@en'])
    build_text_index(tmp_path, index, Vocabulary())
    names = TextIndex.open(tmp_path, index)
    assert found(index, names.search("b", limit=5)) == [("b", "label", "B")]


def test_the_same_store_may_be_open_many_times(tmp_path: Path, index: GraphIndex) -> None:
    build_text_index(tmp_path, index, Vocabulary())
    several = [TextIndex.open(tmp_path, index) for _ in range(5)]
    assert {names.search("goethe university", limit=1)[0].bearer for names in several} == {node(index, "university")}


def test_a_folder_that_cannot_be_locked_is_read_all_the_same(tmp_path: Path) -> None:
    build_fuzzy_names(["kyoto", "tokyo", "tokyo tower"], tmp_path)
    lock = tmp_path / ".tantivy-meta.lock"
    lock.unlink()
    lock.mkdir()
    assert FuzzyNames(tmp_path).find("tokio", 5) == [1, 2]


def test_a_damaged_index_is_not_opened(tmp_path: Path, index: GraphIndex) -> None:
    build_text_index(tmp_path, index, Vocabulary())
    (tmp_path / "text" / "fuzzy" / "meta.json").write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match=r"meta\.json"):
        TextIndex.open(tmp_path, index)
    (tmp_path / "text" / "nodes.rows.npy").write_bytes(b"no array at all")
    with pytest.raises(ValueError, match="magic string"):
        TextIndex.open(tmp_path, index)
    (tmp_path / "text" / "nodes.rows.npy").unlink()
    with pytest.raises(FileNotFoundError):
        TextIndex.open(tmp_path, index)


def test_the_same_names_make_the_same_files(tmp_path: Path) -> None:
    made: list[dict[str, bytes]] = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        build_fuzzy_names(["kyoto", "tokyo", "tokyo tower"], tmp_path / name)
        made.append({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()})
    assert made[0] == made[1]
    assert len(made[0]) > 3
