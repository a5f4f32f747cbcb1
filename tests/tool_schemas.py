"""The rules that services of models have for the schemas of tools, and arguments that such a schema allows."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import TypeAdapter

_LIST: Final = TypeAdapter(list[object])
_OBJECT: Final = TypeAdapter(dict[str, object])

NAMES: Final = ("people", "films", "wikidata", "companies", "old-films")
"""The names of five graphs."""


CALLS: Final[Mapping[str, Mapping[str, object]]] = {
    "observe": {"question": "Where is it?", "entities": ["Tokyo"]},
    "Retrieve": {"text": "Tokyo"},
    "GetNeighbor": {"entity": "Tokyo"},
    "GetPath": {"source": "Tokyo", "target": "Japan"},
    "Feature": {"entity": "Tokyo"},
    "Degree": {"entity": "Tokyo"},
    "Schema": {},
    "Sparql": {"query": "SELECT ?x { ?x ?y ?z } LIMIT 1"},
    "Compose": {"expression": "Neighbor[Tokyo]"},
    "memory-append": {"triples": ["Tokyo | country | Japan"]},
}
"""A call of each tool that has optional arguments, with the others alone."""


def faults_of(schema: object, place: str = "") -> Iterator[str]:
    """Yield what OpenAI's, Copilot's or Gemini's services refuse in a schema, with its place in it."""
    if isinstance(schema, list):
        for number, each in enumerate(_LIST.validate_python(schema)):
            yield from faults_of(each, f"{place}[{number}]")
    if not isinstance(schema, dict):
        return
    form = _OBJECT.validate_python(schema)
    kind = form.get("type")
    # An argument may be called "type", too: its schema is an object.
    if isinstance(kind, list):
        yield f"{place}: a list of types"
    if isinstance(kind, str) and kind.lower() == "array" and not form.get("items"):
        yield f"{place}: an array without items"
    if isinstance(form.get("enum"), list) and not isinstance(kind, str):
        yield f"{place}: an enum without a type"
    if "$ref" in form or "$defs" in form:
        yield f"{place}: a reference"
    for name, each in form.items():
        yield from faults_of(each, f"{place}.{name}")


def filled(schema: Mapping[str, Any], listed: Mapping[str, Any], given: Mapping[str, object]) -> dict[str, object]:
    """Return arguments as a host sends them whose model has to fill in all that a converted schema requires.

    Args:
        schema: The schema as it was converted.
        listed: The schema as the server lists it, whose defaults count.
        given: What the model wants to say.
    """
    return {
        name: given[name] if name in given else _filler(each, listed["properties"][name])
        for name, each in schema["properties"].items()
        if name in schema["required"]
    }


def _filler(schema: Mapping[str, Any], listed: Mapping[str, Any]) -> object:
    if "default" in listed:
        return listed["default"]
    form: Mapping[str, Any] = schema["anyOf"][0] if "anyOf" in schema else schema
    blank: Mapping[str, object] = {"string": "", "boolean": False, "integer": 0, "number": 0}
    return form["enum"][0] if "enum" in form else blank[form["type"]]
