"""What people bring themselves: standard input and files of queries, and the command that an import ends with."""

import csv
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cli_runs import TURTLE, CommandLine, write_graph
from tables import CHINOOK, database, flights_tables, written

ODD = ["=1+1", "==", "-dash", "--json", "@file", 'it\'s "quoted" $HOME `ls`', "two\nlines", "[a, b]", "a=b", "5", "<x>"]


@pytest.mark.parametrize("label", ODD)
def test_the_command_at_the_end_of_an_import_works_whatever_the_label_is(
    cli: CommandLine, tmp_path: Path, label: str
) -> None:
    with (tmp_path / "odd.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["id", "name", "height"], ["x1", label, "3"]])
    run = cli.run("import", str(tmp_path / "odd.csv"), "--to", str(tmp_path / "store"))
    tried = next(line for line in run.out.splitlines() if line.startswith("Try: "))
    answer = cli.run(*shlex.split(tried.removeprefix("Try: kg-sextant ")))
    assert (answer.code, answer.err) == (0, "")
    assert "type:odd" in answer.out


def test_a_folder_of_tables_is_imported_with_its_links_and_the_commands_to_try_work(
    cli: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "ny").mkdir()
    written(tmp_path / "ny", flights_tables(60))
    options = ["--no-link", "weather.origin", "--column", "flights.flight=text"]
    run = cli.run("import", str(tmp_path / "ny"), "--to", str(tmp_path / "store"), *options)
    assert "  dest → airports.faa: all of 60 values, such as 'AAQ' (--no-link flights.dest)" in run.out
    assert ("origin → airports.faa" in run.out, run.out.count("  origin →")) == (True, 1)
    tried = [shlex.split(line)[2:] for line in run.out.splitlines() if line.startswith("Try: ")]
    assert [call[1] for call in tried] == ["GetNeighbor", "Compose", "Compose"]
    answers = [cli.run(*call) for call in tried]
    assert [answer.code for answer in answers] == [0, 0, 0]
    assert "9E Airlines Inc. (entity:9E): 10" in answers[1].out


def test_the_commands_to_try_rank_by_no_column_that_is_the_same_in_all_rows(cli: CommandLine, tmp_path: Path) -> None:
    written(tmp_path, {"masts.csv": "id,name,version,height\na,Abe,1,30\nb,Ben,1,40\n"})
    run = cli.run("import", str(tmp_path / "masts.csv"), "--to", str(tmp_path / "store"))
    assert ("Top[Type[masts], height, 3]" in run.out, "Top[Type[masts], version" in run.out) == (True, False)


def test_a_database_is_opened_directly_and_answers_as_sql_does(cli: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "chinook.sqlite"
    written(tmp_path, {path.name: database(CHINOOK)})
    with closing(sqlite3.connect(path)) as opened:
        ((tracks,),) = opened.execute("SELECT count(*) FROM Track")
        genres = opened.execute("SELECT Name, (SELECT count(*) FROM Track t WHERE t.GenreId = g.GenreId) FROM Genre g")
        by_genre = dict(genres.fetchall())
    assert f"{tracks}" in cli.run("call", "Compose", "expression=Count[Type[Track]]", "--graph", str(path)).out
    answer = cli.run("call", "Compose", "expression=Group[Type[Track], GenreId]", "--graph", str(path)).out
    lines = [line.rpartition(": ") for line in answer.splitlines() if "(genre:" in line]
    assert {name.partition(" (")[0]: int(count) for name, _, count in lines} == by_genre


def test_of_a_graph_without_relations_the_values_are_shown(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "g.nt").write_text('<http://e/a> <http://e/height> "3" .', encoding="utf-8")
    run = cli.run("import", str(tmp_path / "g.nt"), "--to", str(tmp_path / "store"))
    tried = next(line for line in run.out.splitlines() if line.startswith("Try: "))
    answer = cli.run(*shlex.split(tried.removeprefix("Try: kg-sextant ")))
    assert (answer.code, "height" in answer.out) == (0, True)


def test_an_import_of_nothing_says_that_the_graph_is_empty(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "g.ttl").write_text("# nothing yet\n", encoding="utf-8")
    run = cli.run("import", str(tmp_path / "g.ttl"), "--to", str(tmp_path / "store"))
    assert (run.code, run.out.splitlines()[1]) == (0, "The graph is empty: the files hold no statements.")


@pytest.mark.parametrize(
    ("content", "missing"), [("", "is empty: a table is a header"), ("id,name\n", "has a header and no row below it")]
)
def test_an_import_of_an_empty_table_ends_as_for_other_bad_input(
    cli: CommandLine, tmp_path: Path, content: str, missing: str
) -> None:
    (tmp_path / "g.csv").write_text(content, encoding="utf-8")
    run = cli.run("import", str(tmp_path / "g.csv"), "--to", str(tmp_path / "store"))
    assert (run.code, run.out, missing in run.err) == (1, "", True)


def test_standard_input_is_imported_by_what_it_holds(cli: CommandLine, tmp_path: Path) -> None:
    run = cli.run_given(TURTLE, "import", "-", "--to", str(tmp_path / "store"), "--name", "piped")
    assert (run.code, "2 triples between 2 entities" in run.out, "Graph 'piped'" in run.out) == (0, True, True)
    both = cli.run_given(
        "head,relation,tail\nJapan,near,Korea\n", "import", str(write_graph(tmp_path)), "-", "--to", str(tmp_path / "2")
    )
    assert (both.code, "1 edge, one in each row" in both.out) == (0, True)


@pytest.mark.parametrize(
    ("given", "reason"), [("", "Standard input is empty."), ("Dear diary", "no known format: standard input. Expected")]
)
def test_standard_input_without_a_graph_is_refused(cli: CommandLine, tmp_path: Path, given: str, reason: str) -> None:
    run = cli.run_given(given, "import", "-", "--to", str(tmp_path / "store"))
    assert (run.code, run.out, reason in run.err) == (1, "", True)


def test_what_is_left_out_of_standard_input_is_told_with_its_line(cli: CommandLine, tmp_path: Path) -> None:
    text = "<http://ex.org/a> <http://ex.org/b> <http://ex.org/c> .\n<http://ex.org/a> b .\n"
    run = cli.run_given(text, "import", "-", "--skip-errors", "--to", str(tmp_path / "store"))
    assert (run.code, "\n  standard input, line 2, " in run.out) == (0, True)


def test_what_is_too_long_for_any_tool_is_not_read_to_its_end(cli: CommandLine, tmp_path: Path) -> None:
    graph = ["--graph", str(write_graph(tmp_path))]
    (tmp_path / "long.rq").write_bytes(b" " * 10_000_001)
    long = cli.run("call", "Retrieve", f"@{tmp_path}/long.rq", *graph)
    assert (long.code, long.out, "is longer than 10,000,000 characters" in long.err) == (2, "", True)


def test_a_prompt_that_is_given_bytes_of_no_text_ends_with_the_reason(cli: CommandLine, tmp_path: Path) -> None:
    run = cli.run_given(b"Tokyo\n\xff\xfe\n", "shell", str(write_graph(tmp_path)))
    assert (run.code, run.err.splitlines()[-1]) == (2, "kg-sextant: Standard input is not text in UTF-8.")
