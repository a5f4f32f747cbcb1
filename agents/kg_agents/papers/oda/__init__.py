"""ODA, the observation-driven agent (Sun et al., 2024)."""

from kg_agents.papers.oda.agent import ODA, OdaWithoutModel
from kg_agents.papers.oda.paper import Act, Choose, Observe, OdaParts, Reflect, Reflected, parts_of
from kg_agents.papers.oda.run import OdaMeans
from kg_agents.parameters import OdaAblation, OdaSettings

__all__ = [
    "ODA",
    "Act",
    "Choose",
    "Observe",
    "OdaAblation",
    "OdaMeans",
    "OdaParts",
    "OdaSettings",
    "OdaWithoutModel",
    "Reflect",
    "Reflected",
    "parts_of",
]
