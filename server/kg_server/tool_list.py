"""Tools as they are listed: of their schemas, only what helps to call them and to read their answers.

Every model service and converter takes these schemas: each has one type or the alternatives of `anyOf`, an array has
`items`, an `enum` a type, and nothing refers to a definition.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final, TypeAlias

from mcp.types import Tool

from kg_server.answers.results import Result
from kg_server.graphs import GraphSet

Schema: TypeAlias = dict[str, Any]

GRAPH: Final = "graph"
"""The argument that names a graph, of every tool that asks one."""
OTHER_NAMES: Final = {"node": "entity"}
"""Names of arguments that are accepted, though others are listed: those of the papers."""

INPUT_KEYS: Final = ("type", "anyOf", "enum", "items", "description", "minimum", "maximum", "default")
OUTPUT_KEYS: Final = ("type", "anyOf", "enum", "items", "additionalProperties", "description")
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
    """Return a field without its null alternative: an optional argument may be left out."""
    alternatives: list[Schema] = [each for each in field.get("anyOf", ()) if each.get("type") != "null"]
    whole: Schema = {**field, "anyOf": [_field(each, keys) for each in alternatives]}
    if len(alternatives) < 2:
        whole = {**(alternatives or [{}])[0], **field, "anyOf": None}
    for name in ("items", "additionalProperties"):
        if isinstance(whole.get(name), dict):
            whole = {**whole, name: _field(whole[name], keys)}
    # Callers respect these bounds even if they have not read them.
    obvious = {"minimum"} if whole.get("minimum", 2) <= 1 else set[str]()
    obvious |= {"maximum"} if whole.get("maximum", 0) >= FAR_AWAY else set[str]()
    return {key: whole[key] for key in keys if whole.get(key) is not None and key not in obvious}


def naming_graphs(properties: dict[str, Schema], graphs: GraphSet | None) -> dict[str, Schema]:
    """Return the arguments of a tool, among them the one that names graphs only where there are several."""
    if GRAPH not in properties:
        return properties
    argument = properties.pop(GRAPH)
    if graphs is not None and graphs.several:
        one: Schema = {"type": "string", "enum": list(graphs.names)}
        # The names once: a list with any other name is refused as well.
        several = [each for each in argument.get("anyOf", ()) if each.get("type") == "array"]
        properties[GRAPH] = {**({"anyOf": [one, *several]} if several else one), "default": None}
    return properties


def is_absent(value: object, argument: Schema) -> bool:
    """Return whether a value stands for an argument that was left out: null, a blank text, or 0 for an optional number.

    Hosts whose model has to fill in every argument send these; no argument takes 0.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return True
    if "default" not in argument or isinstance(value, bool):
        return False
    if isinstance(value, str) and value.strip() == "0":
        return any(each.get("type") in {"integer", "number"} for each in (argument, *argument.get("anyOf", ())))
    return value == 0


def as_list(value: object, argument: Schema) -> object:
    """Return a text as the list of its lines, without blank ones, where an argument takes only a list; not JSON."""
    if argument.get("type") != "array" or not isinstance(value, str) or value.lstrip().startswith("["):
        return value
    return [line.strip() for line in value.split("\n") if line.strip()]


def by_listed_names(arguments: dict[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Return arguments by the names that are listed; others that they may come by stay what they are when both come."""
    old = {old: new for old, new in OTHER_NAMES.items() if old not in known and new in known and new not in arguments}
    return {old.get(name, name): value for name, value in arguments.items()}
