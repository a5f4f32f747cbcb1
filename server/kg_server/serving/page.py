"""The page that draws the graph: one HTML file, which calls the endpoint beside it, and where callers log in."""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import urljoin

from starlette.datastructures import Headers
from starlette.responses import Response

from kg_server.view import view_html

PAGE_PATH: Final = "/"
CLIENT_PATH: Final = "/client.json"
_POLICY: Final = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]+)"')
_OWN: Final = "connect-src 'self'"
_ORIGIN: Final = re.compile(r"https?://[a-z0-9._\[\]:-]+(?=/|$)", re.IGNORECASE)
"""What may stand in a policy: neither white space nor a mark that ends what it allows."""
_NOT_FRAMED: Final = "frame-ancestors 'none'"
"""A policy inside of a page cannot forbid frames."""


@dataclass(frozen=True, slots=True)
class PageLogin:
    """How the page logs in at an authorization server, as a public client.

    Args:
        endpoint: The public URL of the endpoint, which the page is beside.
        client_id: The id of the page at the authorization server; None for the URL of its client metadata.
        asked: Returns the URLs at the authorization server that the page sends requests to.
    """

    endpoint: str
    client_id: str | None
    asked: Callable[[], Sequence[str]]

    def document(self) -> bytes:
        """Return the client metadata of the page as JSON (OAuth Client ID Metadata Document)."""
        page = urljoin(self.endpoint.rstrip("/"), ".")
        metadata = {
            "client_id": self.client_id or urljoin(page, CLIENT_PATH.lstrip("/")),
            "client_name": "KG Sextant",
            "client_uri": page,
            "redirect_uris": [page],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }
        return json.dumps(metadata).encode()

    def origins(self) -> Sequence[str]:
        """Return the origins that the page may send requests to beside its own."""
        return sorted({found[0].lower() for each in self.asked() if (found := _ORIGIN.match(each))})


@dataclass(frozen=True, slots=True)
class ViewPage:
    """The built page, the policy in it, which allows requests to the same origin alone, and how it logs in."""

    html: str
    policy: str
    login: PageLogin | None

    @classmethod
    def read(cls, login: PageLogin | None) -> Self:
        """Return the page that ships with this package."""
        html = view_html()
        found = _POLICY.search(html)
        assert found is not None, "the build writes the policy"  # noqa: S101 - a mistake of ours
        return cls(html, found[1], login)

    def response(self, path: str, asked: Headers) -> Response | None:
        """Return the page, status 304 where the browser has it, or the client metadata; None where no login is set."""
        if path == CLIENT_PATH:
            return None if self.login is None else Response(self.login.document(), media_type="application/json")
        allowed = () if self.login is None else self.login.origins()
        policy = self.policy.replace(_OWN, " ".join((_OWN, *allowed)))
        html = self.html.replace(self.policy, policy, 1).encode()
        headers = {
            "content-security-policy": f"{policy}; {_NOT_FRAMED}",
            "cache-control": "no-cache",
            "cross-origin-opener-policy": "same-origin",
            "etag": f'"{hashlib.sha256(html).hexdigest()[:32]}"',
            "referrer-policy": "no-referrer",
            "x-content-type-options": "nosniff",
            "x-frame-options": "DENY",
        }
        if headers["etag"] in asked.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(html, media_type="text/html", headers=headers)
