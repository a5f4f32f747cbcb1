from collections.abc import Callable
from dataclasses import replace

from calls import call, counts
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.models import GraphSchema
from kg_server.budget import token_count

MANY_PREFIXES = "\n".join(
    f"@prefix n{number:03}: <http://example.org/some/long/namespace/{number:03}/> . n{number:03}:a n{number:03}:b "
    f"n{number:03}:c ."
    for number in range(300)
)


class Partial(LocalAdapter):
    """A graph too large to list everything."""

    def __init__(self, graph: LocalAdapter) -> None:
        super().__init__(graph.store)

    async def schema(self) -> GraphSchema:
        return replace(await super().schema(), complete=False)


async def test_a_relation_is_found_by_an_id_of_any_form(tokyo: LocalAdapter) -> None:
    for text in (
        "P36",
        "wdt:P36",
        "http://www.wikidata.org/prop/direct/P36",
        "<http://www.wikidata.org/prop/direct/P36>",
    ):
        reply = await call(tokyo, "Schema", about=text)
        assert reply.summary == f"Like {text!r}: 0 classes, 1 relation, 0 features; all here."
        assert reply.data["relations"] == {"P36": 2}


async def test_a_label_is_found_by_a_part_of_it_a_typo_or_a_phrase_around_it(tokyo: LocalAdapter) -> None:
    for text in ("capit", "capitol", "the capital of Japan", "CAPITAL"):
        reply = await call(tokyo, "Schema", about=text)
        assert "P36" in counts(reply.data["relations"])


async def test_a_relation_with_a_label_in_another_language_is_found_by_its_local_part(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    graph = graph_of(
        "@prefix e: <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . "
        'e:a e:capital e:b . e:capital rdfs:label "\u9996\u90fd"@ja .'
    )
    reply = await call(graph, "Schema", about="capital")
    assert reply.data["relations"] == {"e:capital": 1}


async def test_what_is_not_there_is_said(tokyo: LocalAdapter) -> None:
    reply = await call(tokyo, "Schema", about="zzzz")
    assert reply.data["status"] == "empty"
    assert reply.summary == (
        "No class, relation or feature is called 'zzzz' or alike. Schema() lists the most frequent ones."
    )


async def test_hundreds_of_prefixes_leave_room_for_relations(graph_of: Callable[[str], LocalAdapter]) -> None:
    reply = await call(graph_of(MANY_PREFIXES), "Schema", max_tokens=500)
    assert token_count(reply.text) <= 500
    assert reply.lines[0].startswith("prefixes | n000: <http://example.org/some/long/namespace/000/>, ")
    assert " more" in reply.lines[0]
    assert any(line.startswith("relation | ") for line in reply.lines)


async def test_a_part_of_a_definition_does_not_pass_for_the_whole(tokyo: LocalAdapter) -> None:
    reply = await call(Partial(tokyo), "Schema")
    assert "at least 1 class, at least 4 relations, at least 4 features; all that is known of it here." in reply.summary
