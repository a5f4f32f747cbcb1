"""Examples of good replies, one optional file for each graph and prompt."""

from importlib.resources import files
from typing import Final

_EXAMPLES: Final = files("kg_prompts") / "examples"


def examples_for(graph: str, template: str) -> str:
    """Return the examples that belong to a graph and a template, or nothing where there are none.

    Args:
        graph: What the graph calls itself.
        template: The template, as in `oda/action.md`.
    """
    for folder in _EXAMPLES.iterdir():
        if folder.name == graph:
            file = folder.joinpath(template.replace("/", "-"))
            return file.read_text(encoding="utf-8").strip() if file.is_file() else ""
    return ""
