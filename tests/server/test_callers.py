"""Callers over HTTP: each has its own memories, in both eras of the protocol."""

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.shared.exceptions import MCPError
from starlette.middleware.authentication import AuthenticationMiddleware

from http_servers import on_loopback
from kg_adapters.local.adapter import LocalAdapter
from kg_server.app import EXPERIENCE_FILE, build_server
from kg_server.callers import Caller, access_of
from kg_server.mcp_server import SextantServer
from kg_server.memory.experience import ExperienceStore, Solved
from kg_server.settings import Settings
from memories import Memory

CAPITAL, LAND = ["Q1490", "P36", "Q179645"], ["Q1490", "P17", "Q17"]


class Names(TokenVerifier):
    """Lets everyone in whose token is a name."""

    async def verify_token(self, token: str) -> AccessToken | None:
        return access_of(Caller(f"token:{token}", token), token)


def served(server: SextantServer) -> AbstractAsyncContextManager[str]:
    """Serve without sessions; gives the URL."""
    app = AuthContextMiddleware(server.streamable_http_app(stateless_http=True))
    return on_loopback(AuthenticationMiddleware(app, BearerAuthBackend(Names())))


async def test_a_list_may_be_cached_for_others_only_where_nobody_logs_in(tokyo: LocalAdapter) -> None:
    scopes: dict[str, str | None] = {}
    async with served(build_server(tokyo, Settings(timeout_s=60))) as url:
        for name, headers in (("nobody", None), ("ann", {"Authorization": "Bearer ann"})):
            async with (
                httpx2.AsyncClient(headers=headers) as http,
                Client(streamable_http_client(url, http_client=http), mode="2026-07-28") as client,
            ):
                scopes[name] = (await client.list_tools()).cache_scope
    assert scopes == {"nobody": "public", "ann": "private"}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_nobody_reads_or_extends_the_memory_of_another_caller(
    tokyo: LocalAdapter, tmp_path: Path, mode: str
) -> None:
    settings = Settings(data_folder=tmp_path, learn=True, timeout_s=60)
    solved = Solved(question="What is the capital of Tokyo?", calls=("c",), answers=("a",), evidence=())
    await ExperienceStore(tmp_path / EXPERIENCE_FILE).keep(tokyo.name, solved)
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(served(build_server(tokyo, settings)))

        async def logged_in(name: str) -> Memory:
            headers = {"Authorization": f"Bearer {name}"} if name else None
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers))
            return Memory(
                await stack.enter_async_context(Client(streamable_http_client(url, http_client=http), mode=mode))
            )

        ann, ann_too, ben, nobody = [await logged_in(name) for name in ("ann", "ann", "ben", "")]
        handle = await ann.begin(CAPITAL)
        assert (await ann_too.append(LAND, memory=handle)).data["added"] == 1
        assert (await ann.read(handle)).data["total"] == 2
        for other in (ben, nobody):
            for known in (handle, "mem_unknown"):
                for reply in (await other.read(known), await other.append(LAND, memory=known)):
                    assert reply.is_error
                    assert reply.text.startswith("No memory has this handle")
                with pytest.raises(MCPError, match="No memory has this handle"):
                    await other.resource(known)
        recalled = [await each.call("Recall", {"question": "What is the capital of Osaka?"}) for each in (ann, nobody)]
        assert ["question:" in reply.text for reply in recalled] == [False, True]
