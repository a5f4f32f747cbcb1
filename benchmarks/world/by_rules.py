"""A model that plays by rules, for agents that ask for names, candidates and next steps by prompts.

It knows nothing of the world. What it knows of a question is the expression that says it in other words.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Final, TypeAlias

from benchmarks.world.one_call import Calls
from benchmarks.world.questions import Asked
from kg_agents.chat_requests import estimated_tokens
from kg_agents.llm import Completion, LlmRequest, Usage
from kg_agents.texts import tokens_in
from kg_server.compose.parser import parse
from kg_server.compose.syntax import entities_in

Rules: TypeAlias = Callable[[str, str, Asked, Calls], str]
"""The reply to a prompt: from its purpose, its text, and the question with what says it."""

_CANDIDATE: Final = re.compile(r"^(?P<number>\d+)\. (?P<label>.+?) \([\w.-]*:[\w.-]+\)", re.MULTILINE)
_SAME: Final = 0.88
"""From which likeness on a name is another one misspelt."""


class ByRules:
    """Plays the model of an agent, for questions that an expression says.

    Args:
        name: What it is called.
        rules: What it replies; names and candidates are its own matter.
        questions: The questions.
        calls: What says them, by their ids.
    """

    def __init__(self, name: str, rules: Rules, questions: Sequence[Asked], calls: Mapping[str, Calls]) -> None:
        self.name = name
        self._rules = rules
        self._calls = {asked.question: (asked, calls[asked.id]) for asked in questions}

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`."""
        prompt = next(each.content for each in request.messages if each.role == "user")
        asked, calls = next(each for text, each in self._calls.items() if text in prompt)
        text = self._reply(request.purpose, prompt, asked, calls)
        return Completion(text, Usage(estimated_tokens(request), tokens_in(text), calls=1))

    def _reply(self, purpose: str, prompt: str, asked: Asked, calls: Calls) -> str:
        match purpose:
            case "mentions":
                return "\n".join(_named_in(calls)) or asked.question
            case "linking":
                return ", ".join(_chosen(_named_in(calls), prompt)) or "none"
            case _:
                return self._rules(purpose, prompt, asked, calls)


def _named_in(calls: Calls) -> list[str]:
    """Return the names that a question holds, as it writes them."""
    trees = parse(calls.compose) if calls.compose else ()
    return list(dict.fromkeys(each.text for call in trees for each in entities_in(call)))


def _chosen(names: Sequence[str], prompt: str) -> Iterator[str]:
    """Yield the numbers of candidates that bear one of the names, or come near one."""
    for found in _CANDIDATE.finditer(prompt):
        label = found["label"].casefold()
        if any(SequenceMatcher(None, name.casefold(), label).ratio() >= _SAME for name in names):
            yield found["number"]
