"""A model that plays by rules: it makes the call that an assistant would make, reads the result, and answers from it.

It knows nothing of the world: the calls are data, and the answer is read from the text of the result alone.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from benchmarks.world.one_call import Calls
from benchmarks.world.questions import YES_NO, Asked
from kg_agents.chat_requests import estimated_tokens
from kg_agents.llm import Completion, FunctionCall, LlmRequest, Usage
from kg_agents.texts import tokens_in

LONG: Final = 8
"""From how many answers on a list is named as a whole."""
_NODE: Final = re.compile(r"^(?P<label>.+) \((?P<id>[\w.-]*:[\w.-]+)\)(?:: (?P<value>.+))?$")
_ONLY: Final = re.compile(r"^(?P<label>.+?) \((?P<id>[\w.-]*:[\w.-]+)\)(?:: (?P<value>\S+))?\.(?:\s|$)")
_UNNAMED: Final = re.compile(r"^_:\w+: (?P<value>\S+?)\.?(?:\s|$)")
_COUNT: Final = re.compile(r"(?:^|: |= )(?P<number>[\d,]+(?:\.\d+)?)\.?(?:\s|$)")
_NO_ENTITY: Final = "No entity matches"
_NOTHING: Final = ("0 nodes", "0 values")
_REFUSALS: Final = (_NO_ENTITY, "No relation of this graph")
_VALUED: Final = ("Feature[", "Sum[", "Mean[", "Min[", "Max[", "Share[")
_NUMBERED: Final = ("Count[", "Degree[", *_VALUED[1:])


class Player:
    """Plays the model of the agent `tools`, for questions whose calls are known.

    Args:
        questions: The questions.
        calls: The calls, by the ids of the questions.
    """

    name = "player"

    def __init__(self, questions: Sequence[Asked], calls: Mapping[str, Calls]) -> None:
        self._calls = {asked.question: (asked, calls[asked.id]) for asked in questions}

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`."""
        asked, calls = next(each for text, each in self._calls.items() if text in request.messages[1].content)
        results = [message.content for message in request.messages if message.role == "tool"]
        if not results:
            call = (
                called("Compose", expression=calls.compose) if calls.compose else called("Sparql", query=calls.sparql)
            )
        else:
            call = called("answer", **_answer(asked, calls, results[-1]))
        usage = Usage(estimated_tokens(request), tokens_in(call.name + call.arguments), calls=1)
        return Completion("", usage, "tool_calls", (call,))


def called(name: str, **arguments: object) -> FunctionCall:
    """Return a call of a function."""
    return FunctionCall(f"{name}1", name, json.dumps(arguments, ensure_ascii=False))


def _answer(asked: Asked, calls: Calls, result: str) -> dict[str, object]:
    """Return what a result says, as the arguments of `answer`."""
    first = result.partition("\n")[0].removeprefix("[1] ")
    found = [] if refused(first) else list(read_result(calls.compose or "", result))[: 1 if calls.first else None]
    if asked.kind == YES_NO and not refused(first):
        return cited([str(bool(found)).lower()])
    if found:
        return {"all_of": 1} if len(found) >= LONG else cited(found)
    outcome = "unknown_entity" if first.startswith(_NO_ENTITY) else "not_in_graph"
    return {"outcome": outcome, "reason": first}


def refused(result: str) -> bool:
    """Say whether a result says that a name or a relation is not known."""
    return result.startswith(_REFUSALS)


def cited(texts: Sequence[str]) -> dict[str, object]:
    """Return the arguments of `answer` for texts that the first result shows."""
    return {"answers": [{"text": text, "results": [1]} for text in texts]}


def read_result(expression: str, result: str) -> Iterator[str]:
    """Yield what the lines of a result name, or its number."""
    head, *lines = result.removeprefix("[1] ").splitlines()
    if head.startswith(_NOTHING):
        return
    if expression.startswith(_NUMBERED) and (found := _COUNT.search(head)):
        yield found["number"]
        return
    if expression.startswith(_VALUED) and (found := _UNNAMED.match(head)):
        yield found["value"]
        return
    # A single result stands in the first line.
    for node in filter(None, (_ONLY.match(head), *map(_NODE.match, lines))):
        if node["label"].startswith("because "):
            continue
        yield node["value"] if expression.startswith(_VALUED) and node["value"] else node["label"]
