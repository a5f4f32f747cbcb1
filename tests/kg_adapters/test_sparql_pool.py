"""SPARQL through worker processes: bounded, killable, and nobody waits for somebody else's query."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from subprocess import Popen

import anyio
import anyio.lowlevel
import pyoxigraph
import pytest

from kg_adapters.errors import BackendError, BackendTimeout, BackendUnavailable, InvalidRequest
from kg_adapters.local.sparql.pool import SparqlLimits, SparqlPool
from kg_adapters.models import SparqlAnswer
from kg_adapters.prefixes import Prefixes
from kg_adapters.protocol import SupportsSparql
from kg_adapters.terms import XSD, Iri, Literal
from patience import PATIENCE_S
from played_time import let_pass

EDGES = 300
PATTERNS = " . ".join(f"?a{number} ?b{number} ?c{number}" for number in range(9))
BOMB = f"SELECT (COUNT(*) AS ?n) {{ {PATTERNS} }}"
MEMORY_BOMB = f"SELECT * {{ {PATTERNS} }} ORDER BY ?a1"
COUNT = "SELECT (COUNT(*) AS ?n) { ?s x:r ?o }"
COUNTED = SparqlAnswer(
    "SELECT", ("n",), ((Literal(str(EDGES), Iri(XSD + "integer")),),), truncated=False, named=(Iri("http://x/r"),)
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("store")
    lines = "".join(f"<http://x/s{number}> <http://x/r> <http://x/o{number}> .\n" for number in range(EDGES))
    pyoxigraph.Store(store / "oxigraph").bulk_load(lines, pyoxigraph.RdfFormat.N_TRIPLES)
    return store


@pytest.fixture
async def pool(folder: Path) -> AsyncIterator[SparqlPool]:
    pool = SparqlPool(folder, Prefixes({"x": "http://x/"}), SparqlLimits(workers=2))
    yield pool
    await pool.aclose()


def processes(pool: SparqlPool) -> Sequence[Popen[bytes]]:
    return pool.workers.processes


async def busy_process(pool: SparqlPool) -> Popen[bytes]:
    with anyio.fail_after(PATIENCE_S):
        while not pool.workers.busy:
            await anyio.lowlevel.checkpoint()
    return processes(pool)[0]


async def count(pool: SparqlPool) -> SparqlAnswer:
    return await pool.select(COUNT, timeout_s=60, max_rows=10)


async def test_a_pool_answers_and_keeps_its_worker_warm(pool: SparqlPool) -> None:
    assert isinstance(pool, SupportsSparql)
    assert processes(pool) == []
    assert await count(pool) == COUNTED
    (first,) = processes(pool)
    assert await count(pool) == COUNTED
    assert processes(pool) == [first]


async def test_well_known_prefixes_need_no_declaration(pool: SparqlPool) -> None:
    answer = await pool.select("ASK { ?s rdf:type ?t FILTER(xsd:integer('1') = 1) }", timeout_s=60, max_rows=1)
    assert answer.truth is False


async def test_refusals_and_syntax_errors_leave_the_worker_alive(pool: SparqlPool) -> None:
    for query in ("DROP ALL", "SELECT ?s {", "SELECT * { SERVICE <http://x/> {} }", "A" * 1_000_000):
        with pytest.raises(InvalidRequest):
            await pool.select(query, timeout_s=60, max_rows=10)
    (process,) = processes(pool)
    assert await count(pool) == COUNTED
    assert processes(pool) == [process]


@pytest.mark.parametrize(("timeout_s", "max_rows"), [(0, 1), (-1, 1), (1, 0)])
async def test_bounds_must_make_sense(pool: SparqlPool, timeout_s: float, max_rows: int) -> None:
    with pytest.raises(InvalidRequest, match=r"^timeout_s must be above 0 and max_rows at least 1"):
        await pool.select(COUNT, timeout_s=timeout_s, max_rows=max_rows)


async def test_a_query_is_stopped_at_its_deadline_while_others_are_answered(pool: SparqlPool) -> None:
    stopped: list[str] = []
    bombed: list[Popen[bytes]] = []

    async def bomb() -> None:
        with pytest.raises(BackendTimeout) as caught:
            await pool.select(BOMB, timeout_s=PATIENCE_S, max_rows=10)
        stopped.append(str(caught.value))

    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(count, pool)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bomb)
        bombed.append(await busy_process(pool))
        assert await count(pool) == COUNTED
        assert stopped == []
        let_pass(PATIENCE_S)
    (message,) = stopped
    assert message == (
        "The query was stopped after 600 s. Add a LIMIT, make a pattern more selective (name an entity or a relation), "
        "or ask with a larger timeout_s."
    )
    assert bombed[0].returncode is not None
    assert bombed[0] not in processes(pool)
    assert await count(pool) == COUNTED


async def test_waiting_for_a_worker_counts_against_the_deadline(folder: Path) -> None:
    pool = SparqlPool(folder, Prefixes(), SparqlLimits(workers=1))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: pool.select(BOMB, timeout_s=60, max_rows=10))
        await busy_process(pool)
        with pytest.raises(BackendTimeout, match=r"did not start within 0\.1 s: all 1 SPARQL workers were busy"):
            await pool.select(COUNT, timeout_s=0.1, max_rows=10)
        tasks.cancel_scope.cancel()
    await pool.aclose()


async def test_a_cancelled_caller_takes_the_worker_along(pool: SparqlPool) -> None:
    bombed: list[Popen[bytes]] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: pool.select(BOMB, timeout_s=60, max_rows=10))
        bombed.append(await busy_process(pool))
        tasks.cancel_scope.cancel()
    assert bombed[0].returncode is not None
    assert processes(pool) == []
    assert await count(pool) == COUNTED


async def test_a_query_that_takes_too_much_memory_fails_alone(folder: Path) -> None:
    pool = SparqlPool(folder, Prefixes({"x": "http://x/"}), SparqlLimits(worker_bytes=800 << 20))
    with pytest.raises(BackendError, match=r"^The process that ran the query ended before it answered") as caught:
        await pool.select(MEMORY_BOMB, timeout_s=60, max_rows=10)
    assert type(caught.value) is BackendError
    assert await count(pool) == COUNTED
    await pool.aclose()


async def test_a_worker_that_died_while_idle_is_replaced(pool: SparqlPool) -> None:
    await count(pool)
    (process,) = processes(pool)
    process.kill()
    process.wait()
    assert await count(pool) == COUNTED
    assert process not in processes(pool)


async def test_a_closed_pool_ends_its_workers_and_refuses(pool: SparqlPool) -> None:
    await count(pool)
    (process,) = processes(pool)
    await pool.aclose()
    await pool.aclose()
    assert process.returncode == 0
    with pytest.raises(BackendError, match=r"^This graph is closed\."):
        await count(pool)


async def test_closing_ends_queries_that_are_still_running(pool: SparqlPool) -> None:
    async def bomb() -> None:
        with pytest.raises(BackendError, match=r"^The process that ran the query ended"):
            await pool.select(BOMB, timeout_s=60, max_rows=10)

    bombed: list[Popen[bytes]] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bomb)
        bombed.append(await busy_process(pool))
        await pool.aclose()
    assert bombed[0].returncode is not None
    assert processes(pool) == []


async def test_when_too_many_queries_wait_the_next_is_refused_with_a_sentence(folder: Path) -> None:
    pool = SparqlPool(folder, Prefixes(), SparqlLimits(workers=1, max_waiting=1))
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(lambda: pool.select(BOMB, timeout_s=600, max_rows=10))
        await busy_process(pool)
        with pytest.raises(BackendUnavailable, match=r"^The server is busy: 1 queries wait for their turn already\."):
            await count(pool)
        tasks.cancel_scope.cancel()
    await pool.aclose()
