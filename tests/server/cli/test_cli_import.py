import shlex
from io import StringIO
from pathlib import Path

from rich.console import Console

from cli_runs import CommandLine, write_graph
from kg_adapters.progress import Progress
from kg_server.commands.progress import PlainProgress, drawn_bar, shown_progress


def test_an_import_says_what_it_built_and_how_to_serve_it(cli: CommandLine, tmp_path: Path) -> None:
    store = tmp_path / "my store"
    run = cli.run("import", str(write_graph(tmp_path)), "--to", str(store))
    built, held, *_, tried, serve = run.out.splitlines()
    assert (run.code, built, serve) == (
        0,
        f"{store}: 2 triples between 2 entities over 2 relations, and 5 literals.",
        f"Serve it: kg-sextant serve '{store}'",
    )
    assert held.startswith("Graph 'japan': 2 entities, 2 triples, 0 classes, 2 relations, 1 feature; all here.")
    command = shlex.split(tried.removeprefix("Try: kg-sextant "))
    assert cli.run(*command).code == 0


def test_progress_goes_to_standard_error_as_lines_where_there_is_no_terminal(cli: CommandLine, tmp_path: Path) -> None:
    run = cli.run("import", str(write_graph(tmp_path)), "--to", str(tmp_path / "store"))
    assert [line.partition(",")[0].rstrip(" …") for line in run.err.splitlines()] == [
        "Reading",
        "Building the adjacency index",
        "Building the text search",
        "Saving",
    ]


def test_an_imported_store_answers_under_its_own_name(cli: CommandLine, tmp_path: Path) -> None:
    store = tmp_path / "store"
    cli.run("import", str(write_graph(tmp_path)), "--to", str(store), "--name", "islands", "--languages", "de")
    run = cli.run("call", "Retrieve", "text=Tokio", "--graph", str(store))
    assert (run.code, "Tokio" in run.out) == (0, True)
    assert "islands" in (store / "store.json").read_text(encoding="utf-8")


def test_an_import_may_leave_what_sparql_needs_to_the_first_query(cli: CommandLine, tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert cli.run("import", str(write_graph(tmp_path)), "--to", str(store), "--no-sparql").code == 0
    assert not (store / "oxigraph").exists()
    query = "query=SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"
    run = cli.run("call", "Sparql", query, "--graph", str(store))
    assert (run.code, (store / "oxigraph").is_dir()) == (0, True)
    assert "7" in run.out


def test_a_syntax_error_ends_with_1_and_its_place(cli: CommandLine, tmp_path: Path) -> None:
    broken = tmp_path / "broken.nt"
    broken.write_text("<http://a> <http://b> <http://c> .\n<http://a> <http://b> .\n", encoding="utf-8")
    run = cli.run("import", str(broken), "--to", str(tmp_path / "store"))
    assert (run.code, run.out, (tmp_path / "store").exists()) == (1, "", False)
    assert "broken.nt" in run.err


def test_errors_that_are_skipped_are_counted(cli: CommandLine, tmp_path: Path) -> None:
    broken = tmp_path / "broken.nt"
    broken.write_text("<http://a> <http://b> <http://c> .\n<http://a> <http://b> .\n", encoding="utf-8")
    run = cli.run("import", str(broken), "--to", str(tmp_path / "store"), "--skip-errors")
    assert run.code == 0
    assert "Left out: 1. The first of them:" in run.out


def test_only_the_named_graphs_that_were_asked_for_are_imported(cli: CommandLine, tmp_path: Path) -> None:
    quads = tmp_path / "quads.nq"
    quads.write_text("".join(f"<http://a> <http://b> <http://{n}> <http://g{n}> .\n" for n in "123"), encoding="utf-8")
    store = str(tmp_path / "store")
    run = cli.run("import", str(quads), "--to", store, "--graph-name", "http://g1", "--graph-name", "http://g3")
    assert "2 triples between 3 entities" in run.out


def test_a_stage_is_printed_once(cli: CommandLine) -> None:
    told = PlainProgress()
    for done in (0, 5, 9):
        told(Progress("reading", done, 9, done))
    assert cli.capture.readouterr().err == "Reading …\n"


def test_on_a_terminal_a_bar_moves_and_disappears() -> None:
    screen = StringIO()
    with drawn_bar(Console(file=screen, force_terminal=True, width=80)) as progress:
        progress(Progress("reading", 3, 9, 1_000))
        progress(Progress("indexing", 9, 9, 2_000))
    assert "Reading, 1,000 statements" in screen.getvalue()
    assert "Building the adjacency index, 2,000 statements" in screen.getvalue()


def test_a_bar_without_anything_to_report_draws_nothing() -> None:
    screen = StringIO()
    with drawn_bar(Console(file=screen, force_terminal=True, width=80)):
        pass
    assert screen.getvalue() == ""


def test_nothing_is_shown_when_there_is_nothing_to_report(cli: CommandLine) -> None:
    with shown_progress():
        pass
    assert cli.capture.readouterr() == ("", "")


def test_links_that_lead_outside_of_a_folder_are_counted_and_followed_when_asked_for(
    cli: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    write_graph(tmp_path / "data")
    (tmp_path / "other.nt").write_text("<http://e/a> <http://e/p> <http://e/b> .", encoding="utf-8")
    (tmp_path / "data" / "link.nt").symlink_to("../other.nt")
    words = ["import", str(tmp_path / "data"), "--to", str(tmp_path / "store")]
    assert "link.nt is a link that leads outside of the folder" in cli.run(*words).out
    followed = cli.run(*words, "--follow-links")
    assert ("3 triples between 4 entities" in followed.out, "Left out" in followed.out) == (True, False)
