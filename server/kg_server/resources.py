"""The graph as MCP resources: its definition, and every entity."""

from mcp.server.mcpserver import ResourceSecurity
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from kg_adapters.errors import InvalidRequest, KGError, UnknownEntity
from kg_adapters.protocol import KGAdapter
from kg_boundary.shown import visible_lines
from kg_server.mcp_server import SextantServer
from kg_server.meaning import Meaning

MAX_TOKENS = 4_000


class Resources:
    """What can be read without a tool."""

    def __init__(self, graph: KGAdapter, meaning: Meaning) -> None:
        self._graph = graph
        self._meaning = meaning

    def provide(self, server: SextantServer) -> None:
        """Add every resource."""
        server.resource("kg://schema", name="schema", title="The graph's definition", mime_type="text/plain")(
            self.schema
        )
        server.resource(
            "kg://entity/{+id}",
            name="entity",
            title="One entity",
            mime_type="text/plain",
            security=ResourceSecurity(exempt_params={"id"}),  # `e:Tokyo` looks like a file on a drive, and is none
        )(self.entity)

    async def schema(self) -> str:
        """Classes, relations, features and prefixes, with counts and examples."""
        from kg_server.schema_view import schema_view

        try:
            answer = await schema_view(self._graph, self._meaning, about=None, max_tokens=MAX_TOKENS)
        except KGError as error:
            raise ResourceError(visible_lines(str(error))) from error
        return answer.text

    async def entity(self, id: str) -> str:
        """An entity's values, and the first of its triples in both directions."""
        from kg_server.entity_arguments import read_entities
        from kg_server.features import features_of
        from kg_server.neighborhood import neighborhood

        try:
            read = await read_entities(self._graph, id)
            values = await features_of(self._graph, entity=read.ids[0], feature=None, max_tokens=MAX_TOKENS // 2)
            triples = await neighborhood(
                self._graph,
                entity=read.ids[0],
                relation=None,
                direction="both",
                limit=100,
                cursor=None,
                max_tokens=MAX_TOKENS // 2,
            )
        except (UnknownEntity, InvalidRequest) as error:
            raise ResourceNotFoundError(visible_lines(str(error))) from error
        except KGError as error:
            raise ResourceError(visible_lines(str(error))) from error
        return f"{read.told(values).text}\n\n{triples.text}"
