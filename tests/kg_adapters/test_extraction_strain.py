"""A graph that cannot answer for a whole batch is asked for less at once."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from extractions import WatchedGraph, content_of, extracted, order_for
from kg_adapters.errors import BackendTimeout
from kg_adapters.extraction.journal import Bounds
from kg_adapters.local.store import LocalStore
from kg_adapters.models import Count, NeighborPage
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Node
from kg_adapters.testing import iri, ntriples
from small_graphs import store_of

NAMES = tuple(f"s{number}" for number in range(8))
ORDER = order_for(*(f"<{iri(name)}>" for name in NAMES), bounds=Bounds(hops=1))


class SlowGraph(WatchedGraph):
    """Answers in time about so many entities at most."""

    most = 2

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        pages = await super().neighbors(request)
        return pages if request.relations is not None or len(pages) <= self.most else self.too_much(pages)

    def too_much(self, pages: Mapping[Node, NeighborPage]) -> Mapping[Node, NeighborPage]:
        """Answer about too many."""
        raise BackendTimeout("The graph gave no answer in time.")


class CutGraph(SlowGraph):
    """Answers in full about so many entities at most, and of more has lost one triple each."""

    def too_much(self, pages: Mapping[Node, NeighborPage]) -> Mapping[Node, NeighborPage]:
        return {
            node: replace(page, facts=page.triples[1:], total=Count(len(page.triples) - 1, exact=False))
            for node, page in pages.items()
        }


@pytest.fixture
def source(tmp_path: Path) -> LocalStore:
    (tmp_path / "source").mkdir()
    return store_of(tmp_path / "source", ntriples(f"{name} r{n} t{n}" for name in NAMES for n in range(3)))


@pytest.mark.parametrize("kind", [SlowGraph, CutGraph])
async def test_what_it_does_not_answer_in_full_it_is_asked_for_in_halves(
    source: LocalStore, tmp_path: Path, kind: type[SlowGraph]
) -> None:
    graph = kind(source)
    await extracted(graph, ORDER, tmp_path / "store")
    await extracted(WatchedGraph(source), ORDER, tmp_path / "whole")
    assert content_of(tmp_path / "store") == content_of(tmp_path / "whole")
    assert [len(asked) for asked in graph.calls("neighbors")] == [8, 4, 2, 2, 4, 2, 2]


async def test_a_graph_that_cannot_answer_for_one_entity_ends_the_run(source: LocalStore, tmp_path: Path) -> None:
    graph = SlowGraph(source)
    graph.most = 0
    with pytest.raises(BackendTimeout, match="gave no answer in time"):
        await extracted(graph, ORDER, tmp_path / "store")
    assert [len(asked) for asked in graph.calls("neighbors")] == [8, 4, 2, 1]


async def test_what_stays_uncertain_is_taken_and_said(source: LocalStore, tmp_path: Path) -> None:
    graph = CutGraph(source)
    graph.most = 0
    report = await extracted(graph, ORDER, tmp_path / "store")
    assert (report.counts.triples, report.triples_left_out) == (16, Count(0))
    assert len(graph.calls("neighbors")) == 15
