"""Calls of tools, and tools beside a server's: comparing texts as the paper of ODA does."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, Self, TypeAlias

from pydantic import TypeAdapter, ValidationError

from kg_agents.llm import AgentError, Function


class ToolError(AgentError):
    """A call came to nothing: the tool refused or failed, or the server does not answer or has no such tool."""


class ToolRefusal(ToolError):
    """A tool refused the call or failed, and says why; the text is its own."""


class UnreadableAnswer(ToolError):
    """A tool answered in a form that is not the one that is expected of it."""

    @classmethod
    def of(cls, tool: str, error: ValidationError) -> Self:
        """Return what is wrong with the answer of a tool."""
        first = error.errors(include_url=False)[0]
        wrong = ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
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
"""Told of every call."""


def ignore_call(call: ToolCall) -> None:
    """Take no note."""
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


class Tools(Protocol):
    """What calls tools: a session, or the record of one."""

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """Call a tool.

        Raises:
            ToolError: The server does not answer.
        """
        ...


class Toolbox(Tools, Protocol):
    """What calls tools, and says which there are."""

    async def offer(self) -> ToolOffer:
        """Return what the server offers.

        Raises:
            ToolError: The server does not answer.
        """
        ...


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
class ComparingTools:
    """The tools of a server, and one beside them that compares texts: so that the record of a run holds it, too.

    Args:
        tools: The tools of the server.
        similarity: What compares.
    """

    tools: Toolbox
    similarity: Similarity

    async def offer(self) -> ToolOffer:
        """See `Toolbox`."""
        return await self.tools.offer()

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """See `Tools`."""
        if tool != COMPARE:
            return await self.tools.call(tool, arguments)
        question, *texts = _TEXTS.validate_python([arguments["question"], *_TEXTS.validate_python(arguments["texts"])])
        cosines = await self.similarity(question, texts)
        return ToolCall(tool, arguments, "", {"cosines": [float(each) for each in cosines]}, failed=False)


class InexactScore(AgentError):
    """An observation is not scored as in the paper, so that what follows from it would not be the paper's method."""


@dataclass(frozen=True, slots=True)
class ExactTools:
    """The tools of a server, whose observations are refused unless they are scored as in the paper of ODA.

    Args:
        tools: The tools of the server.
    """

    tools: Toolbox

    async def offer(self) -> ToolOffer:
        """See `Toolbox`."""
        return await self.tools.offer()

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """See `Tools`.

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
