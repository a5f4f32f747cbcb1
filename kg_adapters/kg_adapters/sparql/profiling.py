"""The profile of an endpoint's graph, counted here from all its statements where these are few enough to be read."""

from collections.abc import Iterator

import anyio
import anyio.to_thread

from kg_adapters.errors import BackendUnavailable, KGError
from kg_adapters.labels import Vocabulary
from kg_adapters.profile import GraphProfile, unknown_profile
from kg_adapters.profiling import Statement, profile_of
from kg_adapters.sparql.asking import Asker
from kg_adapters.sparql.queries.survey import SurveyQueries
from kg_adapters.sparql.rows import rows
from kg_adapters.sparql.solutions import Solutions

# Of the time that an answer may take: whoever asks for a profile wants something else in the first place.
_SIZE_SHARE, _READ_SHARE = 0.25, 0.6


class Profiler:
    """Profiles a graph by two requests: how many statements it has, and all of them.

    Args:
        asker: What asks the endpoint.
        queries: What writes the queries.
        most_read: Graphs with more statements than this have no profile.
    """

    def __init__(self, asker: Asker, queries: SurveyQueries, most_read: int) -> None:
        self._asker = asker
        self._queries = queries
        self._most_read = most_read

    async def profile(self) -> GraphProfile | None:
        """Return the profile: one of which nothing is known where the graph is too large, None without an answer.

        Raises:
            BackendUnavailable: The endpoint cannot be reached.
        """
        allowed_s = self._asker.timeout_s
        try:
            size = await self._asker.ask_whole(self._queries.size(), timeout_s=_SIZE_SHARE * allowed_s)
            number = next((row.number("n") for row in rows(size)), None)
            if number is None or number > self._most_read:
                return unknown_profile()
            statements = await self._asker.ask_whole(
                self._queries.statements(self._most_read), timeout_s=_READ_SHARE * allowed_s
            )
        except BackendUnavailable:
            raise
        except KGError:
            return None
        if statements.truncated or len(statements.rows) < number:
            # Some endpoints send no more than so many rows, and do not say so.
            return unknown_profile()
        return await anyio.to_thread.run_sync(_counted, statements, self._queries.vocabulary)


def _counted(answer: Solutions, vocabulary: Vocabulary) -> GraphProfile:
    return profile_of(_read(answer), vocabulary)


def _read(answer: Solutions) -> Iterator[Statement]:
    for row in rows(answer):
        head, relation, tail = row.node("s"), row.iri("p"), row.term("o")
        if head is not None and relation is not None and tail is not None:
            yield head, relation, tail
