"""What comes of one question: its entities are found, a method answers, and whatever ends it is told."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, TypeAlias

from kg_agents.dialogue import FailedReply, RunEnded
from kg_agents.experience import ExperiencedLlm, Learned, OwnQuestion, solved_before
from kg_agents.tool_calls import ToolError
from kg_eval.methods.catalog import FIND_ENTITIES, LEARN, NEED_ENTITIES, WITHOUT_GRAPH
from kg_eval.methods.method import Asked, Means, Method, MethodAnswer
from kg_eval.outcomes import Outcome
from kg_eval.questions import Record
from kg_eval.runs.linking import NO_TOPIC, NONE_GIVEN, Linked, golds_in, linked
from kg_eval.runs.plan import InvalidPlan, RunPlan

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
