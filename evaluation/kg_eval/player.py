"""A player in place of a model: it follows every method's prompts and always speaks the gold answer.

What it does not score is lost by the set-up: the loop, the graph, the evidence or the scoring, and not by a model.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kg_agents.evidence.matching import MONTHS, UNITS, date_of, fold, is_name, number_of, truth_of
from kg_agents.llm import Completion, FunctionCall, LlmRequest, Usage, estimated_tokens
from kg_agents.llm.texts import tokens_in
from kg_eval.questions import BenchmarkName, Record, read_questions

GOLD: Final = "gold"
REPHRASED: Final = "gold-rephrased"
"""The names by which the player stands in for a model: as the file writes the answers, and in other words."""

_DATA: Final = re.compile(r"<data>\n(.*?)\n</data>", re.DOTALL)
_NUMBERED: Final = re.compile(r"^\[(\d+)(?:[-, \d]*)\] (.*)$", re.MULTILINE)
_OBSERVED: Final = re.compile(
    r"^Observation (\d+): (.*?)(?=^(?:\d+\. )?(?:Plan|Thought|Action)|\Z)", re.DOTALL | re.MULTILINE
)
_WITH_ID: Final = re.compile(r"\(([^()\s]+)\)$", re.MULTILINE)
_PROPER: Final = re.compile(r"[A-Z][\w.'-]*(?:,? (?:of the |of |the |de )?[A-Z][\w.'-]*)*")
_CALLS: Final = 8
"""How often it looks for evidence before it answers without more."""
_AT_ONCE: Final = 5
"""How many answers it looks for in one expression."""


class GoldSpeaker:
    """Plays the model of every method for the questions of a benchmark.

    Args:
        records: The questions, with what is right.
        rephrased: Whether it speaks in other words than the file: other date styles, number words, aliases, "No".
    """

    def __init__(self, records: Sequence[Record], *, rephrased: bool = False) -> None:
        self.name = REPHRASED if rephrased else GOLD
        self._records = sorted(records, key=lambda record: -len(record.question))
        self._rephrased = rephrased

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`."""
        texts = [each.content for each in request.messages if each.role == "user"]
        record = self._asked(texts)
        reply = self._called(request, record) if request.tools else self._reply(request.purpose, texts[0], record)
        usage = Usage(estimated_tokens(request), tokens_in(str(reply)), calls=1)
        if isinstance(reply, FunctionCall):
            return Completion("", usage, "tool_calls", (reply,))
        return Completion(reply, usage)

    def _asked(self, texts: Sequence[str]) -> Record:
        """Return the question that stands by itself in a prompt, beside others in examples and in what was found."""
        parts = [part for text in texts for part in (text, *_DATA.findall(text))]
        alone = {begun for part in parts for begun in (part, part.partition("\nIt is about:")[0])}
        within = (each for each in self._records if any(each.question in text for text in texts))
        return next((each for each in self._records if each.question in alone), None) or next(within)

    async def aclose(self) -> None:
        """Release nothing."""

    def _reply(self, purpose: str, prompt: str, record: Record) -> str:  # noqa: C901, PLR0911 - one for each kind of prompt
        in_oda = "execution agent" not in prompt
        match purpose:
            case "mentions":
                return "\n".join(each.label or each.id for each in record.topics) or record.question
            case "linking":
                return _linked(prompt, record)
            case "turn":
                return self._turn(prompt, record)
            case "step":
                return self._step(prompt, record)
            case "action" if in_oda:
                return _acting(prompt)
            case "action":
                return (
                    self._finish(record, "") if "Observation 1:" in prompt else f"Neighbour[{_topic(prompt, record)}]"
                )
            case "reflection" if "Triples" in prompt:
                return _selected(prompt, record)
            case "answer":
                return "\n".join(("Answer:", *self._spoken(record)))
            case "judge":
                return "It is what the graph says.\n[yes]"
            case "plan" | "thought" | "reflection" | "generation":
                return "The answer stands beside what the question names."
            case _:
                return f"{{{', '.join(self._spoken(record))}}}"

    def _turn(self, prompt: str, record: Record) -> str:
        """Return a turn of ODA: it answers where facts show the answer, and looks at the answer itself otherwise."""
        *_, memory, new, candidates, done = _DATA.findall(prompt)
        facts = [(int(number), line) for number, line in _NUMBERED.findall(f"{memory}\n{new}")]
        missing = [gold for gold in _named(record) if not any(fold(gold) in fold(line) for _, line in facts)]
        # What was searched for and looked at in vain is not in the graph.
        missing = [gold for gold in missing if f"Search[{gold}]: [" not in done or _candidate(gold, candidates, done)]
        if record.answerable and missing and "this is the last turn" not in prompt:
            kept = ", ".join(str(number) for number, _ in facts) or "none"
            return f"Thought: look.\nKeep: {kept}\nAction: {_looking(missing[0], candidates, done)}"
        if not record.answerable:
            return "Thought: no.\nKeep: none\nAction: Answer\nNot in the graph: nothing says it"
        cited = ", ".join(str(number) for number, _ in facts)
        lines = (f"{text} [{cited}]" if cited else text for text in self._spoken(record))
        return "\n".join(("Thought: it is here.", "Keep: none", "Action: Answer", "Answer:", *lines))

    def _step(self, prompt: str, record: Record) -> str:
        """Return a step of Graph Counselor, which looks at the answer itself where no observation names it."""
        around, *_, steps = _DATA.findall(prompt)
        observed = {0: around, **{int(number): text for number, text in _OBSERVED.findall(steps)}}
        whole = fold("\n".join(observed.values()))
        missing = [gold for gold in _named(record) if fold(gold) not in whole]
        if not record.answerable:
            return f"Thought: no.\nAction: {self._finish(record, '')}"
        # Without an entity, what stands around the question is the graph's definition, which shows no fact.
        unseen = len(observed) == 1 and "It is about:" not in prompt
        if (missing or unseen) and len(observed) < _CALLS:
            asked = missing[:_AT_ONCE] or _mentioned(record)
            return "Thought: look.\nAction: " + ", ".join(map(_around, asked))
        cited = ", ".join(map(str, observed))
        return f"Thought: it is here.\nAction: {self._finish(record, f' [{cited}]')}"

    def _finish(self, record: Record, cited: str) -> str:
        if not record.answerable:
            return "Finish[Not in the graph: nothing says it]"
        quoted = (f'"{text}"' if "," in text and '"' not in text else text for text in self._spoken(record))
        return f"Finish[{', '.join(f'{text}{cited}' for text in quoted)}]"

    def _called(self, request: LlmRequest, record: Record) -> FunctionCall:
        """Return the next call of a model that calls the tools itself."""
        results = [each.content for each in request.messages if each.role == "tool"]
        lines = (line for result in results for line in result.splitlines())
        told = fold("\n".join(line for line in lines if "No entity matches" not in line))
        missing = [gold for gold in _named(record) if fold(gold) not in told]
        about = [each.id for each in record.topics] or [*_mentioned(record), record.question]
        done = {json.loads(call.arguments).get("expression") for each in request.messages for call in each.calls}
        looks = [*(missing[at : at + _AT_ONCE] for at in range(0, len(missing), _AT_ONCE)), about]
        if missing or not results:
            expressions = (", ".join(map(_around, look)) for look in looks)
            if len(results) < _CALLS and (asked := next((each for each in expressions if each not in done), None)):
                return FunctionCall(f"look{len(results)}", "Compose", json.dumps({"expression": asked}))
        cited = [*range(1, len(results) + 1)]
        given: dict[str, object] = {"answers": [{"text": text, "results": cited} for text in self._spoken(record)]}
        if not record.answerable:
            given = {"outcome": "not_in_graph", "reason": "nothing says it"}
        return FunctionCall("end", "answer", json.dumps(given))

    def _spoken(self, record: Record) -> Sequence[str]:
        """Return the right answers as it speaks them; in other words, several stand in one text."""
        texts = [each.text for each in record.golds]
        if not record.answerable:
            return ["unknown"]
        if not self._rephrased:
            return texts
        said = [each.aliases[0] if each.id and each.aliases else _rephrased(each.text) for each in record.golds]
        joinable = len(said) > 1 and not any("," in text or " and " in text for text in said)
        return [f"{', '.join(said[:-1])} and {said[-1]}"] if joinable else said


def player_of(model: str, benchmark: BenchmarkName, data: Path) -> GoldSpeaker | None:
    """Return the player that a model's name stands for; None where it names a real model.

    Raises:
        InvalidQuestions: The questions cannot be read.
    """
    if model not in {GOLD, REPHRASED}:
        return None
    return GoldSpeaker(read_questions(benchmark, data), rephrased=model == REPHRASED)


def _named(record: Record) -> list[str]:
    """Return the right answers that are names, which facts have to name."""
    return [each.text for each in record.golds if is_name(each.text)]


def _around(name: str) -> str:
    """Return the expression of what surrounds something, whose name may hold quotation marks."""
    mark = "'" if '"' in name else '"'
    return f"Neighbor[{mark}{name}{mark}]"


def _mentioned(record: Record) -> list[str]:
    """Return the longest names that a question holds, by their capitals; the question where there are none."""
    names = (found[0].strip(" .,'") for found in _PROPER.finditer(record.question))
    return sorted(names, key=len, reverse=True)[:_AT_ONCE] or [record.question]


def _rephrased(text: str) -> str:
    """Return a value in other words, and a name as it is."""
    if (truth := truth_of(text)) is not None:
        return "Yes" if truth else "No"
    number, date = number_of(text), date_of(text)
    if date is not None and date.month and date.day and date.year > 0:
        return f"{date.day} {MONTHS[date.month - 1].title()} {date.year}"
    if number is not None and number == int(number):
        whole = int(number)
        return UNITS[whole] if 0 <= whole < len(UNITS) else text if date is not None else f"{whole:,}"
    return text


def _linked(prompt: str, record: Record) -> str:
    """Return the numbers of the candidates that the question is about."""
    ids = {each.id for each in record.topics}
    found = re.findall(r"^(\d+)\. .*?\(([^()\s]+)\)", prompt, re.MULTILINE)
    return ", ".join(number for number, entity in found if entity in ids) or "1"


def _topic(prompt: str, record: Record) -> str:
    about = re.search(r"It is about: (?:.*?\()?([^(),\s]+)\)?", prompt)
    return about[1] if about else next(iter(_named(record)), record.question.replace("[", "").replace("]", ""))


def _acting(prompt: str) -> str:
    """Return an action of ODA as in its paper: one look around the first entity, then the answer."""
    *_, candidates, _, done = _DATA.findall(prompt)
    if done != "(nothing)":
        return "Thought: enough.\nAction: Answer"
    first = candidates.partition("\n")[0]
    named = _WITH_ID.search(first)
    return f"Thought: look.\nAction: GetNeighbor\nEntity_id: {named[1] if named else first}"


def _selected(prompt: str, record: Record) -> str:
    """Return a reflection of ODA that keeps one triple, one that names an answer where there is one."""
    triples = _DATA.findall(prompt)[-4].splitlines()
    best = (line for line in triples if any(each.id and each.id in line for each in record.golds))
    return "\n".join(("Thought: this.", "Triples:", next(best, triples[0])))


def _looking(gold: str, candidates: str, done: str) -> str:
    """Return an action of ODA that looks around the first candidate, then for an answer and around it."""
    if "GetNeighbor[" not in done:
        return "GetNeighbor[c1]"
    candidate = _candidate(gold, candidates, done)
    return f"GetNeighbor[{candidate}]" if candidate else f"Search[{gold}]"


def _candidate(gold: str, candidates: str, done: str) -> str:
    """Return the number of the candidate that bears a name and was not looked at yet; empty where there is none."""
    named = re.search(rf"^(c\d+) ({re.escape(gold)}(?: \(.*\))?)$", candidates, re.MULTILINE | re.IGNORECASE)
    return named[1] if named and f"GetNeighbor[{named[2]}]" not in done else ""
