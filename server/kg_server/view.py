"""The view that draws graphs: one HTML file, which is a page over HTTP and an MCP App in hosts that show those."""

from functools import cache
from pathlib import Path
from typing import Final

from mcp.server.apps import Apps, ResourceCsp

VIEW_URI: Final = "ui://kg-sextant/graph.html"
DRAWN: Final[dict[str, object]] = {"ui": {"resourceUri": VIEW_URI}, "ui/resourceUri": VIEW_URI}
"""The metadata of a tool whose answers the view draws. Only hosts read it; older ones know only the flat key."""

FOR_APPS: Final[dict[str, object]] = {"ui": {"visibility": ["app"]}}
"""The metadata of a tool that a page calls, and no model."""


@cache
def view_html() -> str:
    """Return the built file that ships with this package."""
    return Path(__file__).with_name("view.html").read_text(encoding="utf-8")


def view_app() -> Apps:
    """Return the view as an MCP App: it reaches no network, and asks its host for no permission."""
    app = Apps()
    app.add_html_resource(
        VIEW_URI,
        view_html(),
        name="graph",
        title="The graph behind an answer",
        description="Draws what a tool answered, to look at and to walk on from; for hosts, not for models.",
        csp=ResourceCsp(),
        prefers_border=True,
    )
    return app
