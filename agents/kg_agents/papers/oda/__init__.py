"""ODA, the observation-driven agent (Sun et al., 2024)."""

from kg_agents.papers.oda.agent import ODA, OdaWithoutModel
from kg_agents.parameters import OdaAblation, OdaSettings

__all__ = ["ODA", "OdaAblation", "OdaSettings", "OdaWithoutModel"]
