"""Agents that answer questions from a knowledge graph through its MCP tools: ODA, Graph Counselor, a model by itself.

async with connect("kg-sextant serve sample") as graph:
    answer = await ODA(OpenAiLlm("gpt-5-mini"), graph).answer("Where was Goethe born?", ["Q5879"])
"""

from kg_agents.answers import AgentAnswer, Answer, ClosedBook, Source, Status, Step
from kg_agents.checking import checked
from kg_agents.dialogue import Dialogue, Limits
from kg_agents.graph_counselor import CounselorSettings, GraphCounselor
from kg_agents.knowledge import KnowledgeGraph, connect
from kg_agents.linking import Linking, link_by_model, link_by_names, link_given
from kg_agents.llm import AgentError, Completion, Llm, LlmError, Message, Usage
from kg_agents.oda import ODA, OdaSettings, OdaWithoutModel
from kg_agents.openai_llm import OpenAiLlm, Prices
from kg_agents.scripted_llm import ScriptedLlm
from kg_agents.sessions import connect_tools
from kg_agents.tools import ToolsAgent, ToolsSettings

__all__ = [
    "ODA",
    "AgentAnswer",
    "AgentError",
    "Answer",
    "ClosedBook",
    "Completion",
    "CounselorSettings",
    "Dialogue",
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
    "ScriptedLlm",
    "Source",
    "Status",
    "Step",
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
