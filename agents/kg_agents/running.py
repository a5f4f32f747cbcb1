"""Run one question with an agent, and watch the run."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from pydantic import TypeAdapter, ValidationError

from kg_agents.checking import checked, unchecked
from kg_agents.evidence.answers import AgentAnswer, ClosedBook, Step, outcome_of
from kg_agents.evidence.values import Labels
from kg_agents.experience import ExperiencedLlm, OwnQuestion, solved_before
from kg_agents.linking import Linking, link_by_model, link_by_names, link_given
from kg_agents.llm import Completion, Llm, LlmRequest, Usage
from kg_agents.llm.dialogue import Dialogue, RunEnded
from kg_agents.llm.texts import whole_characters
from kg_agents.papers.graph_counselor import CounselorSettings, GraphCounselor
from kg_agents.papers.oda import ODA, OdaSettings, OdaWithoutModel
from kg_agents.papers.oda.agent import NoModel
from kg_agents.parameters import ToolsSettings
from kg_agents.replay import Replay
from kg_agents.tools.agent import ToolsAgent
from kg_agents.tools.client import ComparingTools, Similarity, Toolbox, ToolCall, ToolOffer
from kg_agents.tools.knowledge import KnowledgeGraph
from kg_agents.trace import AnswerLine, InvalidTrace, RecordedAgent, RunLine, Trace, TracedLlm, TracedTools


@dataclass(frozen=True, slots=True)
class Watcher:
    """Who watches a run.

    Args:
        on_linked: Told which entities the question is about, and what stands for none.
        on_begin: Told of every call that begins: a tool by its name, or the purpose that the model is asked for.
        on_used: Told what every call to the model has used.
        on_step: Told of every step.
    """

    on_linked: Callable[[Linking], None] = lambda _: None
    on_begin: Callable[[str], None] = lambda _: None
    on_used: Callable[[Usage], None] = lambda _: None
    on_step: Callable[[Step], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class WatchedLlm:
    """Passes calls on to a model, and tells of them."""

    llm: Llm
    watcher: Watcher

    @property
    def name(self) -> str:
        """See `Llm`."""
        return self.llm.name

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`."""
        self.watcher.on_begin(request.purpose)
        completion = await self.llm.complete(request)
        self.watcher.on_used(completion.usage)
        return completion


@dataclass(frozen=True, slots=True)
class WatchedTools:
    """Passes calls on to the tools, and tells of them."""

    tools: Toolbox
    watcher: Watcher

    async def offer(self) -> ToolOffer:
        """See `Toolbox`."""
        return await self.tools.offer()

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """See `Tools`."""
        self.watcher.on_begin(tool)
        return await self.tools.call(tool, arguments)


AgentName: TypeAlias = Literal["tools", "oda", "graph-counselor"]

_ODA_SETTINGS = TypeAdapter(OdaSettings)
_COUNSELOR_SETTINGS = TypeAdapter(CounselorSettings)
_TOOLS_SETTINGS = TypeAdapter(ToolsSettings)


class Agent(Protocol):
    """Answers questions."""

    async def answer(self, question: str, entities: Sequence[str], /, *, talk: Dialogue | None) -> AgentAnswer:
        """Return the answers to a question about some entities, as part of a dialogue."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and how.

    Args:
        text: The question.
        entities: What it is about, as ids, IRIs or names; found in the question where there is none.
        agent: The method.
        graph_name: What the graph calls itself.
        oda: Parameters of ODA.
        counselor: Parameters of Graph Counselor.
        tools: Parameters of the agent that calls the tools itself.
        learn: Whether solved questions are shown as examples, of a server that keeps some.
    """

    text: str
    entities: tuple[str, ...] = ()
    agent: AgentName = "oda"
    graph_name: str = ""
    oda: OdaSettings = field(default_factory=OdaSettings)
    counselor: CounselorSettings = field(default_factory=CounselorSettings)
    tools: ToolsSettings = field(default_factory=ToolsSettings)
    learn: bool = False

    @property
    def parameters(self) -> OdaSettings | CounselorSettings | ToolsSettings:
        """The parameters of its method."""
        if self.agent == "tools":
            return self.tools
        return self.counselor if self.agent == "graph-counselor" else self.oda


async def run_question(
    asked: Question,
    tools: Toolbox,
    llm: Llm | None,
    trace: Trace,
    *,
    judge: Llm | None = None,
    reflector: Llm | None = None,
    similarity: Similarity | None = None,
    watcher: Watcher | None = None,
) -> AgentAnswer:
    """Answer a question and keep the record.

    Args:
        asked: What is asked, and how.
        tools: The tools of the graph.
        llm: The model; without one, similarity has to do.
        trace: Where the record is kept; open.
        judge: Another model that judges, for Graph Counselor.
        reflector: Another model that reflects, where the parameters have the agent do so; by default Graph Counselor's
            judge, and ODA's own model.
        similarity: Compares texts, for the ablation of ODA that needs it.
        watcher: Who watches.

    Raises:
        ToolError: The entities cannot be looked up.
    """
    watched = watcher or Watcher()
    asked = replace(asked, text=whole_characters(asked.text), entities=tuple(map(whole_characters, asked.entities)))
    name: RecordedAgent = asked.agent if llm is not None else "oda-without-model"
    asked = asked if llm is not None else replace(asked, agent="oda")
    reflector = reflector if asked.parameters.reflects else None
    trace.write(
        RunLine(
            question=asked.text,
            entities=list(asked.entities),
            agent=name,
            parameters=asdict(asked.parameters),
            model=llm.name if llm is not None else "",
            graph=asked.graph_name,
            judge=judge.name if judge is not None else "",
            reflector=reflector.name if reflector is not None else "",
            learn=asked.learn,
        )
    )
    run = _Run(
        asked,
        name,
        WatchedTools(TracedTools(ComparingTools(tools, similarity) if similarity else tools, trace), watched),
        WatchedLlm(TracedLlm(llm, trace), watched) if llm is not None else None,
        WatchedLlm(TracedLlm(judge, trace), watched) if judge is not None else None,
        WatchedLlm(TracedLlm(reflector, trace), watched) if reflector is not None else None,
        watched,
    )
    answer = await _answered(await _experienced(run))
    trace.write(AnswerLine.of(answer))
    return answer


async def replay_question(path: Path, watcher: Watcher | None = None) -> tuple[AgentAnswer, bool]:
    """Run a question again from its record, and say whether the answer is the same.

    Args:
        path: The file of the record.
        watcher: Who watches.

    Raises:
        InvalidTrace: The file is no record.
        ReplayDiverged: The run went another way.
    """
    replay = Replay(path)
    line = replay.run
    asked = Question(line.question, tuple(line.entities), graph_name=line.graph, learn=line.learn)
    try:
        if line.agent == "tools":
            asked = replace(asked, agent="tools", tools=_TOOLS_SETTINGS.validate_python(line.parameters))
        elif line.agent == "graph-counselor":
            asked = replace(asked, agent=line.agent, counselor=_COUNSELOR_SETTINGS.validate_python(line.parameters))
        else:
            asked = replace(asked, oda=_ODA_SETTINGS.validate_python(line.parameters))
    except ValidationError as error:
        wrong = ".".join(map(str, error.errors(include_url=False)[0]["loc"]))
        raise InvalidTrace(f"{path}, line 1: the parameter {wrong!r} is wrong.") from error
    llm = replay.llm if line.agent != "oda-without-model" else None
    judge = replay.judge if line.judge else None
    reflector = replay.reflector if line.reflector else None
    run = _Run(asked, line.agent, replay.tools, llm, judge, reflector, watcher or Watcher(), replay.clock)
    answer = await _answered(await _experienced(run))
    replay.check_that_all_was_replayed()
    recorded = replay.answer
    return answer, recorded is not None and recorded.says(answer)


@dataclass(frozen=True, slots=True)
class _Run:
    """What a question is answered with: the real things, or their record."""

    asked: Question
    agent: RecordedAgent
    tools: Toolbox
    llm: Llm | None
    judge: Llm | None
    reflector: Llm | None
    watcher: Watcher
    clock: Callable[[], float] = time.monotonic


async def _experienced(run: _Run) -> _Run:
    """Return a run whose model is shown solved questions, and never its own, where that is asked for."""
    if not run.asked.learn or run.llm is None:
        return run
    tools = OwnQuestion(run.tools, run.asked.text)
    solved = await solved_before(tools, run.asked.text)
    return replace(run, tools=tools, llm=ExperiencedLlm(run.llm, solved))


async def _answered(run: _Run) -> AgentAnswer:
    """Find the entities, then the answer.

    Raises:
        ToolError: The entities cannot be looked up.
    """
    graph = KnowledgeGraph(OwnQuestion(run.tools, run.asked.text))
    chosen = run.asked.parameters
    talk = Dialogue(run.llm or NoModel(), chosen.limits, run.clock)
    try:
        linking = await talk.within(partial(_linked, run.asked, graph, talk if run.llm is not None else None))
        if run.asked.entities or run.agent != "tools":
            run.watcher.on_linked(linking)
        if linking.linked or not run.asked.entities:
            entities = [each.entity.id for each in linking.linked]
            as_asked = not isinstance(chosen, ToolsSettings) and chosen.traits.as_asked
            read = "" if as_asked else linking.read
            question = f"{run.asked.text}\n{read}".strip()
            answer = await _agent(run, graph).answer(question, entities, talk=talk)
            answer = await _checked(answer, graph, talk, chosen.own_answers)
            explanation = f"{read} {answer.explanation}".strip()
            answer = replace(answer, question=run.asked.text, explanation=explanation)
        else:
            answer = _ended(run.asked, "entities", "")
        if answer.stop_reason == "entities" and linking.passed_over:
            answer = replace(answer, explanation=" ".join(linking.passed_over))
    except RunEnded as end:
        answer = _ended(run.asked, end.limit, str(end))
    return replace(answer, usage=talk.usage, seconds=talk.seconds)


async def _checked(answer: AgentAnswer, graph: KnowledgeGraph, talk: Dialogue, closed_book: ClosedBook) -> AgentAnswer:
    """Return an answer whose evidence the graph holds, or that says that nobody could check it."""
    if not answer.evidence:
        return answer
    try:
        return await talk.within(partial(checked, answer, graph, closed_book))
    except RunEnded as end:
        return unchecked(answer, str(end))


def _ended(asked: Question, stop_reason: str, reason: str) -> AgentAnswer:
    """Return what came of a question whose agent did not begin."""
    status = outcome_of((), "never", stop_reason, reason).status
    return AgentAnswer(asked.text, (), status, Labels(), stop_reason, reason, (), Usage(), 0.0)


async def _linked(asked: Question, graph: KnowledgeGraph, talk: Dialogue | None) -> Linking:
    if asked.entities:
        return await link_given(graph, asked.entities)
    if asked.agent == "tools":
        # The model looks names up itself.
        return Linking()
    return await link_by_names(graph, asked.text) if talk is None else await link_by_model(graph, asked.text, talk)


def _agent(run: _Run, graph: KnowledgeGraph) -> Agent:
    asked, on_step = run.asked, run.watcher.on_step
    if run.llm is None:
        return OdaWithoutModel(graph, settings=asked.oda, on_step=on_step, clock=run.clock)
    if run.agent == "tools":
        return ToolsAgent(run.llm, run.tools, settings=asked.tools, on_step=on_step, clock=run.clock)
    if run.agent != "graph-counselor":
        return ODA(
            run.llm,
            graph,
            reflector=run.reflector,
            settings=asked.oda,
            graph_name=asked.graph_name,
            on_step=on_step,
            clock=run.clock,
        )
    return GraphCounselor(
        run.llm,
        graph,
        judge=run.judge,
        reflector=run.reflector or run.judge,
        settings=asked.counselor,
        graph_name=asked.graph_name,
        on_step=on_step,
        clock=run.clock,
    )
