"""Calls of tools that a model asks for: read, made at the same time, and told."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

import anyio

from kg_agents.json_texts import json_object
from kg_agents.llm import AgentError, FunctionCall
from kg_agents.texts import clipped
from kg_agents.tool_calls import Toolbox, ToolCall, ToolError
from kg_agents.tools.final import ANSWER
from kg_agents.tools.run import Run

_MAX_QUOTED: Final = 300


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call that can be made."""

    tool: str
    arguments: Mapping[str, object]

    @property
    def key(self) -> str:
        """The same text for calls that ask the same."""
        return f"{self.tool} {json.dumps(self.arguments, sort_keys=True)}"


def wanted(call: FunctionCall, run: Run, most: int) -> Wanted | str:
    """Return a call that is to be made, with the next number, or why it is not made."""
    known = [tool.name for tool in run.tools]
    if call.name not in known:
        near = get_close_matches(call.name, known, n=1)
        meant = f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
        return f"There is no function {call.name[:_MAX_QUOTED]!r}. {meant}"
    arguments = {} if not call.arguments.strip() else json_object(call.arguments)
    if arguments is None:
        return f"The arguments are not a JSON object: {clipped(call.arguments, _MAX_QUOTED)}"
    found = Wanted(call.name, arguments)
    if (number := run.asked.get(found.key)) is not None:
        return f"This is call {number} again; its result stands there."
    if run.ending or len(run.asked) >= most:
        run.ending = run.ending or "calls"
        return f"No more calls can be made. Call {ANSWER.name} with what the results show."
    run.asked[found.key] = len(run.asked) + 1
    return found


async def made(calls: Sequence[Wanted], tools: Toolbox, at_once: int) -> list[ToolCall | ToolError]:
    """Make calls, some at the same time, and return their answers in the order of the calls.

    Raises:
        AgentError: Something else than a tool failed.
        TimeoutError: The time is over.
    """
    outcomes: dict[int, ToolCall | AgentError | TimeoutError] = {}
    limit = anyio.CapacityLimiter(at_once)

    async def make(place: int, call: Wanted) -> None:
        try:
            async with limit:
                outcomes[place] = await tools.call(call.tool, call.arguments)
        except (AgentError, TimeoutError) as error:
            outcomes[place] = error

    async with anyio.create_task_group() as tasks:
        for place, call in enumerate(calls):
            tasks.start_soon(make, place, call)
    found: list[ToolCall | ToolError] = []
    for place in range(len(calls)):
        outcome = outcomes[place]
        if not isinstance(outcome, ToolCall | ToolError):
            raise outcome
        found.append(outcome)
    return found
