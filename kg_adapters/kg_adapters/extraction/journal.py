"""The folder of an unfinished extraction: the request, and each answer as it arrived."""

import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Annotated, Final, TypeAlias, TypeVar
from typing import Literal as Choice

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.files.rows import Row, line_of
from kg_adapters.labels import Vocabulary
from kg_adapters.local.store import SourceFile
from kg_adapters.prefixes import Prefixes
from kg_boundary.regular_files import read_regular
from kg_boundary.shown import in_quotes

MAX_HOPS: Final = 10

MAX_BATCH: Final = 1_000

ValueChoice: TypeAlias = Choice["all", "inner", "none"]
"""Whose literals are taken: everybody's, those of all entities but the ones of the last hop, or nobody's."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Bounds(_Record):
    """How far an extraction goes.

    Args:
        hops: How many edges lie between an entity that was named and the farthest that is taken.
        per_relation: The most triples of one entity over one relation in one direction.
        max_degree: The most triples of one entity. One that has more is a hub: its triples are left out, unless it was
            named itself.
        batch: How many entities one request is about.
    """

    hops: Annotated[int, Field(ge=1, le=MAX_HOPS)] = 3
    per_relation: Annotated[int, Field(ge=1)] = 200
    max_degree: Annotated[int, Field(ge=1)] = 1_000
    batch: Annotated[int, Field(ge=1, le=MAX_BATCH)] = 100


class Request(_Record):
    """What is to be extracted; two runs with the same request go on with the same work.

    Args:
        graph: The name under which the graph is opened.
        bounds: How far to go.
        source: The file that names the entities.
        fields: The fields of its JSON lines that hold ids.
    """

    graph: str
    bounds: Bounds
    source: SourceFile
    fields: tuple[str, ...]


class Unknown(_Record):
    """A line of the file that names no entity of the graph, and why."""

    line: int
    text: str
    reason: str


class Plan(_Record):
    """What an extraction goes by from its start to its end.

    Args:
        request: What was asked for.
        seeds: The `node_key` of every entity that was named, sorted.
        unknown: The lines that name none.
        prefixes: The short forms of the graph's IRIs.
        vocabulary: The relations that name, describe and type its entities.
    """

    request: Request
    seeds: tuple[str, ...]
    unknown: tuple[Unknown, ...]
    prefixes: Prefixes
    vocabulary: Vocabulary


class Cut(_Record):
    """An entity of whose triples some or all were left out.

    Args:
        node: Its `node_key`.
        total: How many triples there are around it, or at least are.
        exact: Whether there are exactly so many.
        hub: Whether all were left out.
    """

    node: str
    total: int
    exact: bool
    hub: bool


class BatchAnswer(_Record):
    """What came of one batch.

    Args:
        asked: The `node_key` of everything that it was about.
        rows: The statements that were found.
        cut: The entities of whose triples some or all were left out.
        left_out: How many literals more, or at least more, there are.
        exact: Whether there are exactly so many.
    """

    asked: tuple[str, ...]
    rows: tuple[Row, ...]
    cut: tuple[Cut, ...] = ()
    left_out: int = 0
    exact: bool = True


_PLAN: Final = "plan"

_SUFFIXES: Final = frozenset({".json", ".part", ".nt"})

R = TypeVar("R", bound=BaseModel)


class Journal:
    """Keeps every answer in a file that appears as a whole, so that nothing is asked for twice.

    Args:
        folder: Where; it need not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def beside(cls, store: Path) -> "Journal":
        """Return the journal of an extraction to the store `store`."""
        return cls(store.with_name(f"{store.name}.unfinished"))

    def plan(self, request: Request) -> Plan | None:
        """Return the plan of an unfinished extraction, or None.

        Raises:
            InvalidRequest: It was begun for another request.
        """
        plan = self._read(_PLAN, Plan)
        if plan is not None and plan.request != request:
            raise InvalidRequest(
                f"{self.folder} holds an unfinished extraction of {_difference(plan.request, request)}. Finish it "
                "as it was begun, add --restart to throw it away, or choose another --out."
            )
        return plan

    def begin(self, plan: Plan) -> None:
        """Start with a plan, without earlier answers.

        Raises:
            InvalidRequest: The folder holds other files.
            InvalidSource: The folder cannot be written.
        """
        if strange := self._files(ours=False):
            raise InvalidRequest(
                f"{self.folder} is for the answers of an extraction, and holds {strange[0].name}, which is not part of "
                "one. Move it away, or choose another --out."
            )
        self.clear()
        self._write(_PLAN, plan)

    async def once(self, name: str, asked: tuple[str, ...], ask: Callable[[], Awaitable[BatchAnswer]]) -> BatchAnswer:
        """Return the answer called `name` if it is there and about `asked`; else ask, and keep what comes.

        Raises:
            InvalidSource: The folder cannot be written.
        """
        kept = self._read(name, BatchAnswer)
        if kept is not None and kept.asked == asked:
            return kept
        answer = await ask()
        self._write(name, answer)
        return answer

    def write_statements(self, names: Iterable[str]) -> Path:
        """Write the statements of some answers into one file of N-Triples, and return it.

        Raises:
            InvalidSource: One of the answers is gone.
            OSError: There is no room for it.
        """
        file = self.folder / "statements.nt"
        with file.open("w", encoding="utf-8", newline="\n") as written:
            for name in names:
                answer = self._read(name, BatchAnswer)
                if answer is None:
                    raise InvalidSource(
                        f"{name}.json is gone from {self.folder}. Run the same command again to resume."
                    )
                written.writelines(map(line_of, answer.rows))
        return file

    def clear(self) -> None:
        """Throw everything away that an extraction has kept here.

        Raises:
            InvalidSource: It cannot be removed.
        """
        try:
            if self.folder.is_dir():
                # Without its plan the rest means nothing, should this be interrupted.
                (self.folder / f"{_PLAN}.json").unlink(missing_ok=True)
                for each in self._files(ours=True):
                    each.unlink()
                if not self._files(ours=False):
                    self.folder.rmdir()
        except OSError as error:
            raise InvalidSource(f"{self.folder} cannot be removed: {error.strerror or error}.") from error

    def _files(self, *, ours: bool) -> list[Path]:
        """Return what is in the folder: what an extraction writes, or other files."""
        there = self.folder.iterdir() if self.folder.is_dir() else ()
        return [each for each in there if (each.suffix in _SUFFIXES and each.is_file()) == ours]

    def _read(self, name: str, kind: type[R]) -> R | None:
        try:
            return kind.model_validate_json(read_regular(self.folder / f"{name}.json"))
        except (OSError, ValidationError):
            return None

    def _write(self, name: str, record: BaseModel) -> None:
        part = self.folder / f"{name}.part"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as file:
                file.write(record.model_dump_json().encode())
                file.flush()
                os.fsync(file.fileno())
            part.replace(part.with_suffix(".json"))
        except OSError as error:
            raise InvalidSource(
                f"{self.folder} cannot be written: {error.strerror or error}. Make sure that its disk has room, then "
                "run the same command again to resume."
            ) from error


def _difference(begun: Request, now: Request) -> str:
    if begun.graph != now.graph:
        return f"the graph {in_quotes(begun.graph)}"
    if begun.bounds != now.bounds:
        was, wanted = begun.bounds.model_dump(), now.bounds.model_dump()
        flags = (f"--{name.replace('_', '-')} {was[name]}" for name in was if was[name] != wanted[name])
        return f"other bounds, {' '.join(flags)}"
    return "other entities" if begun.fields == now.fields else f"other fields, {', '.join(begun.fields)}"
