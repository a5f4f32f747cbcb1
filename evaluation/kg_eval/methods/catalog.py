"""The methods by name, with their parameters read from texts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import partial
from typing import Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from kg_agents.checking import checked
from kg_agents.evidence.answers import AgentAnswer
from kg_agents.experience import learned_from
from kg_agents.parameters import AGENTS, AgentName, AgentSettings, InvalidParameter, read_parameters
from kg_agents.running import agent_of
from kg_boundary.shown import in_plain_words
from kg_eval.methods.baselines import (
    ChainOfThought,
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
        agent = agent_of(
            self.settings,
            means.tools,
            means.llm,
            judge=means.judge,
            reflector=means.reflector,
            graph_name=asked.graph_name,
        )
        talk = means.talk(self.settings.limits)
        found = await agent.answer(asked.question, asked.ids, talk=talk)
        return answered(await talk.within(partial(checked, found, means.graph, self.settings.own_answers)))


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

S = TypeVar("S", DirectSettings, ConsistencySettings, RagSettings, TogSettings, GraphCotSettings)


def method_of(name: MethodName, written: Sequence[str]) -> Method:
    """Return a method with its parameters.

    Args:
        name: The method.
        written: Its parameters, as `name=value`.

    Raises:
        InvalidPlan: A parameter is unknown, or has a wrong value.
    """
    return _METHODS[name](written)


def reflects(method: Method) -> bool:
    """Say whether a method asks a model to reflect, which may be another one."""
    return isinstance(method, AgentMethod) and method.settings.reflects


def needs_exact_scores(method: Method) -> bool:
    """Say whether a method needs observations that are scored exactly as in the paper of ODA."""
    return isinstance(method, AgentMethod) and method.settings.paper_score


def _agent(name: AgentName, written: Sequence[str]) -> AgentMethod:
    try:
        return AgentMethod(read_parameters(AGENTS[name], written))
    except InvalidParameter as error:
        raise InvalidPlan(str(error)) from error


def _settings(kind: type[S], written: Iterable[str]) -> S:
    known = [field.name for field in fields(kind)]
    given: dict[str, str] = {}
    for each in written:
        name, sign, value = (part.strip() for part in each.partition("="))
        name = name.replace("-", "_")
        if not sign or name not in known:
            near = get_close_matches(name, known, n=1)
            meant = f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
            raise InvalidPlan(f"{each!r} sets no parameter of this method. Write name=value. {meant}")
        given[name] = value
    try:
        return TypeAdapter(kind).validate_python(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidPlan(
            f"The parameter {first['loc'][-1]} cannot be used: {in_plain_words(first['msg'])}."
        ) from error


_METHODS: Final[Mapping[MethodName, Callable[[Sequence[str]], Method]]] = {
    "direct": lambda written: Direct(_settings(DirectSettings, written)),
    "cot": lambda written: ChainOfThought(_settings(DirectSettings, written)),
    "self-consistency": lambda written: SelfConsistency(_settings(ConsistencySettings, written)),
    "text-rag": lambda written: GraphRag(_settings(RagSettings, written), hops=0),
    "graph-rag-1": lambda written: GraphRag(_settings(RagSettings, written), hops=1),
    "graph-rag-2": lambda written: GraphRag(_settings(RagSettings, written), hops=2),
    "tog": lambda written: ThinkOnGraph(_settings(TogSettings, written)),
    "tog-r": lambda written: ThinkOnGraph(_settings(TogSettings, written), relations_only=True),
    "graph-cot": lambda written: GraphCot(_settings(GraphCotSettings, written)),
    "oda": partial(_agent, "oda"),
    "graph-counselor": partial(_agent, "graph-counselor"),
    "tools": partial(_agent, "tools"),
}
