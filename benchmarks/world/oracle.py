"""A model that knows the gold queries, follows each method's prompts with them, and never says what it was not shown.

It stands in for a model where there is none: loops, tools and scoring run over real questions, and what comes out wrong
is the machinery's fault, or lies beyond what the method's actions reach.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks.world.by_rules import ByRules
from benchmarks.world.counsel import counsel
from benchmarks.world.one_call import Calls
from benchmarks.world.player import Player
from benchmarks.world.questions import read_questions
from benchmarks.world.turns import turn
from benchmarks.world.walks import next_function, ways_of
from kg_agents.llm import Completion, Llm, LlmRequest, Usage
from kg_agents.texts import tokens_in
from kg_eval.methods.catalog import WITHOUT_GRAPH
from kg_eval.metrics.values import fold
from kg_eval.questions import Gold, Record
from kg_eval.runs.plan import MethodName

UNKNOWN: Final = "unknown"
MOST: Final = 15
MOST_STEPS: Final = 9
"""So many functions leave room for an answer."""

COMPUTED: Final = frozenset({"count", "aggregation", "yes-no", "comparison"})
"""Kinds whose answers are worked out, so that facts yield them without naming them."""

_ENTITY: Final = re.compile(r"\bw:E\d+\b")
_RELATION: Final = re.compile(r"\bw:R\d+\b")
_NAME: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_NUMBERED: Final = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)
_TRIPLE: Final = re.compile(r"^[^\s,]+,(w:R\d+),.+$", re.MULTILINE)
_CANDIDATE: Final = re.compile(r"\((\S+)\)$", re.MULTILINE)
_ABSENT: Final = re.compile(r'LCASE\(STR\(\?l\)\) = "([^"]+)"')
_TYPE: Final = re.compile(r"Type\[([^\[\]]*)\]")
_OBSERVATION: Final = re.compile(r"Observation \d+:(.*?)(?=\n(?:Thought|Plan|Action) \d+|</data>|\Z)", re.DOTALL)
_NOTHING: Final = "(nothing)"
_DATA: Final = re.compile(r"<data>\n(.*?)\n</data>", re.DOTALL)


class Oracle:
    """Plays one method; `tools` and `graph-counselor` by rules, which read answers from what is shown.

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
        asked = read_questions()
        self._agents: dict[tuple[str, str], Llm] = {("tools", "tools"): Player(asked, calls)}
        counselor = ByRules("counsel", counsel, asked, calls)
        self._agents |= {("graph-counselor", each): counselor for each in ("step", "judge")}

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`."""
        if (agent := self._agents.get((self._method, request.purpose))) is not None:
            return await agent.complete(request)
        prompt = "\n".join(message.content for message in request.messages)
        # Examples that stand before the question may hold others.
        record = max(self._records, key=lambda each: prompt.rfind(each.question))
        text = self._reply(request.purpose, prompt, record)
        return Completion(text, Usage(tokens_in(prompt), tokens_in(text), calls=1))

    def _reply(self, purpose: str, prompt: str, record: Record) -> str:  # noqa: PLR0911 - one for each kind of prompt
        match self._method, purpose:
            case _, "mentions":
                return "\n".join(self._mentions(record))
            case _, "linking":
                return ", ".join(_linked(prompt, record))
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
            case _:
                ways = [way for way in ways_of(self._calls[record.id]) if not way.aside]
                return _searched(purpose, prompt, record, ways[-1].plain if ways else "")

    def _turn(self, prompt: str, record: Record) -> str:
        """Go the next step of the query, or answer."""
        computed = record.kind in COMPUTED and not any(gold.id for gold in record.golds)
        ways = ways_of(self._calls[record.id])
        return turn(prompt, ways, len(record.golds), lambda text: shown(text, record), computed=computed)

    def _mentions(self, record: Record) -> list[str]:
        """Name what the question is about, as the call names it."""
        expression = self._calls[record.id].compose or self._calls[record.id].sparql
        named = _NAME.findall(expression.replace('@"', '"') if record.answerable else expression)
        return named[:5] or _TYPE.findall(expression) or _ABSENT.findall(record.sparql) or [record.question]

    def _one_function(self, purpose: str, prompt: str, record: Record) -> str:
        """Go the steps of the call, one function after the other; finish once the answers were shown."""
        if purpose == "thought":
            return "I look for the answer."
        seen = _OBSERVATION.findall(prompt.rpartition("Question:")[2])
        given = _DATA.findall(prompt)[-2]
        found = shown("\n".join(seen), record)
        over = record.kind not in COMPUTED and 0 < len(record.golds) == len(found)
        ways = () if over or len(seen) >= MOST_STEPS else ways_of(self._calls[record.id])
        return next_function(ways, given, seen) or f"Finish[{', '.join(found or [UNKNOWN])}]"

    def _explore(self, prompt: str, record: Record) -> str:
        """Explore the candidates one after the other, until the memory holds the answer."""
        parts = _DATA.findall(prompt)
        memory, candidates, history = parts[-4], parts[-3], parts[-1]
        left = [each for each in _CANDIDATE.findall(candidates) if each not in history]
        found = record.kind not in COMPUTED and shown(memory, record)
        if found or not left:
            return "Thought: The memory holds what there is.\nAction: Answer"
        return f"Thought: I look around it.\nAction: GetNeighbor\nEntity_id: {left[0]}"


def _linked(prompt: str, record: Record) -> list[str]:
    """Return the numbers of the candidates that the query is about, or of all where it names none of them."""
    ids, lines = {*_ENTITY.findall(record.sparql)}, _NUMBERED.findall(prompt)
    return [number for number, line in lines if ids & {*_ENTITY.findall(line)}] or [number for number, _ in lines]


def _searched(purpose: str, prompt: str, record: Record, last: str) -> str:
    """Play methods that search along relations of the query, or answer from a text; the last relation counts most."""
    if purpose == "relations":
        wanted, about = (
            set(_RELATION.findall(record.sparql)),
            prompt.partition("Entity:")[2].partition("Its relations")[0],
        )
        sure = 1.0 if {*_ENTITY.findall(about)} & {*_ENTITY.findall(record.sparql)} else 0.9
        lines = _NUMBERED.findall(prompt.partition("Its relations")[2])
        scores = {
            number: sure if f"{line} ".startswith((f"{last} (", f"inverse of {last} (")) else sure * 0.9
            for number, line in lines
            if wanted & {*_RELATION.findall(line)}
        }
        return _scores(scores or dict.fromkeys((number for number, _ in lines), 0.5))
    if purpose == "entities":
        lines = _NUMBERED.findall(prompt.partition("Reached")[2])
        right = [number for number, line in lines if any(_names(gold, line) for gold in record.golds)]
        return _scores(dict.fromkeys(right, 1.0) or dict.fromkeys((number for number, _ in lines), 0.9))
    found = shown(_found(prompt, record), record)
    if purpose == "enough":
        return "Yes" if found else "No"
    return " ".join(f"{{{text}}}" for text in found or [UNKNOWN])


def _scores(scores: Mapping[str, float]) -> str:
    return "\n".join(f"{number}: {score:.2g}" for number, score in scores.items())


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
    return "\n".join(("Answer:", *(shown(memory, record) or ["Not in the graph: what is asked for."])))


def _found(prompt: str, record: Record) -> str:
    """Return what a prompt gives of the graph: its data but for the question."""
    return "\n".join(each for each in _DATA.findall(prompt) if each not in {_NOTHING, record.question})


def shown(prompt: str, record: Record) -> list[str]:
    """Return the right answers that a prompt shows; what is worked out needs to be shown something, and no name."""
    if record.kind in COMPUTED and prompt.strip() and not any(gold.id for gold in record.golds):
        return [gold.text for gold in record.golds]
    question = fold(record.question)
    folded = fold(prompt).replace(question, " ")
    return [gold.text for gold in record.golds if any(_in(name, folded) for name in (*gold.names, gold.id) if name)]


def _names(gold: Gold, line: str) -> bool:
    return any(_in(name, fold(line)) for name in (*gold.names, gold.id) if name)


def _in(name: str, folded: str) -> bool:
    return fold(name) in folded or fold(name) in folded.replace(",", "")
