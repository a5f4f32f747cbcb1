"""Graphs that have no ability beside the protocol."""

from collections.abc import Mapping
from dataclasses import replace

import anyio

from kg_adapters.caching import CachingAdapter
from kg_adapters.models import GraphSchema, NeighborPage
from kg_adapters.profile import GraphProfile, unknown_profile
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Node


class WithoutSets(CachingAdapter):
    """An adapter that computes no sets, remembers what it is asked, and can be made to wait."""

    def __init__(self, graph: KGAdapter) -> None:
        super().__init__(graph)
        del self.compute
        self.requests: list[NeighborRequest] = []
        self.waiting: frozenset[Node] = frozenset()

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        self.requests.append(request)
        if self.waiting.intersection(request.entities):
            await anyio.sleep_forever()
        return await super().neighbors(request)


class Unlisted(CachingAdapter):
    """A graph of which neither the definition nor the profile knows any relation."""

    async def schema(self) -> GraphSchema:
        return replace(await super().schema(), relations=(), features=(), complete=False)

    async def profile(self) -> GraphProfile:
        return unknown_profile()


class Sketchy(WithoutSets):
    """A graph whose definition lists nothing, and that computes no sets."""

    async def schema(self) -> GraphSchema:
        return replace(await super().schema(), relations=(), features=(), complete=False)
