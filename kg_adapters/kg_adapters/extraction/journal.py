"""The folder in which an unfinished extraction keeps what it has."""

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.extraction.records import Answer, Plan, Request
from kg_boundary.regular_files import read_regular
from kg_boundary.shown import in_quotes

_PLAN: Final = "plan"
_SUFFIXES: Final = frozenset({".json", ".part"})

R = TypeVar("R", bound=BaseModel)
A = TypeVar("A", bound=Answer)


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
        """Return the plan that was begun, or None where there is none.

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
        """Start anew with a plan.

        Raises:
            InvalidRequest: The folder holds files of somebody else.
            InvalidSource: The folder cannot be written.
        """
        if strange := self._files(ours=False):
            raise InvalidRequest(
                f"{self.folder} is for the answers of an extraction, and holds {strange[0].name}, which is not part of "
                "one. Move it away, or choose another --out."
            )
        self.clear()
        self._write(_PLAN, plan)

    async def once(self, name: str, kind: type[A], asked: tuple[str, ...], ask: Callable[[], Awaitable[A]]) -> A:
        """Return the answer called `name` if it is there and about `asked`; else ask, and keep what comes.

        Raises:
            InvalidSource: The folder cannot be written.
        """
        kept = self._read(name, kind)
        if kept is not None and kept.asked == asked:
            return kept
        answer = await ask()
        self._write(name, answer)
        return answer

    def answers(self, names: Iterable[str], kind: type[A]) -> Iterator[A]:
        """Yield answers that are there.

        Raises:
            InvalidSource: One is not.
        """
        for name in names:
            answer = self._read(name, kind)
            if answer is None:
                raise InvalidSource(f"{name}.json is gone from {self.folder}. Run the same command again to resume.")
            yield answer

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
        """Return what is in the folder: what an extraction writes, or what is somebody else's."""
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
