"""The client that logs in for the tests, as the official conformance suite uses it: it calls each tool."""

from collections.abc import Mapping
from typing import Final

from mcp.shared.auth import OAuthClientInformationFull
from pydantic import BaseModel, TypeAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from signing_in import CALLBACK, SigningIn, Wallet

DOCUMENT: Final = "https://conformance-test.local/client-metadata.json"
"""Where the suite's servers believe the document of a client to be."""
_ORDER = TypeAdapter(tuple[str, dict[str, str]])


class Context(BaseModel):
    """What a scenario tells the client beforehand: how it was registered, if it was."""

    client_id: str | None = None
    client_secret: str | None = None


async def log_in(url: str, environ: Mapping[str, str]) -> None:
    """Log in at the server of a scenario, list the tools and call each."""
    version = environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25")
    context = Context.model_validate_json(environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    client = SigningIn(url, DOCUMENT, method=None)
    if context.client_id is not None:
        known = {"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "client_secret_basic"}
        client.wallet = Wallet(client=OAuthClientInformationFull.model_validate({**context.model_dump(), **known}))
    async with client.connected("legacy" if version <= "2025-11-25" else version) as session:
        for tool in (await session.list_tools()).tools:
            await session.call_tool(tool.name, {})


def command(origin: str) -> str:
    """Return what the suite starts as a client: it has the service at an origin log in, and ends as that does.

    Starting a process for each client would take a second.
    """
    order = "JSON.stringify([process.argv[1],process.env])"
    return f"node -e \"fetch('{origin}',{{method:'POST',body:{order}}}).then(r=>process.exit(r.ok?0:1))\""


async def _do(request: Request) -> Response:
    await log_in(*_ORDER.validate_json(await request.body()))
    return Response()


SERVICE: Final = Starlette(routes=[Route("/", _do, methods=["POST"])])
