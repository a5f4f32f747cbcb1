"""The tool list that a model reads before anything else, kept small.

Arguments are checked by the server in full; what is listed are the parts of the schemas that a caller can use.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from mcp.types import Tool

Schema: TypeAlias = dict[str, Any]

INPUT_KEYS: Final = ("type", "enum", "items", "description", "minimum", "maximum", "default")
FAR_AWAY: Final = 1_000
OUTPUT_KEYS: Final = ("type", "description")


def listed(tool: Tool) -> Tool:
    """Return a tool with schemas that say only what helps to call it and to read its answer."""
    slim = {"input_schema": _slim(tool.input_schema, INPUT_KEYS) | _required(tool.input_schema)}
    if tool.output_schema is not None:
        slim["output_schema"] = _without_texts(_slim(_always(tool.output_schema), OUTPUT_KEYS))
    return tool.model_copy(update=slim)


def _slim(schema: Mapping[str, Any], keys: tuple[str, ...]) -> Schema:
    properties: Mapping[str, Schema] = schema["properties"]
    return {"type": "object", "properties": {name: _field(each, keys) for name, each in properties.items()}}


def _without_texts(schema: Schema) -> Schema:
    """Return a schema in which what is not said to be anything else is text, or what its description shows."""
    properties: Mapping[str, Schema] = schema["properties"]
    said = {name: each for name, each in properties.items() if each != {"type": "string"}}
    plain = {name: {key: said[name][key] for key in _telling(said.get(name, {}))} for name in properties}
    return schema | {"properties": plain}


def _telling(field: Schema) -> tuple[str, ...]:
    return ("description",) if "description" in field else tuple(field)


def _always(schema: Mapping[str, Any]) -> Schema:
    """Return a schema without what not every answer has."""
    properties: Mapping[str, Schema] = schema["properties"]
    kept = {name: field for name, field in properties.items() if {"type": "null"} not in field.get("anyOf", ())}
    return {"properties": kept}


def _required(schema: Mapping[str, Any]) -> Schema:
    return {"required": schema["required"]} if "required" in schema else {}


def _field(field: Schema, keys: tuple[str, ...]) -> Schema:
    """Return a field without its null alternative: an optional argument is left out, not null."""
    alternatives: list[Schema] = [each for each in field.get("anyOf", ()) if each.get("type") != "null"]
    whole: Schema = {**alternatives[0], **field} if len(alternatives) == 1 else field
    if len(alternatives) > 1:
        whole = {**field, "type": [each["type"] for each in alternatives if "type" in each]}
    items: Schema = whole.get("items") or {}
    if items and "anyOf" not in items:
        whole = {**whole, "items": _field(items, keys)}
    return {key: whole[key] for key in keys if whole.get(key) is not None and not _goes_without_saying(key, whole[key])}


def _goes_without_saying(key: str, value: object) -> bool:
    """Say whether a bound is one that no caller would break who has not read it."""
    match key, value:
        case ("minimum", int(least)):
            return least <= 1
        case ("maximum", int(most)):
            return most >= FAR_AWAY
        case _:
            return False
