"""The store of memories, in SQLite and PostgreSQL: what is appended comes back, handles are secret, limits hold."""

import shutil
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kg_adapters.errors import BackendTimeout, BackendUnavailable, InvalidRequest, InvalidSource
from kg_adapters.terms import RDF_LANG_STRING, XSD, BlankNode, Iri, Literal
from kg_server.memory.store import HANDLE_PREFIX, KeptFact, MemoryLimits, MemoryStore, Place
from memories import FILE, Clock, Stored, network, stored_in, stores_in
from postgres_server import PostgresServer

A, B, C = (Iri(f"http://example.org/{name}") for name in "abc")
R = Iri("http://example.org/r")
AB, BC = KeptFact(A, R, B), KeptFact(B, R, C)
ODD = (
    KeptFact(A, R, Literal("1832-03-22", Iri(XSD + "date"))),
    KeptFact(A, R, Literal("Tokyo", RDF_LANG_STRING, "en"), verified=False),
    KeptFact(A, R, Literal("http://example.org/b")),
    KeptFact(BlankNode("b0"), R, BlankNode("b1")),
    KeptFact(A, R, Literal("")),
    KeptFact(A, R, Literal("two\nlines\x00 and '; DROP TABLE facts; --")),
    KeptFact(A, R, Literal("\N{FOX FACE} \u6771\u4eac")),
)
FACTS = st.lists(
    st.builds(
        KeptFact,
        st.sampled_from([A, B, BlankNode("c")]),
        st.just(R),
        st.sampled_from([A, B, BlankNode("c"), Literal(A.value)]),
        verified=st.booleans(),
        graph=st.sampled_from(["", "graph", "films"]),
    ),
    max_size=20,
)
HOUR = 1 / 24


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stored]:
    """Opens stores of the same memories, in each kind of storage."""
    if request.param == "sqlite":
        yield partial(stored_in, tmp_path)
        return
    server: object = request.getfixturevalue("postgres")
    assert isinstance(server, PostgresServer)
    with stores_in(server) as opened:
        yield opened


@pytest.fixture
def store(stored: Stored) -> MemoryStore:
    return stored()


def text_of(number: int, length: int = 1) -> KeptFact:
    return KeptFact(Iri(f"http://example.org/{number}"), R, Literal("x" * length))


async def begin(store: MemoryStore, *facts: KeptFact, appends: int = 1) -> str:
    """Begin a memory with facts, and append them again until there were so many appends."""
    handle = (await store.append(None, "graph", facts)).handle
    for _ in range(appends - 1):
        await store.append(handle, "graph", facts)
    return handle


async def there(store: MemoryStore, *handles: str) -> list[bool]:
    """Return which handles open a memory."""
    found: list[bool] = []
    for handle in handles:
        try:
            await store.read(handle, "graph")
        except InvalidRequest:
            found.append(False)
        else:
            found.append(True)
    return found


async def test_what_was_appended_is_read_by_another_store_of_the_same_memories(
    store: MemoryStore, stored: Stored
) -> None:
    appended = await store.append(None, "graph", [AB, BC], whole=2)
    assert appended.whole is not None
    assert appended.added == appended.whole.places == (Place(0, 0, AB), Place(0, 1, BC))
    assert (appended.memory.facts, appended.memory.paths, appended.memory.unverified) == (2, 1, 0)
    assert await stored().read(appended.handle, "graph") == appended.whole


async def test_every_kind_of_term_comes_back_as_it_was(store: MemoryStore) -> None:
    assert (await store.read(await begin(store, *ODD), "graph")).places == network(ODD)


async def test_a_fact_that_is_there_is_not_kept_twice_and_not_called_new(store: MemoryStore) -> None:
    handle = await begin(store, AB)
    appended = await store.append(handle, "graph", [KeptFact(A, R, B, verified=False), BC, BC])
    assert (appended.added, appended.memory.facts) == ((Place(0, 1, BC),), 2)
    upper, lower = (KeptFact(A, R, Literal("colour", RDF_LANG_STRING, tag)) for tag in ("en-GB", "en-gb"))
    assert (await store.append(handle, "graph", [upper, lower])).added == (Place(1, 0, upper),)


@given(FACTS, st.lists(st.integers(0, 20), max_size=4))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_batches_of_facts_of_two_graphs_form_the_network_that_the_rule_of_the_paper_gives(
    stored: Stored, facts: Sequence[KeptFact], cuts: Sequence[int]
) -> None:
    async def keep() -> tuple[Place, ...]:
        store = stored()
        handle = await begin(store)
        for start, end in pairwise([0, *sorted(cuts), len(facts)]):
            await store.append(handle, "graph", facts[start:end], others=["films"])
        contents = await store.read(handle, "graph", others=["films"])
        await store.aclose()
        assert contents.memory.unverified == sum(not place.fact.verified for place in contents.places)
        return contents.places

    assert anyio.run(keep) == network([replace(fact, graph=fact.graph or "graph") for fact in facts])


async def test_a_handle_cannot_be_guessed_and_the_file_does_not_hold_it(tmp_path: Path) -> None:
    store = stored_in(tmp_path)
    handles = {await begin(store, AB) for _ in range(5)}
    assert len(handles) == 5
    assert all(handle.startswith(HANDLE_PREFIX) and len(handle) == len(HANDLE_PREFIX) + 24 for handle in handles)
    content = (tmp_path / FILE).read_bytes()
    assert not [handle for handle in handles if handle.encode() in content]


@pytest.mark.parametrize("guess", ["", "mem_", "mem_000000000000000000000000", "' OR 1=1 --", "\ud800", "x" * 10**6])
async def test_any_wrong_handle_gets_the_same_answer_which_does_not_repeat_it(store: MemoryStore, guess: str) -> None:
    await begin(store, AB)
    for call in (store.read(guess, "graph"), store.append(guess, "graph", [AB])):
        with pytest.raises(
            InvalidRequest, match=r"^No memory has this handle, or its last append is more than 30 days"
        ):
            await call


async def test_a_memory_of_another_graph_is_refused(store: MemoryStore) -> None:
    handle = await begin(store, AB)
    for call in (store.read(handle, "dbpedia"), store.append(handle, "dbpedia", [AB])):
        with pytest.raises(InvalidRequest, match="belongs to the graph 'graph'; this server answers from 'dbpedia'"):
            await call


async def test_a_memory_is_read_where_all_graphs_of_its_facts_are_served_and_names_them_if_there_are_several(
    store: MemoryStore,
) -> None:
    here, there = replace(AB, graph="people"), replace(AB, graph="films")
    alone = (await store.append(None, "films", [here], others=["people"])).handle
    both = (await store.append(alone, "people", [here, there], others=["films"], whole=2)).whole
    assert both is not None
    assert [place.fact for place in both.places] == [here, there]
    with pytest.raises(InvalidRequest, match="belongs to the graph 'films'; this server answers from 'people'"):
        await store.read(alone, "people")
    begun = (await store.append(None, "people", [AB])).handle
    assert (await store.append(begun, "wikidata", [here], others=["people"])).added == ()
    assert (await store.read(begun, "wikidata", others=["people"])).places == (Place(0, 0, here),)
    assert (await store.read(begun, "people")).places == (Place(0, 0, AB),)


async def test_a_memory_of_another_owner_is_answered_as_an_unknown_one(store: MemoryStore) -> None:
    handle = (await store.append(None, "graph", [AB], owner="token:ann")).handle
    for owner in ("", "token:ben", "token:ann2"):
        answers: set[str] = set()
        for known in (handle, "mem_unknown"):
            for call in (store.read(known, "other", owner=owner), store.append(known, "graph", [BC], owner=owner)):
                with pytest.raises(InvalidRequest, match="No memory has this handle") as refused:
                    await call
                answers.add(str(refused.value))
        assert len(answers) == 1
    assert (await store.append(handle, "graph", [BC], owner="token:ann")).added == (Place(0, 1, BC),)


async def test_an_owner_has_a_share_of_the_room_and_evicts_only_its_own(stored: Stored) -> None:
    clock = Clock()
    store = stored(MemoryLimits(memories=40, caller_mb=0.5), clock)
    others = await begin(store, text_of(0, 200_000), appends=2)
    first, *_ = [
        (await store.append(None, "graph", [text_of(each, length)], owner="token:ann")).handle
        for each, length in enumerate((200_000, 200_000, 1))
    ]
    with pytest.raises(
        InvalidRequest, match=r"at most 4 memories of one caller .* in 0.5 MB \(hosting.memory_mb\), and all of"
    ):
        await store.append(None, "graph", [text_of(0, 200_000)], owner="token:ann")
    await store.append(None, "graph", [AB], owner="token:ann")
    with pytest.raises(InvalidRequest, match="at most 4 memories of one caller"):
        await store.append(None, "graph", [AB], owner="token:ann")
    await store.append(None, "graph", [text_of(0, 400_000)], owner="token:ben")
    clock.pass_days(2 * HOUR)
    await store.append(None, "graph", [text_of(0, 200_000)], owner="token:ann")
    with pytest.raises(InvalidRequest, match="No memory has this handle"):
        await store.read(first, "graph", owner="token:ann")
    assert await there(store, others) == [True]


async def test_an_owner_gets_no_room_of_others_in_a_full_store(stored: Stored) -> None:
    clock = Clock()
    store = stored(MemoryLimits(memories=2), clock)
    theirs = [await begin(store, AB) for _ in range(2)]
    clock.pass_days(2 * HOUR)
    with pytest.raises(InvalidRequest, match=r"at most 2 memories \(memory.memories\).*and all of yours"):
        await store.append(None, "graph", [AB], owner="token:ann")
    assert await there(store, *theirs) == [True, True]


async def test_nothing_expires_early_because_a_clock_was_wrong_for_a_while(stored: Stored) -> None:
    right, behind = Clock(), Clock()
    behind.pass_days(-40)
    store, wrong = stored(MemoryLimits(age_days=2), right), stored(MemoryLimits(age_days=2), behind)
    old = await begin(store, AB)
    new = await begin(wrong, AB)
    await wrong.append(old, "graph", [BC])
    right.pass_days(0.5)
    assert await there(store, old, new, await begin(store, AB)) == [True, True, True]
    behind.pass_days(40.5)
    assert await there(wrong, old, new, await begin(wrong, AB)) == [True, True, True]


async def test_an_append_that_would_grow_too_large_stores_nothing(stored: Stored) -> None:
    few, short = stored(MemoryLimits(facts=2)), stored(MemoryLimits(memory_bytes=1_000))
    handle = await begin(few, AB)
    with pytest.raises(InvalidRequest, match=r"holds 1 of at most 2 facts: 2 more do not fit, and nothing"):
        await few.append(handle, "graph", [BC, KeptFact(C, R, A)])
    with pytest.raises(InvalidRequest, match=r"of at most 1,000 bytes: .* nothing was stored"):
        await short.append(handle, "graph", [BC, text_of(8, 1_000)])
    assert (await few.append(handle, "graph", [AB, BC])).added == (Place(0, 1, BC),)
    strict = stored(MemoryLimits(facts=1))
    assert (await strict.append(handle, "graph", [AB])).added == ()
    assert len((await strict.read(handle, "graph")).places) == 2


async def test_a_memory_expires_some_days_after_its_last_append_and_is_deleted(stored: Stored) -> None:
    clock = Clock()
    store = stored(MemoryLimits(age_days=2), clock)
    old, young = await begin(store, AB, appends=2), await begin(store, AB, appends=2)
    clock.pass_days(1.5)
    await store.append(young, "graph", [AB])
    clock.pass_days(1)
    with pytest.raises(InvalidRequest, match="more than 2 days ago"):
        await store.read(old, "graph")
    assert await there(store, young, await begin(store, AB)) == [True, True]


async def test_a_memory_of_one_append_that_nobody_used_again_expires_sooner(stored: Stored) -> None:
    clock = Clock()
    store = stored(MemoryLimits(abandoned_days=1), clock)
    abandoned, read, grown = [await begin(store, AB, appends=appends) for appends in (1, 1, 2)]
    clock.pass_days(0.9)
    await store.read(read, "graph")
    clock.pass_days(0.9)
    await begin(store, AB)
    assert await there(store, abandoned, read, grown) == [False, True, True]


async def test_in_a_full_store_what_had_one_append_is_deleted_first_and_then_what_was_unused_longest(
    stored: Stored,
) -> None:
    clock = Clock()
    store = stored(MemoryLimits(memories=3), clock)
    old = await begin(store, AB, appends=2)
    clock.pass_days(HOUR)
    single, young = await begin(store, AB), await begin(store, AB, appends=2)
    clock.pass_days(2 * HOUR)
    first = await begin(store, AB, appends=2)
    assert await there(store, single, first) == [False, True]
    second = await begin(store, AB, appends=2)
    assert await there(store, old, young, first, second) == [False, True, True, True]


async def test_what_was_used_within_the_hour_is_never_deleted_for_another(stored: Stored) -> None:
    clock = Clock()
    store = stored(MemoryLimits(memories=2), clock)
    read, appended = await begin(store, AB), await begin(store, AB)
    clock.pass_days(2 * HOUR)
    await store.read(read, "graph")
    await store.append(appended, "graph", [BC])
    clock.pass_days(HOUR / 2)
    with pytest.raises(InvalidRequest, match=r"at most 2 memories.*all were used.*come back in an hour"):
        await begin(store, AB)
    assert await there(store, read, appended) == [True, True]


async def test_the_bytes_of_all_memories_are_bounded(stored: Stored) -> None:
    clock = Clock()
    store = stored(MemoryLimits(store_mb=0.5), clock)
    first, second = [await begin(store, text_of(0, 200_000)) for _ in range(2)]
    with pytest.raises(InvalidRequest, match=r"in 0.5 MB \(memory.store_mb\), and all were used"):
        await store.append(second, "graph", [text_of(1, 200_000)])
    clock.pass_days(2 * HOUR)
    await store.append(second, "graph", [text_of(1, 200_000)])
    assert await there(store, first, second) == [False, True]


async def test_the_file_shrinks_once_memories_have_expired(tmp_path: Path) -> None:
    clock = Clock()
    store = stored_in(tmp_path, now=clock)
    for _ in range(5):
        await begin(store, text_of(0, 200_000))
    large = (tmp_path / FILE).stat().st_size
    clock.pass_days(31)
    await begin(store, AB)
    assert large > 1_000_000
    with closing(sqlite3.connect(tmp_path / FILE)) as file:
        assert file.execute("SELECT count(*) FROM facts").fetchone() == (1,)
    assert (tmp_path / FILE).stat().st_size < 100_000


async def test_only_the_owner_may_read_the_file_and_its_folder(tmp_path: Path) -> None:
    await begin(stored_in(tmp_path / "memory"), AB)
    assert modes_in(tmp_path) == {"memory": 0o700, FILE: 0o600}


def modes_in(folder: Path) -> dict[str, int]:
    return {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.rglob("*")}


async def test_two_stores_of_the_same_memories_lose_nothing_when_all_append_at_once(
    store: MemoryStore, stored: Stored
) -> None:
    facts = [text_of(number) for number in range(60)]
    handle, other = await begin(store), stored()
    async with anyio.create_task_group() as tasks:
        for number, fact in enumerate(facts):
            tasks.start_soon((store, other)[number % 2].append, handle, "graph", [fact, facts[0]])
    places = (await store.read(handle, "graph")).places
    assert sorted(map(str, facts)) == sorted(str(place.fact) for place in places)


async def test_each_call_uses_the_file_that_is_there(tmp_path: Path) -> None:
    """A file that is removed, restored or replaced under a running server is never written to by its old handle."""
    store = stored_in(tmp_path)
    path, backup = tmp_path / FILE, tmp_path / "backup"
    handle = await begin(store, AB)
    shutil.copy(path, backup)
    await store.append(handle, "graph", [BC])
    backup.replace(path)
    assert len((await store.read(handle, "graph")).places) == 1
    path.unlink()
    with pytest.raises(InvalidRequest, match="No memory has this handle"):
        await store.append(handle, "graph", [BC])
    assert await there(store, await begin(store, AB)) == [True]


@pytest.mark.parametrize(("whole", "reason"), [(False, "file is not a database"), (True, "its end is missing")])
async def test_a_damaged_file_is_named_and_left_alone(tmp_path: Path, whole: bool, reason: str) -> None:
    store = stored_in(tmp_path)
    handle, path = await begin(store, AB), tmp_path / FILE
    content = path.read_bytes()[:-1] if whole else b"not a database at all" * 100
    path.write_bytes(content)
    with pytest.raises(InvalidSource, match=rf"{FILE} is damaged \({reason}\). Nothing was deleted.* move it out"):
        await store.read(handle, "graph")
    assert path.read_bytes() == content


async def test_a_file_with_a_damaged_page_is_named_and_left_alone(tmp_path: Path) -> None:
    store = stored_in(tmp_path)
    handle, path = await begin(store, *(text_of(number, 500) for number in range(100))), tmp_path / FILE
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    with pytest.raises(InvalidSource, match="is damaged"):
        await store.read(handle, "graph")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("PRAGMA user_version = 2", "has format 2; this version reads 5. Nothing was changed"),
        ("CREATE TABLE recipes (name TEXT)", "is a database of another program. Nothing was changed"),
    ],
)
async def test_a_file_of_others_is_refused(tmp_path: Path, statement: str, message: str) -> None:
    path = tmp_path / FILE
    with closing(sqlite3.connect(path)) as file:
        file.execute(statement)
    before = path.read_bytes()
    with pytest.raises(InvalidSource, match=message):
        await begin(stored_in(tmp_path), AB)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("version", "later"),
    [
        (3, ["ALTER TABLE memories DROP COLUMN owner", "ALTER TABLE facts DROP COLUMN graph"]),
        (4, ["ALTER TABLE facts DROP COLUMN graph"]),
    ],
)
async def test_a_file_of_a_version_before_owners_or_graphs_is_read_and_its_memories_are_the_local_callers(
    tmp_path: Path, version: int, later: list[str]
) -> None:
    handle = await begin(stored_in(tmp_path), AB)
    with closing(sqlite3.connect(tmp_path / FILE)) as file:
        for statement in (*later, f"PRAGMA user_version = {version}"):
            file.execute(statement)
    store = stored_in(tmp_path)
    assert len((await store.read(handle, "graph")).places) == 1
    with pytest.raises(InvalidRequest, match="No memory has this handle"):
        await store.read(handle, "graph", owner="token:ann")
    assert (await store.append(handle, "graph", [BC])).added == (Place(0, 1, BC),)


async def test_a_file_that_others_keep_busy_is_a_timeout_and_nothing_is_kept(tmp_path: Path) -> None:
    store = stored_in(tmp_path, busy_s=0.01)
    handle = await begin(store, AB)
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BackendTimeout, match="busy with other writers"):
            await store.append(handle, "graph", [BC])
        assert len((await store.read(handle, "graph")).places) == 1
    assert (await store.append(handle, "graph", [BC])).added == (Place(0, 1, BC),)


async def test_a_folder_that_cannot_be_made_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BackendUnavailable, match=r"cannot be used: .*the setting data_folder names another"):
        await begin(stored_in(tmp_path / "file"), AB)


def test_the_size_of_a_fact_is_that_of_its_texts() -> None:
    assert KeptFact(A, R, B).bytes == 3 * len(A.value)
    assert KeptFact(A, R, Literal("\u00e9", Iri("http://example.org/"), "de")).bytes == 3 * len(A.value) - 1 + 2 + 2
