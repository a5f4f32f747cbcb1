# ruff: noqa: D102, S101 - the name of a test is its sentence, and assert is how it speaks
"""What the contract says about search."""

from collections.abc import Sequence
from typing import Final

from kg_adapters.models import Candidate
from kg_adapters.testing.graphs import SEARCHABLE, iri
from kg_adapters.testing.opening import GraphOpening

HOSTILE: Final = (
    "mercury AND (",
    '"unclosed',
    "label:* ~9 ^3 [a TO",
    "+-&&||!(){}[]^\"~*?:\\/'",
    '" } } UNION { ?s ?p ?o } #',
    "\x00\x07\x1b\x7f",
    "\ud800",
    "水星 عطارد ☿ 🪐",
    "a\u0301\u0301\u0301" * 200,
    "mercury " * 20_000,
    "x" * 1_000_000,
)


def exact(candidates: Sequence[Candidate], name: str) -> list[Candidate]:
    """Return the candidates with exactly this name, with their scores set aside."""
    return [Candidate(c.entity, 1.0, c.matched_by, c.matched_text) for c in candidates if c.matched_text == name]


class SearchContract(GraphOpening):
    """Search: names lead to entities, whatever the text holds."""

    async def test_a_label_finds_its_entities_first(self) -> None:
        async with self.opened(SEARCHABLE) as graph:
            found = await graph.search("Earth", limit=5)
        assert exact(found[:1], "Earth") == [Candidate(iri("earth"), 1.0, "label", "Earth")]

    async def test_case_and_blanks_around_do_not_matter(self) -> None:
        async with self.opened(SEARCHABLE) as graph:
            found = await graph.search("  eARTH ", limit=5)
        assert exact(found[:1], "Earth") == [Candidate(iri("earth"), 1.0, "label", "Earth")]

    async def test_an_alias_finds_its_entity_and_says_so(self) -> None:
        async with self.opened(SEARCHABLE) as graph:
            found = await graph.search("quicksilver", limit=5)
        assert exact(found[:1], "quicksilver") == [Candidate(iri("element"), 1.0, "alias", "quicksilver")]

    async def test_entities_of_one_name_are_all_found(self) -> None:
        async with self.opened(SEARCHABLE) as graph:
            found = await graph.search("Mercury", limit=5)
        assert {candidate.entity for candidate in exact(found, "Mercury")} == {iri("planet"), iri("element")}

    async def test_a_type_leaves_only_its_instances(self) -> None:
        async with self.opened(SEARCHABLE) as graph:
            found = await graph.search("Mercury", limit=5, type=iri("Planet"))
            nothing = await graph.search("Mercury", limit=5, type=iri("Nonsense"))
        assert exact(found, "Mercury") == [Candidate(iri("planet"), 1.0, "label", "Mercury")]
        assert {candidate.entity for candidate in found} <= {iri("planet"), iri("earth")}
        assert list(nothing) == []

    async def test_no_more_than_the_limit_is_found_and_the_best_come_first(self) -> None:
        async with self.opened(SEARCHABLE) as graph:
            found = await graph.search("Mercury", limit=5)
            cut = await graph.search("Mercury", limit=1)
        scores = [candidate.score for candidate in found]
        assert list(cut) == list(found[:1])
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)

    async def test_an_entity_is_found_once_however_many_of_its_names_match(self) -> None:
        async with self.opened([*SEARCHABLE, 'earth altLabel "Earth"@de', 'earth altLabel "earth"@en']) as graph:
            found = await graph.search("earth", limit=5)
        assert [candidate.entity for candidate in found].count(iri("earth")) == 1

    async def test_a_text_that_names_nothing_finds_nothing(self) -> None:
        async with self.opened(SEARCHABLE) as graph:
            assert [list(await graph.search(text, limit=5)) for text in ("zzqqxxvv", "", "  \t\n")] == [[], [], []]

    async def test_an_empty_graph_finds_nothing(self) -> None:
        async with self.opened([]) as graph:
            assert list(await graph.search("Mercury", limit=5)) == []

    async def test_a_name_full_of_syntax_is_found_as_it_is(self) -> None:
        name = 'the "odd" one {?x} \\ <b>'
        async with self.opened(SEARCHABLE) as graph:
            found = await graph.search(name, limit=5)
        assert exact(found[:1], name) == [Candidate(iri("odd"), 1.0, "label", name)]

    async def test_hostile_text_is_only_text(self) -> None:
        async with self.opened(SEARCHABLE) as graph:
            for text in HOSTILE:
                assert len(await graph.search(text, limit=3)) <= 3
            assert exact(await graph.search("Earth", limit=1), "Earth") != []
