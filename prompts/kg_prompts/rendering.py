"""From a prompt to its text."""

import re
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    import jinja2

_TEMPLATES: Final = files("kg_prompts") / "templates"
# Whatever a text says, it cannot end the part of the prompt that is marked as data, nor begin another one.
_MARK: Final = re.compile(r"<(?=[\s/]*data\b)", re.IGNORECASE)
_NOTHING: Final = "(nothing)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What goes into a template; each kind of prompt is a subclass whose fields are the slots of its template.

    Texts that come from a graph or a user are given as they are: templates mark them as data.
    """

    template: ClassVar[str]


def render(prompt: Prompt) -> str:
    """Return the text of a prompt.

    Raises:
        jinja2.UndefinedError: The template uses what the prompt does not have.
    """
    slots = {field.name: getattr(prompt, field.name) for field in fields(prompt)}
    text = _environment().get_template(prompt.template).render(slots)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def as_data(text: str) -> str:
    """Return a text between marks that it cannot break out of."""
    return f"<data>\n{_MARK.sub('&lt;', text).strip() or _NOTHING}\n</data>"


def inline(text: str) -> str:
    """Return a short text on one line, in quotes."""
    return '"' + " ".join(_MARK.sub("&lt;", text).split()).replace('"', "'") + '"'


@cache
def _environment() -> "jinja2.Environment":
    import jinja2  # noqa: PLC0415 - a server lists its prompts without it

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - prompts are no HTML; texts from outside go through `data` and `inline`
    )
    environment.filters["data"] = as_data
    environment.filters["inline"] = inline
    return environment


def _source(name: str) -> str | None:
    file = _TEMPLATES.joinpath(f"{name}.j2")
    return file.read_text(encoding="utf-8") if file.is_file() else None
