"""The product's server class with nothing but what the official conformance suite asks for, on a port of loopback.

Run it as `python -m conformance.fixture_server`, with `tests` and the repository on the path.
"""

import socket
import sys
import warnings

import uvicorn
from mcp import MCPDeprecationWarning
from mcp.server.mcpserver import Context
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import (
    CallToolResult,
    Completion,
    CompletionArgument,
    CompletionContext,
    EmptyResult,
    PromptReference,
    ResourceTemplateReference,
    SetLevelRequestParams,
    SubscribeRequestParams,
    ToolAnnotations,
    UnsubscribeRequestParams,
)

from conformance import content_fixtures, question_fixtures
from conformance.content_fixtures import said, text
from kg_server.mcp_server import SextantServer


def fixture_server() -> SextantServer:
    """Return the server."""
    server = SextantServer("conformance", version="1", timeout_s=30)
    content_fixtures.provide(server)
    question_fixtures.provide(server)
    server.completion()(_complete)  # type: ignore[no-untyped-call] # the SDK gives this decorator no types
    for trigger in (trigger_tool_change, trigger_prompt_change):
        server.provide(trigger, f"test_{trigger.__name__}", ToolAnnotations())
    low = server._lowlevel_server  # pyright: ignore[reportPrivateUsage] - a decorator is wanting for these
    low.add_request_handler("logging/setLevel", SetLevelRequestParams, _acknowledged)
    low.add_request_handler("resources/subscribe", SubscribeRequestParams, _acknowledged)
    low.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, _acknowledged)
    return server


async def trigger_tool_change(context: Context[None]) -> CallToolResult:
    """Say that the list of tools has changed."""
    await context.notify_tools_changed()
    return said(text("Told."))


async def trigger_prompt_change(context: Context[None]) -> CallToolResult:
    """Say that the list of prompts has changed."""
    await context.notify_prompts_changed()
    return said(text("Told."))


async def _acknowledged(context: object, params: object) -> EmptyResult:
    del context, params
    return EmptyResult()


async def _complete(
    ref: PromptReference | ResourceTemplateReference, argument: CompletionArgument, context: CompletionContext | None
) -> Completion:
    del ref, argument, context
    return Completion(values=["paris", "park"], total=2, has_more=False)


def main() -> None:
    """Serve, and say where."""
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=["127.0.0.1:*", "localhost:*"],
        allowed_origins=["http://127.0.0.1:*", "http://localhost:*"],
    )
    app = fixture_server().streamable_http_app(transport_security=security)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"Serving fixtures at http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
        uvicorn.Server(uvicorn.Config(app, log_config=None)).run(sockets=[listener])


if __name__ == "__main__":
    main()
