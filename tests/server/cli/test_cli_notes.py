from pathlib import Path

from cli_runs import CALLED, CommandLine, asked, write_graph
from scripted_model import serving_model
from small_graphs import TOKYO, write_story

NOTES = """
## About
Japan and its capital.
## Prefer
- seat: wdt:P36
- mayor: wdt:P6
## Examples
What is the capital of Japan?
`GetNeighbor entity=Q17 relation=seat`
Answer: Tokyo
Which cities lie in Japan?
`kg-sextant call Compose "expression=Neighbor[Q17, -country]"`
Answer: Kyoto
Who is its mayor?
`GetNeighbor Q1490 mayor`
What is in this file?
`Compose @/etc/hostname`
What is kept?
`memory-append 'triples=[["Q17", "P36", "Q1490"]]'`
What is "unfinished?
`GetNeighbor "Q17`
"""


def test_doctor_checks_notes_and_names_the_lines_of_what_is_wrong(cli: CommandLine, tmp_path: Path) -> None:
    graph = write_graph(tmp_path)
    file = graph.with_name("japan.notes.md")
    file.write_text(NOTES)
    run = cli.run("doctor", str(graph), KG_SEXTANT_EMBEDDING__EMBEDDER="lexical")
    told = [line.partition(f"{file}: ")[2] for line in run.out.splitlines() if line.startswith("warn")]
    assert run.code == 0
    assert [line.partition(":")[0] for line in told] == [f"Line {number}" for number in (6, 11, 14, 16, 18, 20)]
    assert told[0] == "Line 6: 'wdt:P6' is not the id of a relation that this graph uses."
    assert told[1] == "Line 11: no call of this example answers 'Kyoto'."
    assert "is refused" in told[2] or "finds nothing" in told[2]
    assert told[3].endswith("Calls of notes read no files. Write the argument itself.")
    assert told[4].endswith("memory-append changes what is kept. Use tools that only read.")
    assert "cannot be read" in told[5]


def test_doctor_is_content_with_notes_that_hold_and_refuses_what_is_no_text(cli: CommandLine, tmp_path: Path) -> None:
    graph = write_graph(tmp_path)
    file = graph.with_name("japan.notes.md")
    file.write_text(NOTES.partition("- mayor")[0])
    environ = {"KG_SEXTANT_EMBEDDING__EMBEDDER": "lexical"}
    assert f"Notes {file}: 0 examples checked" in cli.run("doctor", str(graph), **environ).out
    file.write_bytes(b"\xff")
    run = cli.run("doctor", str(graph), **environ)
    assert (run.code != 0, "are not text in UTF-8" in run.out) == (True, True)


def test_an_import_over_notes_warns_of_examples_that_no_longer_hold(cli: CommandLine, tmp_path: Path) -> None:
    graph, store = write_graph(tmp_path), tmp_path / "store"
    cli.run("import", str(graph), "--to", str(store))
    (store / "notes.md").write_text(NOTES.partition("Who is its mayor")[0])
    run = cli.run("import", str(graph), "--to", str(store))
    problems = [line.partition("notes.md: ")[2].partition(":")[0] for line in run.err.splitlines() if "notes" in line]
    assert (run.code, problems) == (0, ["Line 6", "Line 11"])


def test_a_draft_holds_what_misleads_and_examples_that_were_tried(cli: CommandLine, tmp_path: Path) -> None:
    graph = tmp_path / "films.ttl"
    films = "".join(f'e:f{n} a e:Film ; rdfs:label "Film {n}" ; e:length {90 + n} ; e:of e:c .\n' for n in range(30))
    graph.write_text(
        "@prefix e: <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
        f'{films} e:f1 e:prize e:c ; e:place e:c . e:c e:seat e:f1 ; rdfs:label "The Company" .\n'
        'e:Film rdfs:label "film" . e:length rdfs:label "## Prefer (min)" . e:of rdfs:label "made by" .\n'
        'e:place rdfs:label "Location" . e:seat rdfs:label "location" . e:prize rdfs:label "won" .\n'
    )
    draft = cli.run("notes", str(graph), "--draft").out
    lines = draft.splitlines()
    assert "Graph films: 32 entities, such as 30 film." in lines or "such as 30 film." in draft
    assert "### film" in lines
    assert "`Location` is the name of 2 relations: e:place (1 fact), e:seat (1 fact)." in lines
    assert "Values of `## Prefer (min)` are in min." in lines
    assert any(line.startswith("Few of 30 have: ") and "won (1)" in line for line in lines)
    assert "`Compose 'expression=Top[Type[e:Film], e:length, 1]'`" in lines
    graph.with_name("films.notes.md").write_text(draft)
    run = cli.run("notes", str(graph))
    assert (run.code, run.out.endswith("3 examples checked.\n")) == (0, True), run.err


def test_notes_that_are_missing_or_wrong_end_the_command_with_advice(cli: CommandLine, tmp_path: Path) -> None:
    graph = write_graph(tmp_path)
    run = cli.run("notes", str(graph))
    assert (run.code != 0, "--draft" in run.err) == (True, True)
    graph.with_name("japan.notes.md").write_text(NOTES)
    settings = tmp_path / "graphs.toml"
    settings.write_text(f"[graphs.other]\ngraph = 'sample'\n[graphs.japan]\ngraph = '{graph}'\n")
    for words in (("notes", str(graph)), ("--config", str(settings), "notes", "japan")):
        run = cli.run(*words)
        assert (run.code != 0, "Line 6: 'wdt:P6'" in run.err) == (True, True)


def test_solved_questions_move_into_the_notes_once_and_those_that_no_longer_hold_stay(cli: CommandLine) -> None:
    for question in ("Which place is the capital of Tokyo?", "Answer: where is the capital of Tokyo?"):
        assert asked(cli, CALLED, "--learn", question=question)[0].code == 0
    graph = write_story(cli.folder, TOKYO)
    notes = graph.with_name("story.notes.md")
    notes.write_text("Of cities.\n\n## Examples")
    moved = cli.run("notes", str(graph), "--add-solved")
    assert (moved.code, moved.out) == (0, f"1 solved question moved into {notes}.\n")
    assert "where is the capital of Tokyo?' stays where it is: notes cannot hold its text." in moved.err
    example = "Which place is the capital of Tokyo?\n`GetNeighbor entity=Tokyo`\nAnswer: Shinjuku\n"
    assert notes.read_text() == f"Of cities.\n\n## Examples\n\n{example}"
    assert cli.run("notes", str(graph)).code == 0
    assert cli.run("notes", str(graph), "--add-solved").out.startswith("0 solved questions")


def test_a_model_writes_and_answers_questions_of_which_those_with_evidence_are_drafted(cli: CommandLine) -> None:
    graph = write_story(cli.folder, TOKYO)
    written = "Here are two:\n1. What is the capital of Tokyo?\n2) Who is its mayor?\n3. Which more?"
    with serving_model(written, *CALLED, "I do not know.") as service:
        options = ("--draft", "--ask", "2", "--model", "m", "--base-url", service.url)
        draft = cli.run("notes", str(graph), *options)
    assert draft.out.endswith("What is the capital of Tokyo?\n`GetNeighbor entity=Tokyo`\nAnswer: Shinjuku\n\n")
    assert "'Who is its mayor?' is left out: it was not answered with evidence." in draft.err
    assert "Write 2 questions" in service.asked[0].messages[0].content
    assert cli.run("notes", str(graph), "--ask", "2").code != 0
