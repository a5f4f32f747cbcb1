"""The `graph.json` of GRBench and Graph-CoT: `{type_nodes: {id: {features: {…}, neighbors: {name: [id, …]}}}}`.

Ids, feature names and neighbour names become IRIs in namespaces of their own, so that they can be shown and accepted
as they stand in the file. What the file calls `…_nodes` becomes the `rdf:type` of its nodes, and the feature that names
a node is repeated as its `rdfs:label`.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Final, TypeAlias

import pyoxigraph as ox

from kg_adapters.errors import InvalidSource
from kg_adapters.labels import RDF_TYPE
from kg_adapters.prefixes import WELL_KNOWN, BareIds
from kg_adapters.terms import XSD
from kg_boundary.shown import in_quotes

NODE_NAMESPACE: Final = "urn:graph-json:node:"
RELATION_NAMESPACE: Final = "urn:graph-json:relation:"
TYPE_NAMESPACE: Final = "urn:graph-json:type:"
GRAPH_JSON_NAMESPACES: Final = {"type": TYPE_NAMESPACE, "node": NODE_NAMESPACE, "relation": RELATION_NAMESPACE}

_ANY_TEXT: Final = r"(?s:.+)"
_NODES: Final = BareIds(NODE_NAMESPACE, _ANY_TEXT)
_RELATIONS: Final = BareIds(RELATION_NAMESPACE, _ANY_TEXT)
_TYPES: Final = BareIds(TYPE_NAMESPACE, _ANY_TEXT)
_TYPE: Final = ox.NamedNode(RDF_TYPE.value)
_LABEL: Final = ox.NamedNode(WELL_KNOWN["rdfs"] + "label")
_JSON: Final = ox.NamedNode(WELL_KNOWN["rdf"] + "JSON")
_BOOLEAN, _INTEGER, _DOUBLE = (ox.NamedNode(XSD + name) for name in ("boolean", "integer", "double"))
_NAMES: Final = ("name", "title", "label")
_LONGEST_LABEL: Final = 200

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
Problem: TypeAlias = Callable[[str, BaseException], None]


class _Misshapen(Exception):
    """A part of the file is not what the format asks for; the message names the place."""


def read_graph_json(stream: IO[bytes], name: str, problem: Problem) -> Iterator[ox.Quad]:
    """Yield the statements of a file.

    Args:
        stream: The file's bytes; it is read as a whole.
        name: What messages call the file.
        problem: Called for every node that cannot be read; it raises, or lets the rest be read.

    Raises:
        InvalidSource: The file is no JSON object of node types.
    """
    for section, nodes in _object(_parsed(stream, name), name, InvalidSource).items():
        place = f"{name}, {in_quotes(section)}"
        for node, content in _object(nodes, place, InvalidSource).items():
            try:
                yield from _node(section, node, content, f"{place}, node {in_quotes(node)}")
            except _Misshapen as error:
                problem(f"{error}.", error)
            except UnicodeEncodeError as error:
                problem(
                    f"{place}, node {in_quotes(node)}: a text holds half of a surrogate pair, which is no character.",
                    error,
                )


def _parsed(stream: IO[bytes], name: str) -> Json:
    try:
        content: Json = json.load(stream)
    except json.JSONDecodeError as error:
        message = (
            f"{name}, line {error.lineno}, column {error.colno}: {error.msg}. Expected JSON as Graph-CoT writes it."
        )
        raise InvalidSource(message) from error
    except UnicodeDecodeError as error:
        raise InvalidSource(f"{name} is not UTF-8 text: byte {error.start:,} is {error.reason}.") from error
    except ValueError as error:
        raise InvalidSource(f"{name} holds a whole number with more digits than can be read.") from error
    except RecursionError as error:
        raise InvalidSource(f"{name} is nested too deeply to be a graph.") from error
    if isinstance(content, dict) and "@context" in content:
        raise InvalidSource(f"{name} looks like JSON-LD. Give it a name that ends in .jsonld.")
    return content


def _object(value: Json, place: str, error: type[Exception] = _Misshapen) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise error(f"{place}: expected an object {{…}}, found {_shown(value)}")
    return value


def _node(section: str, node: str, content: Json, place: str) -> list[ox.Quad]:
    """Return all statements of one node, so that a misshapen one leaves nothing behind."""
    parts = _object(content, place)
    features = _object(parts.get("features") or {}, f"{place}, 'features'")
    neighbors = _object(parts.get("neighbors") or {}, f"{place}, 'neighbors'")
    head = _named(_NODES, node, place)
    kind = _named(_TYPES, section.removesuffix("_nodes"), place)
    quads = [ox.Quad(head, _TYPE, kind)]
    if (label := _label(features)) is not None:
        quads.append(ox.Quad(head, _LABEL, ox.Literal(label)))
    for name, value in features.items():
        relation = _named(_RELATIONS, name, place)
        quads.extend(ox.Quad(head, relation, literal) for literal in _literals(value))
    for name, ids in neighbors.items():
        relation = _named(_RELATIONS, name, place)
        for tail in _ids(ids, f"{place}, neighbors {in_quotes(name)}"):
            quads.append(ox.Quad(head, relation, _named(_NODES, tail, f"{place}, neighbors {in_quotes(name)}")))  # noqa: PERF401 - reads worse as one expression
    return quads


def _named(ids: BareIds, text: str, place: str) -> ox.NamedNode:
    iri = ids.expand(text)
    if iri is None:
        raise _Misshapen(f"{place}: an id or name is empty, or no text")
    return ox.NamedNode(iri.value)


def _ids(value: Json, place: str) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    if any(isinstance(item, (bool, float, list, dict)) or item is None for item in listed):
        raise _Misshapen(f"{place}: expected a list of ids, found {_shown(value)}")
    return [str(item) for item in listed]


def _literals(value: Json) -> Iterator[ox.Literal]:
    match value:
        case None:
            return
        case list():
            for item in value:
                yield from _literals(item) if not isinstance(item, (list, dict)) else (_as_json(item),)
        case dict():
            yield _as_json(value)
        case str():
            yield ox.Literal(_encodable(value))
        case bool():
            yield ox.Literal("true" if value else "false", datatype=_BOOLEAN)
        case int():
            yield ox.Literal(str(value), datatype=_INTEGER)
        case float():
            yield ox.Literal(_double(value), datatype=_DOUBLE)


def _double(value: float) -> str:
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    return "NaN" if math.isnan(value) else repr(value)


def _as_json(value: Json) -> ox.Literal:
    return ox.Literal(json.dumps(value, sort_keys=True), datatype=_JSON)


def _encodable(text: str) -> str:
    text.encode()
    return text


def _label(features: Mapping[str, Json]) -> str | None:
    """Return the text that names a node: its name or title, else something that ends so, else the first short text."""
    texts = {name: value for name, value in features.items() if isinstance(value, str) and value.strip()}
    for name in (*_NAMES, *(name for name in texts if name.lower().endswith(_NAMES))):
        if name in texts:
            return _encodable(texts[name])
    return next((_encodable(text) for text in texts.values() if len(text) <= _LONGEST_LABEL), None)


def _shown(value: Json) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:60] + "…"
