"""Answer one question of a run, from its entities to its outcome."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from kg_agents.experience import ExperiencedLlm, Learned, OwnQuestion, solved_before
from kg_agents.linking import link_by_model
from kg_agents.llm.dialogue import FailedReply, RunEnded
from kg_agents.tools.client import ToolError
from kg_agents.tools.knowledge import KnowledgeGraph
from kg_eval.methods.catalog import FIND_ENTITIES, LEARN, NEED_ENTITIES, WITHOUT_GRAPH
from kg_eval.methods.method import Asked, Means, Method, MethodAnswer
from kg_eval.outcomes import Outcome
from kg_eval.questions import Edge, Gold, Record
from kg_eval.runs.plan import InvalidPlan, LinkingName, RunPlan

NO_TOPIC: Final = "The graph has none of the entities of this question."
NONE_GIVEN: Final = "The file gives no entity of this question, and the method begins from entities."

_SIMILAR_ANSWERS: Final = 200


@dataclass(frozen=True, slots=True)
class Linked:
    """The entities of a question as the graph calls them, and those that it does not have."""

    entities: tuple[tuple[str, str], ...] = ()
    missing: tuple[str, ...] = ()


async def linked(record: Record, linking: LinkingName, means: Means) -> Linked:
    """Return the entities of a question.

    Raises:
        ToolError: The graph does not answer.
        RunEnded: The model fails.
    """
    if linking == "none":
        return Linked()
    if linking == "gold":
        return await _given(record, means.graph)
    found = await link_by_model(means.graph, record.question, means.talk())
    return Linked(tuple((each.entity.id, each.entity.label) for each in found.linked))


async def _given(record: Record, graph: KnowledgeGraph) -> Linked:
    """Return those entities of a record that the graph has: an id or a name that means one thing there."""
    if not record.topics:
        return Linked()
    named = await graph.identify([topic.id for topic in record.topics])
    meant = {each.text: each.meant[0] for each in named if len(each.meant) == 1}
    return Linked(
        tuple(
            dict.fromkeys((meant[topic.id].id, meant[topic.id].label) for topic in record.topics if topic.id in meant)
        ),
        tuple(topic.id for topic in record.topics if topic.id not in meant),
    )


async def golds_in(edge: Edge, golds: tuple[Gold, ...], graph: KnowledgeGraph) -> tuple[Gold, ...]:
    """Return right answers with their names, and with them what else the graph holds over the same relation.

    Raises:
        ToolError: The graph does not answer, or has no such relation.
    """
    found = await graph.neighbors(edge.topic, relation=edge.relation, direction=edge.direction, limit=_SIMILAR_ANSWERS)
    ends = [fact[0] if edge.direction == "in" else fact[2] for fact in found.triples]
    ids = dict.fromkeys((*(gold.id for gold in golds), *ends))
    return tuple(Gold(found.labels.nodes.get(end, end), end) for end in ids)


FAILED: Final = frozenset({"model", "graph"})
"""Ends of a question that say nothing of the method: it is asked again when the run goes on."""

Learn: TypeAlias = Callable[[Learned], Awaitable[object]]
"""Keeps a question that was solved."""


def check(plan: RunPlan) -> None:
    """Make sure that a method can do what a plan says.

    Raises:
        InvalidPlan: It cannot.
    """
    if plan.linking == "none" and plan.method in NEED_ENTITIES:
        raise InvalidPlan(f"{plan.method} begins from entities. Choose --linking gold or --linking model.")
    if plan.learn and plan.method not in LEARN:
        raise InvalidPlan(f"{plan.method} learns nothing. Choose one of {', '.join(sorted(LEARN))} with --learn.")


async def asked(record: Record, plan: RunPlan, method: Method, means: Means, learn: Learn | None = None) -> Outcome:
    """Ask a question, and return what came of it, whatever happened.

    Args:
        record: The question.
        plan: How it is asked.
        method: What answers.
        means: With what.
        learn: Keeps the question if it was solved, where the plan says so.
    """
    try:
        outcome = await _answered(record, plan, method, means, learn)
    except RunEnded as end:
        outcome = Outcome(record, stop_reason=end.limit, explanation=str(end))
    except FailedReply as failure:
        outcome = Outcome(record, stop_reason="unreadable", explanation=str(failure))
    except ToolError as error:
        outcome = Outcome(record, stop_reason="graph", explanation=str(error))
    return replace(outcome, unreadable=dict(means.unreadable))


async def _answered(record: Record, plan: RunPlan, method: Method, means: Means, learn: Learn | None) -> Outcome:
    """Find the entities, then the answer.

    Raises:
        RunEnded: A limit is reached, or the model fails.
        ToolError: The graph does not answer.
    """
    found = Linked()
    if plan.method not in WITHOUT_GRAPH:
        finds = plan.method in FIND_ENTITIES and plan.linking == "model"
        found = Linked() if finds else await linked(record, plan.linking, means)
        if plan.linking == "gold" and not found.entities:
            if record.topics:
                return Outcome(record, missing_topics=found.missing, skipped=NO_TOPIC)
            if plan.method in NEED_ENTITIES:
                return Outcome(record, skipped=NONE_GIVEN)
    if record.edge is not None:
        record = replace(record, golds=await golds_in(record.edge, record.golds, means.graph))
    question = Asked(record.question, found.entities, plan.graph)
    if plan.learn:
        own = OwnQuestion(means.tools, record.question)
        means = replace(means, tools=own, llm=ExperiencedLlm(means.llm, await solved_before(own, record.question)))
    answer = await method.answer(question, means)
    if plan.learn and learn is not None and answer.learned is not None:
        await learn(answer.learned)
    return _outcome(record, answer, found)


def _outcome(record: Record, answer: MethodAnswer, found: Linked) -> Outcome:
    return Outcome(
        record,
        answer.prediction,
        answer.answers,
        answer.model_answer,
        answer.status,
        answer.stop_reason,
        answer.explanation,
        missing_topics=found.missing,
    )
