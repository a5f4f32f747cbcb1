"""What a run keeps of each question: its calls, its outcome, and verdicts on it."""

import hashlib
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Annotated, Final, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from kg_agents.llm import AgentError, Completion, Llm, LlmRequest, Role, Usage
from kg_agents.tools.client import Toolbox, ToolCall, ToolError, ToolOffer
from kg_agents.trace import RecordedMessage, recorded
from kg_boundary.private_files import open_private
from kg_boundary.regular_files import read_regular
from kg_boundary.shown import json_text
from kg_eval.metrics.summary import JudgeVerdict, Verdicts, judge
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
        texts = read_regular(path).decode().splitlines(keepends=True)
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


@dataclass
class Account:
    """What a question has used.

    Args:
        usage: What models used, in earlier runs as well.
        tool_calls: How many calls of tools were made.
        fallbacks: How many observations spelling scored because the embedder was away or busy.
        earlier_s: How long models and tools took in earlier runs, for what is not asked for again.
    """

    usage: Usage = field(default_factory=Usage)
    tool_calls: int = 0
    fallbacks: int = 0
    earlier_s: float = 0.0


@dataclass(frozen=True, slots=True)
class KeptLlm:
    """Passes requests on to a model and keeps the replies; what an earlier run was told is not asked for again.

    Args:
        llm: The model.
        journal: Where they are kept; open.
        account: What they count for.
        clock: Seconds, from any beginning.
    """

    llm: Llm
    journal: Journal
    account: Account
    clock: Callable[[], float] = time.monotonic

    @property
    def name(self) -> str:
        """See `Llm`."""
        return self.llm.name

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`."""
        key = key_of(self.name, request)
        if (known := self.journal.reply(key)) is not None:
            self.account.usage += known.completion.usage
            self.account.earlier_s += known.seconds
            return known.completion
        began = self.clock()
        completion = await self.llm.complete(request)
        self.account.usage += completion.usage
        self.journal.write(
            ModelLine(
                key=key,
                model=self.name,
                purpose=request.purpose,
                messages=[*map(recorded, request.messages)],
                completion=completion,
                seconds=round(self.clock() - began, 3),
            )
        )
        return completion


@dataclass(frozen=True, slots=True)
class KeptTools:
    """Passes calls on to tools and keeps their results; a call that an earlier run made is not made again.

    Args:
        tools: The tools.
        journal: Where they are kept; open.
        account: What they count for.
        clock: Seconds, from any beginning.
    """

    tools: Toolbox
    journal: Journal
    account: Account
    clock: Callable[[], float] = time.monotonic

    async def offer(self) -> ToolOffer:
        """See `Toolbox`."""
        return await self.tools.offer()

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """See `Tools`."""
        self.account.tool_calls += 1
        if (known := self.journal.result(call_key(tool, arguments))) is not None:
            self.account.earlier_s += known.seconds
            self.account.fallbacks += _fell_back(known.data)
            return ToolCall(tool, arguments, known.text, known.data, known.failed)
        began = self.clock()
        try:
            call = await self.tools.call(tool, arguments)
        except ToolError as error:
            self._write(ToolCall(tool, arguments, str(error), {}, failed=True), began, lost=True)
            raise
        self.account.fallbacks += _fell_back(call.data)
        self._write(call, began)
        return call

    def _write(self, call: ToolCall, began: float, *, lost: bool = False) -> None:
        self.journal.write(
            CallLine(
                tool=call.tool,
                arguments=dict(call.arguments),
                text=call.text,
                failed=call.failed,
                seconds=round(self.clock() - began, 3),
                data=dict(call.data),
                lost=lost,
            )
        )


def _fell_back(data: Mapping[str, object]) -> bool:
    """Say whether spelling alone scored an observation, with a reason in brackets why it had to."""
    return str(data.get("scorer", "")).startswith("spelling alone (")


VERDICTS: Final = "verdicts.jsonl"


class VerdictLine(BaseModel):
    """What judges said of one question."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    judge: str
    verdict: JudgeVerdict


async def judge_run(folder: Path, outcomes: tuple[Outcome, ...], llm: Llm) -> Mapping[str, JudgeVerdict]:
    """Have a model judge the answers of a run that it has not judged yet, and return all its verdicts by id.

    Raises:
        RunEnded: The model fails; what it said so far is kept.
    """
    verdicts = dict(read_verdicts(folder).get(llm.name, {}))
    with (folder / VERDICTS).open("a", encoding="utf-8") as file:
        for outcome in outcomes:
            id_ = outcome.record.id
            if id_ in verdicts or outcome.skipped:
                continue
            verdicts[id_] = await judge(outcome, llm)
            line = VerdictLine(id=id_, judge=llm.name, verdict=verdicts[id_])
            file.write(json_text(line.model_dump()) + "\n")
            file.flush()
    return verdicts


def read_verdicts(folder: Path) -> Verdicts:
    """Return the verdicts of a run by judge and by id; nothing where nobody judged it.

    Raises:
        DamagedRun: The file holds something else.
    """
    path = folder / VERDICTS
    found: dict[str, dict[str, JudgeVerdict]] = {}
    if not path.exists():
        return found
    try:
        lines = [VerdictLine.model_validate_json(text) for text in read_regular(path).decode().splitlines()]
    except ValidationError as error:
        raise DamagedRun(f"{path} holds no verdicts. Remove it to judge anew.") from error
    for line in lines:
        found.setdefault(line.judge, {})[line.id] = line.verdict
    return found
