"""The answer of an agent, what it rests on, and lists of which only a part was seen."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, Self, TypeAlias

from kg_agents.evidence.matching import is_name, words_of
from kg_agents.evidence.values import IdLabels, Shown, Triple, in_graph, plain_value, split_graph
from kg_agents.llm import Usage
from kg_agents.llm.dialogue import Dialogue
from kg_boundary.drawing import Picture, notebook_html
from kg_boundary.shown import in_quotes

Source: TypeAlias = Literal["graph", "computed", "model"]
"""A fact of the graph states it; it is worked out from such facts; or the model says so by itself."""

Status: TypeAlias = Literal["answered", "partly", "not_in_graph", "unknown_entity", "stopped", "no_model"]
"""What came of a question; `partly`: some answer is missing, or nothing that was shown states it."""

ClosedBook: TypeAlias = Literal["never", "apart", "allowed"]
"""What becomes of what a model says by itself: it is left out, stands apart, or counts as an answer."""

BY_MODEL: Final = "concluded by the model from these facts"
BY_JUDGE: Final = f"{BY_MODEL}, and confirmed by its judge"
"""The last step of an answer that no fact states."""

NOT_STATED: Final = "Nothing that was shown states"

_FRUITLESS: Final[Mapping[str, Status]] = {
    "answered": "not_in_graph",
    "not_in_graph": "not_in_graph",
    "entities": "unknown_entity",
    "no_model": "no_model",
}
"""The status of a run without an answer, by why it ended; `stopped` otherwise."""


@dataclass(frozen=True, slots=True)
class RunStep:
    """One step of a run, in words: what was thought, done, found and kept."""

    number: int
    thought: str
    action: str
    found: str
    kept: tuple[str, ...] = ()


OnStep: TypeAlias = Callable[[RunStep], None]
"""Called with every step."""


def ignore_step(step: RunStep) -> None:
    """Do nothing."""
    del step


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """One answer.

    Args:
        text: The answer, in a few words.
        source: Where it comes from.
        facts: The triples and values that yield it, by id.
        computed: How it was worked out from them, step by step, as `expression = result`.
        entities: The ids of the entities that the text names, where it names any.
    """

    text: str
    source: Source
    facts: tuple[Triple, ...] = ()
    computed: tuple[str, ...] = ()
    entities: tuple[str, ...] = field(default=(), compare=False)

    @property
    def graphs(self) -> tuple[str, ...]:
        """The graphs that state it, where a server has several."""
        return tuple(filter(None, dict.fromkeys(split_graph(relation)[1] for _, relation, _ in self.facts)))

    @property
    def is_unconfirmed(self) -> bool:
        """Whether it is a name that no fact states and no judge confirmed: what follows from facts is no new name."""
        return is_name(self.text) and any(each.endswith(BY_MODEL) for each in self.computed)


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """The answers to a question, what yields them, and how they were found.

    Args:
        question: The question.
        answers: Short answers, the best first; empty where none was found.
        status: What came of the question.
        labels: What the ids are called.
        stop_reason: Why the run ended, in a word: `answered`, or the limit that it met.
        explanation: The same in a sentence, where it did not end with an answer.
        steps: What was done.
        usage: What the model used.
        seconds: How long it took.
        model_answer: What the model says by itself, which nothing in the graph confirms.
        facts: What the run kept or read of the graph; no evidence of anything.
    """

    question: str
    answers: tuple[GivenAnswer, ...]
    status: Status
    labels: IdLabels
    stop_reason: str
    explanation: str
    steps: tuple[RunStep, ...]
    usage: Usage
    seconds: float
    model_answer: tuple[str, ...] = ()
    facts: tuple[Triple, ...] = ()

    @classmethod
    def of(
        cls,
        question: str,
        talk: Dialogue,
        ended: tuple[str, str],
        *,
        closed_book: ClosedBook = "never",
        answers: Sequence[GivenAnswer] = (),
        own: Sequence[str] = (),
        parts: Iterable["PartSeen"] = (),
        labels: IdLabels | None = None,
        steps: Iterable[RunStep] = (),
        facts: tuple[Triple, ...] = (),
    ) -> Self:
        """Return how a run ends, whose answer is in part where it is taken from a part of a list.

        Args:
            question: The question.
            talk: What the run has used.
            ended: Why it ended, in a word and in a sentence.
            closed_book: What becomes of what the model says by itself.
            answers: What was answered, from whatever source.
            own: What the model says beside its answers, by itself.
            parts: The lists of which a part was seen, and no more.
            labels: What the ids are called.
            steps: What was done.
            facts: What the run kept or read of the graph.
        """
        (stop_reason, explanation), labels = ended, labels or IdLabels()
        if stop_reason == "answered" and (part := part_answered(answers, parts, labels)):
            stop_reason, explanation = CUT, str(part)
        run = cls(
            question=question,
            answers=(),
            status="stopped",
            labels=labels,
            stop_reason=stop_reason,
            explanation=explanation,
            steps=tuple(steps),
            usage=talk.usage,
            seconds=talk.seconds,
            facts=facts,
        )
        return run.answering(answers, own, closed_book)

    def answering(self, answers: Iterable[GivenAnswer], own: Sequence[str], closed_book: ClosedBook) -> Self:
        """Return the same run with other answers, and what came of the question with these.

        Args:
            answers: What was answered, from whatever source; each text counts once.
            own: What the model says beside its answers, by itself.
            closed_book: What becomes of what the model says by itself.
        """
        added = (GivenAnswer(text, "model") for text in own if closed_book == "allowed")
        each_once = tuple({(each.text, each.graphs): each for each in (*added, *answers)}.values())
        counted = tuple(each for each in each_once if each.source != "model" or closed_book == "allowed")
        unstated = tuple(each.text for each in each_once if each not in counted)
        texts = {each.text for each in counted}
        apart = (text for text in (*unstated, *own) if closed_book == "apart" and text not in texts)
        answered, reason = self.stop_reason == "answered", self.explanation
        if counted or (unstated and answered):
            unconfirmed = (*unstated, *(each.text for each in counted if each.is_unconfirmed))
            status: Status = "answered" if answered and not unconfirmed else "partly"
            missing = f"{NOT_STATED} {', '.join(map(in_quotes, unconfirmed))}." if unconfirmed else ""
            reason = reason or missing
        else:
            status = _FRUITLESS.get(self.stop_reason, "stopped")
        return replace(
            self, answers=counted, model_answer=tuple(dict.fromkeys(apart)), status=status, explanation=reason
        )

    @property
    def texts(self) -> tuple[str, ...]:
        """The answers without what yields them; where two differ in nothing else, with the graphs that state them."""
        counts = Counter(each.text for each in self.answers)
        return tuple(
            in_graph(each.text, ", ".join(each.graphs)) if counts[each.text] > 1 else each.text for each in self.answers
        )

    @property
    def evidence(self) -> tuple[Triple, ...]:
        """The triples and values that yield the answers, each once."""
        return tuple(dict.fromkeys(fact for each in self.answers for fact in each.facts))

    @property
    def picture(self) -> Picture:
        """The answers and their evidence as a picture; without evidence, the facts that the run kept or read."""
        facts = self.evidence or self.facts
        return picture_of(self.question, self.answers, self.labels, facts)

    def _repr_html_(self) -> str:
        return notebook_html(self.picture)


def picture_of(question: str, answers: Sequence[GivenAnswer], labels: IdLabels, facts: Sequence[Triple]) -> Picture:
    """Return answers to a question and their evidence as a picture.

    Args:
        question: The question.
        answers: The answers.
        labels: What ids are called.
        facts: What is drawn.
    """
    evidence = frozenset(fact for each in answers for fact in each.facts)
    texts = {words_of(each.text) for each in answers} | {each for answer in answers for each in answer.entities}
    drawn = labels.picture(facts)
    named = {end for end in drawn.nodes() if {end, words_of(labels.nodes.get(end, plain_value(end)))} & (texts - {""})}
    caption = ", ".join(dict.fromkeys(each.text for each in answers))
    return replace(drawn, title=question, caption=caption, evidence=evidence, answers=frozenset(named))


def without(answer: AgentAnswer, refuted: frozenset[Triple], closed_book: ClosedBook) -> AgentAnswer:
    """Return an answer without facts that the graph does not hold; what rested on one of them is the model's own."""
    if not refuted.intersection(answer.evidence):
        return answer
    left = (GivenAnswer(each.text, "model") if refuted.intersection(each.facts) else each for each in answer.answers)
    reason = f"{answer.explanation} The graph does not hold all that was read.".strip()
    return replace(answer, explanation=reason).answering(left, answer.model_answer, closed_book)


CUT: Final = "cut"
"""Why a run ended whose answer is a part of a list, in a word."""


UNASKED: Final = "unasked"
"""Why a run ended whose model denies what it never looked up, in a word."""


@dataclass(frozen=True, slots=True)
class PartSeen:
    """The part of a list that was seen.

    Args:
        members: Its members that were seen, by id or as values.
        total: How many members it has; 0 where nobody says.
        facts: The facts that state these, where an answer names each fact that it rests on.
    """

    members: frozenset[str]
    total: int = 0
    facts: frozenset[Triple] = frozenset()

    def __str__(self) -> str:
        of = f"of {self.total:,}" if self.total else "and not all"
        return f"The list that the answer is taken from is not whole: {len(self.members):,} {of} were seen."


def part_answered(answers: Sequence[GivenAnswer], parts: Iterable[PartSeen], labels: IdLabels) -> PartSeen | None:
    """Return the part of a list that answers are, number, or rest on as a whole; None where they do not.

    Args:
        answers: The answers of a run.
        parts: The lists of which a part was seen, and no more.
        labels: What ids are called.
    """
    texts = {words_of(each.text) for each in answers}
    counts = {each.text.strip(" .").replace(",", "") for each in answers if _is_by_model(each)}
    for part in parts:
        names = {words_of(labels.nodes.get(each, plain_value(each))) for each in part.members}
        alone = names <= texts and len(texts) < (part.total or len(names) + 1)
        rests = part.facts and any(part.facts <= frozenset(each.facts) for each in answers)
        if len(part.members) > 1 and (alone or rests or str(len(part.members)) in counts):
            return part
    return None


def whole(pages: Sequence[Shown]) -> bool:
    """Return whether lists leave nothing out: each is whole, or goes on in another of them."""
    begun = {each.page for each in pages}
    return all(each.whole or (each.next_page and each.next_page in begun) for each in pages) and (
        not begun or "" in begun
    )


def denial(readings: Sequence[Shown]) -> str:
    """Return why a run ends whose model says that the graph lacks the answer, in a word, from what it was shown.

    Only a lookup of something that the graph has, with nothing left out, shows that. A search that finds nothing shows
    that the question names nothing here, and no call at all shows nothing.
    """
    lookups = [each for each in readings if each.looks_up]
    if any(each.whole for each in lookups) or (lookups and whole(lookups)):
        return "not_in_graph"
    if lookups:
        return CUT
    return "entities" if any(each.names_nothing for each in readings) else UNASKED


def parts_in(readings: Sequence[Shown]) -> Iterator[PartSeen]:
    """Yield the lists of which results show a part, pages that go on one behind the other taken together."""
    following = {each.page: each for each in readings if each.page}
    for first in (each for each in readings if not each.page):
        pages = [first]
        while (page := following.get(pages[-1].next_page)) is not None and page not in pages:
            pages.append(page)
        if not whole(pages):
            yield PartSeen(frozenset(end for page in pages for end in page.listed), first.total)


def _is_by_model(answer: GivenAnswer) -> bool:
    return any(BY_MODEL in each for each in answer.computed)
