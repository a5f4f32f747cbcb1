"""The page that draws the graph: one HTML file, which calls the endpoint beside it and nothing else."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from starlette.datastructures import Headers
from starlette.responses import Response

PAGE_PATH: Final = "/"
_FILE: Final = Path(__file__).parents[1] / "view.html"
_POLICY: Final = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]+)"')
_NOT_FRAMED: Final = "frame-ancestors 'none'"
"""A policy inside of a page cannot forbid frames."""


@dataclass(frozen=True, slots=True)
class ViewPage:
    """The built page and the headers that it is sent with."""

    html: bytes
    headers: dict[str, str]

    @classmethod
    def read(cls) -> Self:
        """Return the page that ships with this package; its own policy becomes a header as well."""
        html = _FILE.read_bytes()
        found = _POLICY.search(html.decode())
        assert found is not None, "the build writes the policy"  # noqa: S101 - a mistake of ours
        headers = {
            "content-security-policy": f"{found[1]}; {_NOT_FRAMED}",
            "cache-control": "no-cache",
            "cross-origin-opener-policy": "same-origin",
            "etag": f'"{hashlib.sha256(html).hexdigest()[:32]}"',
            "referrer-policy": "no-referrer",
            "x-content-type-options": "nosniff",
            "x-frame-options": "DENY",
        }
        return cls(html, headers)

    def response(self, asked: Headers) -> Response:
        """Return the page, or that the browser has it already."""
        if self.headers["etag"] in asked.get("if-none-match", ""):
            return Response(status_code=304, headers=self.headers)
        return Response(self.html, media_type="text/html", headers=self.headers)
