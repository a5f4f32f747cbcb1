"""Examples of good replies and definitions, one optional file for each graph and prompt."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final

_EXAMPLES: Final = files("kg_prompts") / "examples"
_BUNDLED: Final[Mapping[str, str]] = {"sample": "sample", "sample:world": "sample-world"}
"""The folders of graphs that come with the package; a file of the same name is another graph."""

GRBENCH: Final = frozenset({"amazon", "biomedical", "dblp", "goodreads", "legal", "maple"})
"""The graphs of GRBench, which are files or stores of one's own with these names, as `amazon.ttl`."""

_MAPLE: Final = frozenset({"biology", "chemistry", "materials_science", "medicine", "physics"})
"""The parts of one of these graphs, as in `maple-biology`, which have one schema."""


def examples_for(graph: str, template: str, folder: str = "") -> str:
    """Return what is shipped for a graph and a template, or nothing where there is no such file.

    Args:
        graph: What the graph calls itself: its name, or the path of its file or store.
        template: The template, as in `oda/turn.md`.
        folder: A folder of one's own, whose files, as `oda-turn.md`, take the place of those for the graph.
    """
    name = template.replace("/", "-")
    if folder:
        own = Path(folder) / name
        return own.read_text(encoding="utf-8").strip() if own.is_file() else ""
    shipped = _folder_of(graph)
    file = _EXAMPLES / shipped / name
    return file.read_text(encoding="utf-8").strip() if shipped and file.is_file() else ""


def _folder_of(graph: str) -> str:
    """Return the folder for a graph; empty where there is none."""
    if graph in _BUNDLED:
        return _BUNDLED[graph]
    if "://" in graph:
        return ""
    name, _, part = Path(graph).stem.lower().partition("-")
    return name if name in GRBENCH and (not part or (name == "maple" and part in _MAPLE)) else ""
