"""The `graph.json` of GRBench and Graph-CoT: `{type_nodes: {id: {features: {…}, neighbors: {name: [id, …]}}}}`.

Ids, feature names and neighbour names become IRIs in namespaces of their own, so that they can be shown and accepted
as they stand in the file. What the file calls `…_nodes` becomes the `rdf:type` of its nodes, and the feature that names
a node is repeated as its `rdfs:label`.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import IO, Final, TypeAlias

import pyoxigraph as ox

from kg_adapters.errors import InvalidSource
from kg_adapters.labels import RDF_TYPE
from kg_adapters.local.reading.label_keys import LabelKeys
from kg_adapters.prefixes import WELL_KNOWN, BareIds
from kg_adapters.terms import XSD
from kg_boundary.json_stream import BrokenJson, Json, JsonStream
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
_ALIAS: Final = ox.NamedNode(WELL_KNOWN["skos"] + "altLabel")
_JSON: Final = ox.NamedNode(WELL_KNOWN["rdf"] + "JSON")
_BOOLEAN, _INTEGER, _DOUBLE = (ox.NamedNode(XSD + name) for name in ("boolean", "integer", "double"))
Problem: TypeAlias = Callable[[str, BaseException], None]


class _Misshapen(Exception):
    """A part of the file is not what the format asks for; the message names the place."""


def read_graph_json(
    stream: IO[bytes], name: str, problem: Problem, label_keys: LabelKeys | None = None
) -> Iterator[ox.Quad]:
    """Yield the statements of a file, which is read node by node.

    Args:
        stream: The file's bytes.
        name: What messages call the file.
        problem: Called for every node that cannot be read; it raises, or lets the rest be read.
        label_keys: The features that name nodes; those of the published graphs when None.

    Raises:
        InvalidSource: The file is no JSON object of node types.
    """
    try:
        yield from _nodes(JsonStream(stream), name, problem, label_keys or LabelKeys())
    except BrokenJson as error:
        raise InvalidSource(f"{error.told(name)}. Expected JSON as Graph-CoT writes it.") from error


def _nodes(text: JsonStream, name: str, problem: Problem, label_keys: LabelKeys) -> Iterator[ox.Quad]:
    for section in _members(text, name):
        if section == "@context":
            raise InvalidSource(f"{name} looks like JSON-LD. Give it a name that ends in .jsonld.")
        place = f"{name}, {in_quotes(section)}"
        for node in _members(text, place):
            content = text.value()
            try:
                yield from _node(section, node, content, f"{place}, node {in_quotes(node)}", label_keys)
            except _Misshapen as error:
                problem(f"{error}.", error)
            except UnicodeEncodeError as error:
                problem(
                    f"{place}, node {in_quotes(node)}: a text holds half of a surrogate pair, not a character.",
                    error,
                )
    text.end()


def _members(text: JsonStream, place: str) -> Iterator[str]:
    if text.peek() not in {"{", ""}:
        raise InvalidSource(f"{place}: expected an object {{…}}, found {text.shown()}")
    return text.members()


def _object(value: Json, place: str) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise _Misshapen(f"{place}: expected an object {{…}}, found {_shown(value)}")
    return value


def _node(section: str, node: str, content: Json, place: str, label_keys: LabelKeys) -> list[ox.Quad]:
    """Return all statements of one node, so that a misshapen one leaves nothing behind."""
    parts = _object(content, place)
    features = _object(parts.get("features") or {}, f"{place}, 'features'")
    neighbors = _object(parts.get("neighbors") or {}, f"{place}, 'neighbors'")
    head = _named(_NODES, node, place)
    kind = section.removesuffix("_nodes")
    names = label_keys.names(kind, features)
    quads = [ox.Quad(head, _TYPE, _named(_TYPES, kind, place))]
    quads.extend(ox.Quad(head, _LABEL, ox.Literal(_encodable(text))) for text in names[:1])
    quads.extend(ox.Quad(head, _ALIAS, ox.Literal(_encodable(text))) for text in names[1:])
    for name, value in features.items():
        relation = _named(_RELATIONS, name, place)
        quads.extend(ox.Quad(head, relation, literal) for literal in _literals(value))
    for name, ids in neighbors.items():
        relation = _named(_RELATIONS, name, place)
        there = f"{place}, neighbors {in_quotes(name)}"
        quads.extend(ox.Quad(head, relation, _named(_NODES, tail, there)) for tail in _ids(ids, there))
    return quads


def _named(ids: BareIds, text: str, place: str) -> ox.NamedNode:
    node = (_node_of if ids is _NODES else _vocabulary_of)(ids, text)
    if node is None:
        raise _Misshapen(f"{place}: an id or name is empty, or not text")
    return node


def _node_of(ids: BareIds, text: str) -> ox.NamedNode | None:
    iri = ids.expand(text)
    return None if iri is None else ox.NamedNode(iri.value)


# A file has millions of nodes, and few types and relations.
_vocabulary_of = lru_cache(maxsize=1_000)(_node_of)


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


def _shown(value: Json) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:60] + "…"
