"""The agent whose model calls the tools itself."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from kg_agents.answers import AgentAnswer, Step, outcome_of
from kg_agents.dialogue import WITHOUT_FUNCTIONS, Dialogue, RunEnded, Unreadable
from kg_agents.llm import Completion, FunctionCall, Llm, Message
from kg_agents.parts_seen import CUT, part_answered
from kg_agents.texts import clipped, whole_characters, without_thinking
from kg_agents.tool_calls import Toolbox, ToolCall, ToolError
from kg_agents.tools.calls import Wanted, made, wanted
from kg_agents.tools.final import ANSWER, FinalAnswer, read_final, read_written
from kg_agents.tools.grounds import answers_of, labels_of, listing
from kg_agents.tools.offered import offered
from kg_agents.tools.readings import asked, parts_in, reading_of, whole
from kg_agents.tools.run import Run
from kg_agents.tools.settings import ToolsSettings
from kg_prompts import render
from kg_prompts.tools import ToolsQuestion, ToolsTask

ENDINGS: Final = {
    "turns": "No answer was given within the replies.",
    "calls": "The limit of calls was reached; it answers from what it has.",
    "unreadable": "The model's answer could not be read.",
    "graph": "The server did not answer several calls in a row.",
    CUT: "The list that the answer is taken from is not whole.",
}
NEVER_CALLED: Final = f"The model calls none of the functions that it is offered. {WITHOUT_FUNCTIONS}"
_ENDS: Final = {"answered": "answered", "not_in_graph": "not_in_graph", "unknown_entity": "entities"}
_UNREADABLE: Final = 2
"""How many answers that cannot be read end the run."""
_CHARACTERS: Final = 4
"""How many characters a token has at least."""


class ToolsAgent:
    """Lets the model call the tools itself, by function calling, until it answers.

    Args:
        llm: The model; it has to be able to call functions.
        tools: The tools of a server.
        settings: Parameters and limits.
        on_step: Told of every call.
        clock: Seconds, from any beginning.
    """

    def __init__(
        self,
        llm: Llm,
        tools: Toolbox,
        *,
        settings: ToolsSettings | None = None,
        on_step: Callable[[Step], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._llm = llm
        self._tools = tools
        self._settings = settings or ToolsSettings()
        self._on_step = on_step
        self._clock = clock

    async def answer(self, question: str, entities: Sequence[str] = (), *, talk: Dialogue | None = None) -> AgentAnswer:
        """Return the answers to a question, with their evidence and why the run ended.

        Args:
            question: The question.
            entities: The entities that it is about, by id, where they are known.
            talk: The dialogue that this is part of, with what it has used; a new one by default.
        """
        talk = talk or Dialogue(self._llm, self._settings.limits, self._clock)
        run = Run(question, talk)
        try:
            await self._begin(run, entities)
            final = await self._converse(run)
        except RunEnded as end:
            return self._answer_of(run, FinalAnswer(), end.limit, str(end))
        ending = run.ending or _ENDS[final.outcome]
        return self._answer_of(run, final, ending, " ".join(filter(None, (final.reason, ENDINGS.get(ending)))))

    async def _begin(self, run: Run, entities: Sequence[str]) -> None:
        """Ask the server for its tools, and write the first messages.

        Raises:
            RunEnded: It does not say, or the time is over.
        """
        try:
            offer = await run.talk.within(self._tools.offer)
        except ToolError as error:
            raise RunEnded("graph", f"The tools cannot be listed: {error}") from error
        run.tools = offered(offer.tools, self._settings.only)
        run.messages += (
            Message("system", render(ToolsTask(instructions=offer.instructions))),
            Message("user", render(ToolsQuestion(question=run.question, entities=", ".join(entities)))),
        )

    async def _converse(self, run: Run) -> FinalAnswer:
        """Let the model call tools until it answers; return what it answers, or nothing where it does not."""
        for turn in range(1, self._settings.turns + 1):
            if turn == self._settings.turns and not run.ending:
                run.close("turns")
            _, completion = await run.talk.complete(partial(run.request, self._settings))
            final = await self._take(run, completion)
            if final is not None:
                return final
        run.ending = run.ending or "turns"
        return FinalAnswer()

    async def _take(self, run: Run, completion: Completion) -> FinalAnswer | None:
        """Do what a reply asks for; return the answer where it gives one that can be taken."""
        text = whole_characters(without_thinking(completion.text))
        calls = run.say(text, completion.calls)
        if not calls:
            return self._written(run, text)
        answers = [call for call in calls if call.name == ANSWER.name]
        others = [call for call in calls if call.name != ANSWER.name]
        closed = bool(run.ending)
        await self._perform(run, others, text)
        if not answers:
            return None
        final = read_final(answers[0].arguments)
        problem = final.reason if isinstance(final, Unreadable) else None
        if others and not closed:
            problem = "the results beside it were not there yet. Answer again."
        elif not run.asked and not closed and not run.returned:
            problem = "no function was called yet. What the graph holds, only its functions show."
        if problem is None and not isinstance(final, Unreadable):
            return final
        run.returned = True
        for call in answers:
            run.reply(call, f"The answer is not taken: {problem}")
        return self._unreadable(run) if isinstance(final, Unreadable) else None

    def _written(self, run: Run, text: str) -> FinalAnswer | None:
        """Take an answer that was written without a call; where it has no form, ask once for one that has."""
        found = read_written(text, tolerant=run.asked_again)
        if run.asked_again and not run.ids:
            raise RunEnded("functions", NEVER_CALLED)
        if isinstance(found, FinalAnswer):
            return found
        if run.asked_again:
            return self._unreadable(run)
        run.asked_again = True
        run.messages.append(Message("user", f"This cannot be used: {found.reason} Call {ANSWER.name} to answer."))
        return None

    def _unreadable(self, run: Run) -> FinalAnswer | None:
        """Take note of an answer that cannot be read; the second one ends the run."""
        run.unreadable += 1
        if run.unreadable < _UNREADABLE:
            return None
        run.ending = "unreadable"
        return FinalAnswer()

    async def _perform(self, run: Run, calls: Sequence[FunctionCall], thought: str) -> None:
        """Make calls, and add their results to the conversation."""
        read = [wanted(call, run, self._settings.calls) for call in calls]
        ready = [each for each in read if isinstance(each, Wanted)]
        found = iter(await run.talk.within(partial(made, ready, self._tools, self._settings.at_once)))
        for call, each in zip(calls, read, strict=True):
            if isinstance(each, Wanted):
                action, text = self._result(run, each, next(found))
            else:
                action, text = call.name, each
            run.reply(call, text)
            run.steps.append(Step(len(run.steps) + 1, thought, action, text.partition("\n")[0]))
            self._on_step(run.steps[-1])
            thought = ""
        if run.failures >= self._settings.failures and not run.ending:
            run.close("graph")

    def _result(self, run: Run, call: Wanted, found: ToolCall | ToolError) -> tuple[str, str]:
        """Return a call and its result as they are told, and keep what the result states."""
        number = run.asked[call.key]
        if isinstance(found, ToolError):
            run.failures += 1
            failed = ToolCall(call.tool, call.arguments, "", {}, failed=True)
            return asked(failed), f"[{number}] failed: {found}"
        run.failures = 0
        run.readings[number] = reading_of(found)
        return asked(found), f"[{number}] {clipped(found.text, self._settings.result_tokens * _CHARACTERS)}"

    def _answer_of(self, run: Run, final: FinalAnswer, ending: str, explanation: str) -> AgentAnswer:
        closed_book = self._settings.closed_book
        answers = answers_of(final, run.readings, run.question)
        labels = labels_of(run.readings.values())
        if ending == "answered" and (part := part_answered(answers, parts_in(list(run.readings.values())), labels)):
            ending, explanation = CUT, str(part)
        elif ending == "answered" and not whole(listing(final, run.readings)):
            ending, explanation = CUT, ENDINGS[CUT]
        found = outcome_of(answers, closed_book, ending, explanation, final.own_knowledge)
        facts = (fact for reading in run.readings.values() for fact in reading.read.facts)
        return AgentAnswer(
            question=run.question,
            answers=found.answers,
            status=found.status,
            labels=labels,
            stop_reason=ending,
            explanation=found.reason,
            steps=tuple(run.steps),
            usage=run.talk.usage,
            seconds=run.talk.seconds,
            model_answer=found.model_answer,
            facts=tuple(dict.fromkeys(facts)),
        )
