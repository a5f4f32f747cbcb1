"""Making the SPARQL part of a store from its index."""

import random
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import anyio
import pyoxigraph
import pytest
from filelock import FileLock

from kg_adapters.errors import BackendError, BackendTimeout, InvalidRequest
from kg_adapters.index.builder import IndexBuilder
from kg_adapters.index.graph_index import GraphIndex
from kg_adapters.labels import Vocabulary
from kg_adapters.local.sparql.store import ensure_sparql_store, statements
from kg_adapters.local.sparql.worker import SparqlWorker
from kg_adapters.local.store import LocalStore
from kg_adapters.models import SparqlAnswer
from kg_adapters.terms import RDF_LANG_STRING, XSD, XSD_STRING, BlankNode, Iri, Literal
from kg_adapters.values import held_form
from small_graphs import index_of

ODD = 'quote " backslash \\ newline \n return \r tab \t 東京 𝄞'


def odd_index() -> GraphIndex:
    builder = IndexBuilder(Vocabulary())
    builder.add_edge("http://x/a", "http://x/r", "http://x/b")
    builder.add_edge("http://x/a", "http://x/r", "_:n0")
    builder.add_edge("_:n0", "http://x/q", "http://x/a")
    builder.add_feature("http://x/a", "http://x/text", ODD, XSD_STRING.value, None)
    builder.add_feature("http://x/a", "http://x/text", "_:not a node", RDF_LANG_STRING.value, "en-gb")
    builder.add_feature("_:n0", "http://x/size", "7", XSD + "integer", None)
    return builder.finish()


def quads(folder: Path) -> set[tuple[str, str, str]]:
    store = pyoxigraph.Store.read_only(str(folder))
    return {(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in store}


def names(folder: Path) -> set[str]:
    """The files and folders of a store, but the lock, which some systems leave behind."""
    return {path.name for path in folder.iterdir() if path.suffix != ".lock"}


async def test_everything_that_the_index_says_can_be_asked_for(tmp_path: Path) -> None:
    folder = await ensure_sparql_store(tmp_path, odd_index())
    assert folder == tmp_path / "oxigraph"
    assert quads(folder) == {
        ("<http://x/a>", "<http://x/r>", "<http://x/b>"),
        ("<http://x/a>", "<http://x/r>", "_:n0"),
        ("_:n0", "<http://x/q>", "<http://x/a>"),
        ("<http://x/a>", "<http://x/text>", str(pyoxigraph.Literal(ODD))),
        ("<http://x/a>", "<http://x/text>", '"_:not a node"@en-gb'),
        ("_:n0", "<http://x/size>", '"7"^^<http://www.w3.org/2001/XMLSchema#integer>'),
    }
    assert names(tmp_path) == {"oxigraph"}


def any_number(chance: random.Random, most_places: int) -> str:
    """Return a number of up to 45 digits, or one at an end of what Oxigraph holds."""
    ends = (2**63 - 1, 2**63, Decimal(2**127 - 1).scaleb(-18), Decimal(2**127).scaleb(-18))
    if chance.random() < 0.1:
        return f"{ends[chance.randrange(4 if most_places else 2)]:f}"
    whole, zeros = chance.randrange(10 ** chance.randrange(1, 25)), "0" * chance.randrange(4)
    places = chance.randrange(most_places + 1)
    end = f".{chance.randrange(10**places):0{places}}{zeros}" if places else ""
    return f"{chance.choice(('', '-', '+'))}{zeros}{whole}{end}"


@pytest.mark.parametrize(("name", "most_places"), [("decimal", 25), ("integer", 0), ("unsignedLong", 0)])
def test_exactly_those_numbers_are_restated_that_oxigraph_does_not_compute_with(name: str, most_places: int) -> None:
    chance, datatype, store = random.Random(7), XSD + name, pyoxigraph.Store()  # noqa: S311 - a number is no secret
    node = pyoxigraph.NamedNode("http://x/a")
    for text in {any_number(chance, most_places) for _ in range(3_000)}:
        store.clear()
        store.add(pyoxigraph.Quad(node, node, pyoxigraph.Literal(text, datatype=pyoxigraph.NamedNode(datatype))))
        is_held = bool(store.query("ASK { ?s ?p ?o FILTER(isNumeric(?o)) }"))
        form = (text, datatype) if is_held else (repr(float(text)).upper(), XSD + "double")
        assert held_form(text, datatype) == form
    assert held_form("0." + "0" * 400_000 + "1", XSD + "decimal") == ("0.0", XSD + "double")
    assert held_form("0" * 400_000 + "x", datatype) == ("0" * 400_000 + "x", datatype)


async def test_a_store_that_is_there_is_left_alone(tmp_path: Path) -> None:
    await ensure_sparql_store(tmp_path, odd_index())
    (tmp_path / "oxigraph" / "mark").touch()
    assert await ensure_sparql_store(tmp_path, odd_index()) == tmp_path / "oxigraph"
    assert "mark" in names(tmp_path / "oxigraph")


@pytest.mark.parametrize("file", ["MANIFEST-*", "CURRENT", "*.sst", "kg-sextant.json"])
@pytest.mark.parametrize("damage", ["cut", "gone"])
async def test_a_store_that_lost_something_is_made_anew(tmp_path: Path, file: str, damage: str) -> None:
    folder = await ensure_sparql_store(tmp_path, odd_index())
    path = next(folder.glob(file))
    content = path.read_bytes()
    path.unlink()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    await ensure_sparql_store(tmp_path, odd_index())
    assert len(quads(folder)) == 6
    assert names(tmp_path) == {"oxigraph"}


async def test_many_at_once_build_once(tmp_path: Path) -> None:
    index = odd_index()
    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(ensure_sparql_store, tmp_path, index)
    assert len(quads(tmp_path / "oxigraph")) == 6


async def test_what_a_killed_build_left_behind_is_removed(tmp_path: Path) -> None:
    left_over = tmp_path / ".oxigraph-dead" / "oxigraph"
    left_over.mkdir(parents=True)
    (left_over / "half").write_text("half")
    await ensure_sparql_store(tmp_path, odd_index())
    assert not left_over.parent.exists()


async def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(BackendError, match=r"it cannot be made in .*file: .*Make the folder writable"):
        await ensure_sparql_store(tmp_path / "file", odd_index())


async def test_building_is_bounded_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(BackendTimeout, match=r"^Preparing the graph for SPARQL took more than 0 s\."):
        await ensure_sparql_store(tmp_path, odd_index(), timeout_s=0)
    assert names(tmp_path) == set()


async def test_waiting_for_another_process_is_bounded(tmp_path: Path) -> None:
    with (
        FileLock(tmp_path / "oxigraph.lock"),
        pytest.raises(BackendTimeout, match=r"^Another process is still preparing"),
    ):
        await ensure_sparql_store(tmp_path, odd_index(), timeout_s=0.01)


async def test_a_cancelled_caller_does_not_wait(tmp_path: Path) -> None:
    index = index_of([f"a{number} r b{number % 7}" for number in range(2_000)])
    with FileLock(tmp_path / "oxigraph.lock"), anyio.move_on_after(0.05) as scope:
        await ensure_sparql_store(tmp_path, index)
    assert scope.cancelled_caught


async def test_the_sample_has_as_many_statements_in_both_parts(tmp_path: Path, sample_files: LocalStore) -> None:
    index = sample_files.index
    folder = await ensure_sparql_store(tmp_path, index)
    assert len(pyoxigraph.Store.read_only(str(folder))) == sum(1 for _ in statements(index)) == 203_699


async def test_a_text_that_no_parser_takes_as_a_line_can_be_asked_for(tmp_path: Path) -> None:
    builder, text = IndexBuilder(Vocabulary()), "x" * (17 << 20)
    builder.add_feature("http://x/a", "http://x/text", text, XSD_STRING.value, None)
    folder = await ensure_sparql_store(tmp_path, builder.finish())
    assert quads(folder) == {("<http://x/a>", "<http://x/text>", f'"{text}"')}


TURTLE = """
@prefix : <http://x/> .
:Tokyo :in :Japan ; :label "Tokyo"@en , "東京"@ja ; :people 14000000 ; :mayor _:m .
:Kyoto :in :Japan ; :label "Kyōto \\"old\\"\\n"@en .
_:m :name "Yuriko" .
"""
NAMESPACES = {"x": "http://x/"}
NT = pyoxigraph.RdfFormat.N_TRIPLES


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sparql") / "oxigraph"
    pyoxigraph.Store(folder).bulk_load(TURTLE, pyoxigraph.RdfFormat.TURTLE)
    return folder


@pytest.fixture
def worker(store: Path) -> SparqlWorker:
    return SparqlWorker(store, NAMESPACES)


def ask(worker: SparqlWorker, query: str, max_rows: int = 100) -> SparqlAnswer:
    return worker.answer(query, max_rows)


def test_select_gives_terms_with_their_kinds_and_none_where_a_variable_is_unbound(worker: SparqlWorker) -> None:
    query = "SELECT ?city ?label ?people { ?city x:label ?label OPTIONAL { ?city x:people ?people } } ORDER BY ?label"
    assert ask(worker, query) == SparqlAnswer(
        form="SELECT",
        variables=("city", "label", "people"),
        rows=(
            (Iri("http://x/Kyoto"), Literal('Kyōto "old"\n', RDF_LANG_STRING, "en"), None),
            (Iri("http://x/Tokyo"), Literal("Tokyo", RDF_LANG_STRING, "en"), Literal("14000000", Iri(XSD + "integer"))),
            (Iri("http://x/Tokyo"), Literal("東京", RDF_LANG_STRING, "ja"), Literal("14000000", Iri(XSD + "integer"))),
        ),
        truncated=False,
        named=(Iri("http://x/label"), Iri("http://x/people")),
    )


def test_describe_gives_what_is_said_about_an_entity_and_blank_nodes_keep_their_label(worker: SparqlWorker) -> None:
    described = ask(worker, "DESCRIBE x:Tokyo")
    (row,) = ask(worker, "SELECT ?mayor { x:Tokyo x:mayor ?mayor }").rows
    assert described.form == "DESCRIBE"
    assert isinstance(row[0], BlankNode)
    assert (Iri("http://x/Tokyo"), Iri("http://x/mayor"), row[0]) in described.rows


def test_triple_terms_come_as_text(tmp_path: Path) -> None:
    triple = pyoxigraph.Triple(
        pyoxigraph.NamedNode("http://x/a"), pyoxigraph.NamedNode("http://x/b"), pyoxigraph.Literal("c")
    )
    quad = pyoxigraph.Quad(pyoxigraph.NamedNode("http://x/s"), pyoxigraph.NamedNode("http://x/says"), triple)
    pyoxigraph.Store(tmp_path / "store").bulk_extend([quad])
    answer = ask(SparqlWorker(tmp_path / "store", {}), "SELECT ?what { ?s ?p ?what }")
    assert answer.rows == ((Literal(str(triple)),),)


def test_rows_are_bounded_and_the_answer_says_so(worker: SparqlWorker) -> None:
    query = "SELECT ?p { ?s ?p ?o }"
    whole = ask(worker, query)
    assert len(whole.rows) == 8
    assert ask(worker, query, 8) == whole
    assert ask(worker, query, 7) == replace(whole, rows=whole.rows[:7], truncated=True)


def test_bytes_are_bounded_and_the_answer_says_so(store: Path) -> None:
    query = "SELECT (STR(?p) AS ?t) { ?s ?p ?o }"
    few = ask(SparqlWorker(store, NAMESPACES, max_bytes=200), query)
    assert few.truncated
    assert 0 < len(few.rows) < 8
    with pytest.raises(InvalidRequest, match=r"^One row of the answer has over 20 bytes\."):
        ask(SparqlWorker(store, NAMESPACES, max_bytes=20), query)


def test_what_only_the_engine_finds_wrong_is_an_invalid_request_too(worker: SparqlWorker) -> None:
    with pytest.raises(InvalidRequest, match=r"^The query is not SPARQL as this graph reads it: with GROUP BY"):
        ask(worker, "SELECT (COUNT(?s) AS ?n) ?p { ?s ?p ?o }")


def test_a_missing_store_is_the_graphs_fault(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=r"is damaged: IO error: .* Delete the folder"):
        ask(SparqlWorker(tmp_path / "nothing", {}), "ASK {}")


def test_damage_that_only_reading_finds_is_the_graphs_fault(tmp_path: Path) -> None:
    store = pyoxigraph.Store(tmp_path / "oxigraph")
    store.bulk_load("".join(f"<http://x/{n}> <http://x/r> <http://x/{n * 7919}> .\n" for n in range(20_000)), NT)
    store.optimize()
    del store
    for path in (tmp_path / "oxigraph").glob("*.sst"):
        content = bytearray(path.read_bytes())
        content[len(content) // 3] ^= 0x5A
        if len(content) > 50_000:
            path.write_bytes(content)
    with pytest.raises(BackendError, match=r"is damaged: Corruption: .* Delete the folder .*oxigraph: the next query"):
        ask(SparqlWorker(tmp_path / "oxigraph", {}, max_bytes=10_000_000), "SELECT * { ?s ?p ?o }", 50_000)
