"""How tests run the agent that calls the tools itself: with models that call by script."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from kg_agents.evidence.answers import AgentAnswer
from kg_agents.llm import Completion, FunctionCall, Scripted, ScriptedLlm, Usage
from kg_agents.running import Question, run_question
from kg_agents.tools.client import OtherTools, Toolbox, ToolCall
from kg_agents.trace import Trace


@dataclass(frozen=True, slots=True)
class ChangedTools(OtherTools):
    """Tools of a server whose answers are changed on the way."""

    change: Callable[[ToolCall], ToolCall]

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """See `ToolCaller`."""
        return self.change(await self.tools.call(tool, arguments))


def refusing(tools: Toolbox, tool: str, text: str, about: str = "") -> ChangedTools:
    """Return tools of which one refuses calls, where they are about something."""

    def refused(call: ToolCall) -> ToolCall:
        refuses = call.tool == tool and about in str(call.arguments)
        return ToolCall(call.tool, call.arguments, text, {}, failed=True) if refuses else call

    return ChangedTools(tools, refused)


async def answered(asked: Question, tools: Toolbox, folder: Path, *replies: Scripted) -> AgentAnswer:
    """Answer a question with a model that replies by script, and keep the record."""
    with Trace(folder / "run.jsonl") as trace:
        return await run_question(asked, tools, ScriptedLlm(replies), trace)


Called: TypeAlias = tuple[str, Mapping[str, object] | str]


def calls(*made: Called, text: str = "") -> Completion:
    """Return a reply that calls functions, by name and arguments."""
    written = (
        FunctionCall(f"c{number}", name, given if isinstance(given, str) else json.dumps(given))
        for number, (name, given) in enumerate(made, start=1)
    )
    return Completion(text, Usage(100, 10, calls=1), "tool_calls", tuple(written))


def answer(*texts: str, cites: tuple[int, ...] = (1,), **more: object) -> Completion:
    """Return a reply that answers, each answer with the numbers of the results that show it."""
    answers = [{"text": text, "results": list(cites)} for text in texts]
    return calls(("answer", {"answers": answers, **more}))
