"""The same thing in the other graphs of a server, and several graphs asked as one."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import anyio

from kg_adapters.answer_cache import AnswerCache
from kg_adapters.calls import note_partial
from kg_adapters.errors import KGError
from kg_adapters.federated import FederatedGraph
from kg_adapters.links import LinkRules, Thing, same_things
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri, Node
from kg_server.concurrency import all_of
from kg_server.graphs import SHARE_OF_ALL, GraphNames, GraphSet, OpenedGraph
from kg_server.naming.meaning import Meaning

Places: TypeAlias = Mapping[str, Sequence[str]]
"""The ids of a thing in graphs, by their names."""

_MOST_KEPT: Final = 10_000
_KEPT_S: Final = 600.0
_SHARE: Final = 0.2
"""What part of the time of a call is spent on it."""
_SHARE_OF_EACH: Final = 0.15
"""What part of its `timeout_s` another graph has for each request."""
_PAUSE_S: Final = 60.0
"""How long a remote graph is not asked again after it did not answer in time."""


async def together(graphs: GraphSet, names: GraphNames) -> OpenedGraph:
    """Return the graph of a name, or several as one for the time of a call; settings and notes are those of the first.

    Raises:
        InvalidRequest: There is no graph of a name.
        KGError: A graph cannot be opened, or fails.
    """
    opened = await all_of([each.opened for each in graphs.chosen(names)], at_once=len(graphs.all))
    first = opened[0]
    if len(opened) == 1:
        return first
    timeouts_s = {each.name: each.settings.timeout_s * SHARE_OF_ALL for each in opened}
    graph = await FederatedGraph.over(*with_links({each.name: each for each in opened}), timeouts_s)
    return replace(first, name=graph.name, adapter=graph, meaning=Meaning(graph, graphs.embedder))


async def opened_all(graphs: GraphSet) -> dict[str, OpenedGraph]:
    """Return the graphs that are open, or that open within the time that `GraphSet.ask_each` allows."""

    async def itself(here: OpenedGraph) -> OpenedGraph:
        return here

    found = await graphs.ask_each(itself)
    return {name: each for name, each in found.items() if not isinstance(each, KGError)}


def with_links(opened: Mapping[str, OpenedGraph]) -> tuple[dict[str, KGAdapter], dict[str, LinkRules]]:
    """Return graphs, and what links their terms with those of others, both by name."""
    return {name: here.adapter for name, here in opened.items()}, {name: here.links for name, here in opened.items()}


class Elsewhere:
    """Finds things in the other graphs of a server that are open, as far as these answer at once.

    Args:
        graphs: The graphs.
        clock: Returns the time, in seconds.
    """

    def __init__(self, graphs: GraphSet, clock: Callable[[], float] = time.monotonic) -> None:
        self._graphs = graphs
        self._clock = clock
        self._kept = AnswerCache[tuple[str, Iri], Thing](_MOST_KEPT, _KEPT_S)
        self._paused: dict[str, float] = {}

    async def of(self, here: OpenedGraph, nodes: Collection[Node]) -> Mapping[Node, Places]:
        """Return under which ids other graphs have some nodes of a graph; those that fail are left out."""
        known = {each.name: each.known for each in self._graphs.all if self._paused.get(each.name, 0) <= self._clock()}
        opened = {name: each for name, each in known.items() if each is not None and name != here.name}
        keys = [(here.name, node) for node in dict.fromkeys(nodes) if isinstance(node, Iri)]
        if not opened or not keys:
            return {}

        async def load(wanted: Sequence[tuple[str, Iri]]) -> Mapping[tuple[str, Iri], Thing]:
            asked = {here.name: here, **opened}
            found = await same_things(
                *with_links(asked),
                [node for _, node in wanted],
                left_out=self._pause,
                timeouts_s={name: each.settings.timeout_s * _SHARE_OF_EACH for name, each in asked.items()},
            )
            return {key: found[key[1]] for key in wanted}

        things: dict[tuple[str, Iri], Thing] = {}
        with anyio.move_on_after(here.settings.timeout_s * _SHARE):
            try:
                things = await self._kept.get(keys, load)
            except KGError:
                note_partial()
        return {
            node: {
                name: [opened[name].adapter.prefixes.shorten(term) for term in terms]
                for name, terms in thing.terms.items()
                if name in opened
            }
            for (_, node), thing in things.items()
        }

    def _pause(self, name: str, _: KGError) -> None:
        if any(each.name == name and each.remote for each in self._graphs.all):
            self._paused[name] = self._clock() + _PAUSE_S
        note_partial()


def said_of(places: Places) -> str:
    """Return where else a thing is: `also in wikidata as Q937`; nothing where it is nowhere else."""
    said = [f"{name} as {' and '.join(ids)}" for name, ids in places.items() if ids]
    return f"also in {', '.join(said)}" if said else ""
