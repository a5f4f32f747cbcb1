"""A model that judges: the question, what was answered and what is right; one word back.

QwenScore, LlamaScore and GPT4Score are this prompt with different judges.
"""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from kg_agents.dialogue import Dialogue, Limits, Task, fitting
from kg_agents.llm import Llm
from kg_agents.texts import without_thinking
from kg_eval.metrics.scores import texts_of
from kg_eval.outcomes import Outcome
from kg_prompts import render
from kg_prompts.evaluation import VerdictPrompt

JudgeVerdict: TypeAlias = Literal["yes", "no", "unreadable"]

TEMPERATURE: Final = 0.01
TOP_P: Final = 1.0
_REPLY_TOKENS: Final = 256
"""Room for a model that thinks aloud before it says its word."""


async def judge(outcome: Outcome, llm: Llm) -> JudgeVerdict:
    """Have a model say whether an outcome is right; where there is no answer, or no right one, it is not asked.

    Raises:
        RunEnded: The model fails.
    """
    if not (answered := bool(texts_of(outcome))) or not outcome.record.golds:
        return "no" if answered or outcome.record.answerable else "yes"
    prompt = render(
        VerdictPrompt(
            question=outcome.record.question,
            prediction=outcome.prediction,
            gold=", ".join(each.text for each in outcome.record.golds),
        )
    )
    task = Task("verdict", fitting(lambda: [prompt], "the question and its answers"), _REPLY_TOKENS, TEMPERATURE, TOP_P)
    return await Dialogue(llm, Limits()).ask(task, read_verdict)


def read_verdict(reply: str) -> JudgeVerdict:
    """Return what a judge says; only `Yes` or `No` counts."""
    word = without_thinking(reply).strip(" \t\r\n.!*\"'`").lower()
    return "yes" if word == "yes" else "no" if word == "no" else "unreadable"


def judged(verdicts: Mapping[str, JudgeVerdict]) -> dict[str, float]:
    """Return verdicts as scores: what could not be read is not right."""
    return {id_: float(verdict == "yes") for id_, verdict in verdicts.items()}
