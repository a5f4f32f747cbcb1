"""The agents as methods: their entities given or found, their evidence compared with the graph."""

from dataclasses import dataclass
from functools import partial

from kg_agents.checking import checked
from kg_agents.evidence.answers import AgentAnswer
from kg_agents.experience import learned_from
from kg_agents.papers.graph_counselor import CounselorSettings, GraphCounselor
from kg_agents.papers.oda import ODA, OdaSettings
from kg_agents.parameters import ToolsSettings
from kg_agents.tools.agent import ToolsAgent
from kg_eval.methods.method import Asked, Means, MethodAnswer


@dataclass(frozen=True, slots=True)
class OdaMethod:
    """ODA with the parameters that it is given."""

    settings: OdaSettings

    async def answer(self, asked: Asked, means: Means) -> MethodAnswer:
        """See `Method`."""
        talk = means.talk(self.settings.limits)
        agent = ODA(
            means.llm,
            means.graph,
            reflector=means.reflector,
            settings=self.settings,
            graph_name=asked.graph_name,
        )
        found = await agent.answer(asked.question, asked.ids, talk=talk)
        held = await talk.within(partial(checked, found, means.graph, self.settings.own_answers))
        return answered(held)


@dataclass(frozen=True, slots=True)
class CounselorMethod:
    """Graph Counselor with the parameters that it is given."""

    settings: CounselorSettings

    async def answer(self, asked: Asked, means: Means) -> MethodAnswer:
        """See `Method`."""
        talk = means.talk(self.settings.limits)
        agent = GraphCounselor(
            means.llm,
            means.graph,
            judge=means.judge,
            reflector=means.reflector or means.judge,
            settings=self.settings,
            graph_name=asked.graph_name,
        )
        found = await agent.answer(asked.question, asked.ids, talk=talk)
        held = await talk.within(partial(checked, found, means.graph, self.settings.own_answers))
        return answered(held)


@dataclass(frozen=True, slots=True)
class ToolsMethod:
    """The agent whose model calls the tools itself, with the parameters that it is given."""

    settings: ToolsSettings

    async def answer(self, asked: Asked, means: Means) -> MethodAnswer:
        """See `Method`."""
        talk = means.talk(self.settings.limits)
        found = await ToolsAgent(means.llm, means.tools, settings=self.settings).answer(
            asked.question, asked.ids, talk=talk
        )
        held = await talk.within(partial(checked, found, means.graph, self.settings.own_answers))
        return answered(held)


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
