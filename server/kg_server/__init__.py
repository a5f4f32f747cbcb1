"""What MCP clients see, and the graph operations behind it."""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kg_server.app import build_server
    from kg_server.settings import Settings

__all__ = ["Settings", "build_server"]

_LOADED_LATER: Final = {"Settings": "kg_server.settings", "build_server": "kg_server.app"}


def __getattr__(name: str) -> object:
    """Return what needs the SDK, which most of the command line does without."""
    if name not in _LOADED_LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LOADED_LATER[name]), name)


def __dir__() -> list[str]:
    """Return all names, those of what is loaded later among them."""
    return [*globals(), *_LOADED_LATER]
