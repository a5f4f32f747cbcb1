"""What is kept of a question while it is asked: every call as a line, and at the end what came of it.

A run that was killed goes on from these lines: a reply or a result that stands here is not asked for again.
"""

import hashlib
import json
import os
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Annotated, Final, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from kg_agents.llm import AgentError, Completion, LlmRequest, Role
from kg_agents.trace import RecordedMessage
from kg_boundary.private_files import open_private
from kg_boundary.shown import json_text
from kg_eval.outcomes import Outcome


class DamagedRun(AgentError):
    """A file of a run is not what was written there; the text names it."""


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelLine(_Line):
    """One call to a model and its reply; `key` tells the request."""

    kind: Literal["model"] = "model"
    key: str
    model: str
    purpose: str
    messages: list[tuple[Role, str] | RecordedMessage]
    completion: Completion
    seconds: float


class CallLine(_Line):
    """One call of a tool and its answer, or why none came; its data only as long as the question is not done."""

    kind: Literal["tool"] = "tool"
    tool: str
    arguments: dict[str, object]
    text: str
    failed: bool
    seconds: float
    data: dict[str, object] = {}
    lost: bool = False

    @property
    def key(self) -> str:
        """What tells the call from every other."""
        return call_key(self.tool, self.arguments)


class OutcomeLine(_Line):
    """What came of the question."""

    kind: Literal["outcome"] = "outcome"
    outcome: Outcome


Line: TypeAlias = Annotated[ModelLine | CallLine | OutcomeLine, Field(discriminator="kind")]
_LINE: Final[TypeAdapter[ModelLine | CallLine | OutcomeLine]] = TypeAdapter(Line)


def key_of(model: str, request: LlmRequest) -> str:
    """Return what tells a request from every other."""
    return hashlib.sha256(f"{model} {request!r}".encode()).hexdigest()[:24]


def call_key(tool: str, arguments: Mapping[str, object]) -> str:
    """Return what tells a call of a tool from every other."""
    return f"{tool} {json.dumps(arguments, sort_keys=True)}"


class Journal:
    """The lines of one question, those of earlier runs and those of this one.

    Args:
        path: The file; what it holds is read at once.

    Raises:
        DamagedRun: It holds something else, but for a last line that was cut off.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = read_lines(path) if path.exists() else []
        self.outcome = next((line.outcome for line in lines if isinstance(line, OutcomeLine)), None)
        self._replies: dict[str, deque[ModelLine]] = {}
        self._results: dict[str, deque[CallLine]] = {}
        self._kept = [line for line in lines if isinstance(line, ModelLine) or _is_result(line)]
        for line in self._kept:
            if isinstance(line, ModelLine):
                self._replies.setdefault(line.key, deque()).append(line)
            elif isinstance(line, CallLine):
                self._results.setdefault(line.key, deque()).append(line)
        self._file: IO[str] | None = None

    def __enter__(self) -> Self:
        """Begin the file anew with the replies and the results that it held; they are not asked for again."""
        self._begin_anew(self._kept)
        self._kept = []
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def reply(self, key: str) -> ModelLine | None:
        """Return a reply of an earlier run, each once; None where there is none left."""
        left = self._replies.get(key)
        return left.popleft() if left else None

    def result(self, key: str) -> CallLine | None:
        """Return the answer of a tool in an earlier run, each once; None where there is none left."""
        left = self._results.get(key)
        return left.popleft() if left else None

    def finish(self, outcome: Outcome) -> None:
        """Keep what came of the question; the data of its calls, which nobody reads any more, are left out."""
        written = read_lines(self._path)
        lines = [each.model_copy(update={"data": {}}) if isinstance(each, CallLine) else each for each in written]
        self._begin_anew([*lines, OutcomeLine(outcome=outcome)])

    def _begin_anew(self, lines: Iterable[ModelLine | CallLine | OutcomeLine]) -> None:
        """Put other lines in the place of those of the file, all at once."""
        building = self._path.with_name(f".{self._path.name}")
        if self._file is not None:
            self._file.close()
        self._file = os.fdopen(open_private(building), "w", encoding="utf-8", errors="replace")
        for line in lines:
            self.write(line)
        building.replace(self._path)

    def write(self, line: ModelLine | CallLine | OutcomeLine) -> None:
        """Add a line, at once."""
        assert self._file is not None, "a journal is written inside its `with` block"  # noqa: S101 - a mistake of ours
        self._file.write(json_text(line.model_dump(mode="json")) + "\n")
        self._file.flush()


def _is_result(line: ModelLine | CallLine | OutcomeLine) -> bool:
    return isinstance(line, CallLine) and not line.lost


def read_lines(path: Path) -> list[ModelLine | CallLine | OutcomeLine]:
    """Read the lines of a question; the last may be cut off, as by a crash.

    Raises:
        DamagedRun: The file cannot be read, or another line is none.
    """
    try:
        texts = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except (OSError, UnicodeDecodeError) as error:
        raise DamagedRun(f"{path} cannot be read: {error}.") from error
    found: list[ModelLine | CallLine | OutcomeLine] = []
    for number, text in enumerate(texts, start=1):
        try:
            found.append(_LINE.validate_json(text))
        except ValidationError as error:
            if number == len(texts) and not text.endswith("\n"):
                break
            raise DamagedRun(
                f"{path}, line {number}: this is not a line of a run. Remove the file to ask again."
            ) from error
    return found
