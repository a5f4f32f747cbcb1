"""An Apache Jena Fuseki of our own, with its full-text index, in a folder that goes away with it."""

import os
import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx2

from benchmarks.engines import EngineError, started

MISSING: Final = "Fuseki or Java is not installed: run tools/install_engines.sh"
_JAR: Final = "jars/fuseki-server.jar"
_PATIENCE_S: Final = 120.0
_READY: Final = "Started "
_SETTINGS: Final = """\
@prefix fuseki: <http://jena.apache.org/fuseki#> .
@prefix ja: <http://jena.hpl.hp.com/2005/11/Assembler#> .
@prefix tdb2: <http://jena.apache.org/2016/tdb#> .
@prefix text: <http://jena.apache.org/text#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix schema: <http://schema.org/> .

<#service> a fuseki:Service ;
    fuseki:name "graphs" ;
    fuseki:serviceQuery "sparql" ;
    fuseki:serviceReadWriteGraphStore "data" ;
    fuseki:dataset <#texts> .
<#texts> a text:TextDataset ; text:dataset <#triples> ; text:index <#index> .
<#triples> a tdb2:DatasetTDB2 ; tdb2:location "--mem--" .
<#index> a text:TextIndexLucene ; text:directory "mem" ; text:entityMap <#names> ; text:storeValues true .
<#names> a text:EntityMap ;
    text:entityField "uri" ;
    text:defaultField "name" ;
    text:map (
        [ text:field "name" ; text:predicate rdfs:label ]
        [ text:field "name" ; text:predicate skos:prefLabel ]
        [ text:field "name" ; text:predicate skos:altLabel ]
        [ text:field "name" ; text:predicate schema:name ]
    ) .
"""


@dataclass(frozen=True, slots=True)
class Fuseki:
    """A running server.

    Args:
        url: Where it answers SPARQL.
    """

    url: str

    def load(self, graph: str, triples: bytes) -> None:
        """Make the graph with this IRI hold exactly the N-Triples given.

        Raises:
            EngineError: It did not take them.
        """
        reply = httpx2.put(
            self.url.removesuffix("sparql") + "data",
            params={"graph": graph},
            content=triples,
            headers={"content-type": "application/n-triples"},
            timeout=_PATIENCE_S,
            trust_env=False,
        )
        if not reply.is_success:
            raise EngineError(f"Fuseki did not take {graph}: {reply.text}")


def program() -> Path:
    """Return the folder that `tools/install_engines.sh` puts the server into."""
    return Path(os.environ.get("KG_SEXTANT_ENGINES") or Path.home() / ".cache" / "kg-sextant-engines") / "fuseki-4.3.2"


def is_installed() -> bool:
    """Say whether there is a Fuseki to start."""
    return shutil.which("java") is not None and (program() / _JAR).is_file()


@contextmanager
def running_fuseki(folder: Path) -> Generator[Fuseki]:
    """Start an empty server, and end it when the block is left; it takes four seconds and about 500 MB.

    Args:
        folder: An empty folder for everything that it writes.

    Raises:
        EngineError: It does not start.
    """
    settings = folder / "config.ttl"
    settings.write_text(_SETTINGS, encoding="utf-8")
    where = {"FUSEKI_HOME": str(program()), "FUSEKI_BASE": str(folder / "base")}
    memory = ["-Xmx768M", "-XX:+UseSerialGC"]
    server = ["java", *memory, "-cp", str(program() / _JAR), "org.apache.jena.fuseki.cmd.FusekiCmd", "--localhost"]

    def command(ports: Sequence[int]) -> Sequence[str]:
        return [*server, "--config", str(settings), "--port", str(ports[0])]

    with started(folder, 1, command, _READY, where) as (port,):
        yield Fuseki(f"http://127.0.0.1:{port}/graphs/sparql")
