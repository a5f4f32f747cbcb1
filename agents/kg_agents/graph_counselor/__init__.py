"""Graph Counselor (Gao et al., 2025): agents that plan, think and act on a graph, and reflect on what failed."""

from kg_agents.graph_counselor.agent import GraphCounselor
from kg_agents.graph_counselor.answer import CounselorAnswer
from kg_agents.graph_counselor.attempts import Attempt
from kg_agents.graph_counselor.scratchpad import Step
from kg_agents.graph_counselor.settings import CounselorAblation, CounselorSettings
from kg_agents.graph_counselor.verdicts import Judgement

__all__ = [
    "Attempt",
    "CounselorAblation",
    "CounselorAnswer",
    "CounselorSettings",
    "GraphCounselor",
    "Judgement",
    "Step",
]
