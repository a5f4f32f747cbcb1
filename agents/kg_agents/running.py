"""Run one question with an agent, or run it again from its record."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final, TypeAlias

from pydantic import TypeAdapter, ValidationError

from kg_agents.checking import checked, unchecked
from kg_agents.evidence.answers import AgentAnswer, ClosedBook, OnStep, ignore_step
from kg_agents.experience import ExperiencedLlm, OwnQuestion, solved_before
from kg_agents.linking import Linking, link_by_model, link_by_names, link_given
from kg_agents.llm import Llm, Models
from kg_agents.llm.dialogue import Dialogue, RunEnded
from kg_agents.llm.texts import whole_characters
from kg_agents.papers.graph_counselor import GraphCounselor
from kg_agents.papers.oda import ODA, OdaWithoutModel
from kg_agents.papers.oda.agent import NoModel
from kg_agents.parameters import AGENTS, AgentSettings, CounselorSettings, OdaSettings, ToolsSettings
from kg_agents.tools.agent import ToolsAgent
from kg_agents.tools.client import ComparingTools, Similarity, Toolbox
from kg_agents.tools.knowledge import KnowledgeGraph
from kg_agents.trace import AnswerLine, InvalidTrace, Replay, RunLine, Trace, TracedLlm, TracedTools, Watcher

WITHOUT_MODEL: Final = "oda-without-model"


Agent: TypeAlias = ODA | OdaWithoutModel | GraphCounselor | ToolsAgent


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and how.

    Args:
        text: The question.
        entities: What it is about, as ids, IRIs or names; found in the question where there is none.
        settings: The parameters of an agent, which is the one that answers.
        graph_name: What the graph calls itself.
        learn: Whether solved questions are shown as examples, of a server that keeps some.
        graphs: The graphs of the server, where it serves several.
    """

    text: str
    entities: tuple[str, ...] = ()
    settings: AgentSettings = field(default_factory=OdaSettings)
    graph_name: str = ""
    learn: bool = False
    graphs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Run:
    """What a question is answered with: the graph and the models, or their record."""

    asked: Question
    tools: Toolbox
    models: Models | None
    watcher: Watcher
    clock: Callable[[], float] = time.monotonic


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
        watcher: What is notified as the run goes on.

    Raises:
        ToolError: The entities cannot be looked up.
    """
    watched = watcher or Watcher()
    asked = replace(asked, text=whole_characters(asked.text), entities=tuple(map(whole_characters, asked.entities)))
    if llm is None and not isinstance(asked.settings, OdaSettings):
        asked = replace(asked, settings=OdaSettings())
    reflector = reflector if asked.settings.reflects else None
    names = [each.name if each is not None else "" for each in (llm, judge, reflector)]
    trace.write(
        RunLine(
            question=asked.text,
            entities=list(asked.entities),
            agent=asked.settings.agent if llm is not None else WITHOUT_MODEL,
            parameters=asdict(asked.settings),
            model=names[0],
            graph=asked.graph_name,
            judge=names[1],
            reflector=names[2],
            learn=asked.learn,
            graphs=list(asked.graphs),
        )
    )
    traced = TracedTools(ComparingTools(tools, similarity) if similarity else tools, trace, watched)
    models = None
    if llm is not None:
        models = Models(llm, judge, reflector).changed(lambda each: TracedLlm(each, trace, watched))
    answer = await _answered(_Run(asked, traced, models, watched))
    trace.write(AnswerLine.of(answer))
    return answer


async def replay_question(path: Path, watcher: Watcher | None = None) -> tuple[AgentAnswer, bool]:
    """Run a question again from its record, and return its answer and whether it is the same.

    Args:
        path: The file of the record.
        watcher: What is notified as the run goes on.

    Raises:
        InvalidTrace: The file is no record.
        ReplayDiverged: The run went another way.
    """
    replay = Replay(path)
    line = replay.run
    kind = OdaSettings if line.agent == WITHOUT_MODEL else AGENTS[line.agent]
    try:
        settings = TypeAdapter[AgentSettings](kind).validate_python(line.parameters)
    except ValidationError as error:
        wrong = ".".join(map(str, error.errors(include_url=False)[0]["loc"]))
        raise InvalidTrace(f"{path}, line 1: the parameter {wrong!r} is wrong.") from error
    asked = Question(line.question, tuple(line.entities), settings, line.graph, line.learn, tuple(line.graphs))
    judge, reflector = (replay.llm(name) if name else None for name in (line.judge, line.reflector))
    models = Models(replay.llm(line.model), judge, reflector) if line.agent != WITHOUT_MODEL else None
    answer = await _answered(_Run(asked, replay, models, watcher or Watcher(), replay.clock))
    replay.check_that_all_was_replayed()
    return answer, replay.answer is not None and replay.answer.says(answer)


async def _answered(run: _Run) -> AgentAnswer:
    """Find the entities, then the answer.

    Raises:
        ToolError: The entities cannot be looked up.
    """
    asked, settings, models = run.asked, run.asked.settings, run.models
    own = OwnQuestion(run.tools, asked.text)
    if asked.learn and models is not None:
        # The model is shown solved questions, and never its own.
        models = replace(models, llm=ExperiencedLlm(models.llm, await solved_before(own, asked.text)))
        run = replace(run, tools=own, models=models)
    talk = Dialogue(models.llm if models else NoModel(), settings.limits, run.clock)
    graph = KnowledgeGraph(own, talk=talk, graphs=asked.graphs)
    try:
        linking = await _linked(run, graph, talk)
        if asked.entities or models is None or settings.agent != "tools":
            run.watcher.on_linked(linking)
        if linking.linked or not asked.entities:
            read = "" if settings.in_paper else linking.read
            entities = [each.entity.id for each in linking.linked]
            tools = run.tools if settings.agent == "tools" else own
            agent = agent_of(settings, tools, models, asked.graph_name, run.watcher.on_step, asked.graphs)
            answer = await agent.answer(f"{asked.text}\n{read}".strip(), entities, talk=talk)
            answer = await _checked(answer, graph, settings.own_answers)
            answer = replace(answer, question=asked.text, explanation=f"{read} {answer.explanation}".strip())
        else:
            answer = AgentAnswer.of(asked.text, talk, ("entities", ""))
        if answer.stop_reason == "entities" and linking.passed_over:
            answer = replace(answer, explanation=" ".join(linking.passed_over))
    except RunEnded as end:
        answer = AgentAnswer.of(asked.text, talk, (end.limit, str(end)))
    return replace(answer, usage=talk.usage, seconds=talk.seconds)


async def _checked(answer: AgentAnswer, graph: KnowledgeGraph, closed_book: ClosedBook) -> AgentAnswer:
    """Return an answer whose evidence the graph holds, or that says that nobody could check it."""
    if not answer.evidence:
        return answer
    try:
        return await checked(answer, graph, closed_book)
    except RunEnded as end:
        return unchecked(answer, str(end))


async def _linked(run: _Run, graph: KnowledgeGraph, talk: Dialogue) -> Linking:
    asked = run.asked
    if asked.entities:
        return await link_given(graph, asked.entities)
    if run.models is None:
        return await link_by_names(graph, asked.text)
    # The model that calls the tools looks names up itself.
    return Linking() if asked.settings.agent == "tools" else await link_by_model(graph, asked.text, talk)


def agent_of(
    settings: AgentSettings,
    tools: Toolbox,
    models: Models | None,
    graph_name: str = "",
    on_step: OnStep = ignore_step,
    graphs: Sequence[str] = (),
) -> Agent:
    """Return the agent that has some parameters.

    Args:
        settings: The parameters.
        tools: The tools of the graph.
        models: The models; without any, the agent only shows what is like the question. By default, Graph Counselor's
            judge reflects, and ODA's own model.
        graph_name: What the graph calls itself.
        on_step: Called with every step.
        graphs: The graphs of the server, where it serves several.
    """
    graph = KnowledgeGraph(tools, graphs=graphs)
    if models is None:
        chosen = settings if isinstance(settings, OdaSettings) else OdaSettings()
        return OdaWithoutModel(graph, settings=chosen, on_step=on_step)
    llm, judge, reflector = models.llm, models.judge, models.reflector
    match settings:
        case ToolsSettings():
            return ToolsAgent(llm, tools, settings=settings, on_step=on_step, graphs=graphs)
        case OdaSettings():
            return ODA(llm, graph, reflector=reflector, settings=settings, graph_name=graph_name, on_step=on_step)
        case CounselorSettings():
            return GraphCounselor(
                llm,
                graph,
                judge=judge,
                reflector=reflector or judge,
                settings=settings,
                graph_name=graph_name,
                on_step=on_step,
            )
