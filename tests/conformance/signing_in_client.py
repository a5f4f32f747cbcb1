"""The client that logs in for the tests, as the official conformance suite starts it: with the URL of a server.

Run it as `python -m conformance.signing_in_client URL`, with `tests` and the repository on the path. It lists the
tools and calls each.
"""

import os
import sys
from typing import Final

import anyio
from mcp.client.client import ConnectMode
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import BaseModel

from signing_in import CALLBACK, SigningIn, Wallet

DOCUMENT: Final = "https://conformance-test.local/client-metadata.json"
"""Where the suite's servers believe the document of a client to be."""


class Context(BaseModel):
    """What a scenario tells the client beforehand: how it was registered, if it was."""

    client_id: str | None = None
    client_secret: str | None = None


async def log_in(url: str, context: Context, mode: ConnectMode) -> None:
    """Log in, list the tools and call each."""
    client = SigningIn(url, DOCUMENT, method=None)
    if context.client_id is not None:
        client.wallet = Wallet(
            client=OAuthClientInformationFull.model_validate(
                {
                    **context.model_dump(),
                    "redirect_uris": [CALLBACK],
                    "token_endpoint_auth_method": "client_secret_basic",
                }
            )
        )
    async with client.connected(mode) as session:
        for tool in (await session.list_tools()).tools:
            await session.call_tool(tool.name, {})


def main() -> None:
    """Read what the suite says, and do it."""
    version = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25")
    context = Context.model_validate_json(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    anyio.run(log_in, sys.argv[1], context, "legacy" if version <= "2025-11-25" else version)


if __name__ == "__main__":
    main()
