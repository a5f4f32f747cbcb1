"""Sets over the arrays of an index: bounded in time and size, with facts that show each result."""

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_adapters.algebra import (
    ANY,
    Best,
    Compares,
    Hop,
    HopPath,
    Instances,
    Kept,
    Linked,
    Meets,
    Members,
    NumberOf,
    Operator,
    Outranks,
    Reached,
    SetExpression,
    Step,
    ValueOf,
    Values,
)
from kg_adapters.errors import BackendTimeout, Unsupported
from kg_adapters.folding import MAX_FOLDED, bare_words, fold
from kg_adapters.index.builder import index_of
from kg_adapters.index.graph_index import Dictionary
from kg_adapters.index.sets.answers import IndexSets
from kg_adapters.index.sets.walks import MOST_PAIRS
from kg_adapters.labels import Vocabulary
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.models import Count
from kg_adapters.protocol import SupportsSets
from kg_adapters.set_requests import Computed, Listed, SetRequest
from kg_adapters.terms import Attribute, Fact, Literal
from kg_adapters.testing import edge, iri, ntriples, typed
from kg_adapters.values import SIGNS
from small_graphs import store_of


class CountingDictionary(Dictionary):
    """Counts how many values are read."""

    read = 0

    def literal(self, row: int) -> Literal:
        self.read += 1
        return super().literal(row)

    def text(self, row: int) -> str:
        self.read += 1
        return super().text(row)


def sets_of(facts: list[Fact], most_pairs: int = MOST_PAIRS) -> IndexSets:
    index = index_of(facts, Vocabulary())
    return IndexSets(index, Dictionary(index), Vocabulary(), most_pairs)


@pytest.mark.parametrize("repeated", [False, True])
def test_a_path_that_leads_to_too_many_pairs_is_refused_before_it_is_walked(*, repeated: bool) -> None:
    crowd: list[Fact] = [edge(f"n{number} type k") for number in range(40)]
    both_ways = Hop((Step(iri("type")), Step(iri("type"), "in")), repeated=True)
    to_all = (
        HopPath((both_ways,)) if repeated else HopPath((Hop((Step(iri("type")),)), Hop((Step(iri("type"), "in"),))))
    )
    question = Listed(Best(Instances(iri("k")), NumberOf(to_all)))
    with pytest.raises(Unsupported, match="and 1,000 are worked out at most"):
        sets_of(crowd, 1_000).compute(SetRequest(question))
    found = sets_of(crowd, 10_000).compute(SetRequest(question, limit=0, witnesses=0))
    assert found.count == Count(40)


def test_what_shows_a_value_is_found_from_the_value_not_member_by_member() -> None:
    facts: list[Fact] = [
        fact
        for number in range(1_000)
        for fact in (edge(f"n{number:03} type k"), Attribute(iri(f"n{number:03}"), iri("f"), number_from_end(number)))
    ]
    index = index_of(facts, Vocabulary())
    dictionary = CountingDictionary(index)
    expression = Values(Instances(iri("k")), path("f"))

    found = IndexSets(index, dictionary, Vocabulary()).compute(SetRequest(Listed(expression), limit=3, witnesses=3))

    assert [witness.facts[-1].head for witness in found.witnesses] == [iri("n999"), iri("n998"), iri("n997")]
    assert dictionary.read < 1_100


def number_from_end(number: int) -> Literal:
    return typed(f"{999 - number:03}", "string")


FACTS: list[Fact] = [
    *(edge(text) for text in ("noir subClassOf film", "m type noir", "m cast cid", "ran cast bob", "cid born rome")),
    *(edge(text) for text in ("rome in italy", "italy in europe", "bob spouse ann", "ran type film")),
    *(Attribute(iri(film), iri("length"), typed(length, "integer")) for film, length in (("m", "99"), ("ran", "162"))),
]


def path(*relations: str, repeated: bool = False) -> HopPath:
    return HopPath(tuple(Hop((Step(iri(relation)),), repeated=repeated) for relation in relations))


@pytest.mark.parametrize(
    ("expression", "chain"),
    [
        (Instances(iri("film")), ["m type noir", "noir subClassOf film"]),
        (Reached(Instances(iri("film")), path("cast")), ["ran type film", "ran cast bob"]),
        (Reached(Members((iri("m"),)), path("cast", "born")), ["m cast cid", "cid born rome"]),
        (Reached(Members((iri("rome"),)), path("in", repeated=True)), ["rome in italy", "italy in europe"]),
        (Kept(Members((iri("m"),)), Linked(path("cast"), Members((iri("cid"),)))), ["m cast cid"]),
        (Kept(Members((iri("ran"),)), Meets(path("cast"), path("cast"))), ["ran cast bob"]),
        (Best(Members((iri("m"), iri("ran"))), ValueOf(path("length"))), ["ran length 162"]),
        (Kept(Members((iri("m"),)), Compares(path("length"), "<", typed("100", "integer"))), ["m length 99"]),
        (Values(Reached(Members((iri("cid"),)), HopPath((ANY,))), path("length")), ["m cast cid", "m length 99"]),
    ],
)
def test_a_witness_is_the_chain_of_facts_that_leads_to_a_result(expression: SetExpression, chain: list[str]) -> None:
    first = sets_of(FACTS).compute(SetRequest(Listed(expression))).witnesses[0]
    shown = [
        f"{fact.head.local_part} {fact.relation.local_part} "
        f"{fact.tail.value if isinstance(fact, Attribute) else fact.tail.local_part}"
        for fact in first.facts
    ]
    assert shown == chain


@pytest.mark.parametrize("operator", ["=", "<", ">=", "!="])
def test_two_of_many_values_are_compared_without_pairing_them_all(operator: Operator) -> None:
    many: list[Fact] = [
        Attribute(iri("n"), iri(name), typed(str(first + number), "integer"))
        for name, first in (("f", 0), ("g", 2_999))
        for number in range(3_000)
    ]
    by, other = (ValueOf(path(name), "number") for name in ("f", "g"))
    sets, asked = sets_of(many), SetRequest(Listed(Kept(Members((iri("n"),)), Outranks(by, other, operator))))
    tracemalloc.start()
    one, two = (int(fact.tail.value) for fact in sets.compute(asked).witnesses[0].facts if isinstance(fact, Attribute))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert ((one > two) - (one < two) in SIGNS[operator], peak < 20_000_000) == (True, True)


@given(st.lists(st.text("kK\u212aiI\u0130\u00e9\u00c9\u1e9e\u00df ", max_size=3), max_size=8), st.data())
def test_a_text_is_compared_in_lower_case_whatever_bytes_it_has(texts: list[str], data: st.DataObject) -> None:
    wanted = data.draw(st.sampled_from([*texts, "k", "K\u00e9"]))
    facts: list[Fact] = [Attribute(iri(f"n{place}"), iri("f"), Literal(text)) for place, text in enumerate(texts)]
    nodes = Members(tuple(iri(f"n{place}") for place in range(len(texts))))
    operators: tuple[Operator, ...] = ("=", "!=")
    for operator in operators:
        equal = (text.lower() == wanted.lower() for text in texts)
        expected = [node for node, each in zip(nodes.nodes, equal, strict=True) if each == (operator == "=")]
        kept = Kept(nodes, Compares(HopPath((Hop((Step(iri("f")),)),)), operator, Literal(wanted)))
        assert list(sets_of(facts).compute(SetRequest(Listed(kept), limit=9)).members) == expected


def test_a_text_among_many_is_found_without_reading_the_others() -> None:
    facts: list[Fact] = [Attribute(iri(f"n{number}"), iri("f"), Literal(f"Town {number}")) for number in range(1_000)]
    index = index_of(facts, Vocabulary())
    dictionary = CountingDictionary(index)
    towns = Members(tuple(iri(f"n{number}") for number in range(1_000)))
    kept = Kept(towns, Compares(HopPath((Hop((Step(iri("f")),)),)), "=", Literal("town 77")))
    found = IndexSets(index, dictionary, Vocabulary()).compute(SetRequest(Listed(kept), witnesses=0))
    assert (found.members, dictionary.read < 20) == ((iri("n77"),), True)


def test_working_out_sets_stops_when_its_time_is_up() -> None:
    with pytest.raises(BackendTimeout, match="longer than 0 seconds"):
        sets_of(FACTS).compute(SetRequest(Listed(Instances(iri("film"))), timeout_s=0))


async def test_a_store_on_this_machine_computes_sets_over_its_files(tmp_path: Path) -> None:
    graph = LocalAdapter(store_of(tmp_path, ntriples(["tokyo country japan", "kyoto country japan"])))
    assert isinstance(graph, SupportsSets)
    cities = Reached(Members((iri("japan"),)), HopPath((Hop((Step(iri("country"), "in"),)),)))
    found = await graph.compute(SetRequest(Listed(cities), limit=1, witnesses=0))
    assert found == Computed(Count(2), members=(iri("kyoto"),))


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("  Tokyo\t\n Tower ", "tokyo tower"),
        ("Édith PIAF", "edith piaf"),
        ("E\u0301dith", "edith"),
        ("Straße", "strasse"),
        ("Tromsø Łódź Ærø", "tromso lodz aero"),
        ("O’Brien – “Conan”", 'o\'brien - "conan"'),  # noqa: RUF001 - as people paste it
        ("C++", "c++"),
        ("!!!", "!!!"),
        ("東京", "東京"),
        ("ガ", "ガ"),
        ("한국", "한국"),
        ("हिन्दी", "हिन्दी"),
        ("عطارد", "عطارد"),
        ("a\x00b\u200bc", "a b c"),
        ("half \ud800 a pair", "half a pair"),
        ("🪐", "🪐"),
        (" \x00\x07 ", ""),
        ("", ""),
    ],
)
def test_texts_are_compared_without_case_accents_and_odd_spacing(text: str, folded: str) -> None:
    assert fold(text) == folded


def test_a_long_text_is_cut() -> None:
    assert fold("x" * 1_000_000) == "x" * MAX_FOLDED
    assert fold("ﷺ" * 1_000).startswith("صلى الله")
    assert len(fold("ﷺ" * 1_000)) <= MAX_FOLDED


def test_words_are_what_is_left_without_punctuation() -> None:
    assert bare_words("o'brien, conan (jr.)_x") == "o brien conan jr x"
    assert bare_words("!!!") == "!!!"


@given(st.text())
def test_folding_again_changes_nothing_and_the_result_can_be_stored(text: str) -> None:
    folded = fold(text)
    assert fold(folded) == folded
    assert folded.encode().decode() == folded
