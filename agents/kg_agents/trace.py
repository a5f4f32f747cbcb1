"""The record of a run: every prompt, reply and call as JSON lines."""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import IO, Annotated, Final, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from kg_agents.evidence.answers import AgentAnswer, Answer, Status
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
)
from kg_agents.llm.texts import whole_characters
from kg_agents.tools.client import Toolbox, ToolCall, ToolError, ToolOffer
from kg_boundary.private_files import open_private, private_folder
from kg_boundary.regular_files import open_regular
from kg_boundary.shown import json_text

FORMAT: Final = 2

RecordedAgent: TypeAlias = Literal["tools", "oda", "graph-counselor", "oda-without-model"]
"""What can be run again from its record."""

MAX_LINE: Final = 50_000_000
"""How many bytes a line of a record may have."""

MAX_TRACE: Final = 500_000_000
"""How many bytes a record may have."""


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


class RecordedMessage(_Line):
    """A message that calls functions, or that is the result of a call."""

    role: Role
    content: str
    calls: list[FunctionCall] = []
    call_id: str = ""

    @property
    def message(self) -> Message:
        """The message."""
        return Message(self.role, self.content, tuple(self.calls), self.call_id)


class LlmLine(_Line):
    """One call to the model, its reply or its failure, tokens, and when it began and how long it took, in seconds."""

    kind: Literal["llm"] = "llm"
    purpose: str
    messages: list[tuple[Role, str] | RecordedMessage]
    reply: str
    calls: list[FunctionCall] = []
    error: str = ""
    too_long: bool = False
    no_tools: bool = False
    finish_reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    at_s: float
    took_s: float

    @property
    def asked(self) -> tuple[Message, ...]:
        """The conversation."""
        return tuple(each.message if isinstance(each, RecordedMessage) else Message(*each) for each in self.messages)


class ToolLine(_Line):
    """One call of a tool, its answer or why none came, and when it began and how long it took, in seconds."""

    kind: Literal["tool"] = "tool"
    tool: str
    arguments: dict[str, object]
    text: str
    data: dict[str, object]
    failed: bool
    error: str = ""
    at_s: float
    took_s: float


class OfferLine(_Line):
    """The tools that the server offered, or why it did not say, and when that began and how long it took."""

    kind: Literal["offer"] = "offer"
    instructions: str = ""
    tools: list[Function] = []
    error: str = ""
    at_s: float
    took_s: float


class AnswerLine(_Line):
    """How the run ended, and what each answer rests on."""

    kind: Literal["answer"] = "answer"
    answers: list[Answer]
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
        """Say whether an answer is the one that was kept."""
        kept = type(self).of(answer)
        return kept.model_copy(update={"tokens": self.tokens, "seconds": self.seconds}) == self


AnyLine: TypeAlias = RunLine | LlmLine | OfferLine | ToolLine | AnswerLine
_LINE: Final[TypeAdapter[AnyLine]] = TypeAdapter(Annotated[AnyLine, Field(discriminator="kind")])


def recorded(message: Message) -> tuple[Role, str] | RecordedMessage:
    """Return a message as a record holds it."""
    if message.calls or message.call_id:
        return RecordedMessage(
            role=message.role, content=message.content, calls=list(message.calls), call_id=message.call_id
        )
    return message.role, message.content


class InvalidTrace(AgentError):
    """A file is no trace, or of another version."""


class Trace:
    """Writes a record, line by line, so that what happened before a crash is there; only its owner may read it.

    Args:
        path: The file; it is written anew.
        clock: Seconds, from any beginning.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._clock = clock
        self._began = clock()
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

    @property
    def now_s(self) -> float:
        """Seconds since the record began."""
        return round(self._clock() - self._began, 6)

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
    """Say whether a file is empty, or a record."""
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


class TracedLlm:
    """Passes calls on to a model and keeps them.

    Args:
        llm: The model.
        trace: Where they are kept.
    """

    def __init__(self, llm: Llm, trace: Trace) -> None:
        self._llm = llm
        self._trace = trace

    @property
    def name(self) -> str:
        """See `Llm`."""
        return self._llm.name

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`."""
        began = self._trace.now_s
        try:
            completion = await self._llm.complete(request)
        except LlmError as error:
            failed = self._line(request, began, error=str(error))
            kinds = {"too_long": isinstance(error, PromptTooLong), "no_tools": isinstance(error, ToolsUnsupported)}
            self._trace.write(failed.model_copy(update=kinds))
            raise
        completion = replace(
            completion, text=whole_characters(completion.text), calls=tuple(map(_whole, completion.calls))
        )
        usage = completion.usage
        line = self._line(request, began).model_copy(
            update={
                "reply": completion.text,
                "calls": list(completion.calls),
                "finish_reason": completion.finish_reason,
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                "cost": usage.cost,
            }
        )
        self._trace.write(line)
        return completion

    def _line(self, request: LlmRequest, began: float, error: str = "") -> LlmLine:
        return LlmLine(
            purpose=request.purpose,
            messages=list(map(recorded, request.messages)),
            reply="",
            error=error,
            at_s=began,
            took_s=round(self._trace.now_s - began, 6),
        )


@dataclass
class _Place:
    """Where the line of a call belongs that may still go on."""

    line: ToolLine | None = None
    over: bool = False


class TracedTools:
    """Passes calls on to the tools and keeps them.

    Args:
        tools: The tools.
        trace: Where they are kept.
    """

    def __init__(self, tools: Toolbox, trace: Trace) -> None:
        self._tools = tools
        self._trace = trace
        self._places: deque[_Place] = deque()

    async def offer(self) -> ToolOffer:
        """See `Toolbox`."""
        began = self._trace.now_s
        try:
            offer = await self._tools.offer()
        except ToolError as error:
            self._trace.write(OfferLine(error=str(error), at_s=began, took_s=self._since(began)))
            raise
        offered = OfferLine(
            instructions=offer.instructions, tools=list(offer.tools), at_s=began, took_s=self._since(began)
        )
        self._trace.write(offered)
        return offer

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """See `Tools`."""
        began, place = self._trace.now_s, _Place()
        self._places.append(place)
        try:
            call = await self._tools.call(tool, arguments)
        except ToolError as error:
            place.line = self._line(ToolCall(tool, arguments, "", {}, failed=True), began, error=str(error))
            raise
        else:
            place.line = self._line(call, began)
            return call
        finally:
            place.over = True
            self._write()

    def _write(self) -> None:
        """Write calls that are over, in the order in which they began; what follows one that was cut short is left out.

        Several calls may go on at the same time, and end in any order. Who replays them begins them in the same order.
        """
        while self._places and self._places[0].over:
            line = self._places.popleft().line
            if line is None:
                self._places.clear()
            else:
                self._trace.write(line)

    def _line(self, call: ToolCall, began: float, error: str = "") -> ToolLine:
        return ToolLine(
            tool=call.tool,
            arguments=dict(call.arguments),
            text=call.text,
            data=dict(call.data),
            failed=call.failed,
            error=error,
            at_s=began,
            took_s=self._since(began),
        )

    def _since(self, began: float) -> float:
        return round(self._trace.now_s - began, 6)


def _whole(call: FunctionCall) -> FunctionCall:
    return FunctionCall(whole_characters(call.id), whole_characters(call.name), whole_characters(call.arguments))
