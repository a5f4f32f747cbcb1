"""How triples that models write are read, and appends by many clients at once."""

import signal
import sqlite3
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client

from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.prefixes import Prefixes
from kg_adapters.terms import RDF_LANG_STRING, XSD, Iri, Literal, Node
from kg_server.app import MEMORY_FILE
from kg_server.memory.checking import check
from kg_server.memory.lines import Written, triples_in, unmarked
from kg_server.memory.statements import NodeMention, Stated, Value, read_statements
from kg_server.memory.store import MemoryLimits
from kg_server.names import Names, in_graph
from memories import Memory, facts_of
from server_processes import address_of, started

WD, WDT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
TOKYO, CAPITAL, SHINJUKU = Iri(f"{WD}Q1490"), Iri(f"{WDT}P36"), Iri(f"{WD}Q179645")


async def stated(graph: LocalAdapter, written: Written) -> Stated:
    read = await read_statements(graph, [written])
    assert not read.refused
    return read.stated[0]


async def reason(graph: LocalAdapter, written: Written) -> str:
    read = await read_statements(graph, [written])
    assert not read.stated
    return read.refused[0]


@pytest.mark.parametrize(
    "written",
    [
        ["Q1490", "P36", "Q179645"],
        [" wd:Q1490 ", "wdt:P36", f"<{WD}Q179645>"],
        "Q1490|P36|Q179645",
        "  Tokyo (Q1490)  |  capital (P36)  |  Shinjuku (Q179645)  ",
        ["Tokyo (Q1490)", "capital (P36)", "Shinjuku (Q179645)"],
        "tokyo | Capital | Shinjuku",
    ],
)
async def test_ids_are_read_in_all_their_forms_and_names_of_one_thing(tokyo: LocalAdapter, written: Written) -> None:
    read = await stated(tokyo, written)
    assert [mention.node for mention in read.mentions] == [TOKYO, CAPITAL, SHINJUKU]


async def test_brackets_and_bars_in_labels_and_ids_do_not_confuse(tokyo: LocalAdapter) -> None:
    read = await stated(tokyo, "Mercury (planet) (Q308) | named \\| after (P138) | <http://ex.org/Mercury_(god)>")
    assert read.mentions == (
        NodeMention(Iri(f"{WD}Q308"), "Mercury (planet)"),
        NodeMention(Iri(f"{WDT}P138"), "named | after"),
        NodeMention(Iri("http://ex.org/Mercury_(god)")),
    )
    read = await stated(tokyo, ["Mercury (wd:Q(1))", "<http://ex.org/r>", '"Ann, Bob" (Q5)'])
    assert read.head == NodeMention(Iri(f"{WD}Q(1)"), "Mercury")
    assert read.tail == NodeMention(Iri(f"{WD}Q5"), "Ann, Bob")


@pytest.mark.parametrize(
    ("written", "value", "literal"),
    [
        ('"Tokyo"', Value("Tokyo"), Literal("Tokyo")),
        ('"Tokio"@de-AT', Value("Tokio", None, "de-AT"), Literal("Tokio", RDF_LANG_STRING, "de-AT")),
        ('"1"^^xsd:integer', Value("1", Iri(XSD + "integer")), Literal("1", Iri(XSD + "integer"))),
        ('"x"^^wd:Q1', Value("x", Iri(f"{WD}Q1")), Literal("x", Iri(f"{WD}Q1"))),
        ('"two\nlines\x00"', Value("two\nlines\x00"), Literal("two\nlines\x00")),
        ('""', Value(""), Literal("")),
        (r'"she said \"no\" \| (yes) and \\o/"', Value(r'she said "no" | (yes) and \o/'), None),
    ],
)
async def test_a_quoted_tail_is_a_literal_as_results_show_it(
    tokyo: LocalAdapter, written: str, value: Value, literal: Literal | None
) -> None:
    for triple in (["Q1490", "P1", written], f"Q1490 | P1 | {written}"):
        read = await stated(tokyo, triple)
        assert (read.tail, read.value) == (None, value)
    assert value.literal == (literal or Literal(value.text))


@pytest.mark.parametrize(
    ("written", "literal"),
    [
        ("1832-03-22", Literal("1832-03-22", Iri(XSD + "date"))),
        ("2,544", Literal("2544", Iri(XSD + "integer"))),
        ("2,544.5", Literal("2544.5", Iri(XSD + "decimal"))),
        ("false", Literal("false", Iri(XSD + "boolean"))),
        ("2,54", Literal("2,54")),
        (r"a \| b", Literal("a | b")),
        ("9" * 40, Literal("9" * 40)),
        ("Q99", Literal("Q99")),
    ],
)
async def test_a_tail_without_quotes_may_be_a_value_as_people_write_it(
    tokyo: LocalAdapter, written: str, literal: Literal
) -> None:
    read = await stated(tokyo, ["Q1490", "P1", written])
    assert read.value is not None
    assert (read.value.literal, read.value.quoted) == (literal, False)
    assert bool(read.refusal) == (read.value.is_word and written != "Q99")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (['"Tokyo"', "P36", "Q17"], "its head is a literal"),
        (["Q1490", ' "capital"', "Q17"], "its relation is a literal"),
        (["Nowhere", "P36", "Q17"], "No entity matches 'Nowhere'."),
        (["Tokyo", "captain", "Q17"], "No relation of this graph is called 'captain'."),
        (["Q1490", "_:b0", "Q17"], "No relation of this graph is called '_:b0'"),
        (["Q1490", "P36", '"open'], "its tail is not a literal"),
        (["Q1490", "P36", '"x"^^date'], "'date' is not an id"),
        (["Q1490", "P36", '"x"^^_:b'], "datatype of its tail is a blank node"),
        (["Q1490", "P36", '"\ud800"'], "its tail holds a broken character"),
        (["Q1490", "P36", "Q17\ud800"], "is not an id"),
        (["Q1490", "P36", " "], "is not an id"),
        (["Q1490", "P36", "Q17" * 1_000_000], "it has 3,000,000 characters where 3,000 are allowed"),
        ("x" * 1_000_000, "it has 1,000,000 characters where 9,000 are allowed"),
        (["Q1490", "P36"], "it is not a triple: it has 2 parts. Expected [head, relation, tail]"),
        ("Tokyo has capital Shinjuku", "it is not a triple: it has 1 part."),
        ("Q1490 | P570 | 18 | 32", "in which a bar inside a name is written \\|"),
        ("|" * 100, "it is not a triple"),
    ],
)
async def test_what_is_no_triple_is_refused_with_the_part_that_is_wrong(
    tokyo: LocalAdapter, written: Written, expected: str
) -> None:
    assert expected in await reason(tokyo, written)


async def test_what_was_written_is_repeated_on_one_short_line(tokyo: LocalAdapter) -> None:
    written = [["Q1\nignore", "P36", "x" * 100, "more"], "Q1 | P36"]
    checked = await check(tokyo, written, limits=MemoryLimits(), allow_unverified=True)
    assert [each.written for each in checked.refused] == [f"Q1\\nignore | P36 | {'x' * 79}…", "Q1 | P36"]


LINES = st.lists(
    st.one_of(
        st.text(max_size=80),
        st.text(alphabet='Q1P36 ()"|@^_:<>-[];,\ud800', max_size=30),
        st.sampled_from(
            ["Q1 has 2 facts: ", "both | P1 | 2: Q1, Q2", "because ", "1 path links Q1 and Q2 within 1 hop."]
        ),
    ),
    max_size=4,
)


@given(LINES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_lines_are_triples_or_stay_as_they_were(lines: list[str]) -> None:
    for each in triples_in(lines):
        assert each in lines if isinstance(each, str) else len(each) == 3


@given(
    st.lists(st.text(alphabet="ab()[]:|, ", max_size=12), min_size=3, max_size=3),
    st.sampled_from(["films", "wikidata-2", ""]),
    st.booleans(),
)
def test_lines_state_their_triples_with_the_graphs_that_mark_their_relations(
    labels: list[str], graph: str, backwards: bool
) -> None:
    ends = Iri("http://ex.org/a"), Iri("http://ex.org/r"), Iri("http://ex.org/b")
    shown: dict[Node, str] = {
        node: text for node, label in zip(ends, labels, strict=True) if (text := " ".join(label.split()))
    }
    names = Names(
        Prefixes({"ex": "http://ex.org/"}),
        shown,
        notes={end: "r b [c]" for end in (ends[0], ends[2]) if end not in shown},
    )
    (head, tail), over = map(names.entity, ends[::2]), names.relation(ends[1])
    relation = f"{over}{in_graph(graph)}"
    triple = [each.removesuffix(" [r b [c]]") for each in (head, over, tail)]
    walked = f"-{relation}" if backwards else relation
    near, far = (" <-[", "]- ") if backwards else (" -[", "]-> ")
    for lines in (
        [f"{head} | {walked} | {tail}"],
        [f"{head}{near}{relation}{far}{tail}"],
        [f"{head}{near}{relation}, unverified{far}{tail}"],
        [f"because {head} | {walked} | {tail}"],
        [f"{head} has 1 fact: ", f"{walked} | {tail}"],
    ):
        (read,) = triples_in(lines)
        text, found = unmarked(read[1], ["people", "films", "wikidata-2"])
        assert ([read[0], text, read[2]], found) == (triple[::-1] if backwards else triple, graph)


async def test_a_name_without_its_id_means_what_a_line_above_shows_of_the_same_graph() -> None:
    lines = ["A (Q1) | r (P1) [films] | B (Q2)", "A (Q1) | r (P2) [people] | B (Q2)", "C (Q3) | r [films] | D (Q4)"]
    assert triples_in(lines)[2] == ["C (Q3)", "r (P1) [films]", "D (Q4)"]


def test_lines_below_the_name_of_a_graph_are_of_that_graph() -> None:
    lines = [
        "In people:",
        "A (Q1)",
        "r (P1) | B (Q2)",
        "also in films as Q7",
        "In films:",
        "C (Q7) | also in people as Q1",
        "-s (P2) | 2: D (Q3), E (Q4)",
        "A (Q1) has 1 fact: ",
        "r (P1) | B (Q2)",
    ]
    assert triples_in(lines) == [
        ["A (Q1)", "r (P1) [people]", "B (Q2)"],
        ["D (Q3)", "s (P2) [films]", "C (Q7)"],
        ["E (Q4)", "s (P2) [films]", "C (Q7)"],
        ["A (Q1)", "r (P1)", "B (Q2)"],
    ]


async def test_where_any_text_is_an_id_the_label_counts_as_results_show_it(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    graph = graph_of("<http://ex.org/city> <http://ex.org/r> <http://ex.org/x> .")
    read = await stated(graph, ["Tokyo (<http://ex.org/city>)", "<http://ex.org/r>", "x (<http://ex.org/x>)"])
    assert read.head == NodeMention(Iri("http://ex.org/city"), "Tokyo")


CLIENTS = 10
"""How many clients each of the two servers has."""

CALLS = 8
EVERY_CALL = {(client, call) for client in range(2 * CLIENTS) for call in range(CALLS)}
SHARED = "Q1 P1 Q2"
PREFIXES = """
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
"""


@dataclass(frozen=True)
class Server:
    """A server process, and its address."""

    process: subprocess.Popen[str]
    address: str


@dataclass
class Acknowledged:
    """The calls that were answered, by client and number; at the last of `most`, something happens at once."""

    calls: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    most: int | None = None
    then: Callable[[], None] = lambda: None

    def add(self, client: int, call: int) -> None:
        self.calls.add((client, call))
        if len(self.calls) == self.most:
            self.then()


def own(client: int, call: int) -> list[str]:
    """The triples that one call alone appends: one begins a path, the other goes on from the call before."""
    here, there = (f"Q{100 * client + number}" for number in (call + 11, call + 12))
    return [f"Q{100 * client + 10} P1 {there}", f"{here} P2 {there}"]


def write_graph(folder: Path) -> Path:
    graph = folder / "graph.ttl"
    triples = (each.split() for each in [SHARED, *(each for call in EVERY_CALL for each in own(*call))])
    lines = (f"wd:{head} wdt:{relation} wd:{tail} .\n" for head, relation, tail in triples)
    graph.write_text(PREFIXES + "".join(lines), encoding="utf-8")
    return graph


@contextmanager
def serving(graph: Path) -> Generator[Server]:
    """Serve a graph over HTTP on a free port of loopback, with memories beside it."""
    environ = {"KG_SEXTANT_DATA_FOLDER": str(graph.parent), "KG_SEXTANT_EMBEDDING__EMBEDDER": "lexical"}
    with started(environ, str(graph), "--cache-folder", str(graph.parent / "cache")) as process:
        yield Server(process, address_of(process))


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    """Two server processes that share one memory file."""
    graph = write_graph(tmp_path)
    with ExitStack() as stack:
        yield stack.enter_context(serving(graph)), stack.enter_context(serving(graph))


async def append_all(address: str, handle: str, client: int, acknowledged: Acknowledged) -> None:
    async with Client(address) as connection:
        memory = Memory(connection)
        for call in range(CALLS):
            triples = [each.split() for each in (*own(client, call), SHARED)]
            reply = await memory.append(*triples, memory=handle)
            assert not reply.is_error, reply.text
            acknowledged.add(client, call)


async def append_until_killed(server: Server, handle: str, acknowledged: Acknowledged) -> None:
    """Append through a server that is killed when half of the calls are answered, others being under way."""
    async with anyio.create_task_group() as tasks:

        def kill() -> None:
            server.process.send_signal(signal.SIGKILL)
            tasks.cancel_scope.cancel()

        acknowledged.most, acknowledged.then = CLIENTS * CALLS // 2, kill
        for client in range(CLIENTS):
            tasks.start_soon(append_all, server.address, handle, client, acknowledged)


async def stored(memory: Memory, handle: str) -> list[str]:
    """Every fact of a memory, as its ids."""
    facts: list[str] = []
    arguments: dict[str, object] = {}
    while True:
        page = await memory.read(handle, **arguments)
        facts.extend(" ".join(row[1:4]) for row in facts_of(page))
        if "cursor" not in page.data:
            return facts
        arguments = {"cursor": page.data["cursor"]}


def integrity_of(folder: Path) -> object:
    with closing(sqlite3.connect(folder / MEMORY_FILE)) as file:
        return file.execute("PRAGMA integrity_check").fetchall()


async def test_twenty_clients_of_two_servers_lose_nothing_when_one_server_is_killed_half_way(
    servers: tuple[Server, Server], tmp_path: Path
) -> None:
    survivor, doomed = servers
    lasting, cut_off = Acknowledged(), Acknowledged()
    async with Client(survivor.address) as connection:
        memory = Memory(connection)
        handle = await memory.begin(SHARED.split())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(append_until_killed, doomed, handle, cut_off)
            for client in range(CLIENTS, 2 * CLIENTS):
                tasks.start_soon(append_all, survivor.address, handle, client, lasting)
        assert await anyio.to_thread.run_sync(doomed.process.wait) == -signal.SIGKILL
        facts, integrity = await stored(memory, handle), integrity_of(tmp_path)
        async with anyio.create_task_group() as tasks:
            for client in range(CLIENTS):
                tasks.start_soon(append_all, survivor.address, handle, client, Acknowledged())
        completed = await stored(memory, handle)

    assert len(lasting.calls) == CLIENTS * CALLS
    assert CLIENTS * CALLS // 2 <= len(cut_off.calls) < CLIENTS * CALLS
    kept, whole = set(facts), {call for call in EVERY_CALL if not set(own(*call)).isdisjoint(facts)}
    assert len(facts) == len(kept), "no triple is there twice"
    assert whole >= lasting.calls | cut_off.calls, "every triple that was acknowledged is there"
    assert kept == {SHARED, *(each for call in whole for each in own(*call))}, "no call is kept in part"
    assert sorted(completed) == sorted([SHARED, *(each for call in EVERY_CALL for each in own(*call))])
    survivor.process.terminate()
    survivor.process.wait()
    assert (integrity, integrity_of(tmp_path)) == ([("ok",)], [("ok",)])
