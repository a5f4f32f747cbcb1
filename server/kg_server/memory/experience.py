"""Solved questions: kept in a file, found again by likeness, and shown by the Recall tool."""

import re
import sqlite3
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import anyio
import anyio.to_thread
from mcp.types import CallToolResult
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kg_adapters.protocol import KGAdapter
from kg_boundary.shown import clipped, json_text, visible_line
from kg_server.answers.results import Answer, Result, fitted
from kg_server.callers import caller
from kg_server.mcp_server import SextantServer, reading
from kg_server.memory.sqlite_file import SqliteFile

SAME: Final = 0.9
"""From which share of common letters on two questions count as the same."""

_MORE_WORDS: Final = 3
"""How many words a question may have beside those of another and still be the same."""

_MISSPELT: Final = 2
"""How many words may be misspelt."""

_SPELLING: Final = 0.8

_LONG: Final = 60

_LETTERS: Final = 3

_WORD: Final = re.compile(r"\w+")


class Likened:
    """A question in the form in which it is compared with others.

    Args:
        question: The question.
    """

    def __init__(self, question: str) -> None:
        plain = unicodedata.normalize("NFKD", question.casefold())
        words = _WORD.findall("".join(letter for letter in plain if not unicodedata.combining(letter)))
        text = f" {' '.join(words)} "
        self.words = Counter(words)
        self.letters = Counter(text[at : at + _LETTERS] for at in range(len(text) - _LETTERS + 1))

    def to(self, other: "Likened") -> float:
        """Return how like two questions are, from 0 to 1: half by words, half by letters."""
        return (_share(self.words, other.words) + _share(self.letters, other.letters)) / 2

    def is_same(self, other: "Likened") -> bool:
        """Say whether two questions are the same but for case, accents, order, a typing error or words around."""
        here, there = self.words - other.words, other.words - self.words
        around = not (here and there) and max(here.total(), there.total()) <= _MORE_WORDS
        return around or _misspelt(here, there) or _share(self.letters, other.letters) >= SAME


def _misspelt(here: Counter[str], there: Counter[str]) -> bool:
    """Say whether a few words are spelt in two ways."""
    if not here.total() == there.total() <= _MISSPELT:
        return False
    one, two = (" ".join(sorted(words.elements()))[:_LONG] for words in (here, there))
    return SequenceMatcher(None, one, two).ratio() >= _SPELLING


def _share(one: Counter[str], other: Counter[str]) -> float:
    """Return the share of what two have in common (Dice)."""
    both = one.total() + other.total()
    return 2 * (one & other).total() / both if both else 1.0


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

    async def like(self, graph: str, question: str, most: int) -> tuple[Solved, ...]:
        """Return the questions that are most like one, the most like first, and never that one itself.

        Raises:
            BackendError: The file cannot be used.
            InvalidSource: It is damaged, or of another version.
        """
        if caller().subject:
            return ()
        return await anyio.to_thread.run_sync(self._like, graph, question, most, limiter=self._turn)

    def _keep(self, graph: str, solved: Solved) -> None:
        with self._file.transaction(write=True) as connection:
            content = json_text(solved.model_dump(mode="json"))
            connection.execute(_KEEP, (graph, solved.question, float(self._now()), content))
            connection.execute(_GIVE_WAY, (graph, self._most))
            connection.execute(_FORGET_GRAPHS, (MAX_GRAPHS,))

    def _like(self, graph: str, question: str, most: int) -> tuple[Solved, ...]:
        if not self._file.path.exists():
            return ()
        with self._file.transaction(write=False) as connection:
            rows = connection.execute("SELECT content FROM solved WHERE graph = ? ORDER BY number", (graph,)).fetchall()
        asked = Likened(question)
        known = [(Likened(each.question), each) for each in map(self._read, rows)]
        others = [(asked.to(likened), each) for likened, each in known if not asked.is_same(likened)]
        return tuple(each for likeness, each in sorted(others, key=lambda found: -found[0])[:most] if likeness > 0)

    def _read(self, row: sqlite3.Row) -> Solved:
        try:
            return Solved.model_validate_json(row["content"])
        except ValidationError as error:
            raise self._file.damaged("it holds something else than solved questions") from error


MOST: Final = 3
"""How many questions are shown."""

MAX_TOKENS: Final = 1_000

_SHOWN: Final = 5
"""How many answers and triples are shown of each."""

Asked: TypeAlias = Annotated[str, Field(min_length=1, max_length=MAX_QUESTION)]


class SolvedResult(Result):
    """Solved questions as rows: `[number, question, call, answer or evidence, text]`."""

    solved: list[list[str]]


class RecallTool:
    """The tool over what was learned.

    Args:
        graph: The graph.
        store: Where solved questions are kept.
        max_tokens: How long an answer may be.
    """

    def __init__(self, graph: KGAdapter, store: ExperienceStore, max_tokens: int) -> None:
        self._graph = graph
        self._store = store
        self._max_tokens = min(max_tokens, MAX_TOKENS)

    def provide(self, server: SextantServer) -> None:
        """Add the tool."""
        server.provide(self.recall, "Recall", reading(self._graph))

    async def recall(self, question: Asked) -> CallToolResult:
        """Show solved questions like this one."""
        found = await self._store.like(self._graph.name, question, MOST)
        return solved_answer(found, self._max_tokens).to_mcp()


def solved_answer(found: Sequence[Solved], max_tokens: int) -> Answer:
    """Return solved questions as an answer."""

    def build(count: int) -> Answer:
        rows = [[str(number), *row] for number, each in enumerate(found[:count], start=1) for row in _rows(each)]
        summary = (
            f"{count} solved questions like this one, as examples." if count else "Nothing like this was solved yet."
        )
        return Answer(
            SolvedResult(status="ok" if rows else "empty", summary=summary, solved=rows),
            tuple(f"{number}. {kind}: {text}" for number, kind, text in rows),
        )

    return fitted(build, len(found), max_tokens)


def _rows(solved: Solved) -> list[tuple[str, str]]:
    parts = (
        ("question", (solved.question,)),
        ("call", solved.calls),
        ("answer", solved.answers[:_SHOWN]),
        ("evidence", solved.evidence[:_SHOWN]),
    )
    return [(kind, visible_line(text)) for kind, texts in parts for text in texts]
