"""A model of Graph Counselor that plays by rules: it asks for what a question says, reads the result, and finishes.

As the player of `tools`, it knows nothing of the world: the expression is data, and the answer is read from the step.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks.world.explorer import chosen, named_in
from benchmarks.world.one_call import Calls
from benchmarks.world.player import read_result, refused
from benchmarks.world.questions import YES_NO, Asked
from kg_agents.chat_requests import estimated_tokens
from kg_agents.llm import Completion, LlmRequest, Usage
from kg_agents.texts import tokens_in

_DATA: Final = re.compile(r"<data>\n(.*?)\n</data>", re.DOTALL)
_OWN: Final = re.compile(r"(?:\d+\. )?(?:Plan|Thought|Action)\b")
_MARK: Final = re.compile(r"^Observation \d+: ")


class Counsel:
    """Plays the model of Graph Counselor, for questions that an expression says.

    Args:
        questions: The questions.
        calls: What says them, by their ids.
    """

    name = "counsel"

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
        case "judge":
            return "The step says it.\n[yes]"
        case _:
            steps = _DATA.findall(prompt)[-1].splitlines()
            seen = "\n".join(_MARK.sub("", line) for line in steps if not _OWN.match(line)).strip()
            action = _finish(asked, calls, seen) if seen and seen != "(nothing)" else calls.compose or "Finish[none]"
            return f"Thought: This is needed next.\nAction: {action}"


def _finish(asked: Asked, calls: Calls, seen: str) -> str:
    """Return what an observation says, as the end of the steps."""
    found = [] if refused(seen) else list(read_result(calls.compose or "", seen))[: 1 if calls.first else None]
    if asked.kind == YES_NO and not refused(seen):
        found = [str(bool(found)).lower()]
    first = seen.partition("\n")[0].replace("[", "(").replace("]", ")")
    return f"Finish[{', '.join(_quoted(text) for text in found) or f'Not in the graph: {first}'}]"


def _quoted(text: str) -> str:
    return f'"{text}"' if "," in text else text
