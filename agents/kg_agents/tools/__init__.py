"""The third agent: the model calls the tools itself, by function calling."""

from kg_agents.parameters import ToolsSettings
from kg_agents.tools.agent import ToolsAgent

__all__ = ["ToolsAgent", "ToolsSettings"]
