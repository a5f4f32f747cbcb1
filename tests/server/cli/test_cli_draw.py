import json
import os
import re
import struct
import subprocess
from operator import methodcaller
from pathlib import Path

import pytest

from cli_runs import COMMAND, CommandLine
from drawn import Drawn
from kg_agents import AgentAnswer, GivenAnswer, Usage
from kg_agents.evidence.values import FactGroup, Found, IdLabels, ObservedFacts, Remembered, Shown
from kg_boundary.installation import install_command
from pages import kg_sextant_words, shell_lines

DOCS = Path(__file__).parents[3] / "docs"
RECORD = DOCS / "examples" / "goethe.jsonl"
PEOPLE = """
@prefix e: <http://e.example/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
e:ada a e:Person ; rdfs:label "Ada" ; e:born "1815-12-10" ; e:knows e:bob ; e:in e:london .
e:bob a e:Person ; rdfs:label "Bob <script>" ; e:knows e:cy . e:cy rdfs:label "Cy" ; e:in e:rome .
e:london a e:Town ; rdfs:label "London" . e:rome a e:Town ; rdfs:label "Rome" .
e:knows rdfs:label "knows" . e:in rdfs:label "lives in" . e:born rdfs:label "born on" .
"""
SOURCES = {
    "one": ("Ada",),
    "several": ("Ada", "Rome"),
    "compose": ("--compose", "Neighbor[Neighbor[Ada, knows], knows]"),
    "memory": ("--memory", "HANDLE"),
    "trace": ("--trace", str(RECORD)),
}
SHOWN = {
    "one": {"Ada", "Bob <script>", "London", "1815-12-10", "lives in", "knows", "born on"},
    "several": {"Ada", "Bob <script>", "Cy", "Rome", "evidence"},
    "compose": {"Ada", "Bob <script>", "Cy"},
    "memory": {"Memory", "Ada", "Bob <script>", "knows"},
    "trace": {"Where was Goethe born?", "Frankfurt", "place of birth", "Johann Wolfgang von Goethe"},
}


@pytest.fixture
def graph(tmp_path: Path) -> str:
    path = tmp_path / "people.ttl"
    path.write_text(PEOPLE, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("source", SOURCES)
def test_each_source_is_drawn_the_same_every_time_and_tells_its_facts_in_words_too(
    source: str, cli: CommandLine, graph: str
) -> None:
    words = [*SOURCES[source], *(() if source == "trace" else ("--graph", graph))]
    if source == "memory":
        kept = cli.run("call", "memory-append", 'triples=["Ada | knows | Bob <script>"]', "--graph", graph, "--json")
        words[1] = json.loads(kept.out)["memory"]
    out = cli.folder / "a.svg"
    written, printed = cli.run("draw", *words, "-o", str(out)), cli.run("draw", *words, "-o", "-")
    assert (written.code, printed.code) == (0, 0)
    svg = out.read_text(encoding="utf-8")
    assert printed.out == svg.encode("ascii", "xmlcharrefreplace").decode()
    drawn = Drawn.of(svg)
    assert set(drawn.texts()) >= SHOWN[source]
    assert drawn.overlaps() == []
    assert drawn.root.attrib["role"] == "img"
    assert all(name in drawn.described() for name in SHOWN[source] & {"Ada", "Cy", "Frankfurt"})
    assert "prefers-color-scheme:dark" in svg
    assert {"kgs-is-evidence", "kgs-answer-box"} & drawn.styles() or source in {"one", "memory"}


def test_another_process_draws_the_same(graph: str, tmp_path: Path) -> None:
    drawn = set[bytes]()
    for seed in ("1", "2"):
        folders = {f"KG_SEXTANT_{name}_FOLDER": str(tmp_path / seed) for name in ("CACHE", "DATA")}
        words = [*COMMAND, "draw", "Ada", "Rome", "--graph", graph, "-o", "-"]
        environ = {**os.environ, **folders, "PYTHONHASHSEED": seed}
        drawn.add(subprocess.run(words, env=environ, check=True, stdout=subprocess.PIPE).stdout)
    assert len(drawn) == 1


def test_a_png_has_the_size_of_the_picture_times_the_scale(cli: CommandLine, tmp_path: Path) -> None:
    svg, png = tmp_path / "a.svg", tmp_path / "b.PNG"
    for out in (svg, png):
        run = cli.run("draw", "--trace", str(RECORD), "--dark", "--title", "T", "--scale", "3", "-o", str(out))
        if "has no font" in run.err and "CI" not in os.environ:
            pytest.skip(run.err)
        assert run.code == 0
    drawn = Drawn.of(svg.read_text(encoding="utf-8"))
    assert drawn.texts()[0] == "T"
    assert "prefers-color-scheme" not in svg.read_text(encoding="utf-8")
    head = png.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", head[16:]) == pytest.approx([size * 3 for size in drawn.size], abs=3)


def test_of_many_facts_the_first_are_drawn_and_the_picture_says_so(cli: CommandLine, tmp_path: Path) -> None:
    *lines, last = RECORD.read_text(encoding="utf-8").splitlines()
    answer = json.loads(last)
    answer["answers"][0]["facts"] = [["Q5879", "P800", f"Q{number}"] for number in range(150)]
    many = tmp_path / "many.jsonl"
    many.write_text("\n".join((*lines, json.dumps(answer))), encoding="utf-8")
    drawn = Drawn.of(cli.run("draw", "--trace", str(many), "-o", "-").out)
    assert "Frankfurt · 100 of 150 facts are drawn" in drawn.texts()
    assert "Q99" in drawn.texts()
    assert "Q100" not in drawn.texts()


def test_relations_say_of_which_of_several_graphs_they_are(cli: CommandLine, graph: str) -> None:
    run = cli.run("draw", "Ada", "--graph", f"people={graph}", "--graph", f"more={graph}", "-o", "-")
    assert run.code == 0, run.err
    assert {"Ada", "London", "lives in [people]"} <= set(Drawn.of(run.out).texts())


def test_the_picture_of_the_page_is_what_its_command_writes(cli: CommandLine) -> None:
    (line,) = (each for each in shell_lines() if "-o influenced.svg" in each)
    words = kg_sextant_words(line) or []
    run = cli.run(*("-" if word == "influenced.svg" else word for word in words))
    assert run.out == (DOCS / "influenced.svg").read_text(encoding="utf-8"), f"run in docs: {line}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("Ada", "-o", "a.jpg"), "must end with .svg, .png or .html"),
        (("-o", "a.svg"), "Name what to draw"),
        (("Ada", "--memory", "m", "-o", "a.svg"), "Name what to draw"),
        (("--trace", str(RECORD), "-o", "/no/such/a.svg"), "cannot be written"),
        (("--trace", __file__, "-o", "a.svg"), "not a line of a trace"),
        (("Nobody", "-o", "a.svg"), "No entity matches 'Nobody'"),
        (("--compose", "Neighbor[", "-o", "a.svg"), "last argument. Neighbor[\n"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_reason(
    words: tuple[str, ...], said: str, cli: CommandLine, graph: str
) -> None:
    run = cli.run("draw", *words, *(() if "--trace" in words else ("--graph", graph)))
    assert run.code in {1, 2}
    assert said in run.err


def test_a_run_without_evidence_is_refused_and_one_without_the_extra_says_what_to_install(tmp_path: Path) -> None:
    lines = RECORD.read_text(encoding="utf-8").splitlines()
    bare = tmp_path / "bare.jsonl"
    bare.write_text(f"{lines[0]}\n", encoding="utf-8")
    (tmp_path / "fast_sugiyama.py").write_text("raise ImportError")
    wanted = install_command("draw")
    for trace, out, said in ((bare, "a.svg", "rests on no facts"), (RECORD, "a.svg", wanted), (RECORD, "a.html", "")):
        words = [*COMMAND, "draw", "--trace", str(trace), "-o", out]
        ended = subprocess.run(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False)
        assert ended.returncode == (2 if said else 0)
        assert said in ended.stderr
    (kept,) = re.findall('id="kept">(.+)</script>', (tmp_path / "a.html").read_text(encoding="utf-8"))
    assert json.loads(kept)["answer"]["paths"] == [[["Q5879", "P19", "Q1794"]]]


FACT = ("e:ada", "e:knows", "e:bob")
LABELS = IdLabels({"e:ada": "Ada", "e:bob": "<b>Bob</b>"}, {"e:knows": "knows"})
NAMED = GivenAnswer("<b>Bob</b>", "graph", (FACT,))


@pytest.mark.parametrize(
    "returned",
    [
        AgentAnswer("Whom does Ada know?", (NAMED,), "answered", LABELS, "answered", "", (), Usage(), 0.0),
        ObservedFacts((FactGroup("e:ada", "e:knows", False, ("e:bob",), 0.5, 1),), Shown(labels=LABELS)),
        Found((FACT,), Shown(labels=LABELS), (("e:ada", "e:born", "1815"),)),
        Remembered("m", ((1, FACT),), LABELS, "", unverified=frozenset({FACT})),
    ],
    ids=lambda returned: type(returned).__name__,
)
def test_notebooks_draw_what_agents_and_graphs_return(
    returned: AgentAnswer | ObservedFacts | Found | Remembered,
) -> None:
    html = str(methodcaller("_repr_html_")(returned))
    svg, table = html.removeprefix("<div>").split("<details>")
    assert {"Ada", "knows", "<b>Bob</b>"} <= set(Drawn.of(svg).texts())
    assert "<td><bdi>Ada</bdi></td><td><bdi>knows</bdi></td><td><bdi>&lt;b&gt;Bob&lt;/b&gt;</bdi></td>" in table
