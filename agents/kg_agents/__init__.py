"""Agents that answer questions from a knowledge graph through its MCP tools: ODA, Graph Counselor, a model by itself.

async with connect("kg-sextant serve sample") as graph:
    answer = await ODA(OpenAiLlm("gpt-5-mini"), graph).answer("Where was Goethe born?", ["Q5879"])
"""

from kg_agents.checking import checked
from kg_agents.evidence.answers import AgentAnswer, ClosedBook, GivenAnswer, RunStep, Source, Status
from kg_agents.linking import Linking, link_by_model, link_by_names, link_given
from kg_agents.llm import AgentError, Completion, Llm, LlmError, Message, ScriptedLlm, Usage
from kg_agents.llm.dialogue import Dialogue, Limits
from kg_agents.llm.openai_llm import OpenAiLlm, Prices
from kg_agents.papers.graph_counselor import CounselorSettings, GraphCounselor
from kg_agents.papers.oda import ODA, OdaSettings, OdaWithoutModel
from kg_agents.parameters import ToolsSettings
from kg_agents.tools.agent import ToolsAgent
from kg_agents.tools.client import connect_tools
from kg_agents.tools.knowledge import KnowledgeGraph, connect

__all__ = [
    "ODA",
    "AgentAnswer",
    "AgentError",
    "ClosedBook",
    "Completion",
    "CounselorSettings",
    "Dialogue",
    "GivenAnswer",
    "GraphCounselor",
    "KnowledgeGraph",
    "Limits",
    "Linking",
    "Llm",
    "LlmError",
    "Message",
    "OdaSettings",
    "OdaWithoutModel",
    "OpenAiLlm",
    "Prices",
    "RunStep",
    "ScriptedLlm",
    "Source",
    "Status",
    "ToolsAgent",
    "ToolsSettings",
    "Usage",
    "checked",
    "connect",
    "connect_tools",
    "link_by_model",
    "link_by_names",
    "link_given",
]
