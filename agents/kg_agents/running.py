"""One question from beginning to end: entities, agent, record; and the same once more from the record."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from pydantic import TypeAdapter

from kg_agents.answers import AgentAnswer, Step
from kg_agents.dialogue import Dialogue, RunEnded
from kg_agents.graph_counselor import CounselorSettings, GraphCounselor
from kg_agents.graph_values import Labels
from kg_agents.knowledge import KnowledgeGraph
from kg_agents.linking import Linked, link_by_model, link_by_names
from kg_agents.llm import Llm, Usage
from kg_agents.oda import ODA, OdaSettings, OdaWithoutModel
from kg_agents.replay import Replay
from kg_agents.tool_calls import Tools
from kg_agents.trace import AnswerLine, RunLine, Trace, TracedLlm, TracedTools

AgentName: TypeAlias = Literal["oda", "graph-counselor"]
_Recorded: TypeAlias = Literal["oda", "graph-counselor", "oda-without-model"]

_ODA_SETTINGS = TypeAdapter(OdaSettings)
_COUNSELOR_SETTINGS = TypeAdapter(CounselorSettings)
_NAMES: TypeAdapter[_Recorded] = TypeAdapter(_Recorded)


class Agent(Protocol):
    """Answers questions."""

    async def answer(self, question: str, entities: Sequence[str], /) -> AgentAnswer:
        """Return the answers to a question about some entities."""
        ...


@dataclass(frozen=True, slots=True)
class Watcher:
    """Who watches a run.

    Args:
        on_linked: Told which entities were found in the question.
        on_step: Told of every step.
    """

    on_linked: Callable[[Sequence[Linked]], None] = lambda _: None
    on_step: Callable[[Step], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and how.

    Args:
        text: The question.
        entities: The ids that it is about; found in the question where there are none.
        agent: The method.
        graph_name: What the graph calls itself.
        oda: Parameters of ODA.
        counselor: Parameters of Graph Counselor.
    """

    text: str
    entities: tuple[str, ...] = ()
    agent: AgentName = "oda"
    graph_name: str = ""
    oda: OdaSettings = field(default_factory=OdaSettings)
    counselor: CounselorSettings = field(default_factory=CounselorSettings)


async def run_question(
    asked: Question,
    tools: Tools,
    llm: Llm | None,
    trace: Trace,
    *,
    judge: Llm | None = None,
    watcher: Watcher | None = None,
) -> AgentAnswer:
    """Answer a question and keep the record.

    Args:
        asked: What is asked, and how.
        tools: The tools of the graph.
        llm: The model; without one, similarity has to do.
        trace: Where the record is kept; open.
        judge: Another model that judges and reflects, for Graph Counselor.
        watcher: Who watches.

    Raises:
        ToolError: The entities cannot be looked up.
    """
    watched = watcher or Watcher()
    talks = TracedLlm(llm, trace) if llm is not None else None
    judges = TracedLlm(judge, trace) if judge is not None else None
    linked, ended = await _linked(asked, tools, llm, watched)
    entities = asked.entities or tuple(each.entity.id for each in linked)
    name: _Recorded = asked.agent if llm is not None else "oda-without-model"
    parameters = asdict(asked.counselor if name == "graph-counselor" else asked.oda)
    trace.write(
        RunLine(
            question=asked.text,
            entities=list(entities),
            agent=name,
            parameters=parameters,
            model=llm.name if llm is not None else "",
            graph=asked.graph_name,
        )
    )
    graph = KnowledgeGraph(TracedTools(tools, trace))
    if ended is not None:
        answer = AgentAnswer(asked.text, (), (), Labels(), ended.limit, str(ended), (), Usage(), 0.0)
    else:
        agent = _agent(name, asked.graph_name, parameters, graph, talks, judges, watched.on_step)
        answer = await agent.answer(asked.text, entities)
    trace.write(_recorded(answer))
    return answer


async def replay_question(path: Path, on_step: Callable[[Step], None]) -> tuple[AgentAnswer, bool]:
    """Run a question again from its record, and say whether the answer is the same.

    Raises:
        InvalidTrace: The file is no record.
        ReplayDiverged: The run went another way.
    """
    replay = Replay(path)
    run = replay.run
    graph = KnowledgeGraph(replay.tools)
    name = _NAMES.validate_python(run.agent)
    agent = _agent(name, run.graph, run.parameters, graph, replay.llm, None, on_step)
    answer = await agent.answer(run.question, run.entities)
    recorded = replay.answer
    same = recorded is not None and (recorded.answers, recorded.evidence, recorded.stop_reason) == (
        list(answer.answers),
        list(answer.evidence),
        answer.stop_reason,
    )
    return answer, same


async def _linked(
    asked: Question, tools: Tools, llm: Llm | None, watched: Watcher
) -> tuple[tuple[Linked, ...], RunEnded | None]:
    if asked.entities:
        return (), None
    graph = KnowledgeGraph(tools)
    try:
        linked = (
            await link_by_names(graph, asked.text)
            if llm is None
            else await link_by_model(graph, asked.text, Dialogue(llm, asked.oda.limits))
        )
    except RunEnded as end:
        return (), end
    watched.on_linked(linked)
    return linked, None


def _agent(
    name: _Recorded,
    graph_name: str,
    parameters: object,
    graph: KnowledgeGraph,
    llm: Llm | None,
    judge: Llm | None,
    on_step: Callable[[Step], None],
) -> Agent:
    if name == "graph-counselor" and llm is not None:
        return GraphCounselor(
            llm,
            graph,
            judge=judge,
            reflector=judge,
            settings=_COUNSELOR_SETTINGS.validate_python(parameters),
            graph_name=graph_name,
            on_step=on_step,
        )
    settings = _ODA_SETTINGS.validate_python(parameters)
    if name == "oda-without-model" or llm is None:
        return OdaWithoutModel(graph, settings=settings, on_step=on_step)
    return ODA(llm, graph, settings=settings, graph_name=graph_name, on_step=on_step)


def _recorded(answer: AgentAnswer) -> AnswerLine:
    return AnswerLine(
        answers=list(answer.answers),
        evidence=list(answer.evidence),
        stop_reason=answer.stop_reason,
        explanation=answer.explanation,
        tokens=answer.usage.tokens,
        seconds=round(answer.seconds, 3),
    )
