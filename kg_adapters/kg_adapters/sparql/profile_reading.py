"""The profile of an endpoint's graph, computed once: exactly where the graph is small, else by a survey."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import anyio
import anyio.to_thread

from kg_adapters.errors import RETRY_S, BackendUnavailable, KGError
from kg_adapters.labels import Vocabulary
from kg_adapters.profile import GraphProfile, unknown_profile
from kg_adapters.profiling import profile_of
from kg_adapters.sparql.asking import QueryAsker
from kg_adapters.sparql.profile_survey import ProfileSurvey, statements_in
from kg_adapters.sparql.queries.profiles import SurveyQueries
from kg_adapters.sparql.rows import rows
from kg_adapters.sparql.schema import SchemaFile, size_of
from kg_adapters.sparql.solutions import Solutions

# Of the time that an answer may take: a profile is only a part of what its caller needs.
_SIZE_SHARE, _READ_SHARE = 0.25, 0.6


class Profiler:
    """Profiles a graph by two requests: how many statements it has, and all of them.

    Args:
        asker: What asks the endpoint.
        queries: What writes the queries.
        most_read: Graphs with more statements than this have no profile.
        clock: Returns the time, in seconds, by which an endpoint is found to be slow.

    Attributes:
        slow: Whether the endpoint is so slow that nothing more is to be asked for a profile.
    """

    def __init__(
        self,
        asker: QueryAsker,
        queries: SurveyQueries,
        most_read: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._asker = asker
        self._queries = queries
        self._most_read = most_read
        self._clock = clock
        self.slow = False

    async def profile(self) -> GraphProfile | None:
        """Return the profile: one of which nothing is known where the graph is too large, None without an answer.

        Raises:
            BackendUnavailable: The endpoint cannot be reached.
        """
        allowed_s = self._asker.timeout_s
        try:
            size = await size_of(self._asker, self._queries, _SIZE_SHARE * allowed_s, self._clock)
            self.slow = size is not None and size.is_slow
            if size is None or size.statements > self._most_read or self.slow:
                return unknown_profile()
            statements = await self._asker.ask_whole(
                self._queries.statements(self._most_read), timeout_s=_READ_SHARE * allowed_s
            )
        except BackendUnavailable:
            raise
        except KGError:
            return None
        if statements.truncated or len(statements.rows) < size.statements:
            # Some endpoints cut answers to a number of rows without reporting it.
            return unknown_profile()
        return await anyio.to_thread.run_sync(_counted, statements, self._queries.vocabulary)


def _counted(answer: Solutions, vocabulary: Vocabulary) -> GraphProfile:
    found = statements_in(rows(answer))
    return profile_of(((head, relation, tail) for _, head, relation, tail in found), vocabulary)


LONGEST_PAUSE_S: Final = 600.0
"""Pauses between surveys that fail grow up to so many seconds: each is many queries."""

PATIENCE_S: Final = 2.0
"""How many seconds the first caller waits for the survey in the background; later callers do not wait."""


class ProfileKeeper:
    """Keeps the profile, also from one session to the next.

    Args:
        reader: What reads small graphs; None where the graph is known to be large.
        survey: Makes what surveys a large one; a survey that the endpoint ends is used, but repeated and not kept.
        file: Where the profile is kept; None for nowhere.
        retry_s: After how many seconds a graph that was not read is tried again.
    """

    def __init__(
        self,
        reader: Profiler | None,
        survey: Callable[[], ProfileSurvey],
        file: SchemaFile | None,
        retry_s: float = RETRY_S,
    ) -> None:
        self._reader = reader
        self._survey = survey
        self._file = file
        self._known: GraphProfile | None = None
        self._refused = False
        self._retry_s = retry_s
        self._large = reader is None
        self._not_before = 0.0
        self._turn = anyio.Lock()
        self._wanted = anyio.Event()
        self._settled: anyio.Event | None = None

    async def profile(self) -> GraphProfile:
        """Return what is known of the graph; while `learn` runs, callers wait no more than a moment.

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
        """Return what is known of the graph, or was in an earlier session; a waiting `learn` starts."""
        self._wanted.set()
        if self._known is None and self._file is not None:
            self._known = self._file.profile()
        return self._known or unknown_profile()

    async def learn(self, *, when_asked: bool = False) -> None:
        """Compute the profile, however long it takes, and return when it is known.

        Args:
            when_asked: Whether to wait for the first call that needs it, and to retry where there is no answer.
        """
        if not when_asked:
            await self._learn()
            return
        self._settled = anyio.Event()
        await self._wanted.wait()
        pause_s = self._retry_s
        while self._known is None or self._refused:
            with suppress(KGError):  # other calls report it
                await self._learn()
            self._settled.set()
            if self._known is None or self._refused:
                await anyio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _learn(self) -> None:
        async with self._turn:
            await self._read()
            if (self._known is None or self._refused) and self._large:
                survey = self._survey()
                surveyed, self._refused = await survey.profile(), survey.refused
                if self._refused:
                    self._known = None if surveyed == unknown_profile() else surveyed
                elif surveyed != unknown_profile():
                    self._keep(surveyed)

    async def _read(self) -> None:
        """Take what is kept, or read the graph if it is small."""
        if self._known is None and self._file is not None:
            self._known = self._file.profile()
        if self._known is not None or self._large or self._reader is None or anyio.current_time() < self._not_before:
            return
        found = await self._reader.profile()
        self._not_before = anyio.current_time() + self._retry_s
        if self._reader.slow:
            self._known = found
            return
        self._large = found == unknown_profile()
        if found is not None and not self._large:
            self._keep(found)

    def _keep(self, profile: GraphProfile) -> None:
        self._known = profile
        if self._file is not None:
            self._file.keep_profile(profile)
