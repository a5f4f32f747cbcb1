"""ODA, the observation-driven agent (Sun et al., 2024)."""

from kg_agents.oda.ablations import (
    OdaByGeneratedFacts,
    OdaByRandomReflection,
    OdaBySimilarReflection,
    OdaWithoutObservation,
)
from kg_agents.oda.agent import ODA
from kg_agents.oda.settings import OdaSettings
from kg_agents.oda.without_model import OdaWithoutModel

__all__ = [
    "ODA",
    "OdaByGeneratedFacts",
    "OdaByRandomReflection",
    "OdaBySimilarReflection",
    "OdaSettings",
    "OdaWithoutModel",
    "OdaWithoutObservation",
]
