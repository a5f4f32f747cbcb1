"""What was counted of a graph at import: its definition and its profile, read from its store when first asked for."""

from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread

from kg_adapters.local.profile_file import FILE as PROFILE_FILE
from kg_adapters.local.profile_file import read_profile
from kg_adapters.local.schema_file import FILE as SCHEMA_FILE
from kg_adapters.local.schema_file import read_schema
from kg_adapters.local.store import LocalStore
from kg_adapters.models import GraphSchema
from kg_adapters.profile import GraphProfile

T = TypeVar("T")


class StoreDefinition:
    """The definition and the profile of a store's graph, each read once.

    Both methods raise `Damage` where the file is not what the import wrote.
    """

    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self._schema: GraphSchema | None = None
        self._profile: GraphProfile | None = None

    async def schema(self) -> GraphSchema:
        """Return the definition of the graph."""
        if self._schema is None:
            prefixes = self._store.info.prefixes
            self._schema = await self._read(SCHEMA_FILE, lambda text: read_schema(text, prefixes))
        return self._schema

    async def profile(self) -> GraphProfile:
        """Return the profile of the graph."""
        if self._profile is None:
            self._profile = await self._read(PROFILE_FILE, read_profile)
        return self._profile

    async def _read(self, file: str, parse: Callable[[bytes], T]) -> T:
        def read() -> T:
            with self._store.reading(file):
                return parse(self._store.read(file))

        return await anyio.to_thread.run_sync(read)
