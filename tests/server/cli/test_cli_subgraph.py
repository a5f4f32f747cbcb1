"""`subgraph`: from a file of entities to a store, what it says, and how it ends."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from threading import Event
from urllib.parse import parse_qs, urlsplit

import pyoxigraph as ox
import pytest
from rich.console import Console

from calls import plain
from cli_runs import COMMAND, CommandLine, write_graph
from extractions import content_of
from kg_adapters.open_options import ExtractionProgress
from kg_server.commands.output import shown_progress
from loopback_service import Reply, answering
from oda_runs import story_store
from story_graphs import NOVELS


def ids(folder: Path, *lines: str) -> str:
    file = folder / "entities.txt"
    file.write_text("\n".join(lines), encoding="utf-8")
    return str(file)


def test_it_says_what_was_extracted_and_how_to_serve_it(cli: CommandLine, tmp_path: Path) -> None:
    graph, store = str(write_graph(tmp_path)), str(tmp_path / "my store")
    words = ("subgraph", "--graph", graph, "--entities", ids(tmp_path, "Q1490"), "--hops", "1", "--out", store)
    run = cli.run(*words)
    assert (run.code, run.out.splitlines()) == (
        0,
        [
            f"{store}: 2 triples between 2 entities over 2 relations, and 5 literals.",
            "Around 1 entity, with 3 requests, and 1 for literals.",
            f"Serve it: kg-sextant serve '{store}'",
        ],
    )
    assert [line.partition(",")[0].removesuffix(" …") for line in run.err.splitlines()][-8:] == [
        "Looking around",
        "Asking for the types of the outermost entities",
        "Asking for literals",
        "Asking for labels and descriptions",
        "Reading",
        "Building the adjacency index",
        "Building the text search",
        "Saving",
    ]
    report = json.loads(cli.run(*words, "--json").out)
    assert (report["counts"]["triples"], report["seeds"], report["skipped"]) == (2, 1, 0)
    answer = cli.run("call", "GetNeighbor", "entity=Q1490", "--graph", store)
    assert plain(answer.out).splitlines()[1] == "country | Japan"


def test_hubs_left_outs_and_wrong_lines_are_said(cli: CommandLine, tmp_path: Path) -> None:
    graph = str(story_store(NOVELS))
    questions = ids(tmp_path, '{"question": "Who?", "topic": "Q476871"}', "Tokyo", "Q2", '{"id": "Q16"}')
    words = ["subgraph", "--graph", graph, "--entities", questions, "--out", str(tmp_path / "store")]
    run = cli.run(*words, "--max-degree", "1", "--per-relation", "2")
    assert run.code == 0
    assert run.out.splitlines()[2:9] == [
        "Not expanded: 1 hub, the largest Q45765 (2 triples).",
        "Taken in part: the triples of 1 entity.",
        "Left out around these: 5 triples.",
        "Lines that name no entity of this graph: 3. The first of them:",
        "  line 2, 'Tokyo': 'Tokyo' is not an id. Expected a bare id as results show it, a prefixed name "
        "(wd:…, wdt:…, p:…, rdfs:…), or a full IRI (<http://…>). Retrieve finds the id of a name.",
        "  line 3, 'Q2': The graph has no such entity.",
        '  line 4, \'{"id": "Q16"}\': It has none of the fields entity, entities, topic, topic_entity, '
        "qid_topic_entity. Name the one that holds ids with --field.",
    ]


def test_another_field_can_be_named(cli: CommandLine, tmp_path: Path) -> None:
    graph, store = str(write_graph(tmp_path)), str(tmp_path / "store")
    words = ["subgraph", "--graph", graph, "--out", store, "--entities", ids(tmp_path, '{"id": "Q17"}')]
    assert cli.run(*words, "--field", "id").out.splitlines()[1].startswith("Around 1 entity")


class FalteringEndpoint:
    """A SPARQL endpoint that answers so many requests, and then refuses them or, with `stalls`, keeps them waiting."""

    def __init__(self, turtle: str) -> None:
        self.store = ox.Store()
        self.store.load(turtle, ox.RdfFormat.TURTLE)
        self.url = ""
        self.answers = 1_000_000
        self.asked = 0
        self.stalls = False
        self.stalled, self.ended = Event(), Event()

    def answer(self, form: bytes, _: str | None) -> Reply:
        self.asked += 1
        if self.asked <= self.answers:
            found = self.store.query(parse_qs(form.decode())["query"][0])
            assert isinstance(found, ox.QuerySolutions)
            body = found.serialize(format=ox.QueryResultsFormat.JSON)
            return Reply(body, headers={"Content-Type": "application/sparql-results+json"})
        if self.stalls:
            self.stalled.set()
            self.ended.wait(60)
        return Reply(b"", status=503)


@pytest.fixture
def endpoint() -> Iterator[FalteringEndpoint]:
    endpoint = FalteringEndpoint(NOVELS)
    with answering(endpoint.answer) as endpoint.url:
        yield endpoint
        endpoint.ended.set()


def words_for(endpoint: FalteringEndpoint, folder: Path, store: Path) -> list[str]:
    file = ids(folder, "wd:Q476871", "wd:Q465360")
    return ["subgraph", "--graph", endpoint.url, "--entities", file, "--hops", "2", "--out", str(store)]


def test_a_source_that_fails_ends_with_1_and_says_to_run_it_again(
    cli: CommandLine, tmp_path: Path, endpoint: FalteringEndpoint
) -> None:
    never = {"KG_SEXTANT_ENDPOINT__MAX_RETRIES": "0"}
    whole = cli.run(*words_for(endpoint, tmp_path, tmp_path / "whole"), **never)
    assert whole.code == 0
    needed, store = endpoint.asked, tmp_path / "store"
    endpoint.asked, endpoint.answers = 0, needed // 2
    failed = cli.run(*words_for(endpoint, tmp_path, store), **never)
    assert (failed.code, failed.out, store.exists()) == (1, "", False)
    last = failed.err.splitlines()[-1]
    assert last.startswith(f"kg-sextant: The endpoint {urlsplit(endpoint.url).netloc} cannot serve now (HTTP 503)")
    assert last.endswith("What was fetched is kept: run the same command again to resume.")
    endpoint.asked, endpoint.answers = 0, needed
    again = cli.run(*words_for(endpoint, tmp_path, store), **never)
    assert again.code == 0
    assert 0 < endpoint.asked < needed
    assert content_of(store) == content_of(tmp_path / "whole")


def test_an_unfinished_run_is_thrown_away_only_when_that_is_asked_for(
    cli: CommandLine, tmp_path: Path, endpoint: FalteringEndpoint
) -> None:
    words = words_for(endpoint, tmp_path, tmp_path / "store")
    endpoint.answers = 3
    assert cli.run(*words, KG_SEXTANT_ENDPOINT__MAX_RETRIES="0").code == 1
    endpoint.answers = 1_000_000
    refused = cli.run(*words, "--hops", "1")
    assert (refused.code, "other bounds, --hops 2. Finish it as it was begun, add --restart" in refused.err) == (
        2,
        True,
    )
    assert cli.run(*words, "--hops", "1", "--restart").code == 0


@pytest.mark.parametrize("more", [[], ["--restart"]])
def test_a_folder_that_holds_something_else_is_left_as_it_is(cli: CommandLine, tmp_path: Path, more: list[str]) -> None:
    strange = tmp_path / "store.unfinished" / "thesis.txt"
    strange.parent.mkdir()
    strange.write_text("precious", encoding="utf-8")
    graph, store = str(write_graph(tmp_path)), str(tmp_path / "store")
    run = cli.run("subgraph", "--graph", graph, "--entities", ids(tmp_path, "Q1490"), "--out", store, *more)
    assert (run.code, "holds thesis.txt, which is not part of one. Move it away" in run.err) == (2, True)
    assert strange.read_text(encoding="utf-8") == "precious"


@pytest.mark.usefixtures("heard_interrupts")
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_an_interrupt_from_the_keyboard_says_how_to_go_on(tmp_path: Path, endpoint: FalteringEndpoint) -> None:
    endpoint.answers, endpoint.stalls = 3, True
    words = words_for(endpoint, tmp_path, tmp_path / "store")
    with subprocess.Popen([*COMMAND, *words], stderr=subprocess.PIPE, text=True, encoding="utf-8") as process:
        assert endpoint.stalled.wait(60)
        process.send_signal(signal.SIGINT)
        # The endpoint goes on stalling: an answer, or a failure, could come before the signal.
        _, err = process.communicate(timeout=60)
    endpoint.ended.set()
    assert process.returncode == 130
    assert "Interrupted; what was fetched is kept. Run the same command again to resume." in err


def test_what_cannot_be_is_refused_before_anything_is_asked(cli: CommandLine, tmp_path: Path) -> None:
    there = tmp_path / "full"
    there.mkdir()
    (there / "something").touch()
    known = ids(tmp_path, "Q1490")
    runs = [
        cli.run("subgraph", "--entities", known, "--out", str(there)),
        cli.run("subgraph", "--entities", str(tmp_path / "no"), "--out", str(tmp_path / "store")),
        cli.run("subgraph", "--entities", known, "--out", str(tmp_path / "store"), "--hops", "0"),
        cli.run("subgraph", "--entities", ids(tmp_path, "Nobody"), "--out", str(tmp_path / "store")),
    ]
    assert [run.code for run in runs] == [1, 1, 2, 2]
    assert "is neither a store nor empty" in runs[0].err
    assert "no cannot be read: No such file or directory. It names the entities." in runs[1].err
    assert "names no entity of the graph" in runs[3].err
    assert not (tmp_path / "store").exists()


def test_a_bar_begins_again_with_every_hop() -> None:
    screen = StringIO()
    with shown_progress(Console(file=screen, force_terminal=True, width=80)) as progress:
        progress(ExtractionProgress("walking", 1, 0, 10, 0))
        progress(ExtractionProgress("walking", 1, 5, 10, 1_000))
        progress(ExtractionProgress("walking", 2, 0, 20, 2_000))
    assert "Looking around, hop 1" in screen.getvalue()
    assert "Looking around, hop 2, 2,000 triples" in screen.getvalue()
