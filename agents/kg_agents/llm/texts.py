"""Texts of prompts and replies: counted, cut, read as JSON and described by JSON schemas."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import BaseModel, TypeAdapter

_BYTES_PER_TOKEN: Final = 4
_THOUGHT: Final = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_END_OF_THOUGHT: Final = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_HINT: Final = re.compile(
    r"(?:^|[;,.:] ?)[^;,.:|\n]*"
    r"(?:\bSchema(?: lists| tells|\(about)|\bGetNeighbor lists|\bmax_tokens\b|\bevidence=all)[^;.|\n]*",
    re.MULTILINE,
)


def tokens_in(text: str) -> int:
    """Return about how many tokens a text has: a quarter of its bytes."""
    return len(text.encode()) // _BYTES_PER_TOKEN


def clipped(text: str, most: int) -> str:
    """Return at most so many characters of a text, and say so where some are left out."""
    if len(text) <= most:
        return text
    return f"{text[:most].rstrip()} […{len(text) - most:,} characters left out]"


def without_thinking(reply: str) -> str:
    """Return a reply without what a model that thinks aloud puts between tags.

    A tag that is never closed runs to the end. One that is never opened stands behind thoughts too: for some models it
    is opened by the service.
    """
    return _END_OF_THOUGHT.split(_THOUGHT.sub("", reply))[-1].strip()


def whole_characters(text: str) -> str:
    """Return a text with `?` for halves of characters, which models and shells produce and nothing can send."""
    return text.encode(errors="replace").decode()


def without_hints(text: str) -> str:
    """Return a tool's text without the clauses that recommend tools and arguments which a loop does not offer."""
    return _HINT.sub("", text)


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
        # What JSON cannot hold, such as an infinite number, is no argument.
        return _OBJECT.validate_python(read_json(text, allow_nan=False))
    except ValueError:
        return None


def read_json(text: str | bytes, *, allow_nan: bool = True) -> object:
    """Return what a JSON text holds, with `?` for halves of characters, which nothing can send.

    Raises:
        ValueError: It is no JSON, or nested too deeply.
    """
    try:
        read: object = json.loads(
            whole_characters(json.dumps(json.loads(text), ensure_ascii=False, allow_nan=allow_nan))
        )
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return read


_LIST: Final = TypeAdapter(list[object])
_PROPERTIES_OF: Final = TypeAdapter(dict[str, dict[str, object]])
_KEPT: Final = frozenset({"type", "properties", "items", "required", "enum", "description"})
"""What of a schema is kept, beside the alternatives of `anyOf` where there are several besides null."""
_ITEMS: Final = "items"
_ANY_OF: Final = "anyOf"
_PROPERTIES: Final = "properties"
_SAID: Final = "description"


def schema_of(kind: type[BaseModel]) -> Mapping[str, object]:
    """Return the schema of a reply without titles, defaults, bounds and references."""
    return _short(kind.model_json_schema(), {})


@dataclass(frozen=True, slots=True)
class ShortSchemas:
    """Shortens schemas that are read together: what several say in the same words stands in the first of them.

    Args:
        said: The descriptions that stand somewhere.
    """

    said: set[str] = field(default_factory=set[str])

    def short(self, schema: Mapping[str, object]) -> Mapping[str, object]:
        """Return a schema without titles, defaults, bounds, references and repeats.

        Raises:
            KeyError: It refers to what it does not define.
            RecursionError: It refers to itself.
            ValidationError: It is no schema.
        """
        return self._once(_short(schema, {}))

    def _once(self, schema: Mapping[str, object]) -> dict[str, object]:
        kept = dict(schema)
        if isinstance(text := kept.get(_SAID), str):
            if text in self.said:
                del kept[_SAID]
            self.said.add(text)
        for name, each in _properties(kept).items():
            kept[_PROPERTIES] = {**_properties(kept), name: self._once(each)}
        if _ITEMS in kept:
            kept[_ITEMS] = self._once(_OBJECT.validate_python(kept[_ITEMS]))
        if _ANY_OF in kept:
            kept[_ANY_OF] = [self._once(each) for each in _alternatives(kept)]
        return kept


def _properties(schema: Mapping[str, object]) -> dict[str, dict[str, object]]:
    return _PROPERTIES_OF.validate_python(schema.get(_PROPERTIES, {}))


def _alternatives(schema: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the forms that a schema allows besides null, each of one type; none where it has one form only."""
    listed = _LIST.validate_python(schema.get(_ANY_OF) or schema.get("oneOf") or [])
    forms = [_OBJECT.validate_python(each) for each in listed]
    if isinstance(kinds := schema.get("type"), list):
        form = {name: each for name, each in schema.items() if name in _KEPT - {_SAID}}
        forms = [{**form, "type": kind} for kind in _LIST.validate_python(kinds)]
    return [each for each in forms if each.get("type") != "null"]


def _short(schema: Mapping[str, object], known: Mapping[str, object]) -> dict[str, object]:
    """Return a schema that every service takes: no references, no lists of types, no arrays or enums without a type.

    What may be missing need not be null.
    """
    definitions = {**known, **_OBJECT.validate_python(schema.get("$defs", {}))}
    if isinstance(reference := schema.get("$ref"), str):
        return _short(_OBJECT.validate_python(definitions[reference.rpartition("/")[2]]), definitions)
    if forms := _alternatives(schema):
        rest = {name: each for name, each in schema.items() if name not in {"type", _ANY_OF, "oneOf"}}
        if len(forms) == 1:
            return _short({**forms[0], **rest}, definitions)
        about = {_SAID: rest[_SAID]} if _SAID in rest else {}
        return {_ANY_OF: [_short(each, definitions) for each in forms], **about}
    short = {name: each for name, each in schema.items() if name in _KEPT}
    if "enum" in short:
        short["enum"] = values = [each for each in _LIST.validate_python(short["enum"]) if each is not None]
        short.setdefault("type", "string" if all(isinstance(each, str) for each in values) else "number")
    if short.get("type") == "object":
        # What the model says of itself is for people who read the code.
        short.pop(_SAID, None)
    if _PROPERTIES in short:
        short[_PROPERTIES] = {name: _short(each, definitions) for name, each in _properties(short).items()}
    items = short.pop(_ITEMS, None)
    if short.get("type") == "array":
        short[_ITEMS] = _short(_OBJECT.validate_python(items or {"type": "string"}), definitions)
    return short
