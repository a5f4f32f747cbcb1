"""The command line over SPARQL endpoints."""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pyoxigraph as ox
import pytest
from benchmarks.engines.oxigraph import running_oxigraph
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, TextContent

from calls import plain
from cli_runs import CommandLine
from kg_adapters.errors import InvalidRequest
from kg_adapters.http.options import EndpointOptions
from kg_adapters.importing.build import build_store
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.sparql.making import SparqlMaking, make_part
from kg_adapters.local.store import OXIGRAPH_FOLDER, open_store
from kg_server.commands.graphs import endpoint_of
from kg_server.settings import Settings
from patience import PATIENCE_S
from server_processes import address_of, started
from small_graphs import TOKYO

URL = "https://example.org/sparql"


def reached(**settings: object) -> EndpointOptions | None:
    return endpoint_of(Settings.model_validate({"graph": URL, **settings}))


def test_only_a_url_has_an_endpoint() -> None:
    assert reached(graph="sample") is None
    assert reached() == EndpointOptions(url=URL, timeout_s=9.0)


def test_every_setting_reaches_it(tmp_path: Path) -> None:
    told: dict[str, object] = {
        "dialect": "virtuoso",
        "text_search": "virtuoso",
        "default_graphs": "http://g/1, http://g/2",
        "named_graphs": ["http://g/3"],
        "ca_file": tmp_path,
        "max_concurrency": 2,
        "max_retries": 0,
        "max_mb": 1,
    }
    expected = {**told, "default_graphs": ["http://g/1", "http://g/2"], "url": URL, "timeout_s": 18.0}
    assert reached(endpoint=told, timeout_s=20) == EndpointOptions.model_validate(expected)


def test_a_url_that_cannot_be_asked_is_refused_without_its_secrets() -> None:
    with pytest.raises(InvalidRequest, match="The setting graph: it must not hold a user or password") as raised:
        reached(graph="https://me:secret@example.org/")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"USER": "me"}, "user and password go together"),
        ({"USER": "me", "TOKEN": "secret"}, "set either the token, or user and password"),
        ({"DEFAULT_GRAPHS": "no secret iri"}, "each must be an absolute IRI"),
        ({"TEXT_SEARCH": "lucene", "DIALECT": "virtuoso"}, "set fuseki or graphdb"),
    ],
)
def test_settings_that_do_not_fit_are_explained_without_their_secrets(
    cli: CommandLine, environ: dict[str, str], said: str
) -> None:
    variables = {f"KG_SEXTANT_ENDPOINT__{name}": value for name, value in environ.items()}
    run = cli.run("call", "Schema", "--graph", URL, **variables)
    assert (run.code, said in run.err, "secret" in run.err) == (2, True, False)


def test_a_call_is_answered_from_an_endpoint(cli: CommandLine, tmp_path: Path) -> None:
    with running_oxigraph(tmp_path) as endpoint:
        endpoint.load("http://g/story", _triples())
        environ = {"KG_SEXTANT_ENDPOINT__DEFAULT_GRAPHS": "http://g/story"}
        run = cli.run("call", "GetNeighbor", "entity=Q1490", "--graph", endpoint.url, **environ)
        found = cli.run("call", "Retrieve", "text=Shinjko", "--graph", endpoint.url, **environ)
        checked = cli.run("doctor", endpoint.url, **environ)
    assert (run.code, "\ncapital | Shinjuku" in plain(run.out)) == (0, True)
    assert "since no full-text index of this endpoint is known" in found.out
    assert "opens; its engine is asked as standard, its full-text index as none" in checked.out


def test_an_endpoint_that_is_away_is_named_with_what_to_do(cli: CommandLine) -> None:
    run = cli.run("call", "GetNeighbor", "entity=wd:Q1490", "--graph", "http://127.0.0.1:1/sparql")
    checked = cli.run("doctor", "http://127.0.0.1:1/sparql")
    assert (run.code, "The endpoint 127.0.0.1:1 cannot be reached" in run.err) == (1, True)
    assert (checked.code, "cannot be reached" in checked.out, " opens" in checked.out) == (1, True, False)


def _triples() -> bytes:
    found = ox.serialize(ox.parse(TOKYO, format=ox.RdfFormat.TURTLE), format=ox.RdfFormat.N_TRIPLES)
    assert found is not None
    return found


STATEMENTS = 150_000
COUNT = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes where Linux shows them")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    source = folder / "large.nt"
    source.write_text("".join(f"<http://e/{n}> <http://e/p> <http://e/{n + 1}> .\n" for n in range(STATEMENTS)))
    return build_store([source], folder / "store", ImportOptions(sparql=False)).folder


@pytest.fixture
def store(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "store"))


def makers(store: Path) -> list[int]:
    """Return the processes in which a server makes what SPARQL needs of a store."""
    numbers = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
    return [number for number in numbers if _makes(number, store)]


def _makes(process: int, store: Path) -> bool:
    function, parent = ["", "", *words_of(process)][-2:]
    return function == f"{make_part.__module__}:{make_part.__name__}" and str(store) in words_of(int(parent))


def words_of(process: int) -> list[str]:
    """Return the command line of a process; nothing where it has ended."""
    try:
        return Path("/proc", str(process), "cmdline").read_bytes().decode().removesuffix("\0").split("\0")
    except OSError:
        return []


def left_overs(store: Path) -> list[str]:
    """Return what a process has in hand, or has left there."""
    return [path.name for path in store.glob(".oxigraph-*")]


async def until(condition: Callable[[], object]) -> None:
    with anyio.fail_after(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what another process does sets no event
            await anyio.sleep(0.01)


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def test_a_server_says_how_far_it_is_and_answers_everything_else(store: Path) -> None:
    words = ["-m", "kg_server", "serve", str(store), "--timeout-s", str(PATIENCE_S)]
    async with Client(StdioServerParameters(command=sys.executable, args=words)) as client:
        await until(lambda: makers(store))
        (maker,) = makers(store)
        os.kill(maker, signal.SIGSTOP)
        try:
            refused = await client.call_tool("Sparql", {"query": COUNT, "timeout_s": 1})
            answered = await client.call_tool("GetNeighbor", {"entity": "http://e/7"})
        finally:
            os.kill(maker, signal.SIGCONT)
        await until((store / OXIGRAPH_FOLDER).is_dir)
        counted = await client.call_tool("Sparql", {"query": COUNT, "timeout_s": PATIENCE_S})
    assert (refused.is_error, answered.is_error, counted.is_error) == (True, False, False)
    assert text_of(refused).startswith("The graph is still being prepared for SPARQL: ")
    assert "The other tools answer already. Ask again in " in text_of(refused)
    assert str(STATEMENTS) in text_of(counted)


async def test_a_server_over_http_makes_it_before_anybody_asks(store: Path) -> None:
    with started({}, str(store)) as process:
        address_of(process)
        await until((store / OXIGRAPH_FOLDER).is_dir)
        await until(lambda: not makers(store))


async def test_a_server_that_is_killed_leaves_no_process_and_nothing_that_stays(store: Path) -> None:
    with started({}, str(store)) as process:
        await until(lambda: left_overs(store))
        (maker,) = makers(store)
        os.kill(maker, signal.SIGSTOP)
        process.kill()
        await until(lambda: not Path("/proc", str(maker)).exists())
    assert not (store / OXIGRAPH_FOLDER).exists()
    making = SparqlMaking(open_store(store))
    await making.ready(900)
    making.close()
    assert left_overs(store) == []
