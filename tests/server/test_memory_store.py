"""The store of memories in SQLite: what is appended comes back, and handles are secret."""

import sqlite3
import stat
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing, closing
from itertools import pairwise
from pathlib import Path

import anyio
import pytest
from filelock import FileLock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kg_adapters.errors import BackendTimeout, BackendUnavailable, InvalidRequest, InvalidSource
from kg_adapters.terms import RDF_LANG_STRING, XSD, BlankNode, Iri, Literal, Term
from kg_server.memory.sqlite_file import MemoryFile
from kg_server.memory.sqlite_store import PREFIX, SqliteMemoryStore
from kg_server.memory.store import Appended, Contents, Fact, Holdings, MemoryLimits, Place
from memories import CLIENT, Clock, Network, network_of

A, B, C = (Iri(f"http://example.org/{name}") for name in "abc")

R = Iri("http://example.org/r")

AB, BC = Fact(A, R, B), Fact(B, R, C)

ODD = (
    Fact(A, R, Literal("1832-03-22", Iri(XSD + "date"))),
    Fact(A, R, Literal("Tokyo", RDF_LANG_STRING, "en"), verified=False),
    Fact(A, R, Literal("http://example.org/b")),
    Fact(BlankNode("b0"), R, BlankNode("b1")),
    Fact(A, R, Literal("")),
    Fact(A, R, Literal("two\nlines\x00 and '; DROP TABLE facts; --")),
    Fact(A, R, Literal("\N{FOX FACE} \u6771\u4eac")),
)

FACTS = st.lists(st.builds(Fact, st.sampled_from([A, B, C]), st.just(R), st.sampled_from([A, B, C])), max_size=8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory" / "memories.sqlite3"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteMemoryStore]:
    async with aclosing(SqliteMemoryStore(path, MemoryLimits())) as opened:
        yield opened


def content_of(path: Path) -> bytes:
    return path.read_bytes()


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


async def test_what_was_appended_is_read_by_another_store_on_the_same_file(
    store: SqliteMemoryStore, path: Path
) -> None:
    handle = await store.create("graph", CLIENT)
    appended = await store.append(handle, "graph", [AB, BC], whole=2)
    held, places = Holdings(2, 1, 0), (Place(0, 0, AB), Place(0, 1, BC))
    assert appended == Appended(held, places, Contents(held, places))
    async with aclosing(SqliteMemoryStore(path, MemoryLimits())) as other:
        assert await other.read(handle, "graph") == appended.whole


async def test_every_kind_of_term_comes_back_as_it_was(store: SqliteMemoryStore) -> None:
    handle = await store.create("graph", CLIENT)
    await store.append(handle, "graph", ODD)
    assert network_of(await store.read(handle, "graph")) == Network(tuple((fact,) for fact in ODD))


async def test_a_fact_that_is_there_is_not_kept_twice_and_not_called_new(store: SqliteMemoryStore) -> None:
    handle = await store.create("graph", CLIENT)
    await store.append(handle, "graph", [AB])
    again = Fact(A, R, B, verified=False)
    assert await store.append(handle, "graph", [again, BC, BC]) == Appended(Holdings(2, 1), (Place(0, 1, BC),))


async def test_a_text_with_its_language_tag_in_another_case_is_the_same_fact(store: SqliteMemoryStore) -> None:
    handle = await store.create("graph", CLIENT)
    upper, lower = (Fact(A, R, Literal("colour", RDF_LANG_STRING, tag)) for tag in ("en-GB", "en-gb"))
    appended = await store.append(handle, "graph", [upper, lower])
    assert appended == Appended(Holdings(1, 1), (Place(0, 0, upper),))
    assert await store.append(handle, "graph", [lower]) == Appended(Holdings(1, 1), ())


async def test_memories_do_not_see_each_other(store: SqliteMemoryStore) -> None:
    one, other = await store.create("graph", CLIENT), await store.create("graph", CLIENT)
    await store.append(one, "graph", [AB])
    await store.append(other, "graph", [AB, BC])
    assert (await store.read(one, "graph")).holdings.facts == 1


async def test_a_handle_cannot_be_guessed_and_the_file_does_not_hold_it(store: SqliteMemoryStore, path: Path) -> None:
    handles = {await store.create("graph", CLIENT) for _ in range(20)}
    await store.aclose()
    assert len(handles) == 20
    assert all(handle.startswith(PREFIX) and len(handle) == len(PREFIX) + 24 for handle in handles)
    assert not [handle for handle in handles if handle.encode() in content_of(path)]


@pytest.mark.parametrize(
    "guess", ["", "mem_", "mem_000000000000000000000000", "' OR 1=1 --", "\ud800", "\x00", "x" * 1_000_000]
)
async def test_any_wrong_handle_gets_the_same_answer_which_does_not_repeat_it(
    store: SqliteMemoryStore, guess: str
) -> None:
    await store.create("graph", CLIENT)
    messages: list[str] = []
    for call in (store.read(guess, "graph"), store.append(guess, "graph", [AB])):
        with pytest.raises(InvalidRequest) as refused:
            await call
        messages.append(str(refused.value))
    assert (
        messages
        == [
            "No memory has this handle, or its last append is more than 30 days ago, or it was not used again after a "
            "single append and gave way. Pass the handle unchanged as memory-append gave it, or call memory-append "
            "without one to begin a new memory."
        ]
        * 2
    )


async def test_a_memory_of_another_graph_is_refused(store: SqliteMemoryStore) -> None:
    handle = await store.create("wikidata", CLIENT)
    for call in (store.read(handle, "dbpedia"), store.append(handle, "dbpedia", [AB])):
        with pytest.raises(InvalidRequest, match="belongs to the graph 'wikidata'; this server answers from 'dbpedia'"):
            await call
    assert await store.read(handle, "wikidata") == Contents()


async def test_an_append_that_would_grow_too_large_stores_nothing(path: Path) -> None:
    async with aclosing(SqliteMemoryStore(path, MemoryLimits(facts=2))) as store:
        handle = await store.create("graph", CLIENT)
        await store.append(handle, "graph", [AB])
        with pytest.raises(InvalidRequest, match="holds 1 of at most 2 facts: 2 more do not fit, and nothing"):
            await store.append(handle, "graph", [BC, Fact(C, R, A)])
        assert await store.append(handle, "graph", [AB, BC]) == Appended(Holdings(2, 1), (Place(0, 1, BC),))


async def test_a_memory_that_is_larger_than_may_be_since_can_be_read_and_takes_what_it_holds(
    store: SqliteMemoryStore, path: Path
) -> None:
    handle = await store.create("graph", CLIENT)
    await store.append(handle, "graph", [AB, BC])
    whole = await store.read(handle, "graph")
    async with aclosing(SqliteMemoryStore(path, MemoryLimits(facts=1))) as strict:
        assert await strict.append(handle, "graph", [AB]) == Appended(whole.holdings, ())
        assert await strict.read(handle, "graph") == whole
        with pytest.raises(InvalidRequest, match="holds 2 of at most 1 facts: 1 more do not fit"):
            await strict.append(handle, "graph", [Fact(C, R, A)])


async def test_a_memory_is_forgotten_some_days_after_its_last_append(path: Path) -> None:
    clock = Clock()
    async with aclosing(
        SqliteMemoryStore(path, MemoryLimits(age_days=2, memories=2, client_share=1), now=clock)
    ) as store:
        old, young = await store.create("graph", CLIENT), await store.create("graph", CLIENT)
        await store.append(old, "graph", [AB])
        await store.append(old, "graph", [AB])
        clock.pass_days(1.5)
        await store.append(young, "graph", [AB])
        clock.pass_days(1)
        with pytest.raises(InvalidRequest, match="more than 2 days ago"):
            await store.read(old, "graph")
        new = await store.create("graph", CLIENT)
        assert (await store.read(young, "graph")).holdings.facts == 1
        assert await store.read(new, "graph") == Contents()
        await store.aclose()
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT count(*) FROM facts").fetchone() == (1,)


async def test_only_the_owner_may_read_the_files_and_their_folder(store: SqliteMemoryStore, path: Path) -> None:
    await store.append(await store.create("graph", CLIENT), "graph", [AB])
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in (path.parent, *path.parent.iterdir())}
    assert modes.pop("memory") == 0o700
    assert len(modes) >= 3, "the log and the shared memory of WAL stand beside the file"
    assert set(modes.values()) == {0o600}


async def test_a_store_that_is_closed_leaves_one_clean_file_and_opens_again(
    store: SqliteMemoryStore, path: Path
) -> None:
    handle = await store.create("graph", CLIENT)
    await store.append(handle, "graph", [AB])
    await store.aclose()
    await store.aclose()
    assert [each.name for each in path.parent.iterdir() if not each.name.startswith(".")] == [path.name]
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert (await store.read(handle, "graph")).holdings.facts == 1


async def test_two_stores_on_one_file_lose_nothing_when_all_append_at_once(
    store: SqliteMemoryStore, path: Path
) -> None:
    facts = [Fact(Iri(f"http://example.org/{number}"), R, A) for number in range(60)]
    handle = await store.create("graph", CLIENT)
    async with aclosing(SqliteMemoryStore(path, MemoryLimits())) as other, anyio.create_task_group() as tasks:
        for number, fact in enumerate(facts):
            tasks.start_soon((store, other)[number % 2].append, handle, "graph", [fact, facts[0]])
    network = network_of(await store.read(handle, "graph"))
    assert sorted(map(str, facts)) == sorted(str(place.fact) for place in network.places())


async def test_a_file_that_is_no_database_is_named_and_left_alone(store: SqliteMemoryStore, path: Path) -> None:
    path.parent.mkdir()
    write(path, b"not a database at all" * 100)
    with pytest.raises(
        InvalidSource, match=r"memories\.sqlite3 is damaged .* Nothing was deleted.* move it out of the data folder"
    ):
        await store.create("graph", CLIENT)
    assert content_of(path) == b"not a database at all" * 100


async def test_a_file_with_a_damaged_page_is_named_and_left_alone(store: SqliteMemoryStore, path: Path) -> None:
    handle = await store.create("graph", CLIENT)
    await store.append(handle, "graph", [Fact(A, R, Literal(str(number) * 500)) for number in range(100)])
    await store.aclose()
    content = content_of(path)
    write(path, content[:4096] + b"\xff" * (len(content) - 4096))
    with pytest.raises(InvalidSource, match="is damaged"):
        await store.read(handle, "graph")
    assert len(content_of(path)) == len(content)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("PRAGMA user_version = 1", "has format 1; this version reads 2. Nothing was changed"),
        ("PRAGMA user_version = 7", "has format 7; this version reads 2. Nothing was changed"),
        ("CREATE TABLE recipes (name TEXT)", "is a database of another program. Nothing was changed"),
    ],
)
async def test_a_file_of_others_is_refused(store: SqliteMemoryStore, path: Path, statement: str, message: str) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as file:
        file.execute(statement)
    before = content_of(path)
    with pytest.raises(InvalidSource, match=message):
        await store.create("graph", CLIENT)
    assert content_of(path) == before


async def test_a_file_that_others_keep_busy_is_a_timeout_and_nothing_is_kept(path: Path) -> None:
    async with aclosing(SqliteMemoryStore(path, MemoryLimits(), busy_s=0.01)) as store:
        handle = await store.create("graph", CLIENT)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(BackendTimeout, match="busy with other writers"):
                await store.append(handle, "graph", [AB])
            assert await store.read(handle, "graph") == Contents()
        assert (await store.append(handle, "graph", [AB])).added == (Place(0, 0, AB),)


async def test_a_file_that_another_process_is_opening_for_too_long_is_a_timeout(path: Path) -> None:
    path.parent.mkdir()
    async with aclosing(SqliteMemoryStore(path, MemoryLimits(), busy_s=0.01)) as store:
        with FileLock(path.with_name(f".{path.name}.lock")), pytest.raises(BackendTimeout, match="busy"):
            await store.create("graph", CLIENT)
        await store.create("graph", CLIENT)


async def test_a_folder_that_cannot_be_made_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = SqliteMemoryStore(tmp_path / "file" / "memories.sqlite3", MemoryLimits())
    with pytest.raises(BackendUnavailable, match=r"cannot be used: .*the setting data_folder names another"):
        await store.create("graph", CLIENT)


def test_a_full_disk_is_an_error_and_leaves_no_half_transaction(path: Path) -> None:
    file = MemoryFile(path, busy_s=1)
    try:
        with file.transaction("DEFERRED") as connection:
            connection.execute("PRAGMA max_page_count = 1")
        with pytest.raises(BackendUnavailable, match="is full"), file.transaction("IMMEDIATE"):
            connection.execute("CREATE TABLE large AS SELECT zeroblob(100000)")
        assert not connection.in_transaction
        with file.transaction("DEFERRED"):
            assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'large'").fetchone() == (0,)
    finally:
        file.close()


@given(batches=st.lists(FACTS, max_size=6))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_store_keeps_what_the_pure_network_is(
    tmp_path_factory: pytest.TempPathFactory, batches: Sequence[list[Fact]]
) -> None:
    async def keep() -> Network:
        path = tmp_path_factory.mktemp("any") / "memories.sqlite3"
        async with aclosing(SqliteMemoryStore(path, MemoryLimits())) as store:
            handle = await store.create("graph", CLIENT)
            for batch in batches:
                await store.append(handle, "graph", batch)
            return network_of(await store.read(handle, "graph"))

    assert anyio.run(keep) == Network().extended(fact for batch in batches for fact in batch)


EXAMPLE = "http://example.org/"


def fact(head: str, relation: str, tail: str | Literal, *, verified: bool = True) -> Fact:
    end: Term = tail if isinstance(tail, Literal) else Iri(EXAMPLE + tail)
    return Fact(Iri(EXAMPLE + head), Iri(EXAMPLE + relation), end, verified)


PARTNER = fact("Goethe", "unmarried_partner", "Lili")

BIRTHPLACE = fact("Lili", "place_of_birth", "Offenbach")

DEATH = fact("Goethe", "date_of_death", Literal("1832-03-22", Iri("http://www.w3.org/2001/XMLSchema#date")))

NETWORK_FACTS = st.lists(
    st.builds(
        fact,
        st.sampled_from("abcd"),
        st.sampled_from(["r", "s"]),
        st.one_of(st.sampled_from("abcd"), st.sampled_from("abcd").map(Literal)),
        verified=st.booleans(),
    ),
    max_size=40,
)


def plainly(facts: Iterable[Fact]) -> Network:
    """The rule of the paper, word for word: slow, and without a thought for anything else."""
    paths: list[list[Fact]] = []
    for each in facts:
        if any(each.statement == held.statement for path in paths for held in path):
            continue
        suitable = (path for path in paths if path[-1].tail == each.head)
        path = next(suitable, None)
        if path is None:
            paths.append([each])
        else:
            path.append(each)
    return Network(tuple(map(tuple, paths)))


def test_a_fact_goes_to_the_path_that_ends_in_its_head() -> None:
    assert Network().extended([PARTNER]).extended([BIRTHPLACE]) == Network(((PARTNER, BIRTHPLACE),))


def test_a_fact_that_no_path_leads_to_starts_one() -> None:
    assert Network().extended([BIRTHPLACE, PARTNER]) == Network(((BIRTHPLACE,), (PARTNER,)))


def test_the_first_of_several_suitable_paths_gets_the_fact() -> None:
    other = fact("Schiller", "friend", "Lili")
    assert Network().extended([other, PARTNER, BIRTHPLACE]) == Network(((other, BIRTHPLACE), (PARTNER,)))


def test_a_value_ends_a_path_for_good() -> None:
    named_alike = fact("1832-03-22", "day_of", "Lili")
    assert Network().extended([DEATH, named_alike]) == Network(((DEATH,), (named_alike,)))


def test_a_statement_that_is_held_anywhere_changes_nothing_even_with_another_mark() -> None:
    network = Network().extended([PARTNER, BIRTHPLACE, DEATH])
    again = fact("Lili", "place_of_birth", "Offenbach", verified=False)
    assert network.extended([again, again, DEATH]) == network


def test_a_fact_about_itself_extends_its_own_path() -> None:
    loop, after = fact("a", "r", "a"), fact("a", "s", "b")
    assert Network().extended([loop, after]) == Network(((loop, after),))


def test_a_network_gives_every_fact_its_place_and_the_ends_that_may_go_on() -> None:
    network = Network().extended([PARTNER, DEATH, BIRTHPLACE])
    places = [Place(0, 0, PARTNER), Place(0, 1, BIRTHPLACE), Place(1, 0, DEATH)]
    assert (list(network.places()), list(network.ends())) == (places, [places[1]])


def test_the_size_of_a_fact_is_that_of_its_texts() -> None:
    assert fact("a", "r", "b").bytes == 3 * len(EXAMPLE) + 3
    assert fact("a", "r", Literal("\u00e9", Iri(EXAMPLE), "de")).bytes == 3 * len(EXAMPLE) + 2 + 2 + 2


def test_ten_thousand_paths_are_one_fact_each_and_the_first_is_extended() -> None:
    starts = [fact(f"start{number}", "r", "end") for number in range(10_000)]
    network = Network().extended(starts).extended([fact("end", "r", "after")])
    assert (len(network.paths), network.paths[0]) == (10_000, (starts[0], fact("end", "r", "after")))


@given(NETWORK_FACTS)
def test_the_network_is_what_the_rule_of_the_paper_gives(facts: Sequence[Fact]) -> None:
    assert Network().extended(facts) == plainly(facts)


@given(NETWORK_FACTS, st.lists(st.integers(0, 40), max_size=6))
def test_any_batches_build_the_network_that_single_facts_build(facts: Sequence[Fact], cuts: Sequence[int]) -> None:
    bounds = [0, *sorted(cuts), len(facts)]
    batched = one_by_one = Network()
    for start, end in pairwise(bounds):
        batched = batched.extended(facts[start:end])
    for each in facts:
        one_by_one = one_by_one.extended([each])
    assert batched == one_by_one
