import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import anyio
import pytest
import rdflib
from mcp import Client
from pydantic import TypeAdapter

from calls import UNHURRIED, call, counts, unhurried
from embedders import LEXICAL
from kg_adapters.labels import RDF_TYPE, Vocabulary
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_adapters.models import GraphSchema
from kg_adapters.profile import GraphProfile
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.set_requests import Computed, SetRequest
from kg_adapters.sparql.adapter import SparqlAdapter
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.profile_survey import ProfileLimits
from kg_adapters.sparql.queries import Queries
from kg_adapters.terms import Iri, Node
from kg_server.answers.results import token_count
from kg_server.app import build_server
from small_graphs import store_of
from sparql_stand_in import endpoint_of, parts_of

MANY_PREFIXES = "\n".join(
    f"@prefix n{number:03}: <http://example.org/some/long/namespace/{number:03}/> . n{number:03}:a n{number:03}:b "
    f"n{number:03}:c ."
    for number in range(300)
)


WORLD = "http://world.example/"


def links_of(data: dict[str, object]) -> list[list[str]]:
    """Return what links the classes of a definition."""
    return TypeAdapter(list[list[str]]).validate_python(data["links"])


class Known(LocalAdapter):
    """A graph of which so much is known."""

    def __init__(self, graph: LocalAdapter, profile: GraphProfile) -> None:
        super().__init__(graph.store)
        self._profile_known = profile

    async def profile(self) -> GraphProfile:
        return self._profile_known


class Partial(LocalAdapter):
    """A graph too large to list everything."""

    def __init__(self, graph: LocalAdapter) -> None:
        super().__init__(graph.store)

    async def schema(self) -> GraphSchema:
        return replace(await super().schema(), complete=False)


@pytest.mark.parametrize("opened", [Partial, LocalAdapter])
async def test_the_headline_and_what_is_left_out_count_the_same_classes(
    graph_of: Callable[[str], LocalAdapter], opened: type[Partial | LocalAdapter]
) -> None:
    typed = "".join(f"<http://e/{n}> a <http://e/C{n}> . <http://e/C{n}> a owl:Class . " for n in range(350))
    whole = graph_of(f"@prefix owl: <http://www.w3.org/2002/07/owl#> . {typed}")
    reply = await call(whole if opened is LocalAdapter else Partial(whole), "Schema", max_tokens=500)
    total = "350" if opened is LocalAdapter else "at least 350"
    assert f", {total} classes, " in reply.summary
    assert re.search(rf"The largest classes are here, \d+ of {total}\.", reply.summary)
    # A profile holds up to 300 classes.
    most = await call(whole, "Schema", max_tokens=50_000)
    assert re.search(r"The largest classes are here, \d+ of 350\.", most.summary)
    assert most.data["status"] == "truncated"


async def test_a_file_cannot_give_a_usual_prefix_another_meaning(graph_of: Callable[[str], LocalAdapter]) -> None:
    graph = graph_of("@prefix rdf: <http://e/x#> . <http://e/a> rdf:type <http://e/b> ; a <http://e/C> .")
    lines = (await call(graph, "GetNeighbor", entity="<http://e/a>")).lines
    assert lines == ["e:x#type | e:b", "rdf:type | e:C"]


async def test_a_relation_is_found_by_an_id_of_any_form(tokyo: LocalAdapter) -> None:
    for text in (
        "P36",
        "wdt:P36",
        "http://www.wikidata.org/prop/direct/P36",
        "<http://www.wikidata.org/prop/direct/P36>",
    ):
        reply = await call(tokyo, "Schema", about=text)
        assert reply.summary == f"Like {text!r}: 1 relation; all here."
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
    assert reply.summary == ("No class, relation or feature matches 'zzzz'. Schema() shows what there is.")


async def test_hundreds_of_prefixes_leave_room_for_relations(graph_of: Callable[[str], LocalAdapter]) -> None:
    reply = await call(graph_of(MANY_PREFIXES), "Schema", max_tokens=500)
    assert token_count(reply.text) <= 500
    assert reply.lines[0].startswith("prefixes | n000: <http://example.org/some/long/namespace/000/>, ")
    assert " more" in reply.lines[0]
    assert any(line.startswith("relation | ") for line in reply.lines)


async def test_a_part_of_a_definition_does_not_pass_for_the_whole(tokyo: LocalAdapter) -> None:
    reply = await call(Partial(tokyo), "Schema")
    assert "at least 1 class, at least 4 relations, at least 4 features." in reply.summary


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> LocalAdapter:
    return LocalAdapter(open_sample(tmp_path_factory.mktemp("cache"), "sample:world"))


async def test_of_more_links_than_have_room_those_of_most_triples_are_drawn(sample: LocalAdapter) -> None:
    reply = await call(sample, "Schema", max_tokens=20_000)
    links = links_of(reply.data)
    assert len(links) == 150
    assert links[0] == ["Q5", "P106", "Q28640"]
    labels = TypeAdapter(dict[str, str]).validate_python(reply.data["labels"])
    assert {relation for _, relation, _ in links} <= set(labels)


async def test_the_fictional_world_is_told_by_class_in_less_than_four_thousand_characters(world: LocalAdapter) -> None:
    reply = await call(world, "Schema")
    assert len(reply.text) < 3_600
    assert "Literals besides names: 9,936 dates, 6,521 numbers, 1,291 booleans." in reply.summary
    assert reply.data["status"] == "ok"
    assert "law | 128: enacted on 1950…2023; in force boolean; sponsor→person; amendment of 38%→law" in reply.lines
    assert "region 32; " in reply.text
    assert "year of foundation 950…1984 | town 61%, sports club, university, award, scientific journal" in reply.lines
    # A relation and its inverse count as one, as in the results of Compose.
    assert "; author of 16%→scientific paper, …; board seat 13%→company, …; award received 12%→award; " in reply.text
    assert "; parent 10%→person; child ⇄parent 9%→person; married to ⇄ 7%→person" in reply.text
    # Whoever draws the definition asks for more than a model reads.
    drawn = await call(world, "Schema", max_tokens=20_000)
    assert [row for row in links_of(drawn.data) if row[1] == "w:R105"] == [["w:K70", "w:R105", "w:K54"]]
    assert "links" not in reply.data
    person = await call(world, "Schema", about="person")
    having = "| 334 of 2,150, 1,445 facts → scientific paper (w:K48), book (w:K15)"
    assert f"relation | author of (w:R194) ⇄ written by (w:R110) {having}" in person.lines
    assert not any("written by (w:R110), from them to it" in line for line in person.lines)


async def test_every_relation_and_feature_of_the_fictional_world_is_told_and_has_its_id_in_the_data(
    world: LocalAdapter,
) -> None:
    reply, schema = await call(world, "Schema"), await world.schema()
    listed: list[Node] = [each.iri for each in schema.classes]
    listed += [relation.iri for relation in schema.relations]
    listed += [feature.iri for feature in schema.features]
    own = [each for each in listed if isinstance(each, Iri) and each.value.startswith(WORLD)]
    ids = {world.prefixes.shorten(each) for each in own}
    assert {each for kind in ("classes", "relations", "features") for each in counts(reply.data[kind])} >= ids
    labels = await world.labels(own)
    told = {each: rf"(?:^|[;|:→] ?){re.escape(label)}" for each, label in labels.items()}
    assert [each for each, pattern in told.items() if not re.search(pattern, reply.text, re.MULTILINE)] == []
    assert told.keys() == set(own)


async def test_of_relations_with_one_label_each_shows_its_id(graph_of: Callable[[str], LocalAdapter]) -> None:
    graph = graph_of(
        "@prefix e: <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . "
        'e:T rdfs:label "town" . e:p rdfs:label "head" . e:q rdfs:label "Head" . e:r rdfs:label "twin" . '
        "e:a a e:T ; e:p e:x ; e:q e:y ; e:r e:b . e:b a e:T ."
    )
    assert "town | 2: head e:p 50%; Head e:q 50%; twin 50%→town" in (await call(graph, "Schema")).lines


async def test_a_class_of_which_some_were_looked_at_says_so(world: LocalAdapter) -> None:
    whole = await world.profile()
    film = next(each for each in whole.classes if each.label == "film")
    part = replace(film, looked_at=100, at_least=True, properties=film.properties[:1])
    sampled = replace(whole, classes=(part,), sampled=True, complete=False)
    reply = await call(Known(world, sampled), "Schema")
    assert "Literals besides names, in a sample: dates, numbers, booleans." in reply.summary
    assert any(line.startswith("film | at least 260, 100 looked at") for line in reply.lines)
    reply = await call(Known(world, sampled), "Schema", about="film")
    assert reply.summary.endswith(": at least 260 films. Counted over 100 of them.")


async def test_a_graph_without_dates_and_numbers_says_so(hub: LocalAdapter, sample: LocalAdapter) -> None:
    assert "no dates, no numbers" in (await call(hub, "Schema")).summary
    reply = await call(sample, "Schema")
    assert any(line.startswith("human | 4,175: occupation 95%→profession, …; ") for line in reply.lines)


async def test_a_class_is_told_with_the_share_of_its_instances_that_have_a_fact(world: LocalAdapter) -> None:
    for text in ("film", "Films", "w:K24"):
        reply = await call(world, "Schema", about=text)
        assert reply.plain.summary == "film, a subclass of creative work: 260 films."
        assert "relation | based on | 77 of 260 → book" in reply.plain.lines
        assert "feature | running time (min) | 260 of 260 68…190 min" in reply.plain.lines


async def test_years_are_shown_as_people_write_them(graph_of: Callable[[str], LocalAdapter]) -> None:
    year = "<http://e/founded> '{}'^^<http://www.w3.org/2001/XMLSchema#gYear>"
    towns = (f"<http://e/{end}> a <http://e/Town> ; {year.format(end)} ." for end in ("0794", "1410"))
    graph = graph_of(" ".join(towns))
    assert "e:Town | 2: e:founded 794…1410" in (await call(graph, "Schema")).plain.lines
    assert "feature | e:founded | 2 of 2 794…1410" in (await call(graph, "Schema", about="Town")).plain.lines


async def test_only_what_is_like_a_word_is_found_and_not_what_has_letters_in_common(
    world: LocalAdapter, sample: LocalAdapter
) -> None:
    assert (await call(world, "Schema", about="father")).data["relations"] == {"w:R57": 123}
    assert (await call(sample, "Schema", about="father")).data["relations"] == {"P22": 35}
    captain = await call(world, "Schema", about="captain")
    assert captain.summary == "No class, relation or feature matches 'captain'. Schema() shows what there is."
    assert captain.data["knowledge"] == "unknown"


async def test_what_is_called_in_other_words_is_found_by_its_meaning_and_told_apart(
    world: LocalAdapter, sample: LocalAdapter
) -> None:
    wife = await call(world, "Schema", about="wife")
    assert wife.summary == "No class, relation or feature is called 'wife'. Nearest in meaning: 1 relation; all here."
    assert (wife.data["knowledge"], list(counts(wife.data["relations"]))) == ("unnamed", ["w:R85"])
    assert "P26" in counts((await call(sample, "Schema", about="wife")).data["relations"])
    letters = await call(world, "Schema", unhurried(embedding=LEXICAL), about="wife")
    assert letters.summary.startswith("No class, relation or feature matches 'wife'")


async def test_an_rdflib_graph_is_told_by_class_too() -> None:
    turtle = (
        "@prefix e: <http://e.org/> . e:a a e:Town ; e:mayor e:b . e:b a e:Person . e:c a e:Town . e:x e:loose e:y ."
    )
    reply = await call(RdflibAdapter(rdflib.Graph().parse(data=turtle)), "Schema")
    assert "of no class | e:loose 1" in reply.lines
    assert "e:Town | 2: e:mayor 50%→Person" in reply.lines


async def test_where_a_relation_leads_to_several_classes_two_are_named_and_more_are_marked(world: LocalAdapter) -> None:
    told = (await call(world, "Schema")).text
    assert "at organisation→sports club, company, …;" in told
    assert "named after 53%→person, town\n" in told
    assert "board member ⇄board seat 54%→person;" in told


class Counted(LocalAdapter):
    """A graph that counts how often it computes sets."""

    computed = 0

    async def compute(self, request: SetRequest) -> Computed:
        self.computed += 1
        return await super().compute(request)


async def test_inverse_relations_are_counted_as_one_only_once_whatever_the_budget(world: LocalAdapter) -> None:
    graph = Counted(world.store)
    async with Client(build_server(graph, UNHURRIED)) as client:
        await client.call_tool("Schema", {"max_tokens": 4_000})
        computed = graph.computed
        answers = [await client.call_tool("Schema", {"max_tokens": budget}) for budget in (4_000, 3_000, 500)]
    assert answers[0].structured_content == (await call(world, "Schema", max_tokens=4_000)).data
    assert computed == graph.computed > 0


async def test_callers_at_once_share_a_definition_also_where_no_profile_is_known() -> None:
    endpoint = endpoint_of(f"ship{number} sails sea{number}" for number in range(30))
    parts = replace(parts_of(endpoint, Queries.of(DIALECTS["standard"], Vocabulary())), profiled=ProfileLimits(read=0))
    async with Client(build_server(SparqlAdapter(parts), UNHURRIED)) as client:
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(client.call_tool, "Schema")
        asked = len(endpoint.asked)
        await client.call_tool("Schema", {})
    assert len(endpoint.asked) == asked == len(set(endpoint.asked))


class Noting(Vocabulary):
    """Records which threads ask which relations are in no definition."""

    threads: ClassVar[list[int]] = []

    @property
    def unwalked(self) -> frozenset[Iri]:
        self.threads.append(threading.get_ident())
        return super().unwalked


class Noted(LocalAdapter):
    """A graph that records from where its definition is computed."""

    @property
    def vocabulary(self) -> Vocabulary:
        return Noting()


async def test_the_definition_is_computed_once_and_off_the_event_loop(tmp_path: Path) -> None:
    triples = "".join(
        f"<{WORLD}e{number}> <{RDF_TYPE.value}> <{WORLD}C{number}> .\n"
        f"<{WORLD}e{number}> <{WORLD}p{number % 7}> <{WORLD}e0> .\n"
        for number in range(60)
    )
    graph = Noted(store_of(tmp_path, triples))
    async with Client(build_server(graph, UNHURRIED)) as client:
        Noting.threads.clear()
        first = await client.call_tool("Schema", {})
        asked = len(Noting.threads)
        second = await client.call_tool("Schema", {})
    assert first.structured_content == second.structured_content
    assert asked == len(Noting.threads) > 0
    assert threading.get_ident() not in Noting.threads


async def test_the_headline_counts_the_classes_that_have_a_line(graph_of: Callable[[str], LocalAdapter]) -> None:
    graph = graph_of(
        "@prefix e: <http://e.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> . "
        "e: a owl:Ontology . e:a a e:Room ; e:next e:b . e:b a e:Hall ; e:next e:a ."
    )
    reply = await call(graph, "Schema")
    assert ", 2 classes, 2 relations, " in reply.summary
    assert not any("Ontology" in line for line in reply.lines)
