"""MCP servers as agents call them: sessions, calls of tools, their answers and errors."""

import json
import shlex
import shutil
import sysconfig
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Final, Protocol, Self, TypeAlias, TypeVar

import anyio
import httpx2
from anyio.abc import TaskStatus
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.server import MCPServer
from mcp.types import CallToolResult
from pydantic import TypeAdapter, ValidationError

from kg_agents.llm import AgentError, Function
from kg_boundary.addresses import masked, masked_command
from kg_boundary.secrets import Redactor


class ToolError(AgentError):
    """A call came to nothing: the tool refused or failed, or the server does not answer or has no such tool."""


class ToolRefusal(ToolError):
    """A tool refused the call or failed, and says why; the text is its own."""


class UnreadableReply(ToolError):
    """A tool answered in a form that is not the one that is expected of it."""

    @classmethod
    def of(cls, tool: str, wrong: str) -> Self:
        """Return that something is wrong with the answer of a tool."""
        return cls(
            f"{tool} answered in a form that is not known here ({wrong}). "
            "Connect a server with the same tools as kg-sextant."
        )


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call, for those who watch: the tool, its arguments, and the text and data that came back."""

    tool: str
    arguments: Mapping[str, object]
    text: str
    data: Mapping[str, object]
    failed: bool


OnCall: TypeAlias = Callable[[ToolCall], None]
"""Called with every call."""


def ignore_call(call: ToolCall) -> None:
    """Do nothing."""
    del call


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """The tools that a server offers, and what it says of their use.

    Args:
        instructions: What the server tells a model that uses it.
        tools: Each tool with its description and the schema of its arguments.
    """

    instructions: str
    tools: tuple[Function, ...]


class ToolCaller(Protocol):
    """What calls tools: a session, or the record of one."""

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """Call a tool.

        Raises:
            ToolError: The server does not answer.
        """
        ...


class Toolbox(ToolCaller, Protocol):
    """What calls tools, and says which there are."""

    async def offer(self) -> ToolOffer:
        """Return what the server offers.

        Raises:
            ToolError: The server does not answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class OtherTools:
    """Tools that pass some calls on to those of a server.

    Args:
        tools: The tools of the server.
    """

    tools: Toolbox

    async def offer(self) -> ToolOffer:
        """See `Toolbox`."""
        return await self.tools.offer()


COMPARE: Final = "compare-texts"
"""The tool that compares texts, in the record of a run."""

_TEXTS: Final = TypeAdapter(list[str])


PAPER_SCORER: Final = "meaning, as in the ODA paper"
"""What `observe` calls the paper's score: the cosine of the question and of relation and far end, embedded."""


class Similarity(Protocol):
    """Compares texts with a question."""

    async def __call__(self, question: str, texts: Sequence[str], /) -> Sequence[float]:
        """Return the cosine of the question and each text."""
        ...


@dataclass(frozen=True, slots=True)
class ComparingTools(OtherTools):
    """The tools of a server, and one beside them that compares texts: so that the record of a run holds it, too.

    Args:
        similarity: What compares.
    """

    similarity: Similarity

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """See `ToolCaller`."""
        if tool != COMPARE:
            return await self.tools.call(tool, arguments)
        question, *texts = _TEXTS.validate_python([arguments["question"], *_TEXTS.validate_python(arguments["texts"])])
        cosines = await self.similarity(question, texts)
        return ToolCall(tool, arguments, "", {"cosines": [float(each) for each in cosines]}, failed=False)


class InexactScore(AgentError):
    """An observation is not scored as in the paper, so that what follows from it would not be the paper's method."""


@dataclass(frozen=True, slots=True)
class ExactTools(OtherTools):
    """The tools of a server, whose observations are refused unless they are scored as in the paper of ODA."""

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """See `ToolCaller`.

        Raises:
            InexactScore: An observation was scored otherwise, or time ran out.
        """
        call = await self.tools.call(tool, arguments)
        if tool == "observe" and not call.failed:
            scorer = call.data.get("scorer")
            if scorer != PAPER_SCORER or call.data.get("status") == "timeout":
                raise InexactScore(
                    f"The paper's manner needs observations scored by {PAPER_SCORER}, whole and in time; this one was "
                    f"scored by {scorer}. Serve the graph with observe_score=paper and an embedder that runs "
                    "(kg-sextant doctor)."
                )
        return call


T = TypeVar("T")

Target: TypeAlias = str | StdioServerParameters | MCPServer[None]
"""A server: its URL, the command line that starts it, or the server itself."""

CONNECT_S: Final = 60.0
"""How long a server may take to answer for the first time."""

_TIMEOUT: Final = httpx2.Timeout(30.0, read=300.0)
"""That of the SDK's own clients: a call may take as long as the tool of a server allows itself."""

MAX_PAGES: Final = 10
"""How many pages of a list of tools are read."""

_UNAUTHORIZED: Final = 401
_LOGIN: Final = "The server asks for a valid token. Set server_token (KG_SEXTANT_SERVER_TOKEN) to one that it accepts."

_ADVICE: Final = "Give a URL, or the command line of a server with these tools."


@dataclass
class Session:
    """An MCP session that a task keeps open.

    Args:
        client: What calls the server; None before it has answered, and when the session is closed.
        fault: Why the session broke; empty where it did not.
        unauthorized: Whether the server refused the last request because of its token.
        over: Set when it is needed no longer.
        calls: The calls that wait for an answer.
    """

    client: Client | None = None
    fault: str = ""
    unauthorized: bool = False
    over: anyio.Event = field(default_factory=anyio.Event)
    calls: set[anyio.CancelScope] = field(default_factory=set[anyio.CancelScope])

    async def hold(self, target: Target, token: str | None, *, task_status: TaskStatus[None]) -> None:
        """Keep the session open, in a task of its own: where it breaks, calls fail, and who made them goes on."""
        try:
            async with _client(target, token, self._check) as client:
                self.client = client
                task_status.started()
                await self.over.wait()
        except (MCPError, OSError, ValueError, httpx2.HTTPError, ExceptionGroup) as error:
            self.fault = _text_of(error)
            if self.client is None:
                task_status.started()
        finally:
            self.client = None
            for call in self.calls:
                call.cancel()

    async def _check(self, response: httpx2.Response) -> None:
        self.unauthorized = response.status_code == _UNAUTHORIZED


@dataclass(frozen=True, slots=True)
class SessionTools:
    """Calls tools over an MCP session.

    Args:
        session: The session.
        redactor: Takes out of answers what the server was told and should not repeat.
    """

    session: Session
    redactor: Redactor = field(default_factory=Redactor)

    async def offer(self) -> ToolOffer:
        """See `Toolbox`."""
        offered: list[Function] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self._answer("tools/list", partial(Client.list_tools, cursor=cursor))
            offered += (Function(each.name, each.description or "", each.input_schema) for each in page.tools)
            cursor = page.next_cursor
            if not cursor:
                break
        client = self.session.client
        instructions = "" if client is None else client.instructions or ""
        return ToolOffer(self.redactor.text(instructions), tuple(offered))

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """See `ToolCaller`."""
        result = await self._answer(tool, lambda client: client.call_tool(tool, dict(arguments)))
        text = self.redactor.data(_text(result).encode(errors="replace")).decode()
        return ToolCall(tool, dict(arguments), text, self._without_secrets(result.structured_content), result.is_error)

    def _without_secrets(self, data: Mapping[str, object] | None) -> Mapping[str, object]:
        if not data:
            return {}
        written = json.dumps(data).encode()
        shown = self.redactor.data(written)
        return data if shown == written else json.loads(shown)

    async def _answer(self, asked: str, ask: Callable[[Client], Awaitable[T]]) -> T:
        """Return what the server answers.

        Raises:
            ToolError: It does not, or not in a form that is known.
        """
        try:
            answer = await self._result(ask)
        except ValidationError as error:
            raise UnreadableReply(f"{asked}: The server answered in a form that is not known.") from error
        except (MCPError, RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            reason = self.redactor.text(str(error)) or type(error).__name__
            raise ToolError(f"{asked}: {_LOGIN if self.session.unauthorized else reason}") from error
        if answer is None:
            fault = self.redactor.message(self.session.fault) or "it closed the connection"
            raise ToolError(f"{asked}: The server was lost ({fault}).")
        return answer

    async def _result(self, ask: Callable[[Client], Awaitable[T]]) -> T | None:
        """Return the answer, or None where the session is closed before it comes."""
        if self.session.client is None:
            return None
        with anyio.CancelScope() as call:
            self.session.calls.add(call)
            try:
                return await ask(self.session.client)
            finally:
                self.session.calls.discard(call)
        return None


@asynccontextmanager
async def _client(
    target: Target, token: str | None, check: Callable[[httpx2.Response], Awaitable[None]]
) -> AsyncGenerator[Client]:
    """Connect to a server; one that is given by its URL is sent the token, and its responses are checked."""
    if not isinstance(target, str):
        async with Client(target) as client:
            yield client
        return
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=_TIMEOUT, event_hooks={"response": [check]}) as http,
        Client(streamable_http_client(target, http_client=http)) as client,
    ):
        yield client


@asynccontextmanager
async def connect_tools(
    target: Target, *, connect_s: float = CONNECT_S, redactor: Redactor | None = None, token: str | None = None
) -> AsyncGenerator[Toolbox]:
    """Open one session to a server, and give what calls its tools.

    Args:
        target: A URL, a command line, or a server in this process.
        connect_s: How many seconds the server may take to answer for the first time.
        redactor: Removes secrets from the server's answers, always the token too.
        token: The bearer token of a server that is given by its URL, if it needs one.

    Raises:
        ToolError: It cannot be reached, or does not answer.
    """
    served, session, inside = _client_target(target), Session(), _Failure()
    withheld = (redactor or Redactor()).also([token or ""])
    try:
        async with anyio.create_task_group() as tasks:
            with anyio.move_on_after(connect_s):
                await tasks.start(session.hold, served, token)
            if session.client is not None:
                try:
                    with inside:
                        yield SessionTools(session, withheld)
                finally:
                    session.over.set()
                return
    except BaseExceptionGroup:
        if inside.error is None:
            raise
        # What a block raises comes out of it as it is, and not in a group.
        raise inside.error from inside.error.__cause__
    if session.unauthorized:
        raise ToolError(f"{_name_of(target)}: {_LOGIN}")
    late = f"did not answer within {connect_s:g} seconds"
    fate = f"cannot be reached: {withheld.message(session.fault)}" if session.fault else late
    raise ToolError(f"{_name_of(target)} {fate}. {_ADVICE}")


class _Failure:
    """Keeps an error that passes through a block."""

    error: BaseException | None = None

    def __enter__(self) -> None:
        """Keep none at first."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None and not isinstance(error, anyio.get_cancelled_exc_class()):
            self.error = error


def _client_target(target: Target) -> Target:
    """Return what a client connects to.

    Raises:
        ToolError: The text is not a command line.
    """
    if not isinstance(target, str) or _is_url(target):
        return target
    try:
        command, *arguments = shlex.split(target)
    except ValueError as error:
        raise ToolError(f"{_name_of(target)} is not a command line. {_ADVICE}") from error
    return StdioServerParameters(command=_found(command), args=arguments)


def _found(command: str) -> str:
    """Return a command by its path where it is found only beside this Python, whose environment need not be active."""
    if shutil.which(command) is not None:
        return command
    return shutil.which(command, path=sysconfig.get_path("scripts")) or command


def _name_of(target: Target) -> str:
    if not isinstance(target, str):
        return "The server"
    return f"The server {masked(target) if _is_url(target) else masked_command(target)!r}"


def _is_url(target: str) -> bool:
    return target.lower().startswith(("http://", "https://"))


def _text_of(error: BaseException) -> str:
    """Return what an error says; of a group, what its first says."""
    inner: tuple[object, ...] = getattr(error, "exceptions", ())
    match inner:
        case (BaseException() as first, *_):
            return _text_of(first)
        case _:
            return str(error) or type(error).__name__


def _text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")
