"""How tests run the command line: in this process, or as a process of its own."""

import io
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from kg_server.cli import main

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
            config.write_text(f"{folders}llm.local_ports = []\n", encoding="utf-8")
        with pytest.raises(SystemExit) as ended:
            main(["--config", str(config), *words], environ)
        captured = self.capture.readouterr()
        return Run(int(ended.value.code or 0), captured.out, captured.err)
