"""Tools as they are listed: of their schemas, only what helps to call them and to read their answers."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from mcp.types import Tool

from kg_server.answers.results import Result

Schema: TypeAlias = dict[str, Any]

INPUT_KEYS: Final = ("type", "enum", "items", "description", "minimum", "maximum", "default")
OUTPUT_KEYS: Final = ("description",)
FAR_AWAY: Final = 1_000


def listed(tool: Tool) -> Tool:
    """Return a tool whose schemas keep only what helps to call it and to read its answer."""
    required = {"required": tool.input_schema["required"]} if "required" in tool.input_schema else {}
    slim = {"input_schema": _slim(tool.input_schema["properties"], INPUT_KEYS) | required}
    if tool.output_schema is not None:
        properties: Mapping[str, Schema] = tool.output_schema["properties"]
        # The instructions describe what all answers have.
        own = {name: each for name, each in properties.items() if name not in Result.model_fields}
        # What may be null is not in every answer of the tool.
        always = {name: each for name, each in own.items() if {"type": "null"} not in each.get("anyOf", ())}
        slim["output_schema"] = _slim(always, OUTPUT_KEYS)
    return tool.model_copy(update=slim)


def _slim(properties: Mapping[str, Schema], keys: tuple[str, ...]) -> Schema:
    return {"type": "object", "properties": {name: _field(each, keys) for name, each in properties.items()}}


def _field(field: Schema, keys: tuple[str, ...]) -> Schema:
    """Return a field without its null alternative: an optional argument is left out, not null."""
    alternatives: list[Schema] = [each for each in field.get("anyOf", ()) if each.get("type") != "null"]
    whole: Schema = {**alternatives[0], **field} if len(alternatives) == 1 else field
    if len(alternatives) > 1:
        whole = {**field, "type": [each["type"] for each in alternatives if "type" in each]}
    items: Schema = whole.get("items") or {}
    if items and "anyOf" not in items:
        whole = {**whole, "items": _field(items, keys)}
    # Callers respect these bounds even if they have not read them.
    obvious = {"minimum"} if whole.get("minimum", 2) <= 1 else set[str]()
    obvious |= {"maximum"} if whole.get("maximum", 0) >= FAR_AWAY else set[str]()
    return {key: whole[key] for key in keys if whole.get(key) is not None and key not in obvious}
