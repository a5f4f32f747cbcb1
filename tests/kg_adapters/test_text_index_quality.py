"""How often the right entity is among the first five, over a real graph."""

import random
from collections.abc import Callable, Sequence

import pytest

from kg_adapters.index.graph_index import GraphIndex
from kg_adapters.labels import Vocabulary
from kg_adapters.local.names.search import TextIndex, build_text_index
from kg_adapters.local.store import LocalStore

SEED = 20_240
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
ALIAS = "http://www.w3.org/2004/02/skos/core#altLabel"


@pytest.fixture(scope="module")
def index(sample_files: LocalStore) -> GraphIndex:
    return sample_files.index


@pytest.fixture(scope="module")
def names(index: GraphIndex, tmp_path_factory: pytest.TempPathFactory) -> TextIndex:
    folder = tmp_path_factory.mktemp("quality")
    build_text_index(folder, index, Vocabulary())
    return TextIndex.open(folder, index)


def written(index: GraphIndex, relation: str, words: int = 1) -> list[tuple[int, str]]:
    """Return 300 entities, chosen by the seed, with a name of at least so many words."""
    number = index.relations.find(relation)
    relations = set(index.relation_nodes.tolist())
    pairs = [
        (node, index.features.values[row])
        for node in range(len(index.nodes))
        if node not in relations
        for row in range(int(index.features.starts[node]), int(index.features.starts[node + 1]))
        if index.features.relations[row] == number
    ]
    chance = random.Random(SEED)  # noqa: S311 - a test needs the same chance every time
    return chance.sample([pair for pair in pairs if len(set(pair[1].split())) >= words], 300)


def share_found(
    names: TextIndex, asked: Sequence[tuple[int, str]], change: Callable[[random.Random, str], str]
) -> float:
    chance = random.Random(SEED)  # noqa: S311 - see above
    hits = [any(hit.bearer == node for hit in names.search(change(chance, text), limit=5)) for node, text in asked]
    return sum(hits) / len(hits)


def as_it_is(_: random.Random, text: str) -> str:
    return text


def in_capitals(_: random.Random, text: str) -> str:
    return text.upper()


def with_a_typo(chance: random.Random, text: str) -> str:
    place, letter = chance.randrange(len(text)), chance.choice("abcdefghijklmnopqrstuvwxyz")
    before, after = text[:place], text[place + 1 :]
    swapped = before + after[:1] + text[place] + after[1:]
    return chance.choice((before + letter + after, before + after, before + letter + text[place:], swapped))


def without_a_word(chance: random.Random, text: str) -> str:
    words = text.split()
    words.pop(chance.randrange(len(words)))
    return " ".join(words)


def reordered(chance: random.Random, text: str) -> str:
    words = text.split()
    while " ".join(words) == text:
        chance.shuffle(words)
    return " ".join(words)


def test_a_label_as_it_is_written_finds_its_entity(index: GraphIndex, names: TextIndex) -> None:
    asked = written(index, LABEL)
    assert share_found(names, asked, as_it_is) >= 0.99
    assert share_found(names, asked, in_capitals) >= 0.99


def test_an_alias_finds_its_entity(index: GraphIndex, names: TextIndex) -> None:
    assert share_found(names, written(index, ALIAS), as_it_is) >= 0.97


def test_one_typo_is_forgiven(index: GraphIndex, names: TextIndex) -> None:
    assert share_found(names, written(index, LABEL), with_a_typo) >= 0.90


def test_a_missing_word_of_three_or_more_is_forgiven(index: GraphIndex, names: TextIndex) -> None:
    assert share_found(names, written(index, LABEL, words=3), without_a_word) >= 0.85


def test_another_order_of_the_words_is_forgiven(index: GraphIndex, names: TextIndex) -> None:
    assert share_found(names, written(index, LABEL, words=2), reordered) >= 0.95


def test_hostile_text_leaves_the_search_as_it_was(index: GraphIndex, names: TextIndex) -> None:
    before = names.search("Johann Goethe", limit=5)
    for text in (
        "x" * 1_000_000,
        "the of and " * 90_000,
        "\x00" * 1_000,
        "(" * 9_999,
        "' OR 1=1 --",
        "\udfff",
        "\U0001d54b\U0001d560",
    ):
        assert len(names.search(text, limit=5)) <= 5
    assert names.search("Johann Goethe", limit=5) == before
    assert index.nodes[before[0].bearer] == "http://www.wikidata.org/entity/Q5879"
