"""Extractions of small graphs, and a graph that counts what it is asked and can fail or be killed in the middle."""

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path

from kg_adapters.extraction.extract import ExtractionReport, Order, extract
from kg_adapters.extraction.journal import Bounds, Request, ValueChoice
from kg_adapters.extraction.seeds import FIELDS
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.store import LocalStore, SourceFile, open_store
from kg_adapters.local.swap import exclusively
from kg_adapters.models import Description, FeaturePage, NeighborPage
from kg_adapters.open_options import OnExtraction, ignore_extraction
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest, NeighborRequest
from kg_adapters.terms import Node


class WatchedGraph(LocalAdapter):
    """A local graph that notes what it is asked.

    Args:
        store: The graph.
        answers: How many calls it answers before it fails.
    """

    def __init__(self, store: LocalStore, answers: int = 1_000_000) -> None:
        super().__init__(store)
        self.asked: list[tuple[str, tuple[Node, ...]]] = []
        self.answers = answers

    def fail(self) -> None:
        """Do what happens when it has answered often enough."""
        raise AssertionError("more calls than were expected")

    def note(self, call: str, entities: Collection[Node]) -> None:
        """Note a call, or fail."""
        if len(self.asked) >= self.answers:
            self.fail()
        self.asked.append((call, tuple(entities)))

    def calls(self, call: str) -> list[tuple[Node, ...]]:
        """Return what the calls of one kind were about."""
        return [entities for kind, entities in self.asked if kind == call]

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        self.note("neighbors" if request.relations is None else "types", request.entities)
        return await super().neighbors(request)

    async def describe(self, terms: Collection[Node]) -> Mapping[Node, Description]:
        self.note("describe", terms)
        return await super().describe(terms)

    async def features(self, request: FeatureRequest) -> Mapping[Node, FeaturePage]:
        self.note("features", request.entities)
        return await super().features(request)


def order_for(*lines: str, bounds: Bounds | None = None, values: ValueChoice = "all") -> Order:
    """Return the order of an extraction around the entities that some lines name."""
    content = "\n".join(lines).encode()
    source = SourceFile(name="entities.txt", size=len(content), sha256=hashlib.sha256(content).hexdigest())
    return Order(Request(graph="small", bounds=bounds or Bounds(), source=source, fields=FIELDS), content, values)


async def extracted(
    graph: KGAdapter, order: Order, target: Path, tell: OnExtraction = ignore_extraction
) -> ExtractionReport:
    """Extract as the command does, alone at its target."""
    with exclusively(target):
        return await extract(graph, order, target, tell)


def offline(folder: Path) -> LocalAdapter:
    """Open what was extracted."""
    return LocalAdapter(open_store(folder))


def content_of(folder: Path) -> tuple[object, ...]:
    """Return all that makes two stores the same: what they say of themselves, and the content of their files.

    The names of the full-text index's files are random; it follows from the rest.
    """
    info = open_store(folder).info
    return (
        info.model_copy(update={"files": (), "name": ""}),
        [file for file in info.files if not file.path.startswith("text/fuzzy")],
    )
