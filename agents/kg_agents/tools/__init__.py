"""The third agent: the model calls the tools itself, by function calling."""

from kg_agents.tools.agent import ToolsAgent
from kg_agents.tools.settings import ToolsSettings

__all__ = ["ToolsAgent", "ToolsSettings"]
