from collections.abc import Callable, Mapping
from urllib.parse import quote

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import TextResourceContents

from calls import UNHURRIED, plain
from kg_adapters.errors import BackendUnavailable
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.models import FeaturePage, GraphSchema
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest
from kg_adapters.terms import Iri, Node
from kg_server.app import build_server
from kg_server.settings import Settings

TOKYO = "http://www.wikidata.org/entity/Q1490"


class Absent(LocalAdapter):
    """A graph whose backend is gone, or never answers about features."""

    def __init__(self, graph: LocalAdapter) -> None:
        super().__init__(graph.store)

    async def schema(self) -> GraphSchema:
        raise BackendUnavailable("The graph cannot be reached. Is it running?")

    async def features(self, request: FeatureRequest) -> Mapping[Node, FeaturePage]:
        if Iri(TOKYO) in request.entities:
            await anyio.sleep_forever()
        raise BackendUnavailable("The graph cannot be reached. Is it running?")


async def read(graph: KGAdapter, uri: str, settings: Settings | None = None) -> str:
    async with Client(build_server(graph, settings or UNHURRIED)) as client:
        (contents,) = (await client.read_resource(uri)).contents
    assert isinstance(contents, TextResourceContents)
    return plain(contents.text)


async def refusal(graph: KGAdapter, uri: str, settings: Settings | None = None) -> MCPError:
    async with Client(build_server(graph, settings or UNHURRIED)) as client:
        with pytest.raises(MCPError) as raised:
            await client.read_resource(uri)
    return raised.value


@pytest.mark.parametrize(
    "text", ["Q1490", "wd:Q1490", "wd%3AQ1490", TOKYO, quote(TOKYO, safe=""), quote(f"<{TOKYO}>", safe="")]
)
async def test_an_entity_is_read_by_an_id_of_any_form(tokyo: LocalAdapter, text: str) -> None:
    assert (await read(tokyo, f"kg://entity/{text}")).startswith("Tokyo has 4 values; all here.")


async def test_an_id_that_looks_like_a_file_is_still_an_id(graph_of: Callable[[str], LocalAdapter]) -> None:
    graph = graph_of('@prefix e: <http://e.org/> . e:a e:name "A" . <http://e.org/../b> e:name "B" .')
    assert '"A"' in await read(graph, "kg://entity/e:a")
    assert '"B"' in await read(graph, f"kg://entity/{quote('http://e.org/../b', safe='')}")


async def test_a_resource_that_does_not_exist_is_told_apart_from_an_unknown_entity(tokyo: LocalAdapter) -> None:
    resource = await refusal(tokyo, "kg://nope")
    entity = await refusal(tokyo, "kg://entity/Q424242")
    name = await refusal(tokyo, "kg://entity/Osaka")
    assert (resource.code, resource.error.message) == (
        -32602,
        "There is no resource 'kg://nope'. There are kg://schema, kg-memory://{memory}, kg://entity/{id}, "
        "with ids percent-encoded.",
    )
    assert entity.error.message == "This graph has no entity 'Q424242'. Retrieve finds the id of a name."
    assert name.error.message.startswith("No entity matches 'Osaka'.")


async def test_a_megabyte_of_uri_is_refused_without_being_echoed(tokyo: LocalAdapter) -> None:
    huge = await refusal(tokyo, f"kg://entity/{'x' * 1_000_000}")
    long = await refusal(tokyo, f"kg://{'x' * 3_000}")
    assert huge.error.message == "A URI has at most 4,000 characters; this one has 1,000,012."
    assert huge.error.data is None
    assert len(long.error.message) < 300


async def test_a_backend_that_is_gone_or_silent_is_named(tokyo: LocalAdapter) -> None:
    assert "cannot be reached" in (await refusal(Absent(tokyo), "kg://schema")).error.message
    assert "cannot be reached" in (await refusal(Absent(tokyo), "kg://entity/Q17")).error.message
    silent = await refusal(Absent(tokyo), "kg://entity/Q1490", Settings(timeout_s=0.2))
    assert silent.error.message == "Reading it took longer than 0.2 seconds and was stopped."
