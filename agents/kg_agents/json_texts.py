"""JSON objects as models write them: alone, in a code fence, or amid prose."""

import json
import re
from typing import Final

from pydantic import TypeAdapter, ValidationError

from kg_agents.texts import whole_characters

_OBJECT: Final = TypeAdapter(dict[str, object])
_FENCE: Final = re.compile(r"```(?:json)?\s*(\{.*?\})\s*```", re.DOTALL)
MAX_TEXT: Final = 100_000
"""How many characters of a text are read."""


def json_object(text: str) -> dict[str, object] | None:
    """Return the object that a text is or holds; None where there is none."""
    text = text.strip()[:MAX_TEXT]
    fenced = _FENCE.search(text)
    outer = text[text.find("{") : text.rfind("}") + 1]
    for each in dict.fromkeys((text, fenced[1] if fenced else "", outer)):
        if each.startswith("{") and (found := _read(each)) is not None:
            return found
    return None


def _read(text: str) -> dict[str, object] | None:
    try:
        # What JSON cannot hold, such as an infinite number, is no argument; halves of characters cannot be sent.
        whole = whole_characters(json.dumps(json.loads(text), ensure_ascii=False, allow_nan=False))
        return _OBJECT.validate_python(json.loads(whole))
    except (ValueError, RecursionError, ValidationError):
        return None
