"""The record of a run as JSON lines, every prompt, reply and call, and the same run again from it."""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import IO, Annotated, Final, Literal, Self, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, TypeAdapter, ValidationError

from kg_agents.evidence.answers import AgentAnswer, GivenAnswer, RunStep, Status
from kg_agents.linking import Linking
from kg_agents.llm import (
    AgentError,
    Completion,
    Function,
    FunctionCall,
    Llm,
    LlmError,
    LlmRequest,
    Message,
    PromptTooLong,
    Role,
    ToolsUnsupported,
    Usage,
)
from kg_agents.llm.texts import whole_characters
from kg_agents.tools.client import Toolbox, ToolCall, ToolError, ToolOffer
from kg_boundary.private_files import open_private, private_folder
from kg_boundary.regular_files import open_regular
from kg_boundary.shown import json_text

FORMAT: Final = 2

RecordedAgent: TypeAlias = Literal["tools", "oda", "graph-counselor", "oda-without-model"]
"""What can be run again from its record."""

INTERRUPTED: Final = "interrupted"
"""How a run ended whose record holds no answer."""

MAX_LINE: Final = 50_000_000
"""How many bytes a line of a record may have."""

MAX_TRACE: Final = 500_000_000
"""How many bytes a record may have."""

_QUOTED: Final = 200


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RunLine(_Line):
    """How the run began: question, the entities that were given, agent, parameters, graph and models."""

    kind: Literal["run"] = "run"
    format: int = FORMAT
    question: str
    entities: list[str]
    agent: RecordedAgent
    parameters: dict[str, object]
    model: str
    graph: str
    judge: str = ""
    reflector: str = ""
    learn: bool = False
    graphs: list[str] = Field(default=[], exclude_if=lambda graphs: not graphs)


_PAIR: Final = TypeAdapter(tuple[Role, str])


def _message(value: object) -> object:
    return Message(*_PAIR.validate_python(value)) if isinstance(value, list) else value


def _pair(message: Message) -> Message | list[str]:
    return message if message.calls or message.call_id else [message.role, message.content]


RecordedMessage: TypeAlias = Annotated[Message, BeforeValidator(_message), PlainSerializer(_pair)]
"""A message; one that neither calls a function nor is the result of a call is a pair of role and content."""


class LlmLine(_Line):
    """One call to the model, its reply or its failure, tokens, and when it began and how long it took, in seconds."""

    kind: Literal["llm"] = "llm"
    model: str = ""
    purpose: str
    messages: tuple[RecordedMessage, ...]
    reply: str = ""
    calls: tuple[FunctionCall, ...] = ()
    error: str = ""
    too_long: bool = False
    no_tools: bool = False
    finish_reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    at_s: float
    took_s: float = 0.0

    @property
    def usage(self) -> Usage:
        """What the call has used; nothing where there was no reply."""
        return Usage() if self.error else Usage(self.prompt_tokens, self.completion_tokens, self.cost, 1)

    @property
    def completion(self) -> Completion:
        """The reply.

        Raises:
            LlmError: There was none.
        """
        if self.error:
            failure = ToolsUnsupported if self.no_tools else PromptTooLong if self.too_long else LlmError
            raise failure(self.error)
        return Completion(self.reply, self.usage, self.finish_reason, self.calls)


class ToolLine(_Line):
    """One call of a tool, its answer or why none came, and when it began and how long it took, in seconds."""

    kind: Literal["tool"] = "tool"
    tool: str
    arguments: dict[str, object]
    text: str = ""
    data: dict[str, object] = {}
    failed: bool = True
    error: str = ""
    at_s: float
    took_s: float = 0.0


class OfferLine(_Line):
    """The tools that the server offered, or why it did not say, and when that began and how long it took."""

    kind: Literal["offer"] = "offer"
    instructions: str = ""
    tools: tuple[Function, ...] = ()
    error: str = ""
    at_s: float
    took_s: float = 0.0


class AnswerLine(_Line):
    """How the run ended, and what each answer rests on."""

    kind: Literal["answer"] = "answer"
    answers: list[GivenAnswer]
    model_answer: list[str]
    status: Status
    stop_reason: str
    explanation: str
    tokens: int
    seconds: float

    @classmethod
    def of(cls, answer: AgentAnswer) -> Self:
        """Return how a run ended with an answer."""
        return cls(
            answers=list(answer.answers),
            model_answer=list(answer.model_answer),
            status=answer.status,
            stop_reason=answer.stop_reason,
            explanation=answer.explanation,
            tokens=answer.usage.tokens,
            seconds=round(answer.seconds, 3),
        )

    def says(self, answer: AgentAnswer) -> bool:
        """Return whether an answer is the one that was kept."""
        kept = type(self).of(answer)
        return kept.model_copy(update={"tokens": self.tokens, "seconds": self.seconds}) == self


CallLine: TypeAlias = LlmLine | OfferLine | ToolLine
AnyLine: TypeAlias = RunLine | CallLine | AnswerLine
_LINE: Final[TypeAdapter[AnyLine]] = TypeAdapter(Annotated[AnyLine, Field(discriminator="kind")])


class InvalidTrace(AgentError):
    """A file is no trace, or of another version."""


class CallLog(ABC):
    """Takes the lines of calls, each when the call ends.

    Args:
        clock: Seconds, from any beginning.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()

    @property
    def now_s(self) -> float:
        """Seconds since the log began."""
        return round(self._clock() - self._began, 6)

    @abstractmethod
    def write(self, line: AnyLine) -> None:
        """Add a line."""

    def end(self, call: CallLine, **outcome: object) -> None:
        """Add the line of a call that ends now."""
        self.write(call.model_copy(update={**outcome, "took_s": round(self.now_s - call.at_s, 6)}))


class Trace(CallLog):
    """Writes a record, line by line, so that what happened before a crash is there; only its owner may read it.

    Args:
        path: The file; it is overwritten.
        clock: Seconds, from any beginning.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self.path = path
        self._file: IO[str] | None = None

    def __enter__(self) -> Self:
        """Open the file.

        Raises:
            InvalidTrace: It is there and holds something else than a record.
            OSError: It cannot be written.
        """
        if self.path.is_fifo() or (self.path.is_file() and not _is_replaceable(self.path)):
            raise InvalidTrace(f"{self.path} holds no trace and is not overwritten. Choose another file.")
        private_folder(self.path.parent)
        self._file = os.fdopen(open_private(self.path), "w", encoding="utf-8", errors="replace")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def write(self, line: AnyLine) -> None:
        """Add a line."""
        assert self._file is not None, "a trace is written inside its `with` block"  # noqa: S101 - a mistake of ours
        self._file.write(json_text(line.model_dump(mode="json")) + "\n")
        self._file.flush()


def read_trace(path: Path) -> list[AnyLine]:
    """Read a record.

    Raises:
        InvalidTrace: The file cannot be read, or is no record of this version.
    """
    try:
        lines = list(_lines(path))
    except OSError as error:
        raise InvalidTrace(f"The trace {path} cannot be read: {error.strerror}.") from error
    if not lines or not isinstance(lines[0], RunLine):
        raise InvalidTrace(f"{path} is not a trace: its first line does not say what was asked.")
    if lines[0].format != FORMAT:
        raise InvalidTrace(f"The trace {path} has format {lines[0].format}; this version reads {FORMAT}.")
    for number, line in enumerate(lines[1:], start=2):
        if isinstance(line, RunLine) or (isinstance(line, AnswerLine) and number < len(lines)):
            raise InvalidTrace(f"{path}, line {number}: this belongs to another run.")
    return lines


def _is_replaceable(path: Path) -> bool:
    """Return whether a file is empty, or a record."""
    with open_regular(path) as file:
        first = file.readline(MAX_LINE)
    try:
        return not first or isinstance(_LINE.validate_json(first), RunLine)
    except ValidationError:
        return False


def _lines(path: Path) -> Iterator[AnyLine]:
    left = MAX_TRACE
    with open_regular(path) as file:
        for number in count(1):
            text = file.readline(MAX_LINE + 1)
            left -= len(text)
            if not text:
                return
            if len(text) > MAX_LINE or left < 0:
                raise InvalidTrace(f"{path}, line {number}: a trace is not as long as this.")
            try:
                yield _LINE.validate_json(text)
            except ValidationError as error:
                raise InvalidTrace(f"{path}, line {number}: this is not a line of a trace.") from error


@dataclass(frozen=True, slots=True)
class Watcher:
    """What is notified while a run goes on.

    Args:
        on_linked: Called with the entities that the question is about, and what stands for none.
        on_begin: Called with every call that begins: a tool by its name, or the purpose that the model is asked for.
        on_used: Called with what each call to the model used.
        on_step: Called with every step.
    """

    on_linked: Callable[[Linking], None] = lambda _: None
    on_begin: Callable[[str], None] = lambda _: None
    on_used: Callable[[Usage], None] = lambda _: None
    on_step: Callable[[RunStep], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class TracedLlm:
    """Passes calls on to a model, records them and notifies the watcher."""

    llm: Llm
    trace: CallLog
    watcher: Watcher = field(default_factory=Watcher)

    @property
    def name(self) -> str:
        """See `Llm`."""
        return self.llm.name

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`."""
        self.watcher.on_begin(request.purpose)
        line = LlmLine(model=self.name, purpose=request.purpose, messages=request.messages, at_s=self.trace.now_s)
        try:
            completion = await self.llm.complete(request)
        except LlmError as error:
            too_long, no_tools = isinstance(error, PromptTooLong), isinstance(error, ToolsUnsupported)
            self.trace.end(line, error=str(error), too_long=too_long, no_tools=no_tools)
            raise
        text, calls, used = whole_characters(completion.text), tuple(map(_whole, completion.calls)), completion.usage
        self.trace.end(
            line,
            reply=text,
            calls=calls,
            finish_reason=completion.finish_reason,
            prompt_tokens=used.prompt_tokens,
            completion_tokens=used.completion_tokens,
            cost=used.cost,
        )
        self.watcher.on_used(used)
        return replace(completion, text=text, calls=calls)


def _whole(call: FunctionCall) -> FunctionCall:
    return FunctionCall(*map(whole_characters, (call.id, call.name, call.arguments)))


@dataclass(frozen=True, slots=True)
class TracedTools:
    """Passes calls on to the tools, records those that end and notifies the watcher."""

    tools: Toolbox
    trace: CallLog
    watcher: Watcher = field(default_factory=Watcher)

    async def offer(self) -> ToolOffer:
        """See `Toolbox`."""
        line = OfferLine(at_s=self.trace.now_s)
        try:
            offer = await self.tools.offer()
        except ToolError as error:
            self.trace.end(line, error=str(error))
            raise
        self.trace.end(line, instructions=offer.instructions, tools=offer.tools)
        return offer

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """See `Tools`."""
        self.watcher.on_begin(tool)
        line = ToolLine(tool=tool, arguments=dict(arguments), at_s=self.trace.now_s)
        try:
            call = await self.tools.call(tool, arguments)
        except ToolError as error:
            self.trace.end(line, error=str(error))
            raise
        self.trace.end(line, text=call.text, data=dict(call.data), failed=call.failed)
        return call


class ReplayDiverged(AgentError):
    """The run asks for something else than its record holds."""


C = TypeVar("C", LlmLine, OfferLine, ToolLine)


class Replay:
    """The record of one run, which answers in place of the tools and, through `llm`, of the models.

    Calls that went on at the same time may have ended in any order, so each takes the first line that fits it.

    Args:
        path: The file of the record.

    Raises:
        InvalidTrace: It is none.
    """

    def __init__(self, path: Path) -> None:
        lines = read_trace(path)
        self.run = next(line for line in lines if isinstance(line, RunLine))
        self.answer = next((line for line in lines if isinstance(line, AnswerLine)), None)
        self._left = [line for line in lines if isinstance(line, LlmLine | OfferLine | ToolLine)]
        self._end = self.answer.stop_reason if self.answer is not None else INTERRUPTED
        self._now_s = min((line.at_s for line in self._left), default=0.0)

    def clock(self) -> float:
        """Return the time, in seconds, that it was when the latest recorded call ended."""
        return self._now_s

    def llm(self, name: str) -> "ReplayedLlm":
        """Return what replies in place of a model; which model was asked follows from what for."""
        return ReplayedLlm(name, self)

    async def offer(self) -> ToolOffer:
        """See `Toolbox`."""
        line = self.take(OfferLine, lambda _: True, "which tools there are")
        if line.error:
            raise ToolError(line.error)
        return ToolOffer(line.instructions, line.tools)

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """See `Tools`."""
        asked = dict(arguments)
        line = self.take(
            ToolLine, lambda each: (each.tool, each.arguments) == (tool, asked), f"{tool!r} {asked!r:.{_QUOTED}}"
        )
        if line.error:
            raise ToolError(line.error)
        return ToolCall(line.tool, line.arguments, line.text, line.data, line.failed)

    def take(self, kind: type[C], fits: Callable[[C], bool], asked: str) -> C:
        """Take the first line that fits a call, and let the time pass that the call took.

        Raises:
            ReplayDiverged: The record holds no such line.
            TimeoutError: The run was out of time where that was so.
        """
        lines = [line for line in self._left if isinstance(line, kind)]
        line = next(filter(fits, lines), None)
        if line is not None:
            self._left.remove(line)
            self._now_s = max(self._now_s, line.at_s + line.took_s)
            return line
        if self._end == "seconds":
            raise TimeoutError
        held = f"{_content(lines[0])}. It was made by another version or with other parameters" if lines else "no more"
        broke = " The run was interrupted here." if self._end == INTERRUPTED and not lines else ""
        raise ReplayDiverged(f"The run asks for {asked}; the record holds {held}.{broke}")

    def check_that_all_was_replayed(self) -> None:
        """Make sure that the run made every call that the record holds.

        Raises:
            ReplayDiverged: It did not.
        """
        if left := len(self._left):
            raise ReplayDiverged(f"The run is over without calls that the record holds ({left}).")


@dataclass(frozen=True, slots=True, eq=False)
class ReplayedLlm:
    """Replies what a model replied to the same calls."""

    name: str
    replay: Replay

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`."""
        asked = f"{request.purpose!r} with {request.prompt!r:.{_QUOTED}}"
        return self.replay.take(
            LlmLine, lambda each: (each.purpose, each.messages) == (request.purpose, request.messages), asked
        ).completion


def _content(line: CallLine) -> str:
    """Return what a line records, briefly and harmlessly: a record may come from anywhere."""
    match line:
        case LlmLine():
            return f"{line.purpose!r:.{_QUOTED}} with {line.messages[-1:]!r:.{_QUOTED}}"
        case ToolLine():
            return f"{line.tool!r:.{_QUOTED}} {line.arguments!r:.{_QUOTED}}"
        case OfferLine():
            return "which tools there are"
