"""One verdict says what a text names: exactly, closely, loosely or not at all."""

from collections.abc import Sequence
from contextlib import aclosing

import pytest
from rdflib import Graph

from generated_names import Asked, generated_names, mistaken
from kg_adapters.labels import Vocabulary
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_adapters.local.sparql.store import statements
from kg_adapters.local.store import LocalStore
from kg_adapters.protocol import KGAdapter
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_server.naming.entities import Identity, identify
from kg_server.naming.misspelling import Slips, slips_between, words_of

PREFIXES = """
@prefix e: <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
"""


def graph_of(*names: str, more: str = "") -> RdflibAdapter:
    """Return a graph whose entities e:n0, e:n1, … have labels; what follows a slash is an alias."""
    lines = [PREFIXES, more]
    for number, name in enumerate(names):
        label, _, alias = name.partition("/")
        also = f' ; skos:altLabel "{alias}"@en' if alias else ""
        lines.append(f'e:n{number} rdfs:label "{label}"@en{also} ; e:about e:topic .')
    return RdflibAdapter(Graph().parse(data="\n".join(lines), format="turtle"))


async def verdict(text: str, *names: str) -> tuple[str, list[str]]:
    (found,) = await identify(graph_of(*names), [text])
    return found.match, ids(found)


def ids(found: Identity) -> list[str]:
    return [str(node).rpartition("/")[2] for node in found.nodes]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("litminster", ["Litminster"]),
        ("  ZDULEDA ", ["Zdüleda"]),
        ("Edo", ["Tokyo/Edo"]),
        ("<http://example.org/n0>", ["Tokyo"]),
    ],
)
async def test_a_label_an_alias_and_an_id_name_exactly(text: str, names: Sequence[str]) -> None:
    assert await verdict(text, *names) == ("exact", ["n0"])


async def test_namesakes_are_all_named_and_those_in_another_case_only_where_there_is_no_other() -> None:
    names = ["Saint Maulkov", "Saint Malov", "Saint Maulkov", "Maul/saint maulkov"]
    assert await verdict("Saint Maulkov", *names) == ("exact", ["n0", "n2"])
    assert await verdict("SAINT MAULKOV", *names) == ("exact", ["n0", "n2", "n3"])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Litmintser", "Litminster"),
        ("The Salt Moutain", "The Salt Mountain"),
        ("MV Velvet Shdow", "MV Velvet Shadow"),
        ("Gürninger's Strnager", "Gürninger's Stranger"),
        ("The Invisiible Island of Skochšuminster", "The Invisible Island of Skochšuminster"),
        ("Teh Salt Mountain", "The Salt Mountain"),
        ("Albrt Einstien", "Albert Einstein"),
        ("Sal tMountain", "Salt Mountain"),
        ("SaltxMountain", "Salt Mountain"),
        ("Surninger and Hromann Pres", "Surninger & Hromann Press"),
        ("Roem", "Rome"),
    ],
)
async def test_one_misspelling_and_two_in_a_long_name_are_close(text: str, name: str) -> None:
    assert await verdict(text, name, "Something Else") == ("close", ["n0"])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Henry VII", ["Henry VIII"]),
        ("Apollo 12", ["Apollo 11"]),
        ("Louis XI", ["Louis XII"]),
        ("TS Bitter Island", ["SS Bitter Island"]),
        ("Festschie M. Čolkmann", ["Festschie K. Čolkmann"]),
        ("Hreito Vlamann", ["Hreito N. Vlamann"]),
        ("The Borrowed Archive of Zotzauov", ["The Borrowed Archive", "The Borrowed Archive of New Stechdastad"]),
        ("The Velvet Shadow", ["Velvet Shadow", "MV Velvet Shadow"]),
        ("Tim Hanks", ["Tom Hanks"]),
        ("Iraq", ["Iran"]),
        ("Australia", ["Austria"]),
        ("Kumov", ["Rumov"]),
        ("Zdanka II", ["Zdanka III", "Zdanka I"]),
        ("Salt on Sea", ["Salt in Sea"]),
        ("Aachen Bridge 2", ["Aachen Bridge"]),
        ("Christmas music", ["Christian music"]),
    ],
)
async def test_a_number_an_initial_a_word_or_another_short_word_makes_another_name(
    text: str, names: Sequence[str]
) -> None:
    match, nodes = await verdict(text, *names)
    assert (match in {"loose", "none"}, nodes) == (True, [])


async def test_what_misspells_two_names_is_neither() -> None:
    assert await verdict("Vuhaven", "Vehaven", "Vohaven") == ("loose", [])
    # The first letter alone makes another name, and yet nobody can say which was meant.
    assert await verdict("Vuhaven", "Vehaven", "Muhaven") == ("loose", [])


async def test_the_nearer_of_two_is_close() -> None:
    assert await verdict("Great Norhern Railwy", "Great Northern Railway", "Great Northern Railways") == (
        "close",
        ["n0"],
    )


async def test_a_word_that_others_have_in_their_names_is_no_misspelling() -> None:
    towns = ("Wirna Tončák", "Rascha Tončiák")
    assert await verdict("Wirna Tončiák", *towns) == ("loose", [])
    assert await verdict("Wirna Tončiák", *towns[:1]) == ("close", ["n0"])


async def test_namesakes_of_a_misspelt_name_are_all_named() -> None:
    assert await verdict("Litmintser", "Litminster", "Litminster") == ("close", ["n0", "n1"])


@pytest.mark.parametrize(
    ("text", "match"),
    [("Angeles", "loose"), ("The of and", "none"), ("Zochdaaru", "none"), ("", "none"), ("\x00 ", "none")],
)
async def test_shared_words_are_loose_and_nothing_is_none(text: str, match: str) -> None:
    assert await verdict(text, "Los Angeles Lakers", "The Lake of Gold") == (match, [])


async def test_whole_words_come_before_letters() -> None:
    (found,) = await identify(graph_of("lake", "Quakers", "Los Angeles Lakers"), ["Los Lakers"])
    assert found.near[0].matched_text == "Los Angeles Lakers"


async def test_a_type_leaves_only_its_instances() -> None:
    graph = graph_of("Mercury", "Mercury", more='e:n1 a e:Planet . e:Planet rdfs:label "planet"@en .')
    (found,) = await identify(graph, ["Mercury"], type=graph.prefixes.expand("<http://example.org/Planet>"))
    assert (found.match, ids(found)) == ("exact", ["n1"])


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("Kazuo Ishiguro", "Kazuhiko Inoue"),
        ("European Union", "member state of the European Union"),
        ("NBA", "2003 NBA Draft"),
        ("Lakers", "Minneapolis Lakers"),
    ],
)
async def test_no_neighbor_of_a_missing_name_is_taken_for_it(sample: LocalAdapter, text: str, near: str) -> None:
    (found,) = await identify(sample, [text])
    assert found.match in {"loose", "none"}
    assert (found.nodes, near in [each.matched_text for each in found.near]) == ((), True)


@pytest.mark.parametrize(
    ("text", "name", "slips"),
    [
        ("Litmintser", "Litminster", Slips(1, ("litmintser",))),
        ("St. Johns", "St Johns", Slips(0)),
        ("O'Brien", "OBrien", Slips(0)),
        ("C#", "C", None),
        ("C++", "C#", None),
        ("", "Rome", None),
    ],
)
def test_slips_are_counted_where_they_leave_the_name_the_same(text: str, name: str, slips: Slips | None) -> None:
    assert slips_between(words_of(text), words_of(name)) == slips


async def test_a_relation_is_no_namesake_of_an_entity() -> None:
    more = 'e:R rdfs:label "town"@en ; a e:Property . e:n0 e:R e:n1 . e:S rdfs:label "lies in"@en ; a e:Property .'
    graph = graph_of("town", "city", more=f"{more} e:n0 e:S e:n1 .")
    town, lies_in = await identify(graph, ["town", "lies in"])
    assert (town.match, ids(town)) == ("exact", ["n0"])
    assert [str(each.entity).rpartition("/")[2] for each in town.near][:1] == ["R"]
    assert (lies_in.match, ids(lies_in)) == ("exact", ["S"])


SIZE = 550

LEAST_RIGHT = 0.98


@pytest.fixture(scope="module")
def asked(sample_files: LocalStore) -> list[Asked]:
    return generated_names(sample_files.index, SIZE)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> LocalStore:
    return open_sample(tmp_path_factory.mktemp("world"), "sample:world")


@pytest.fixture(scope="module")
def names_alone(sample_files: LocalStore) -> Graph:
    """The names that the sample gives to its entities, and its types."""
    kept = tuple(f"<{relation}>" for relation in (*Vocabulary().labels, *Vocabulary().aliases, *Vocabulary().types))
    lines = (line for line in statements(sample_files.index) if line.split(" ", 2)[1] in kept)
    graph = Graph()
    graph.parse(data="".join(lines), format="nt")
    return graph


@pytest.fixture(params=["local", "rdflib"])
def graph(request: pytest.FixtureRequest, sample: LocalAdapter, names_alone: Graph) -> KGAdapter:
    return sample if request.param == "local" else RdflibAdapter(names_alone)


async def test_generated_names_are_judged_rightly_and_none_that_is_absent_is_read(
    graph: KGAdapter, asked: list[Asked]
) -> None:
    assert len(asked) == SIZE
    # Reading names in memory is slower, and every third one shows that they are judged alike.
    await judge(graph, asked if isinstance(graph, LocalAdapter) else asked[::3])


async def test_names_of_the_world_are_judged_rightly(world: LocalStore) -> None:
    async with aclosing(LocalAdapter(world)) as graph:
        await judge(graph, generated_names(world.index, SIZE))


async def judge(graph: KGAdapter, asked: Sequence[Asked]) -> None:
    wrong = await mistaken(graph, asked)
    absent = {"absent", "another number"}
    assert [(each.text, found.nodes) for each, found in wrong if each.way in absent] == []
    assert 1 - len(wrong) / len(asked) >= LEAST_RIGHT, [(each.text, found.match) for each, found in wrong]
