"""Examples of good replies, one optional file for each graph and prompt."""

from importlib.resources import files
from pathlib import Path
from typing import Final

_EXAMPLES: Final = files("kg_prompts") / "examples"


def examples_for(graph: str, template: str, folder: str = "") -> str:
    """Return the examples that belong to a graph and a template, or nothing where there are none.

    Args:
        graph: What the graph calls itself.
        template: The template, as in `oda/action.md`.
        folder: A folder of one's own, whose files, as `oda-action.md`, take the place of those for the graph.
    """
    if folder:
        own = Path(folder) / template.replace("/", "-")
        return own.read_text(encoding="utf-8").strip() if own.is_file() else ""
    for each in _EXAMPLES.iterdir():
        if each.name == graph:
            file = each.joinpath(template.replace("/", "-"))
            return file.read_text(encoding="utf-8").strip() if file.is_file() else ""
    return ""
