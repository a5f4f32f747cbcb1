"""Who makes a call, so that memories, limits and logs can tell callers apart."""

from dataclasses import dataclass
from typing import Final

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken

EVERY_SCOPE: Final = frozenset({"read", "memory"})
MEMORY_TOOLS: Final = frozenset({"memory-append", "memory-read"})
"""The tools that need the scope `memory`."""

_CLAIM: Final = "kg_sextant_caller"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a call.

    Args:
        subject: What tells it from every other caller: two of them never share one. "" is the only caller of stdio, and
            of HTTP without a login.
        name: What logs call it: the name of its client or token.
        scopes: What it may do.
        tools: Which tools it may call; None for all.
    """

    subject: str = ""
    name: str = ""
    scopes: frozenset[str] = EVERY_SCOPE
    tools: frozenset[str] | None = None

    def may_call(self, tool: str) -> bool:
        """Return whether it may call a tool, by its name."""
        return (self.tools is None or tool in self.tools) and ("memory" in self.scopes or tool not in MEMORY_TOOLS)


LOCAL: Final = Caller()
"""The only caller where nobody logs in."""


def access_of(caller: Caller, token: str, *, expires_at: int | None = None) -> AccessToken:
    """Return what a token verifier answers when a token proves to be a caller's; `caller` returns it in each call.

    Args:
        caller: Who the token belongs to; its subject is not empty.
        token: The token.
        expires_at: When it expires, in seconds since 1970; None for never.
    """
    return AccessToken(
        token=token,
        client_id=caller.subject,
        scopes=sorted(caller.scopes),
        expires_at=expires_at,
        subject=caller.subject,
        claims={_CLAIM: caller},
    )


def caller() -> Caller:
    """Return who makes the call that is being answered.

    Raises:
        PermissionError: It has a token of a verifier that names no caller by `access_of`.
    """
    access = get_access_token()
    if access is None:
        return LOCAL
    found = (access.claims or {}).get(_CLAIM)
    if not isinstance(found, Caller) or not found.subject:
        raise PermissionError("The token verifier names no caller.")
    return found
