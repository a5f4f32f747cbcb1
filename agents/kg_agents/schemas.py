"""JSON schemas of replies and functions, in the short form that every service takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import BaseModel, TypeAdapter

_OBJECT: Final = TypeAdapter(dict[str, object])
_LIST: Final = TypeAdapter(list[object])
_PROPERTIES_OF: Final = TypeAdapter(dict[str, dict[str, object]])
_KEPT: Final = frozenset({"type", "properties", "items", "required", "enum", "description"})
"""What of a schema is kept; of other keys, such as `anyOf`, only what they lead to."""
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
        if "items" in kept:
            kept["items"] = self._once(_OBJECT.validate_python(kept["items"]))
        return kept


def _properties(schema: Mapping[str, object]) -> dict[str, dict[str, object]]:
    return _PROPERTIES_OF.validate_python(schema.get(_PROPERTIES, {}))


def _short(schema: Mapping[str, object], known: Mapping[str, object]) -> dict[str, object]:
    """Return a schema with the kinds that it refers to in their place; what may be missing need not be null."""
    definitions = {**known, **_OBJECT.validate_python(schema.get("$defs", {}))}
    if isinstance(reference := schema.get("$ref"), str):
        return _short(_OBJECT.validate_python(definitions[reference.rpartition("/")[2]]), definitions)
    chosen = [_OBJECT.validate_python(each) for each in _LIST.validate_python(schema.get("anyOf", []))]
    given = next((each for each in chosen if each.get("type") != "null"), dict[str, object]())
    short = {name: each for name, each in {**given, **schema}.items() if name in _KEPT}
    if short.get("type") == "object":
        # What the model says of itself is for people who read the code.
        short.pop(_SAID, None)
    if _PROPERTIES in short:
        short[_PROPERTIES] = {name: _short(each, definitions) for name, each in _properties(short).items()}
    if "items" in short:
        short["items"] = _short(_OBJECT.validate_python(short["items"]), definitions)
    return short
