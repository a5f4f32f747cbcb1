"""ODA: an agent that observes, acts and reflects."""

import time
from collections.abc import Callable, Sequence
from typing import Final

from kg_agents.answers import CUT, AgentAnswer, Step, outcome_of, part_answered
from kg_agents.dialogue import Dialogue, FailedReply, RunEnded
from kg_agents.evidence import Cited
from kg_agents.knowledge import KnowledgeGraph
from kg_agents.linking import resolver
from kg_agents.llm import Llm
from kg_agents.oda.paper import LookAhead, PaperRounds, Parts, parts_of
from kg_agents.oda.prompting import Means, OnStep, Rounds, Wording
from kg_agents.oda.run import Run
from kg_agents.oda.turns import Turns
from kg_agents.parameters import OdaSettings
from kg_agents.replies import read_conclusion

ENDINGS: Final = {
    "iterations": "No answer was chosen within the iterations; it answers from what it has.",
    "unreadable": "The model's replies could not be read; it answers from what it has.",
    "graph": "The graph refused or failed several times in a row; it answers from what it has.",
    "entities": "There is no entity to begin with. Name one that the question is about (--entity).",
}


def ignore_step(step: Step) -> None:
    """Take no note."""
    del step


class ODA:
    """The method of ODA (section 2; figure 3).

    Args:
        llm: The model that acts, reflects and answers.
        graph: The graph, through its tools.
        reflector: The model that reflects in the paper's manner; by default the same.
        settings: Parameters and limits.
        graph_name: What the graph calls itself; examples for it are used where there are some.
        parts: What the paper's rounds are put together from; by default what the settings ask for.
        on_step: Told of every step.
        clock: Seconds, from any beginning.
    """

    def __init__(
        self,
        llm: Llm,
        graph: KnowledgeGraph,
        *,
        reflector: Llm | None = None,
        settings: OdaSettings | None = None,
        graph_name: str = "",
        parts: Parts | None = None,
        on_step: OnStep = ignore_step,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._llm = llm
        self._settings = settings or OdaSettings()
        self._means = Means(graph, self._settings, Wording(graph_name, self._settings.examples_folder), reflector)
        paper = parts is not None or self._settings.as_in_paper
        self._rounds: Rounds = (
            PaperRounds(self._means, parts or parts_of(self._means))
            if paper
            else Turns(self._means, LookAhead(self._means))
        )
        self._on_step = on_step
        self._clock = clock

    async def answer(self, question: str, entities: Sequence[str], *, talk: Dialogue | None = None) -> AgentAnswer:
        """Return the answers to a question about some entities, with their evidence and why the run ended.

        Args:
            question: The question.
            entities: The ids of the entities that it names.
            talk: The dialogue that this is part of, with what it has used; a new one by default.
        """
        talk = talk or Dialogue(self._llm, self._settings.limits, self._clock)
        named = tuple(dict.fromkeys(entities))[: self._settings.entities]
        run = Run(question, named, talk, named)
        try:
            ending = await self._rounds(run, self._on_step) if named else "entities"
            if named and not run.concluded:
                await self._conclude(run)
        except RunEnded as end:
            return self._answer_of(run, end.limit, str(end))
        except FailedReply as failure:
            return self._answer_of(run, "unreadable", f"The model's answer could not be read: {failure}")
        if ending == "answered" and (part := part_answered(run.answers, run.parts, run.labels)):
            return self._answer_of(run, CUT, str(part))
        if run.missing is not None and ending == "answered":
            return self._answer_of(run, "not_in_graph", run.missing)
        return self._answer_of(run, ending, ENDINGS.get(ending, ""))

    async def _conclude(self, run: Run) -> None:
        """Have the model answer from the memory (table 7).

        Raises:
            FailedReply: It gave no answer.
        """
        wording, chosen = self._means.wording, self._settings
        own = chosen.own_answers != "never"
        write = wording.paper_answer(run) if chosen.as_in_paper else wording.answer(run, own=own)
        conclusion = await self._means.ask(run, write, "answer", read_conclusion)
        given = conclusion.answers if chosen.as_in_paper else [_in_memory(run, each) for each in conclusion.answers]
        resolve = resolver(self._means.graph, run.talk)
        answers = await run.ledger.answers(given, run.question, run.asked, resolve, as_given=chosen.as_in_paper)
        run.conclude(answers, conclusion.missing, conclusion.own)

    def _answer_of(self, run: Run, stop_reason: str, explanation: str) -> AgentAnswer:
        found = outcome_of(run.answers, self._settings.own_answers, stop_reason, explanation, run.own)
        return AgentAnswer(
            question=run.question,
            answers=found.answers,
            status=found.status,
            labels=run.labels,
            stop_reason=stop_reason,
            explanation=found.reason,
            steps=tuple(run.steps),
            usage=run.talk.usage,
            seconds=run.talk.seconds,
            model_answer=found.model_answer,
            facts=run.facts,
        )


def _in_memory(run: Run, cited: Cited) -> Cited:
    """Return an answer that cites facts of the memory by their place there, with the numbers that the run gave them."""
    places = (each for each in cited.numbers if 1 <= each <= len(run.facts))
    return Cited(cited.text, tuple(run.ledger.number(run.facts[place - 1]) for place in places))
