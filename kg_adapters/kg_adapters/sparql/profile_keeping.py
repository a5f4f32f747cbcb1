"""The profile of an endpoint's graph, learned once: read if it is small, or else surveyed."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import anyio

from kg_adapters.errors import KGError
from kg_adapters.profile import GraphProfile, unknown_profile
from kg_adapters.sparql.profiling import Profiler
from kg_adapters.sparql.schema_file import SchemaFile

AGAIN_S: Final = 600.0
"""After how many seconds an endpoint that gave no profile is asked for it again."""
PATIENCE_S: Final = 2.0
"""How many seconds the first caller waits for what is learned behind it; the others wait for nothing."""


class ProfileKeeper:
    """Keeps what was learned, also from one session to the next.

    Args:
        reader: What reads small graphs; None where the graph is known to be large.
        survey: What surveys large ones.
        file: Where the profile is kept; None for nowhere.
    """

    def __init__(
        self, reader: Profiler | None, survey: Callable[[], Awaitable[GraphProfile]], file: SchemaFile | None
    ) -> None:
        self._reader = reader
        self._survey = survey
        self._file = file
        self._known: GraphProfile | None = None
        self._large = reader is None
        self._not_before = 0.0
        self._turn = anyio.Lock()
        self._wanted = anyio.Event()
        self._settled: anyio.Event | None = None

    async def profile(self) -> GraphProfile:
        """Return what is known of the graph; while `learn` runs, whoever asks does not wait for more than a moment.

        Raises:
            BackendUnavailable: The endpoint cannot be reached.
        """
        self._wanted.set()
        if self._settled is None:
            async with self._turn:
                await self._read()
        elif self._known is None and not self._settled.is_set():
            with anyio.move_on_after(PATIENCE_S):
                await self._settled.wait()
            self._settled.set()
        return self._known or unknown_profile()

    def known(self) -> GraphProfile:
        """Return what is known of the graph, or was in an earlier session; what learns it begins."""
        self._wanted.set()
        if self._known is None and self._file is not None:
            self._known = self._file.profile()
        return self._known or unknown_profile()

    async def learn(self, *, when_asked: bool = False) -> None:
        """Learn the profile, however long it takes, and return when it is known.

        Args:
            when_asked: Whether to wait until somebody asks for it, and to go on trying where there is no answer.
        """
        if not when_asked:
            await self._learn()
            return
        self._settled = anyio.Event()
        await self._wanted.wait()
        while self._known is None:
            with suppress(KGError):  # whoever asks for something else hears of it
                await self._learn()
            self._settled.set()
            if self._known is None:
                await anyio.sleep(AGAIN_S)

    async def _learn(self) -> None:
        async with self._turn:
            await self._read()
            if self._known is None and self._large:
                surveyed = await self._survey()
                if surveyed != unknown_profile():
                    self._keep(surveyed)

    async def _read(self) -> None:
        """Take what is kept, or read the graph if it is small."""
        if self._known is None and self._file is not None:
            self._known = self._file.profile()
        if self._known is not None or self._large or self._reader is None or anyio.current_time() < self._not_before:
            return
        found = await self._reader.profile()
        self._not_before = anyio.current_time() + AGAIN_S
        self._large = found == unknown_profile()
        if found is not None and not self._large:
            self._keep(found)

    def _keep(self, profile: GraphProfile) -> None:
        self._known = profile
        if self._file is not None:
            self._file.keep_profile(profile)
