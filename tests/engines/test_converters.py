"""What converters of agent frameworks, as they are published, make of the tools: their services take it."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from mcp import Client
from mcp.types import Tool

from calls import UNHURRIED, reply_of, several_graphs
from compose_stack import ENGINES, needed
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.protocol import KGAdapter
from kg_server.app import build_server
from kg_server.graphs import GraphSet
from tool_schemas import CALLS, NAMES, faults_of, filled

CONVERTERS: Final = ENGINES / "converters-1"
LISTED: Final = Path(__file__).with_name("converting.py")
STRICT: Final = ("openai_agents", "pydantic_ai_openai")
"""The converters that make every argument required."""


@pytest.fixture(scope="module", autouse=True)
def converters() -> None:
    """Skip, or fail in CI, where the converters are not installed."""
    missing = "The converters of agent frameworks are not installed: run tools/install_engines.sh"
    needed(CONVERTERS.exists(), missing)


def converted(tools: Sequence[Tool]) -> Mapping[str, Mapping[str, dict[str, Any]]]:
    """Return the schema that each converter makes of each tool, by their names."""
    listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    ended = subprocess.run(
        [CONVERTERS / "bin" / "python", LISTED], input=json.dumps(listed), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    made: Mapping[str, Mapping[str, dict[str, Any]]] = json.loads(ended.stdout)
    return made


@pytest.mark.parametrize("names", [(), NAMES], ids=["one graph", "five graphs"])
async def test_services_take_what_converters_make_of_the_tools_and_calls_of_such_schemas_succeed(
    sample: LocalAdapter, names: tuple[str, ...]
) -> None:
    graphs: KGAdapter | GraphSet = several_graphs(dict.fromkeys(names, sample)) if names else sample
    async with Client(build_server(graphs, UNHURRIED)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        made = converted(list(tools.values()))
        assert len(made) == 7
        for converter, schemas in made.items():
            assert set(schemas) == set(tools)
            assert [fault for name, each in schemas.items() for fault in faults_of(each, f"{converter}.{name}")] == []
        for converter in STRICT:
            for name, given in CALLS.items():
                schema = made[converter][name]
                assert schema["required"] == list(tools[name].input_schema["properties"])
                arguments = filled(schema, tools[name].input_schema, given)
                reply = reply_of(await client.call_tool(name, arguments))
                assert not reply.is_error, (converter, arguments, reply.text)
