"""A model that knows the gold queries, follows each method's prompts with them, and never says what it was not shown.

It stands in for a model where there is none: loops, tools and scoring run over real questions, and what comes out wrong
is the machinery's fault, or lies beyond what the method's actions reach.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from benchmarks.world.one_call import Calls
from benchmarks.world.oracle_turns import next_function, turn, ways_of
from benchmarks.world.player import LONG, called, cited
from kg_agents.chat_requests import estimated_tokens
from kg_agents.llm import Completion, FunctionCall, LlmRequest, Usage
from kg_agents.texts import tokens_in
from kg_eval.methods.catalog import WITHOUT_GRAPH
from kg_eval.metrics.values import fold
from kg_eval.questions import Gold, Record
from kg_eval.runs.plan import MethodName

UNKNOWN: Final = "unknown"
ABSENT: Final = "Not in the graph: what is asked for"
MOST: Final = 15
MOST_STEPS: Final = 9
"""So many functions leave room for an answer."""

YES_NO: Final = frozenset({"true", "false"})
COMPUTED: Final = frozenset({"count", "aggregation", "yes-no", "comparison"})
"""Kinds whose answers are worked out, so that facts yield them without naming them."""

_RELATION: Final = re.compile(r"\bw:R\d+\b")
_NAME: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_NUMBERED: Final = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)
_TRIPLE: Final = re.compile(r"^[^\s,]+,(w:R\d+),.+$", re.MULTILINE)
_CANDIDATE: Final = re.compile(r"\((\S+)\)$", re.MULTILINE)
_ABSENT: Final = re.compile(r'LCASE\(STR\(\?l\)\) = "([^"]+)"')
_TYPE: Final = re.compile(r"Type\[([^\[\]]*)\]")
_OBSERVATION: Final = re.compile(r"Observation \d+:(.*?)(?=\n(?:Thought|Plan|Action) \d+|</data>|\Z)", re.DOTALL)
_NOTHING: Final = "(nothing)"
_STEPS: Final = "Steps so far:"
_OWN: Final = re.compile(r"(?:\d+\. )?(?:Plan|Thought|Action)\b")
_DATA: Final = re.compile(r"<data>\n(.*?)\n</data>", re.DOTALL)


class Oracle:
    """Plays one method.

    Args:
        method: The method.
        records: The questions, with their queries.
        calls: The calls that answer them, by the ids of the questions.
    """

    name = "oracle"

    def __init__(self, method: MethodName, records: Sequence[Record], calls: Mapping[str, Calls]) -> None:
        self._method = method
        self._records = sorted(records, key=lambda record: -len(record.question))
        self._calls = calls

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`."""
        prompt = "\n".join(message.content for message in request.messages)
        record = next(each for each in self._records if each.question in prompt)
        if self._method == "tools":
            call = self._call(request, record)
            usage = Usage(estimated_tokens(request), tokens_in(call.name + call.arguments), calls=1)
            return Completion("", usage, "tool_calls", (call,))
        text = self._reply(request.purpose, prompt, record)
        return Completion(text, Usage(tokens_in(prompt), tokens_in(text), calls=1))

    def _reply(self, purpose: str, prompt: str, record: Record) -> str:  # noqa: C901, PLR0911 - one for each kind of prompt
        match self._method, purpose:
            case _, "mentions":
                return "\n".join(self._mentions(record))
            case "graph-counselor", _:
                return self._counsel(purpose, prompt, record)
            case "graph-cot", _:
                return self._one_function(purpose, prompt, record)
            case "oda", "turn":
                return self._turn(prompt, record)
            case "oda", "action":
                return self._explore(prompt, record)
            case "oda", "reflection":
                return _select(prompt, record)
            case "oda", _:
                return _answer(prompt, record)
            case method, _ if method in WITHOUT_GRAPH:
                return f"{{{UNKNOWN}}}"
            case _, "relations":
                wanted = set(_RELATION.findall(record.sparql))
                return _scored(prompt, "Its relations", lambda line: bool(wanted & {*_RELATION.findall(line)}))
            case _, "entities":
                return _scored(prompt, "Reached", lambda line: any(_names(gold, line) for gold in record.golds))
            case _, "enough":
                return "Yes" if _shown(_found(prompt, record), record) else "No"
            case _:
                return " ".join(f"{{{text}}}" for text in _shown(_found(prompt, record), record) or [UNKNOWN])

    def _call(self, request: LlmRequest, record: Record) -> FunctionCall:
        """Make the call that answers the question, then answer with what its result shows."""
        results = [message.content for message in request.messages if message.role == "tool"]
        calls = self._calls[record.id]
        if not results:
            return (
                called("Sparql", query=calls.sparql)
                if calls.compose is None
                else called("Compose", expression=calls.compose)
            )
        found = _shown(results[-1], record)
        if len(found) >= LONG:
            return called("answer", all_of=1)
        return called("answer", **(cited(found) if found else {"outcome": "not_in_graph", "reason": ABSENT}))

    def _turn(self, prompt: str, record: Record) -> str:
        """Go the next step of the query, or answer."""
        computed = record.kind in COMPUTED and not any(gold.id for gold in record.golds)
        ways = ways_of(self._calls[record.id])
        return turn(prompt, ways, len(record.golds), lambda text: _shown(text, record), computed=computed)

    def _mentions(self, record: Record) -> list[str]:
        """Name what the question is about, as the call names it."""
        expression = self._calls[record.id].compose or self._calls[record.id].sparql
        named = _NAME.findall(expression.replace('@"', '"') if record.answerable else expression)
        return named[:5] or _TYPE.findall(expression) or _ABSENT.findall(record.sparql) or [record.question]

    def _counsel(self, purpose: str, prompt: str, record: Record) -> str:
        """Call the expression that answers the question, then finish with what it showed."""
        if purpose == "judge":
            return "The steps support it.\n[yes]"
        if purpose not in {"step", "action"}:
            return "I look the answer up in the graph by one compound function, and finish with what it shows."
        expression = self._calls[record.id].compose
        seen = _observed(prompt)
        if not seen and expression is not None:
            action = expression
        else:
            action = "Finish[" + (", ".join(f'"{text}"' for text in _shown(seen, record)) or ABSENT) + "]"
        return action if purpose == "action" else f"Plan: one call\nThought: It gives the answer.\nAction: {action}"

    def _one_function(self, purpose: str, prompt: str, record: Record) -> str:
        """Call the expression where it is one function, or go its steps; finish once the answers were shown."""
        if purpose == "thought":
            return "I look for the answer."
        calls = self._calls[record.id]
        seen = _observations(prompt)
        single = calls.compose if calls.compose is not None and calls.compose.count("[") == 1 else None
        found = _shown("\n".join(seen), record)
        over = record.kind not in COMPUTED and 0 < len(record.golds) == len(found)
        action = None if over or len(seen) >= MOST_STEPS else single or next_function(ways_of(calls), seen)
        if action is None or (single and seen):
            return f"Finish[{', '.join(found or [UNKNOWN])}]"
        return action

    def _explore(self, prompt: str, record: Record) -> str:
        """Explore the candidates one after the other, until the memory holds the answer."""
        parts = _DATA.findall(prompt)
        memory, candidates, history = parts[-4], parts[-3], parts[-1]
        left = [each for each in _CANDIDATE.findall(candidates) if each not in history]
        found = record.kind not in COMPUTED and _shown(memory, record)
        if found or not left:
            return "Thought: The memory holds what there is.\nAction: Answer"
        return f"Thought: I look around it.\nAction: GetNeighbor\nEntity_id: {left[0]}"


def _select(prompt: str, record: Record) -> str:
    """Select the triples over relations of the query, those with an answer first."""
    wanted = set(_RELATION.findall(record.sparql))
    ids = {gold.id for gold in record.golds if gold.id}
    candidates = _DATA.findall(prompt)[-4]
    found = [each[0] for each in _TRIPLE.finditer(candidates) if each[1] in wanted]
    best = sorted(dict.fromkeys(found), key=lambda line: not ids & {*line.split(",")})
    return "\n".join(("Thought: These lead there.", "Triples:", *best[:MOST]))


def _answer(prompt: str, record: Record) -> str:
    """Answer with what the memory shows."""
    memory = _DATA.findall(prompt)[-2]
    return "\n".join(("Answer:", *(_shown(memory, record) or ["Not in the graph: what is asked for."])))


def _found(prompt: str, record: Record) -> str:
    """Return what a prompt gives of the graph: its data but for the question."""
    return "\n".join(each for each in _DATA.findall(prompt) if each not in {_NOTHING, record.question})


def _shown(prompt: str, record: Record) -> list[str]:
    """Return the right answers that a prompt shows; what is worked out needs to be shown something, and no name."""
    if record.kind in COMPUTED and prompt.strip() and not any(gold.id for gold in record.golds):
        return [gold.text for gold in record.golds]
    question = fold(record.question)
    shown = fold(prompt).replace(question, " ")
    return [gold.text for gold in record.golds if any(_in(name, shown) for name in (*gold.names, gold.id) if name)]


def _names(gold: Gold, line: str) -> bool:
    return any(_in(name, fold(line)) for name in (*gold.names, gold.id) if name)


def _in(name: str, folded: str) -> bool:
    return fold(name) in folded or fold(name) in folded.replace(",", "")


def _scored(prompt: str, part: str, wanted: Callable[[str], bool]) -> str:
    """Score the numbered lines of a part of the prompt: those that are wanted, or all alike where none is."""
    lines = _NUMBERED.findall(prompt.partition(part)[2])
    chosen = [number for number, line in lines if wanted(line)] or [number for number, _ in lines]
    return "\n".join(f"{number}: {1 if len(chosen) == 1 else 0.9}" for number in chosen)


def _observed(prompt: str) -> str:
    """Return the observations of a scratchpad that are the method's own, after the question."""
    last = prompt.rpartition("Question:")[2]
    if _STEPS in last:
        steps = _DATA.findall(last.partition(_STEPS)[2])[0]
        lines = [line for line in steps.splitlines() if not _OWN.match(line)]
        return "" if lines == [_NOTHING] else "\n".join(lines)
    return "\n".join(_observations(prompt))


def _observations(prompt: str) -> list[str]:
    """Return the numbered observations after the question."""
    return _OBSERVATION.findall(prompt.rpartition("Question:")[2])
