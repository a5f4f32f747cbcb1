"""Graph Counselor (Gao et al., 2025): agents that plan, think and act on a graph, and reflect on what failed."""

from kg_agents.papers.graph_counselor.agent import CounselorAnswer, GraphCounselor
from kg_agents.papers.graph_counselor.replies import Judgement
from kg_agents.papers.graph_counselor.run import Attempt, AttemptStep
from kg_agents.parameters import CounselorAblation, CounselorSettings

__all__ = [
    "Attempt",
    "AttemptStep",
    "CounselorAblation",
    "CounselorAnswer",
    "CounselorSettings",
    "GraphCounselor",
    "Judgement",
]
