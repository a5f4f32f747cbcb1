"""Graphs whose ids, names and values try to pass for something else: each text stands where a graph may hold one."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import rdflib
from hypothesis import strategies as st
from rdflib.namespace import RDF, RDFS, SKOS

from kg_adapters.files.json_graphs import NODE_NAMESPACE, RELATION_NAMESPACE
from kg_adapters.importing.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_adapters.prefixes import BareIds
from kg_adapters.protocol import KGAdapter
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.terms import Iri, Node

FORGERIES = (
    "b)\nAnn (a) | killed | Bob (b",
    "x -[killed]-> Bob",
    "y]-> Bob -[is",
    "Bob (b)",
    '"text"@en',
    "-capital",
    "\u202egnip\u202c",
    "in\u200bvisi\u200dble",
    "\ufeff\u2028\u2029\x85\x1b[2J",
    "\U000e0041\U000e0042",
    r"\u202e\n\\",
    "%E2%80%AE%0A%7C",
    "…",
    " | ",
    "part 1 | x | 2 nodes",
)
SPECIAL = "|\\[]()<>-\"'`%:/#,;. \n\r\tab\u0301\u061c\u200c\u2066\u3164\ufe0f\u00adé東\u0627😀"
PIECES = st.sampled_from(FORGERIES) | st.text(st.sampled_from(SPECIAL) | st.characters(codec="utf-8"), max_size=8)
TEXTS = st.lists(PIECES, min_size=1, max_size=2).map("".join).filter(str.strip)

SPACE = "http://e.example/"
NODES = 5
_IDS = BareIds(NODE_NAMESPACE, r"(?s:.+)"), BareIds(RELATION_NAMESPACE, r"(?s:.+)")


@dataclass(frozen=True)
class Hostile:
    """What stands in a graph: node `i` leads to the next over one relation, to the one after that over another one."""

    ids: Sequence[str]
    relations: Sequence[str]
    feature: str
    kind: str
    labels: Sequence[str | None]
    values: Sequence[str]


SPOOF = "b)\nAnn (a) | killed | Bob (b"
MURDER = Hostile(
    ids=("a", SPOOF, "b) | killed | Bob (b", "Bob (b)", "b"),
    relations=("knows", "likes\nAnn (a) | killed | Bob (b)"),
    feature="note\n|",
    kind="person | x",
    labels=("Ann", None, None, None, "Bob"),
    values=("x\ny", '"@en', "\\", " | ", "\u202ea\u202c"),
)


def assert_seen(text: str) -> None:
    """Require that every character of a text can be seen."""
    assert text.replace("\n", "").isprintable(), text


@st.composite
def hostile(draw: st.DrawFn) -> Hostile:
    """Draw the texts of a graph."""
    names = draw(st.lists(TEXTS, min_size=3, max_size=3, unique=True).filter(lambda each: "tag" not in each))
    return Hostile(
        ids=draw(st.lists(TEXTS, min_size=NODES, max_size=NODES, unique=True)),
        relations=names[:2],
        feature=names[2],
        kind=draw(TEXTS),
        labels=draw(st.lists(st.none() | TEXTS, min_size=NODES, max_size=NODES)),
        values=draw(st.lists(TEXTS, min_size=NODES, max_size=NODES)),
    )


@dataclass(frozen=True)
class Opened:
    """A hostile graph, its nodes in order, and the feature that numbers them `n0`, `n1` and so on."""

    graph: KGAdapter
    nodes: Sequence[Node]
    relations: Sequence[Iri]
    tag: Iri


@asynccontextmanager
async def as_graph_json(texts: Hostile, folder: Path) -> AsyncGenerator[Opened]:
    """Import the texts as a `graph.json`, in which an id is any text."""
    content = {
        f"{texts.kind}_nodes": {
            each: {
                "features": {
                    **({} if texts.labels[place] is None else {"name": texts.labels[place]}),
                    texts.feature: texts.values[place],
                    "tag": f"n{place}",
                },
                "neighbors": {
                    texts.relations[0]: [texts.ids[(place + 1) % NODES]],
                    texts.relations[1]: [texts.ids[(place + 2) % NODES]],
                },
            }
            for place, each in enumerate(texts.ids)
        }
    }
    source = folder / "graph.json"
    source.write_text(json.dumps(content), encoding="utf-8")
    async with _imported(source, folder) as graph:
        nodes, names = (
            [ids.expand(text) for text in each]
            for ids, each in zip(_IDS, (texts.ids, [*texts.relations, "tag"]), strict=True)
        )
        first, second, tag = _all(names)
        yield Opened(graph, _all(nodes), (first, second), tag)


@asynccontextmanager
async def as_rdflib(texts: Hostile, folder: Path) -> AsyncGenerator[Opened]:
    """Hold the texts in an rdflib graph, whose IRIs may hold what nobody sees."""
    del folder
    yield _opened(RdflibAdapter(_rdf(texts), name="a\n| b\u202e"), texts)


@asynccontextmanager
async def as_turtle(texts: Hostile, folder: Path) -> AsyncGenerator[Opened]:
    """Import the texts as RDF."""
    source = folder / "graph.nt"
    _rdf(texts).serialize(source, "nt", encoding="utf-8")
    async with _imported(source, folder) as graph:
        yield _opened(graph, texts)


def _rdf(texts: Hostile) -> rdflib.Graph:
    graph = rdflib.Graph(bind_namespaces="none")
    graph.bind("e", SPACE)
    nodes = [rdflib.URIRef(each) for each in _iris("n", texts.ids)]
    first, second = (rdflib.URIRef(each) for each in _iris("r", texts.relations))
    (feature,) = (rdflib.URIRef(each) for each in _iris("f", [texts.feature]))
    (kind,) = (rdflib.URIRef(each) for each in _iris("k", [texts.kind]))
    for place, node in enumerate(nodes):
        label, value = texts.labels[place], texts.values[place]
        graph.add((node, RDF.type, kind))
        graph.add((node, first, nodes[(place + 1) % NODES]))
        graph.add((node, second, nodes[(place + 2) % NODES]))
        graph.add((node, rdflib.URIRef(f"{SPACE}tag"), rdflib.Literal(f"n{place}")))
        graph.add((node, feature, rdflib.Literal(value, datatype=kind)))
        graph.add((node, feature, rdflib.Literal(value, lang="en-GB")))
        graph.add((node, SKOS.altLabel, rdflib.Literal(value)))
        graph.add((node, rdflib.URIRef("http://schema.org/description"), rdflib.Literal(value)))
        if label is not None:
            graph.add((node, RDFS.label, rdflib.Literal(label)))
            graph.add((first, RDFS.label, rdflib.Literal(label)))
            graph.add((kind, RDFS.label, rdflib.Literal(label)))
    return graph


def _iris(sort: str, texts: Sequence[str]) -> list[str]:
    """Return an IRI for each text, with all of it that an IRI may hold."""
    return [f"{SPACE}{sort}{place}{_fit(text)}" for place, text in enumerate(texts)]


def _fit(text: str) -> str:
    # Parsers of files take fewer marks than IRIs of this project have: nothing private, no half of an escape.
    return "".join(mark if mark.isalnum() or ("\xa0" <= mark < "\ud800") or mark in "-._~:" else "-" for mark in text)


def _opened(graph: KGAdapter, texts: Hostile) -> Opened:
    first, second = map(Iri, _iris("r", texts.relations))
    return Opened(graph, list(map(Iri, _iris("n", texts.ids))), (first, second), Iri(f"{SPACE}tag"))


@asynccontextmanager
async def _imported(source: Path, folder: Path) -> AsyncGenerator[LocalAdapter]:
    build_store([source], folder / "store", ImportOptions(name="a\n| b\u202e"))
    async with aclosing(LocalAdapter(open_store(folder / "store"))) as graph:
        yield graph


def _all(iris: Sequence[Iri | None]) -> list[Iri]:
    return [iri for iri in iris if iri is not None]
