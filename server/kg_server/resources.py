"""What can be read without a tool: the definition of a graph, and an entity."""

from typing import Final

from mcp.server.mcpserver import ResourceSecurity
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from kg_adapters.errors import InvalidRequest, KGError, UnknownEntity
from kg_boundary.shown import visible_lines
from kg_server.concurrency import load
from kg_server.graphs import GraphSet
from kg_server.mcp_server import SextantServer

MAX_TOKENS: Final = 4_000
_ID_OF_ANY_FORM: Final = ResourceSecurity(exempt_params={"id"})
"""For `e:Tokyo`, which looks like a file on a drive, and is none."""


class Resources:
    """What can be read without a tool."""

    def __init__(self, graphs: GraphSet) -> None:
        self._graphs = graphs

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
            security=_ID_OF_ANY_FORM,
        )(self.entity)
        if self._graphs.several:
            server.resource(
                "kg://{graph}/schema", name="schema-of", title="The definition of one graph", mime_type="text/plain"
            )(self.schema_of)
            server.resource(
                "kg://{graph}/entity/{+id}",
                name="entity-of",
                title="One entity of one graph",
                mime_type="text/plain",
                security=_ID_OF_ANY_FORM,
            )(self.entity_of)

    async def schema(self) -> str:
        """Classes, relations, features and prefixes, with counts and examples."""
        return await self._schema(None)

    async def schema_of(self, graph: str) -> str:
        """Classes, relations, features and prefixes of one graph, with counts and examples."""
        return await self._schema(graph)

    async def entity(self, id: str) -> str:
        """An entity's values, and the first of its triples in both directions."""
        return await self._entity(id, None)

    async def entity_of(self, graph: str, id: str) -> str:
        """The values of an entity of one graph, and the first of its triples in both directions."""
        return await self._entity(id, graph)

    async def _schema(self, graph: str | None) -> str:
        await load("kg_server.schema_view")
        from kg_server.schema_view import schema_view

        try:
            here = await self._graphs.opened(graph)
            notes = await here.notes.read()
            answer = await schema_view(
                here.adapter, here.meaning, here.schemas, about=None, max_tokens=MAX_TOKENS, notes=notes
            )
        except InvalidRequest as error:
            raise ResourceNotFoundError(visible_lines(str(error))) from error
        except KGError as error:
            raise ResourceError(visible_lines(str(error))) from error
        return answer.text

    async def _entity(self, id: str, name: str | None) -> str:
        await load("kg_server.naming.entities", "kg_server.answers.features", "kg_server.answers.neighbors")
        from kg_server.answers.features import features_of
        from kg_server.answers.neighbors import neighborhood
        from kg_server.naming.entities import read_entities

        try:
            graph = (await self._graphs.opened(name)).adapter
            read = await read_entities(graph, id)
            values = await features_of(graph, entity=read.ids[0], feature=None, max_tokens=MAX_TOKENS // 2)
            triples = await neighborhood(
                graph,
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
