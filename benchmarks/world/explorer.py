"""A model of ODA that plays by rules: it looks at what a question needs next, keeps what leads there, and answers.

It knows nothing of the world. What it knows of a question is the expression that says it in other words; it works that
out from the facts that the prompt before it shows, and where one is missing it asks for it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Final

from benchmarks.world.one_call import Calls
from benchmarks.world.questions import YES_NO, Asked
from benchmarks.world.sights import Sights
from benchmarks.world.worked_out import Absent, Reasoner, Wanting
from kg_agents.chat_requests import estimated_tokens
from kg_agents.llm import Completion, LlmRequest, Usage
from kg_agents.texts import tokens_in
from kg_server.compose.parser import parse
from kg_server.compose.syntax import Operand, Route, WhereCall, calls_in, entities_in

_CANDIDATE: Final = re.compile(r"^(?P<number>\d+)\. (?P<label>.+?) \([\w.-]*:[\w.-]+\)", re.MULTILINE)
_SAME: Final = 0.88
"""From which likeness on a name is another one misspelt."""


class Explorer:
    """Plays the model of ODA, for questions that an expression says.

    Args:
        questions: The questions.
        calls: What says them, by their ids.
    """

    name = "explorer"

    def __init__(self, questions: Sequence[Asked], calls: Mapping[str, Calls]) -> None:
        self._calls = {asked.question: (asked, calls[asked.id]) for asked in questions}

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`."""
        prompt = next(each.content for each in request.messages if each.role == "user")
        asked, calls = next(each for text, each in self._calls.items() if text in prompt)
        text = _reply(request.purpose, prompt, asked, calls)
        return Completion(text, Usage(estimated_tokens(request), tokens_in(text), calls=1))


def _reply(purpose: str, prompt: str, asked: Asked, calls: Calls) -> str:
    match purpose:
        case "mentions":
            return "\n".join(named_in(calls)) or asked.question
        case "linking":
            return ", ".join(chosen(named_in(calls), prompt)) or "none"
        case _:
            return _turn(prompt, asked, calls) if calls.compose else _answer(["Not in the graph: no way to it"])


def named_in(calls: Calls) -> list[str]:
    """Return the names that a question holds, as it writes them."""
    trees = parse(calls.compose) if calls.compose else ()
    return list(dict.fromkeys(each.text for call in trees for each in entities_in(call)))


def chosen(names: Sequence[str], prompt: str) -> Iterator[str]:
    """Yield the numbers of candidates that bear one of the names, or come near one."""
    for found in _CANDIDATE.finditer(prompt):
        label = found["label"].casefold()
        if any(SequenceMatcher(None, name.casefold(), label).ratio() >= _SAME for name in names):
            yield found["number"]


def _turn(prompt: str, asked: Asked, calls: Calls) -> str:
    (call,) = parse(calls.compose or "")
    sights = Sights(prompt, set(_relations(call)))
    reasoner = Reasoner(sights)
    try:
        found = reasoner.result(call)
    except Wanting as want:
        kept = reasoner.used | set(want.kept)
        new = sorted(fact.number for fact in sights.facts if fact.new and fact.number in kept)
        return f"Thought: This is needed next.\nKeep: {_list(new) or 'none'}\nAction: {want.action}"
    except Absent as absent:
        return _answer([f"Not in the graph: {absent}"])
    if asked.kind == YES_NO:
        return _answer([_cited(str(bool(found.by)).lower(), found.behind or reasoner.used)])
    lines = [_cited(text, behind) for text, behind in found.by.items()][: 1 if calls.first else None]
    said = (f"{each.action}[{each.about}] {each.found}" for each in reversed(sights.done))
    return _answer(lines or [f"Not in the graph: {next(said, 'what is asked for')}"])


def _answer(lines: Sequence[str]) -> str:
    return "\n".join(("Thought: The facts hold what there is.", "Keep: none", "Action: Answer", "Answer:", *lines))


def _cited(text: str, behind: Iterable[int]) -> str:
    return f"{text} [{_list(sorted(behind))}]"


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _relations(operand: Operand) -> Iterator[str]:
    """Yield what the relations of an expression are called."""
    for call in calls_in(operand):
        routes: list[Route | None] = [getattr(call, "route", None)]
        if isinstance(call, WhereCall):
            routes += [clause.route for clause in call.clauses]
        for route in filter(None, routes):
            yield from (leg.name.text for leg in route.legs)
