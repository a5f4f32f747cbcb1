"""The two methods as MCP prompts, so that a host's own model can follow them with the tools."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import anyio
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)
from pydantic import Field

from kg_adapters.errors import KGError
from kg_adapters.protocol import KGAdapter
from kg_boundary.shown import visible_lines
from kg_server.mcp_server import SextantServer
from kg_server.names import names_of

if TYPE_CHECKING:
    from kg_server.experience.store import ExperienceStore

MAX_QUESTION: Final = 2_000
MAX_COMPLETIONS: Final = 20
_COMPLETION_S: Final = 2.0

Question: TypeAlias = Annotated[str, Field(description="What to answer")]
Entities: TypeAlias = Annotated[str, Field(description="Names or ids to begin with, separated by commas")]


class MethodPrompts:
    """The prompts `oda` and `graph-counselor`, and the completion of their arguments.

    Args:
        graph: What names are completed from.
        solved: Where solved questions are kept, which are shown as examples; None for none.
    """

    def __init__(self, graph: KGAdapter, solved: "ExperienceStore | None" = None) -> None:
        self._graph = graph
        self._solved = solved

    def provide(self, server: SextantServer) -> None:
        """Add both prompts and what completes their arguments."""
        server.prompt("oda", title="Observe, act, reflect (ODA)")(self.oda)
        server.prompt("graph-counselor", title="Plan, think, act, reflect (Graph Counselor)")(self.graph_counselor)
        server.completion()(self.complete)  # type: ignore[no-untyped-call] # the SDK gives this decorator no types

    async def oda(self, question: Question, entities: Entities = "") -> str:
        """Answer a question in rounds: observe what bears on it, take one action, keep the triples that help."""
        from kg_prompts import render
        from kg_prompts.methods import OdaMethod

        asked = _checked(question)
        method = OdaMethod(
            question=asked,
            entities=_listed(entities),
            graph=self._graph.name,
            solved=await self._examples(asked),
        )
        return render(method)

    async def graph_counselor(self, question: Question, entities: Entities = "") -> str:
        """Answer a question in steps of plan, thought and one compound call, then judge the answer and improve it."""
        from kg_prompts import render
        from kg_prompts.methods import GraphCounselorMethod

        asked = _checked(question)
        method = GraphCounselorMethod(
            question=asked,
            entities=_listed(entities),
            graph=self._graph.name,
            solved=await self._examples(asked),
        )
        return render(method)

    async def _examples(self, question: str) -> str:
        """Return solved questions like one, as a text.

        Raises:
            MCPError: The file of them cannot be used.
        """
        if self._solved is None:
            return ""
        from kg_server.experience.tool import MAX_TOKENS, MOST, solved_answer

        try:
            found = await self._solved.like(self._graph.name, question, MOST)
        except KGError as error:
            raise MCPError(code=INTERNAL_ERROR, message=visible_lines(str(error))) from error
        return "\n".join(solved_answer(found, MAX_TOKENS).lines)

    async def complete(
        self,
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion | None:
        """Return what an argument may go on to: the entities that its last name may mean."""
        del context
        if not isinstance(ref, PromptReference) or argument.name != "entities":
            return None
        before, comma, begun = argument.value[:MAX_QUESTION].rpartition(",")
        try:
            with anyio.move_on_after(_COMPLETION_S):
                found = await self._matching(begun.strip())
                start = f"{before}{comma} " if comma else ""
                return Completion(values=[start + each for each in found], total=len(found), has_more=False)
        except KGError:
            # A host completes while somebody types: what the graph cannot answer now is no completion.
            return Completion(values=[])
        return Completion(values=[])

    async def _matching(self, begun: str) -> Sequence[str]:
        if not begun:
            return ()
        found = [each.entity for each in await self._graph.search(begun, limit=MAX_COMPLETIONS)]
        names = await names_of(self._graph, found)
        # A comma would end the name, and the id beside it says what is meant anyway.
        return [names.entity(each).replace(",", "") for each in found]


def _checked(question: str) -> str:
    """Return a question that says something.

    Raises:
        MCPError: It is blank or too long.
    """
    if not question.strip():
        raise MCPError(code=INVALID_PARAMS, message="The question is blank. Say in words what is to be answered.")
    if len(question) > MAX_QUESTION:
        raise MCPError(
            code=INVALID_PARAMS,
            message=f"The question has {len(question):,} characters; {MAX_QUESTION:,} are allowed.",
        )
    return question


def _listed(entities: str) -> str:
    return "\n".join(part.strip() for part in entities[:MAX_QUESTION].split(",") if part.strip())
