"""JSON schemas of replies, from the models that read them, in the short form that every service takes."""

from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, TypeAdapter

_OBJECT: Final = TypeAdapter(dict[str, object])
_LIST: Final = TypeAdapter(list[object])
_KEPT: Final = frozenset({"type", "properties", "items", "required", "enum", "description"})
_PROPERTIES: Final = "properties"


def schema_of(kind: type[BaseModel]) -> Mapping[str, object]:
    """Return the schema of a reply without titles, defaults, bounds and references."""
    schema = kind.model_json_schema()
    definitions = _OBJECT.validate_python(schema.get("$defs", {}))
    return _short(schema, definitions)


def _short(schema: Mapping[str, object], definitions: Mapping[str, object]) -> dict[str, object]:
    """Return a schema with the kinds that it refers to in their place; what may be missing need not be null."""
    if isinstance(reference := schema.get("$ref"), str):
        return _short(_OBJECT.validate_python(definitions[reference.rpartition("/")[2]]), definitions)
    chosen = [_OBJECT.validate_python(each) for each in _LIST.validate_python(schema.get("anyOf", []))]
    given = next((each for each in chosen if each.get("type") != "null"), dict[str, object]())
    short = {name: each for name, each in {**given, **schema}.items() if name in _KEPT}
    if short.get("type") == "object":
        # What the model says of itself is for people who read the code.
        short.pop("description", None)
    if _PROPERTIES in short:
        properties = _OBJECT.validate_python(short[_PROPERTIES])
        short[_PROPERTIES] = {
            name: _short(_OBJECT.validate_python(each), definitions) for name, each in properties.items()
        }
    if "items" in short:
        short["items"] = _short(_OBJECT.validate_python(short["items"]), definitions)
    return short
