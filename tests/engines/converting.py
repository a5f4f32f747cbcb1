"""Convert MCP tools as agent frameworks do: run by a Python that has these, with the tools as JSON on standard input.

Prints `{converter: {tool: schema}}`, each schema as the framework sends it to a model's service.
"""

import asyncio
import copy
import json
import sys
from importlib import import_module
from typing import Any, Final, Protocol, TypeAlias

Schema: TypeAlias = dict[str, Any]


class Tool(Protocol):
    """A tool as MCP's SDK has it."""

    name: str
    inputSchema: Schema  # noqa: N815 - as the first SDK calls it


class Model(Protocol):
    """A model of pydantic."""

    def model_dump(self, *, mode: str, exclude_none: bool) -> Schema:
        """Return it as a mapping."""
        ...


def gemini(tool: Tool) -> Schema:
    """Return the declaration of google-genai."""
    converted = import_module("google.genai._mcp_utils").mcp_to_gemini_tool(tool)
    return _json(converted.function_declarations[0].parameters)


def openai_agents(tool: Tool) -> Schema:
    """Return the strict schema of openai-agents."""
    strict: Schema = import_module("agents.strict_schema").ensure_strict_json_schema(copy.deepcopy(tool.inputSchema))
    return strict


def pydantic_ai_google(tool: Tool) -> Schema:
    """Return the schema of pydantic-ai for Gemini."""
    made = import_module("pydantic_ai.profiles.google").GoogleJsonSchemaTransformer(copy.deepcopy(tool.inputSchema))
    return dict(made.walk())


def pydantic_ai_google_live(tool: Tool) -> Schema:
    """Return the schema of pydantic-ai for Gemini's live service, which takes OpenAPI's subset."""
    made = import_module("pydantic_ai.profiles.google").GoogleOpenAPISchemaTransformer(copy.deepcopy(tool.inputSchema))
    return dict(made.walk())


def pydantic_ai_openai(tool: Tool) -> Schema:
    """Return the strict schema of pydantic-ai for OpenAI."""
    transformer = import_module("pydantic_ai.profiles.openai").OpenAIJsonSchemaTransformer
    return dict(transformer(copy.deepcopy(tool.inputSchema), strict=True).walk())


def langchain_google(tool: Tool) -> Schema:
    """Return the declaration of langchain-google-genai for what langchain-mcp-adapters makes of a tool."""
    functions = import_module("langchain_google_genai._function_utils")
    declared = functions.convert_to_genai_function_declarations([_langchain(tool)])
    return _json(declared[0].function_declarations[0].parameters)


def langchain_openai(tool: Tool) -> Schema:
    """Return the function that LangChain sends to OpenAI for what langchain-mcp-adapters makes of a tool."""
    convert = import_module("langchain_core.utils.function_calling").convert_to_openai_tool
    parameters: Schema = convert(_langchain(tool))["function"]["parameters"]
    return parameters


CONVERTERS: Final = (
    gemini,
    openai_agents,
    pydantic_ai_google,
    pydantic_ai_google_live,
    pydantic_ai_openai,
    langchain_google,
    langchain_openai,
)


def _langchain(tool: Tool) -> object:
    convert = import_module("langchain_mcp_adapters.tools").convert_mcp_tool_to_langchain_tool
    made: object = convert(None, tool, connection={"transport": "stdio", "command": "unused", "args": []})
    return made


def _json(model: Model) -> Schema:
    return model.model_dump(mode="json", exclude_none=True)


async def main() -> None:
    """Convert the tools that standard input lists."""
    tool_of = import_module("mcp.types").Tool.model_validate
    tools = [tool_of(each) for each in json.load(sys.stdin)]
    made = {convert.__name__: {tool.name: convert(tool) for tool in tools} for convert in CONVERTERS}
    json.dump(made, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main())
