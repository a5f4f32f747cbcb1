"""The methods by name, with their parameters read from texts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kg_agents.checking import checked
from kg_agents.evidence.answers import AgentAnswer
from kg_agents.experience import learned_from
from kg_agents.parameters import (
    AgentSettings,
    CounselorSettings,
    InvalidParameter,
    OdaSettings,
    ToolsSettings,
    read_parameters,
)
from kg_agents.running import agent_of
from kg_eval.methods.baselines import (
    ConsistencySettings,
    Direct,
    DirectSettings,
    GraphCot,
    GraphCotSettings,
    GraphRag,
    RagSettings,
    SelfConsistency,
)
from kg_eval.methods.method import Asked, Means, Method, MethodAnswer
from kg_eval.methods.think_on_graph import ThinkOnGraph, TogSettings
from kg_eval.plan import InvalidPlan, MethodName


@dataclass(frozen=True, slots=True)
class AgentMethod:
    """One of the agents, with its parameters."""

    settings: AgentSettings

    async def answer(self, asked: Asked, means: Means) -> MethodAnswer:
        """See `Method`."""
        agent = agent_of(self.settings, means.tools, means.models, asked.graph_name, graphs=means.graphs)
        talk = means.talk(self.settings.limits)
        found = await agent.answer(asked.question, asked.ids, talk=talk)
        return answered(await checked(found, means.graph.within(talk), self.settings.own_answers))


def answered(answer: AgentAnswer) -> MethodAnswer:
    """Return what an agent answered, as methods do."""
    return MethodAnswer(
        ", ".join(answer.texts),
        answer.answers,
        answer.status,
        answer.stop_reason,
        answer.explanation,
        answer.model_answer,
        learned_from(answer),
    )


WITHOUT_GRAPH: frozenset[MethodName] = frozenset({"direct", "cot", "self-consistency"})
"""Methods that never look into the graph, so that entities do not matter to them."""

NEED_ENTITIES: frozenset[MethodName] = frozenset({"tog", "tog-r", "oda"})
"""Methods that begin from entities and cannot find any by themselves."""

FIND_ENTITIES: frozenset[MethodName] = frozenset({"tools"})
"""Methods that look up by themselves what a question names, where it is not given."""

LEARN: frozenset[MethodName] = frozenset({"oda", "graph-counselor", "tools"})
"""Methods that can be shown solved questions, and whose runs can be learned from."""


def method_of(name: MethodName, written: Sequence[str]) -> Method:
    """Return a method with its parameters.

    Args:
        name: The method.
        written: Its parameters, as `name=value`.

    Raises:
        InvalidPlan: A parameter is unknown, or has a wrong value.
    """
    try:
        return _METHODS[name](written)
    except InvalidParameter as error:
        raise InvalidPlan(str(error)) from error


def reflects(method: Method) -> bool:
    """Say whether a method asks a model to reflect, which may be another one."""
    return isinstance(method, AgentMethod) and method.settings.reflects


def needs_exact_scores(method: Method) -> bool:
    """Say whether a method needs observations that are scored exactly as in the paper of ODA."""
    return isinstance(method, AgentMethod) and method.settings.paper_score


_METHODS: Final[Mapping[MethodName, Callable[[Sequence[str]], Method]]] = {
    "direct": lambda written: Direct(read_parameters(DirectSettings, written)),
    "cot": lambda written: Direct(read_parameters(DirectSettings, written), thinking=True),
    "self-consistency": lambda written: SelfConsistency(read_parameters(ConsistencySettings, written)),
    "text-rag": lambda written: GraphRag(read_parameters(RagSettings, written), hops=0),
    "graph-rag-1": lambda written: GraphRag(read_parameters(RagSettings, written), hops=1),
    "graph-rag-2": lambda written: GraphRag(read_parameters(RagSettings, written), hops=2),
    "tog": lambda written: ThinkOnGraph(read_parameters(TogSettings, written)),
    "tog-r": lambda written: ThinkOnGraph(read_parameters(TogSettings, written), relations_only=True),
    "graph-cot": lambda written: GraphCot(read_parameters(GraphCotSettings, written)),
    "oda": lambda written: AgentMethod(read_parameters(OdaSettings, written)),
    "graph-counselor": lambda written: AgentMethod(read_parameters(CounselorSettings, written)),
    "tools": lambda written: AgentMethod(read_parameters(ToolsSettings, written)),
}
