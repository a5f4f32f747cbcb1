from collections.abc import Collection, Mapping, Sequence

import anyio
import pytest
from mcp import Client

from calls import Reply, call, reply_of
from kg_adapters.errors import BackendUnavailable
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.models import Candidate, Description, FeaturePage, PathRequest, PathsFound
from kg_adapters.requests import FeatureRequest
from kg_adapters.terms import Node
from kg_server.app import build_server
from kg_server.settings import Settings


class Stalling(LocalAdapter):
    """A graph that never answers `features`, and takes its time over paths."""

    def __init__(self, graph: LocalAdapter, reported: anyio.Event) -> None:
        super().__init__(graph.store)
        self.reported = reported
        self.stopped = anyio.Event()

    async def features(self, request: FeatureRequest) -> Mapping[Node, FeaturePage]:
        try:
            await anyio.sleep_forever()
            raise AssertionError
        finally:
            self.stopped.set()

    async def paths(self, request: PathRequest) -> PathsFound:
        await self.reported.wait()
        return await super().paths(request)


class Crashing(LocalAdapter):
    """A graph with a bug, and a backend that is gone."""

    def __init__(self, graph: LocalAdapter) -> None:
        super().__init__(graph.store)

    async def describe(self, terms: Collection[Node]) -> Mapping[Node, Description]:
        raise KeyError("secret=hunter2")

    async def search(self, text: str, *, limit: int, type: Node | None = None) -> Sequence[Candidate]:
        raise BackendUnavailable("The graph at http://127.0.0.1:9 refused the connection. Is it running?")


async def test_a_call_that_takes_too_long_is_stopped_while_others_go_on(tokyo: LocalAdapter) -> None:
    graph = Stalling(tokyo, anyio.Event())
    replies: list[str] = []
    others: list[Reply] = []
    async with Client(build_server(graph, Settings(timeout_s=0.2))) as client, anyio.create_task_group() as tasks:

        async def stall() -> None:
            replies.append(reply_of(await client.call_tool("Feature", {"entity": "Q1490"})).text)

        tasks.start_soon(stall)
        others.extend([reply_of(await client.call_tool("Degree", {"entity": "Q1490"})) for _ in range(20)])
        await graph.stopped.wait()
    assert not any(other.is_error for other in others)
    assert replies == [
        "Feature took longer than 0.2 seconds and was stopped. "
        "To wait longer, raise the setting timeout_s (KG_SEXTANT_TIMEOUT_S). Or ask for less: a single feature."
    ]


async def test_a_long_search_gives_signs_of_life(tokyo: LocalAdapter) -> None:
    reported = anyio.Event()
    messages: list[str | None] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        assert total is not None
        assert 0 < progress <= total
        messages.append(message)
        reported.set()

    async with Client(build_server(Stalling(tokyo, reported), Settings())) as client:
        arguments = {"source": "Q1490", "target": "Q17"}
        reply = reply_of(await client.call_tool("GetPath", arguments, progress_callback=on_progress))
    assert not reply.is_error
    assert messages == ["searching paths, 1 s of at most 10 s"]


async def test_a_bug_is_hidden_from_the_model_and_logged(tokyo: LocalAdapter, caplog: pytest.LogCaptureFixture) -> None:
    reply = await call(Crashing(tokyo), "Degree", entity="Q1490")
    assert reply.is_error
    assert reply.text == (
        "Degree failed because of an internal error, which is in the server's log. Other calls still work."
    )
    assert "KeyError" in caplog.text


async def test_a_backend_that_is_gone_is_named_to_the_model(tokyo: LocalAdapter) -> None:
    reply = await call(Crashing(tokyo), "Retrieve", text="Tokyo")
    assert reply.is_error
    assert reply.text == "The graph at http://127.0.0.1:9 refused the connection. Is it running?"


async def test_many_clients_at_once_get_the_same_answers_as_one(sample: LocalAdapter) -> None:
    entities = ["Q5879", "Q937", "Q30", "Q1490", "Q45765", "Q5", "Q183", "Q64"]
    alone = [await call(sample, "GetNeighbor", entity=entity, direction="both") for entity in entities]
    together: dict[int, object] = {}

    async def ask(number: int) -> None:
        entity = entities[number % len(entities)]
        together[number] = await call(sample, "GetNeighbor", entity=entity, direction="both")

    async with anyio.create_task_group() as tasks:
        for number in range(32):
            tasks.start_soon(ask, number)
    assert [together[number] for number in range(32)] == alone * 4
