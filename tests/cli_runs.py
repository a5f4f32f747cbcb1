"""How tests run the command line: in this process, in one of its own, in a terminal, or with a scripted model."""

import io
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

from kg_server.cli import main
from oda_runs import ENOUGH, NEIGHBORS, selecting
from patience import PATIENCE_S
from scripted_model import Asked, Scripted, calling, serving_model
from small_graphs import TOKYO, write_story

COMMAND = (sys.executable, "-m", "kg_server")

TURTLE = """
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
wd:Q17 rdfs:label "Japan"@en ; wdt:P36 wd:Q1490 .
wd:Q1490 rdfs:label "Tokyo"@en , "Tokio"@de ; wdt:P17 wd:Q17 .
wdt:P36 rdfs:label "capital"@en .
wdt:P17 rdfs:label "country"@en .
"""


@dataclass(frozen=True)
class Run:
    """How a command ended."""

    code: int
    out: str
    err: str


def write_graph(folder: Path) -> Path:
    """Write the small graph as Turtle and return its file."""
    path = folder / "japan.ttl"
    path.write_text(TURTLE, encoding="utf-8")
    return path


@dataclass(frozen=True)
class CommandLine:
    """Runs commands in this process with a configuration and a cache of their own."""

    folder: Path
    capture: pytest.CaptureFixture[str]

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    def run_given(self, given: str | bytes, *words: str) -> Run:
        """Run a command with this on standard input."""
        before, sys.stdin = (
            sys.stdin,
            io.TextIOWrapper(io.BytesIO(given.encode() if isinstance(given, str) else given), "utf-8"),
        )
        try:
            return self.run(*words)
        finally:
            sys.stdin = before

    def run(self, *words: str, **environ: str) -> Run:
        config = self.folder / "config.toml"
        if not config.exists():
            folders = f"cache_folder = '{self.cache}'\ndata_folder = '{self.folder / 'data'}'\n"
            config.write_text(f"{folders}timeout_s = {PATIENCE_S}\nllm.local_ports = []\n", encoding="utf-8")
        with pytest.raises(SystemExit) as ended:
            main(["--config", str(config), *words], environ)
        captured = self.capture.readouterr()
        return Run(int(ended.value.code or 0), captured.out, captured.err)


Script: TypeAlias = Sequence[Scripted]

QUESTION = "What is the capital of Tokyo?"
EVIDENCE = "Tokyo (Q1490) | capital (P36) | Shinjuku (Q179645)"
PAPER = ("--set", "manner=paper")
ABOUT_TOKYO = ("--entity", "Q1490")

EXPLORED = (NEIGHBORS.format("Q1490"), selecting("Q1490,P36,Q179645"), ENOUGH, "Answer: Shinjuku")
"""What a model replies to ODA as published."""
CALLED = (
    calling(("GetNeighbor", '{"entity": "Tokyo"}')),
    calling(("answer", '{"answers": [{"text": "Shinjuku", "results": [1]}]}')),
)
"""What a model replies that calls the tools."""


def asked(
    cli: CommandLine, script: Script, *words: str, question: str = QUESTION, **environ: str
) -> tuple[Run, list[Asked]]:
    """Ask about Tokyo; return how it ended, and what the model was asked."""
    graph = str(write_story(cli.folder, TOKYO))
    with serving_model(*script) as service:
        options = ["--graph", graph, "--model", "m", "--base-url", service.url]
        return cli.run("ask", question, *options, *words, **environ), service.asked


@dataclass(frozen=True)
class Shown:
    """How a command ended, and all that it sent to its terminal."""

    code: int
    sent: str


def run_in_terminal(folder: Path, *words: str, term: str = "xterm", environ: Mapping[str, str] | None = None) -> Shown:
    """Run a command whose output and errors both go to a terminal; its own folders lie in `folder`."""
    ours, theirs = pty.openpty()
    inherited = {name: each for name, each in os.environ.items() if not name.startswith("KG_SEXTANT_")}
    folders = {f"KG_SEXTANT_{name}_FOLDER": str(folder / name.lower()) for name in ("CACHE", "DATA")}
    told = {**inherited, **folders, "TERM": term, "PYTHONUTF8": "1", **(environ or {})}
    process = subprocess.Popen([*COMMAND, *words], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=told)
    os.close(theirs)
    sent: list[bytes] = []
    reader = threading.Thread(target=_read_all, args=(ours, sent))
    reader.start()
    try:
        code = process.wait(timeout=PATIENCE_S)
        reader.join(timeout=PATIENCE_S)
    finally:
        process.kill()
        os.close(ours)
    return Shown(code, b"".join(sent).decode("utf-8"))


def _read_all(terminal: int, sent: list[bytes]) -> None:
    """Read until nobody can write any more, which on Linux is an error."""
    assert sys.platform != "win32"
    while True:
        try:
            part = os.read(terminal, 65_536)
        except OSError:
            return
        if not part:
            return
        sent.append(part)
