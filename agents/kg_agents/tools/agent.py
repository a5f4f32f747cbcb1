"""The agent whose model calls the tools itself."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from typing import Final

import anyio

from kg_agents.evidence.answers import (
    CUT,
    UNASKED,
    AgentAnswer,
    OnStep,
    RunStep,
    denial,
    ignore_step,
    part_answered,
    parts_in,
    whole,
)
from kg_agents.evidence.ledger import Cited, Ledger
from kg_agents.linking import resolver
from kg_agents.llm import AgentError, Completion, Function, FunctionCall, Llm, LlmRequest, Message, estimated_tokens
from kg_agents.llm.dialogue import WITHOUT_FUNCTIONS, Dialogue, NoRoom, RunEnded, Unreadable
from kg_agents.llm.texts import clipped, json_object, whole_characters, without_thinking
from kg_agents.parameters import ToolsSettings
from kg_agents.tools.client import Toolbox, ToolCall, ToolError
from kg_agents.tools.functions import ANSWER, FinalAnswer, instructed, offered, read_final, read_written
from kg_agents.tools.knowledge import KnowledgeGraph
from kg_agents.tools.readings import asked, shown_by
from kg_agents.tools.several import without_graphs
from kg_prompts import render
from kg_prompts.tools import ToolsQuestion, ToolsTask

LEFT_OUT: Final = "(left out here to save room; call again if it is needed)"
MAX_THOUGHT: Final = 2_000
_NAME: Final = re.compile(r"[\w-]{1,64}", re.ASCII)


@dataclass
class ToolsRun:
    """One question on its way to an answer.

    Args:
        question: The question.
        talk: The dialogue with the model.
        tools: The tools that it may call.
        messages: The conversation so far.
        results: Where in the conversation each result stands, by its number.
        ledger: What the results show, by their numbers.
        asked: The numbers of the calls that were made, by what they asked.
        failures: How many calls in a row the server did not answer.
        ids: The ids of all calls in the conversation.
        ending: Why the model can only answer now, in a word; empty as long as it can call.
        returned: Whether an answer by a call went back.
        asked_again: Whether an answer without a call went back.
        unreadable: How many answers could not be read.
        graphs: The graphs of the server, where it serves several.
    """

    question: str
    talk: Dialogue
    tools: tuple[Function, ...] = ()
    messages: list[Message] = field(default_factory=list[Message])
    ledger: Ledger = field(default_factory=Ledger)
    asked: dict[str, int] = field(default_factory=dict[str, int])
    steps: list[RunStep] = field(default_factory=list[RunStep])
    ids: set[str] = field(default_factory=set[str])
    failures: int = 0
    ending: str = ""
    returned: bool = False
    asked_again: bool = False
    unreadable: int = 0
    graphs: tuple[str, ...] = ()

    def request(self, settings: ToolsSettings, room: int) -> LlmRequest:
        """Return what the model is asked next, with the oldest results left out where there is no room for them.

        Raises:
            NoRoom: Not even without them.
        """
        offered = (ANSWER,) if self.ending else (*self.tools, ANSWER)
        request = LlmRequest(
            tuple(self.messages),
            "tools",
            settings.temperature,
            settings.reply_tokens,
            seed=settings.seed,
            tools=offered,
        )
        while estimated_tokens(request) > room:
            request = replace(request, messages=_shorter(request.messages, room))
        return request

    def say(self, thought: str, calls: Sequence[FunctionCall]) -> tuple[FunctionCall, ...]:
        """Add a reply to the conversation, and return its calls as they stand there."""
        named = tuple(map(self._named, calls))
        self.messages.append(Message("assistant", clipped(thought, MAX_THOUGHT), tuple(map(_sendable, named))))
        return named

    def reply(self, call: FunctionCall, text: str) -> None:
        """Add the result of a call to the conversation."""
        self.messages.append(Message("tool", text, call_id=call.id))

    def close(self, ending: str) -> None:
        """Let the model do nothing but answer."""
        self.ending = ending
        self.messages.append(
            Message("user", f"No more calls can be made. Call {ANSWER.name} with what the results show.")
        )

    def _named(self, call: FunctionCall) -> FunctionCall:
        """Return a call with an id of its own, and a name that can be one."""
        own = call.id if call.id and call.id not in self.ids else f"call{len(self.ids) + 1:05d}"
        self.ids.add(own)
        name = call.name if _NAME.fullmatch(call.name) else "unknown"
        return FunctionCall(own, name, call.arguments)


def _sendable(call: FunctionCall) -> FunctionCall:
    """Return a call that any service takes back: services refuse arguments that are not a JSON object."""
    arguments = json_object(call.arguments)
    return replace(call, arguments="{}" if arguments is None else json.dumps(arguments, ensure_ascii=False))


def _shorter(messages: tuple[Message, ...], room: int) -> tuple[Message, ...]:
    """Return a conversation without its oldest long result.

    Raises:
        NoRoom: There is none.
    """
    place = next(
        (at for at, each in enumerate(messages) if each.role == "tool" and len(each.content) > 3 * len(LEFT_OUT)), None
    )
    if place is None:
        raise NoRoom.within(room, "the question, the tools and the calls that were made")
    first = messages[place].content.partition("\n")[0][: len(LEFT_OUT)]
    return (*messages[:place], replace(messages[place], content=f"{first}\n{LEFT_OUT}"), *messages[place + 1 :])


_MAX_QUOTED: Final = 300


@dataclass(frozen=True, slots=True)
class WantedCall:
    """A call that can be made."""

    tool: str
    arguments: Mapping[str, object]

    @property
    def key(self) -> str:
        """The same text for calls that ask the same."""
        return f"{self.tool} {json.dumps(self.arguments, sort_keys=True)}"


def wanted(call: FunctionCall, run: ToolsRun, most: int) -> WantedCall | str:
    """Return a call that is to be made, with the next number, or why it is not made."""
    known = [tool.name for tool in run.tools]
    if call.name not in known:
        near = get_close_matches(call.name, known, n=1)
        meant = f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
        return f"There is no function {call.name[:_MAX_QUOTED]!r}. {meant}"
    arguments = {} if not call.arguments.strip() else json_object(call.arguments)
    if arguments is None:
        return f"The arguments are not a JSON object: {clipped(call.arguments, _MAX_QUOTED)}"
    # Ids of several graphs are shown with their graphs, and may be copied so.
    found = WantedCall(call.name, without_graphs(arguments, run.graphs) if run.graphs else arguments)
    if (number := run.asked.get(found.key)) is not None:
        return f"This is call {number} again; its result stands there."
    if run.ending or len(run.asked) >= most:
        run.ending = run.ending or "calls"
        return f"No more calls can be made. Call {ANSWER.name} with what the results show."
    run.asked[found.key] = len(run.asked) + 1
    return found


async def made(calls: Sequence[WantedCall], tools: Toolbox, at_once: int) -> list[ToolCall | ToolError]:
    """Make calls, some at the same time, and return their answers in the order of the calls.

    Raises:
        AgentError: Something else than a tool failed.
        TimeoutError: The time is over.
    """
    outcomes: dict[int, ToolCall | AgentError | TimeoutError] = {}
    limit = anyio.CapacityLimiter(at_once)

    async def make(place: int, call: WantedCall) -> None:
        try:
            async with limit:
                outcomes[place] = await tools.call(call.tool, call.arguments)
        except (AgentError, TimeoutError) as error:
            outcomes[place] = error

    async with anyio.create_task_group() as tasks:
        for place, call in enumerate(calls):
            tasks.start_soon(make, place, call)
    found: list[ToolCall | ToolError] = []
    for place in range(len(calls)):
        outcome = outcomes[place]
        if not isinstance(outcome, ToolCall | ToolError):
            raise outcome
        found.append(outcome)
    return found


ENDINGS: Final = {
    "turns": "No answer was given within the replies.",
    "calls": "The limit of calls was reached; it answers from what it has.",
    "unreadable": "The model's answer could not be read.",
    "graph": "The server did not answer several calls in a row.",
    CUT: "The list that the answer is taken from is not whole.",
    UNASKED: "Nothing about it was looked up, which leaves open whether the graph holds the answer.",
}
NOT_LOOKED_UP: Final = (
    "a search that finds nothing, or a part of a list, does not show that the graph lacks the answer. Look up what the "
    "question is about, or set outcome to unknown_entity where the graph has nothing of that name."
)
NEVER_CALLED: Final = f"The model calls none of the functions that it is offered. {WITHOUT_FUNCTIONS}"
_ENDS: Final = {"answered": "answered", "not_in_graph": "not_in_graph", "unknown_entity": "entities"}
_UNREADABLE: Final = 2
"""How many answers that cannot be read end the run."""
_CHARACTERS: Final = 4
"""How many characters a token has at least."""


def _denies_too_early(final: FinalAnswer, run: ToolsRun) -> bool:
    return final.outcome == "not_in_graph" and denial(run.ledger.shown) != "not_in_graph"


class ToolsAgent:
    """Lets the model call the tools itself, by function calling, until it answers.

    Args:
        llm: The model; it has to be able to call functions.
        tools: The tools of a server.
        settings: Parameters and limits.
        on_step: Called with every call.
        graphs: The graphs of the server, where it serves several.
    """

    def __init__(
        self,
        llm: Llm,
        tools: Toolbox,
        *,
        settings: ToolsSettings | None = None,
        on_step: OnStep = ignore_step,
        graphs: Sequence[str] = (),
    ) -> None:
        self._llm = llm
        self._tools = tools
        self._graphs = tuple(graphs)
        self._settings = settings or ToolsSettings()
        self._on_step = on_step

    async def answer(self, question: str, entities: Sequence[str] = (), *, talk: Dialogue | None = None) -> AgentAnswer:
        """Return the answers to a question, with their evidence and why the run ended.

        Args:
            question: The question.
            entities: The entities that it is about, by id, where they are known.
            talk: The dialogue that this is part of, with what it has used; a new one by default.
        """
        talk = talk or Dialogue(self._llm, self._settings.limits)
        run = ToolsRun(question, talk, graphs=self._graphs)
        try:
            await self._begin(run, entities)
            final = await self._converse(run)
        except RunEnded as end:
            return await self._answer_of(run, FinalAnswer(), (end.limit, str(end)))
        ending = run.ending or _ENDS[final.outcome]
        if ending == "not_in_graph":
            ending = denial(run.ledger.shown)
        said = "; ".join(each.asked or each.text.partition("\n")[0] for each in run.ledger.cited(final.results))
        reason = f"{final.reason} Shown by {said}." if final.outcome != "answered" and said else final.reason
        return await self._answer_of(run, final, (ending, " ".join(filter(None, (reason, ENDINGS.get(ending))))))

    async def _begin(self, run: ToolsRun, entities: Sequence[str]) -> None:
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
            Message("system", render(ToolsTask(instructions=instructed(offer.instructions, offer.tools, run.tools)))),
            Message("user", render(ToolsQuestion(question=run.question, entities=", ".join(entities)))),
        )

    async def _converse(self, run: ToolsRun) -> FinalAnswer:
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

    async def _take(self, run: ToolsRun, completion: Completion) -> FinalAnswer | None:
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
        elif isinstance(final, FinalAnswer) and _denies_too_early(final, run) and not closed and not run.returned:
            problem = NOT_LOOKED_UP
        if problem is None and not isinstance(final, Unreadable):
            return final
        run.returned = True
        for call in answers:
            run.reply(call, f"The answer is not taken: {problem}")
        return self._unreadable(run) if isinstance(final, Unreadable) else None

    def _written(self, run: ToolsRun, text: str) -> FinalAnswer | None:
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

    def _unreadable(self, run: ToolsRun) -> FinalAnswer | None:
        """Take note of an answer that cannot be read; the second one ends the run."""
        run.unreadable += 1
        if run.unreadable < _UNREADABLE:
            return None
        run.ending = "unreadable"
        return FinalAnswer()

    async def _perform(self, run: ToolsRun, calls: Sequence[FunctionCall], thought: str) -> None:
        """Make calls, and add their results to the conversation."""
        read = [wanted(call, run, self._settings.calls) for call in calls]
        ready = [each for each in read if isinstance(each, WantedCall)]
        found = iter(await run.talk.within(partial(made, ready, self._tools, self._settings.at_once)))
        for call, each in zip(calls, read, strict=True):
            if isinstance(each, WantedCall):
                action, text = self._result(run, each, next(found))
            else:
                action, text = call.name, each
            run.reply(call, text)
            run.steps.append(RunStep(len(run.steps) + 1, thought, action, text.partition("\n")[0]))
            self._on_step(run.steps[-1])
            thought = ""
        if run.failures >= self._settings.failures and not run.ending:
            run.close("graph")

    def _result(self, run: ToolsRun, call: WantedCall, found: ToolCall | ToolError) -> tuple[str, str]:
        """Return a call and its result as they are told, and keep what the result states."""
        number = run.asked[call.key]
        if isinstance(found, ToolError):
            run.failures += 1
            failed = ToolCall(call.tool, call.arguments, "", {}, failed=True)
            return asked(failed), f"[{number}] failed: {found}"
        run.failures = 0
        run.ledger.add(shown_by(found, self._graphs), number)
        return asked(found), f"[{number}] {clipped(found.text, self._settings.result_tokens * _CHARACTERS)}"

    async def _answer_of(self, run: ToolsRun, final: FinalAnswer, ended: tuple[str, str]) -> AgentAnswer:
        ledger = run.ledger
        given = [Cited("all", tuple(final.all_of))] if final.all_of else []
        given += (Cited(each.text, tuple(each.results)) for each in final.answers)
        resolve = resolver(KnowledgeGraph(self._tools, talk=run.talk, graphs=self._graphs))
        answers = await ledger.answers(given, run.question, (), resolve)
        parts = [*parts_in(ledger.shown)]
        if ended[0] == "answered" and not whole(ledger.cited(final.all_of)):
            part = part_answered(answers, parts, ledger.labels)
            ended = CUT, ENDINGS[CUT] if part is None else str(part)
        return AgentAnswer.of(
            run.question,
            run.talk,
            ended,
            closed_book=self._settings.own_answers,
            answers=answers,
            own=final.own_knowledge,
            parts=parts,
            labels=ledger.labels,
            steps=run.steps,
            facts=ledger.facts,
        )
