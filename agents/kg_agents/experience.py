"""Solved questions: what is learned from a run, and how a model is shown those that are like its own."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from kg_agents.checking import UNCHECKED
from kg_agents.evidence.answers import AgentAnswer
from kg_agents.evidence.values import IdLabels, Triple, plain_value, split_graph, without_graph
from kg_agents.llm import Completion, Llm, LlmRequest
from kg_agents.tools.client import OtherTools, ToolCall, ToolCaller, ToolError
from kg_prompts import render
from kg_prompts.tools import SolvedBefore

RECALL: Final = "Recall"
_STEERING: Final = frozenset({"tools", "turn", "action", "step", "plan"})
"""The purposes of the requests in which a model decides what to do."""

_NO_CALL: Final = ("Answer", "Finish")


@dataclass(frozen=True, slots=True)
class Learned:
    """A question that a run has solved.

    Args:
        question: The question.
        calls: What was asked of the graph, in its order.
        answers: The answers.
        facts: The triples that they rest on, by ids.
        labels: What ids are called.
    """

    question: str
    calls: tuple[str, ...]
    answers: tuple[str, ...]
    facts: tuple[Triple, ...]
    labels: IdLabels

    @property
    def graphs(self) -> tuple[str, ...]:
        """The graphs of the triples, where a server has several."""
        return tuple(dict.fromkeys(filter(None, (split_graph(relation)[1] for _, relation, _ in self.facts))))

    @property
    def plain_facts(self) -> tuple[Triple, ...]:
        """The triples with values, and ids, as they are."""
        return tuple(map(without_graph, self._plain)) if self.graphs else self._plain

    @property
    def evidence(self) -> tuple[str, ...]:
        """The triples as results show them."""
        nodes, relations = self.labels.nodes, self.labels.relations
        return tuple(
            " | ".join((nodes.get(head, head), relations.get(relation, relation), nodes.get(tail, tail)))
            for head, relation, tail in self._plain
        )

    @property
    def _plain(self) -> tuple[Triple, ...]:
        return tuple((head, relation, plain_value(tail)) for head, relation, tail in self.facts)


def learned_from(answer: AgentAnswer) -> Learned | None:
    """Return what there is to learn from a run: nothing unless every answer rests on triples that were compared."""
    if answer.status != "answered" or UNCHECKED in answer.explanation or not all(each.facts for each in answer.answers):
        return None
    calls = (step.action for step in answer.steps if step.action and not step.action.startswith(_NO_CALL))
    return Learned(
        answer.question, tuple(dict.fromkeys(calls)), answer.texts, tuple(dict.fromkeys(answer.evidence)), answer.labels
    )


async def solved_before(tools: ToolCaller, question: str) -> str:
    """Return solved questions like one, as a text; nothing where there are none, or the server does not say.

    They are a help: without them the question is asked all the same.
    """
    try:
        call = await tools.call(RECALL, {"question": question})
    except ToolError:
        return ""
    return "" if call.failed or not call.data.get("solved") else call.text


@dataclass(frozen=True, slots=True)
class OwnQuestion(OtherTools):
    """Tools that are given the question of the run as it was asked.

    So its own record is never recalled, whatever is asked, and what a model is told beside it is not looked for.

    Args:
        question: The question of the run.
    """

    question: str

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        """See `ToolCaller`."""
        if tool == RECALL:
            arguments = {"question": self.question}
        elif str(arguments.get("question", "")).startswith(f"{self.question}\n"):
            arguments = {**arguments, "question": self.question}
        return await self.tools.call(tool, arguments)


@dataclass(frozen=True, slots=True)
class ExperiencedLlm:
    """A model that is shown solved questions wherever it decides what to do.

    Args:
        llm: The model.
        solved: The questions, as a text.
    """

    llm: Llm
    solved: str

    @property
    def name(self) -> str:
        """See `Llm`."""
        return self.llm.name

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`."""
        if self.solved and request.purpose in _STEERING:
            first, *others = request.messages
            content = f"{first.content}\n\n{render(SolvedBefore(solved=self.solved))}"
            if first.role != "system":
                content = f"{render(SolvedBefore(solved=self.solved))}\n\n{first.content}"
            request = replace(request, messages=(replace(first, content=content), *others))
        return await self.llm.complete(request)
