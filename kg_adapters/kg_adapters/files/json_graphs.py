"""Read graphs from JSON: the graph.json of GRBench and Graph-CoT, and the subgraphs of KGdata."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import IO, Final

import pyoxigraph as ox

from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.files.rdf import Problem
from kg_adapters.files.rows import StatementColumn
from kg_adapters.labels import RDF_TYPE
from kg_adapters.prefixes import WELL_KNOWN, BareIds
from kg_adapters.tables.edges import Edge, edge_list
from kg_adapters.terms import XSD
from kg_boundary.json_stream import BrokenJson, Json, JsonStream
from kg_boundary.shown import in_quotes

_KNOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "opinion": ("plain_text",),
    "opinion_cluster": ("syllabus",),
    "docket": ("case_name", "pacer_case_id"),
    "court": ("full_name",),
}

_NAMES: Final = ("name", "title", "label")

_LONGEST_LABEL: Final = 200


class LabelKeys:
    """Which features name the nodes of each type.

    Args:
        chosen: Each as `TYPE=FEATURE`; the first one of a type gives the name, further ones other names. They come
            before those of the published graphs.

    Raises:
        InvalidRequest: One of them is not written so.
    """

    def __init__(self, chosen: Sequence[str] = ()) -> None:
        keys: dict[str, tuple[str, ...]] = {}
        for kind, feature in map(_key, chosen):
            keys[kind] = (*keys.get(kind, ()), feature)
        self._keys = {**_KNOWN, **keys}

    def names(self, kind: str, features: Mapping[str, Json]) -> list[str]:
        """Return the label of a node and its other names; nothing where no feature names it.

        Without a key for its type, the label is its name or title, else something that ends so, else the first short
        text. A longer text gives its beginning.
        """
        chosen = [text for key in self._keys.get(kind, ()) if (text := _text(features.get(key)))]
        if chosen:
            return list(dict.fromkeys(chosen))
        texts = {name: value for name, value in features.items() if isinstance(value, str) and value.strip()}
        for name in (*_NAMES, *(name for name in texts if name.lower().endswith(_NAMES))):
            if name in texts:
                return [texts[name]]
        return [text for text in texts.values() if len(text) <= _LONGEST_LABEL][:1]


def _key(text: str) -> tuple[str, str]:
    kind, _, feature = (part.strip() for part in text.partition("="))
    if not (kind and feature):
        raise InvalidRequest(
            f"{in_quotes(text)} does not say which feature names a type of nodes. Write it as TYPE=FEATURE: "
            "opinion=plain_text."
        )
    return kind.removesuffix("_nodes"), feature


def _text(value: Json) -> str:
    """Return a text or number as a name: in one line, and cut behind a word where it is long."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    text = " ".join(str(value).split())
    if len(text) <= _LONGEST_LABEL:
        return text
    start = text[: _LONGEST_LABEL - 1]
    return (start.rpartition(" ")[0] or start) + "…"


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


def read_subgraphs(
    stream: IO[bytes], name: str, problem: Problem, note: Callable[[str], None]
) -> Iterator[list[StatementColumn]]:
    """Yield the statements of a file; what stands below several topics is stated once.

    Args:
        stream: The file's bytes.
        name: What messages call the file.
        problem: Called for every triple that cannot be read; it raises, or lets the rest be read.
        note: Called with what was guessed.

    Raises:
        InvalidSource: The file is no JSON, or another kind of JSON.
    """
    try:
        edges = tuple(dict.fromkeys(_edges(JsonStream(stream), name, problem)))
    except BrokenJson as error:
        raise InvalidSource(f"{error.told(name)}. Expected topics, each with a list of triples.") from error
    if not edges:
        problem(f"{name} holds no triple.", ValueError())
        return
    statements, told = edge_list(edges)
    yield from statements
    note(f"{name}: {told}")


def _edges(text: JsonStream, name: str, problem: Problem) -> Iterator[Edge]:
    while text.peek():
        for topic in text.members():
            place = f"{name}, the topic {in_quotes(topic)}"
            if text.peek() != "[":
                problem(f"{place} has no list of triples, but {text.shown()}.", ValueError())
                text.value()
                continue
            for number in text.items():
                edge = _edge(text.value())
                if edge is None:
                    problem(f"{place}, triple {number:,}: a triple is three texts or numbers.", ValueError())
                else:
                    yield edge


def _edge(value: Json) -> Edge | None:
    match value:
        case [str() | int() | float() as head, str() as relation, str() | int() | float() as tail]:
            # A name is in one line.
            head, relation, tail = (" ".join(str(part).split()) for part in (head, relation, tail))
            return (head, relation, tail) if head and relation and tail else None
        case _:
            return None
