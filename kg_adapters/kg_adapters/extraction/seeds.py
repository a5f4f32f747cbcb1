"""The entities that a file names."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Final

from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.extraction.journal import Unknown
from kg_adapters.local.store import SourceFile
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Node, node_key
from kg_boundary.json_stream import BrokenJson, Json, JsonStream
from kg_boundary.regular_files import read_regular
from kg_boundary.shown import in_quotes

FIELDS: Final = ("entity", "entities", "topic", "topic_entity", "qid_topic_entity")
"""The fields of a JSON object that hold ids, unless others are named."""

_SHOWN: Final = 80
_NO_IDS: Final = "It is not a JSON object whose fields hold an id or a list of ids."


@dataclass(frozen=True, slots=True)
class Mention:
    """An id as a file has it, and its line, from 1."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Seeds:
    """The entities that were named and that the graph has, sorted; and the lines that name none."""

    entities: tuple[Node, ...]
    unknown: tuple[Unknown, ...]


def read_entities(file: Path) -> tuple[bytes, SourceFile]:
    """Return the content of a file of entities, and its fingerprint.

    Raises:
        InvalidSource: It cannot be read.
    """
    try:
        content = read_regular(file)
    except OSError as error:
        raise InvalidSource(f"{file} cannot be read: {error.strerror or error}. It names the entities.") from error
    name = file.name.encode(errors="replace").decode()
    return content, SourceFile(name=name, size=len(content), sha256=hashlib.sha256(content).hexdigest())


def find_mentions(content: bytes, fields: Sequence[str]) -> tuple[list[Mention], list[Unknown]]:
    """Return the ids that a file holds, and the lines that hold none.

    A file has an id or a JSON object on each line, or is one JSON array of such, or one JSON object of ids with their
    labels. An object holds ids in some of its `fields`, each a text, a list of texts, or an object of ids with their
    labels. Empty lines and those that begin with `#` are passed over.

    Raises:
        InvalidRequest: It is a broken JSON array.
    """
    text = content.decode("utf-8-sig", "replace")
    mentions: list[Mention] = []
    wrong: list[Unknown] = []
    if labelled := _labelled(text):
        return [Mention(1, each) for each in labelled], wrong
    for entry in _array(content) if text.lstrip().startswith("[") else _lines(text):
        try:
            mentions += [Mention(entry.line, each) for each in _ids(entry.value, fields)]
        except InvalidRequest as error:
            wrong.append(Unknown(line=entry.line, text=_shortened(entry.text), reason=str(error)))
    return mentions, wrong


async def find_seeds(graph: KGAdapter, content: bytes, fields: Sequence[str], *, batch: int) -> Seeds:
    """Return the entities that a file names, by one request for descriptions per batch.

    Raises:
        InvalidRequest: The graph has none of them.
    """
    mentions, unknown = find_mentions(content, fields)
    meant: dict[Node, Mention] = {}
    for mention in mentions:
        try:
            meant.setdefault(graph.prefixes.expand(mention.text), mention)
        except InvalidRequest as error:
            unknown.append(_unknown(mention, str(error)))
    known: set[Node] = set()
    for part in batches(list(meant), batch):
        described = await graph.describe(part)
        known.update(node for node in part if node in described and "entity" in described[node].roles)
    unknown += [_unknown(each, "The graph has no such entity.") for node, each in meant.items() if node not in known]
    unknown.sort(key=lambda each: each.line)
    if not known:
        first = f" Line {unknown[0].line}, {in_quotes(unknown[0].text)}: {unknown[0].reason}" if unknown else ""
        raise InvalidRequest(f"The file names no entity of the graph {in_quotes(graph.name)}.{first}")
    return Seeds(tuple(sorted(known, key=node_key)), tuple(unknown))


def batches(nodes: Sequence[Node], size: int) -> Iterator[tuple[Node, ...]]:
    """Yield nodes in their order, `size` at a time."""
    rest = iter(nodes)
    return iter(lambda: tuple(islice(rest, size)), ())


@dataclass(frozen=True, slots=True)
class _Entry:
    """Something in a file that should name entities, the line that it begins on, and how it is quoted."""

    line: int
    value: Json
    text: str


def _array(content: bytes) -> Iterator[_Entry]:
    try:
        stream = JsonStream(BytesIO(content))
        for _ in stream.items():
            line, value = stream.line, stream.value()
            yield _Entry(line, value, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        stream.end()
    except BrokenJson as error:
        raise InvalidRequest(f"{error.told('The file of entities')}. Expected a JSON array.") from error


def _lines(text: str) -> Iterator[_Entry]:
    for number, line in enumerate(text.splitlines(), start=1):
        shown = line.strip()
        if shown and not shown.startswith("#"):
            yield _Entry(number, _object(shown) if shown.startswith("{") else shown, shown)


def _object(text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def _labelled(text: str) -> list[str]:
    """Return the ids of a text that is one object of ids with their labels, and nothing of any other."""
    whole = _object(text) if text.lstrip().startswith("{") else None
    return list(whole) if isinstance(whole, dict) and whole and all(map(_labels, whole.items())) else []


def _labels(member: tuple[str, Json]) -> bool:
    """Return whether a member of an object is an id with its label: names of fields have no digit or colon."""
    key, value = member
    return isinstance(value, str) and re.search(r"[\d:]", key) is not None


def _ids(value: Json, fields: Sequence[str]) -> list[str]:
    if isinstance(value, str):
        return [value.strip()]
    if not isinstance(value, dict):
        raise InvalidRequest(_NO_IDS)
    held = [value[field] for field in fields if value.get(field) is not None]
    # Beside ids with labels, a text is the name of something.
    surest = [each for each in held if isinstance(each, dict)] or held
    ids = [each for found in surest for each in _held(found)]
    if not ids:
        raise InvalidRequest(
            f"It has none of the fields {', '.join(fields)}. Name the one that holds ids with --field."
        )
    return ids


def _held(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict() if all(map(_labels, value.items())):
            yield from value
        case list():
            for each in value:
                if not isinstance(each, str):
                    raise InvalidRequest(_NO_IDS)
                yield each
        case _:
            raise InvalidRequest(_NO_IDS)


def _unknown(mention: Mention, reason: str) -> Unknown:
    return Unknown(line=mention.line, text=_shortened(mention.text), reason=reason)


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
