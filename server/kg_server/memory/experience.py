"""Solved questions, kept in a file."""

import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
from pydantic import BaseModel, ConfigDict, ValidationError

from kg_boundary.shown import clipped, json_text
from kg_server.callers import caller
from kg_server.memory.sqlite_file import SqliteFile

FORMAT: Final = 1

MAX_SOLVED: Final = 1_000
"""How many questions are kept of one graph; the oldest give way."""

MAX_GRAPHS: Final = 100
"""Of how many graphs questions are kept; those of the graph that learned last longest ago give way."""

MAX_QUESTION: Final = 1_000

MAX_PARTS: Final = 20
"""How many calls, answers and triples are kept of one question."""

MAX_TEXT: Final = 500

_TABLE: Final = """
CREATE TABLE solved (
    number INTEGER PRIMARY KEY, graph TEXT NOT NULL, question TEXT NOT NULL, at REAL NOT NULL, content TEXT NOT NULL,
    UNIQUE (graph, question)
) STRICT
"""

_KEEP: Final = "INSERT OR REPLACE INTO solved (graph, question, at, content) VALUES (?, ?, ?, ?)"

_REMOVE: Final = "DELETE FROM solved WHERE graph = ? AND question = ?"

_GIVE_WAY: Final = """
DELETE FROM solved WHERE number IN (SELECT number FROM solved WHERE graph = ? ORDER BY number DESC LIMIT -1 OFFSET ?)
"""

_FORGET_GRAPHS: Final = """
DELETE FROM solved WHERE graph IN (SELECT graph FROM solved GROUP BY graph ORDER BY max(number) DESC LIMIT -1 OFFSET ?)
"""


class Solved(BaseModel):
    """A question that was solved.

    Args:
        question: The question.
        calls: The calls that led to the answers, in their order.
        answers: The answers.
        evidence: The triples that they rest on, as `head | relation | tail`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str
    calls: tuple[str, ...]
    answers: tuple[str, ...]
    evidence: tuple[str, ...]

    def bounded(self) -> "Solved":
        """Return it with no more than is kept of one question."""
        parts = {
            name: tuple(clipped(text, MAX_TEXT) for text in texts[:MAX_PARTS])
            for name, texts in (("calls", self.calls), ("answers", self.answers), ("evidence", self.evidence))
        }
        return self.model_copy(update={"question": clipped(self.question, MAX_QUESTION), **parts})


class ExperienceStore:
    """Keeps solved questions by graph, in a file for its owner alone that is opened for each piece of work.

    They are those of `ask` on this machine: callers with a login are shown none.

    Args:
        path: The file; it is made with the first question.
        most: How many questions are kept of one graph.
        now: Tells the time, in seconds since 1970.
    """

    def __init__(self, path: Path, *, most: int = MAX_SOLVED, now: Callable[[], float] = time.time) -> None:
        self._file = SqliteFile(path, "file of solved questions", FORMAT, (_TABLE,))
        self._most = most
        self._now = now
        self._turn = anyio.CapacityLimiter(1)

    async def keep(self, graph: str, solved: Solved) -> None:
        """Keep a question, in place of what was kept of the same text.

        Raises:
            BackendError: The file cannot be used.
            InvalidSource: It is damaged, or of another version.
        """
        await anyio.to_thread.run_sync(self._keep, graph, solved.bounded(), limiter=self._turn)

    async def solved(self, graph: str) -> tuple[Solved, ...]:
        """Return the questions that are kept of a graph, the first one first; none to callers with a login.

        Raises:
            BackendError: The file cannot be used.
            InvalidSource: It is damaged, or of another version.
        """
        if caller().subject:
            return ()
        return await anyio.to_thread.run_sync(self._solved, graph, limiter=self._turn)

    async def remove(self, graph: str, questions: Sequence[str]) -> None:
        """Remove questions by their texts.

        Raises:
            BackendError: The file cannot be used.
            InvalidSource: It is damaged, or of another version.
        """
        await anyio.to_thread.run_sync(self._remove, graph, questions, limiter=self._turn)

    def _keep(self, graph: str, solved: Solved) -> None:
        with self._file.transaction(write=True) as connection:
            content = json_text(solved.model_dump(mode="json"))
            connection.execute(_KEEP, (graph, solved.question, float(self._now()), content))
            connection.execute(_GIVE_WAY, (graph, self._most))
            connection.execute(_FORGET_GRAPHS, (MAX_GRAPHS,))

    def _remove(self, graph: str, questions: Sequence[str]) -> None:
        with self._file.transaction(write=True) as connection:
            connection.executemany(_REMOVE, [(graph, question) for question in questions])

    def _solved(self, graph: str) -> tuple[Solved, ...]:
        if not self._file.path.exists():
            return ()
        with self._file.transaction(write=False) as connection:
            rows = connection.execute("SELECT content FROM solved WHERE graph = ? ORDER BY number", (graph,)).fetchall()
        return tuple(map(self._read, rows))

    def _read(self, row: sqlite3.Row) -> Solved:
        try:
            return Solved.model_validate_json(row["content"])
        except ValidationError as error:
            raise self._file.damaged("it holds something else than solved questions") from error
