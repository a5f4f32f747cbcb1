"""The entities that a file names."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.extraction.records import Unknown
from kg_adapters.local.store import SourceFile
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Node, node_key
from kg_boundary.shown import in_quotes

FIELDS: Final = ("entity", "entities", "topic")
"""The fields of a JSON line that hold ids, unless others are named."""

_SHOWN: Final = 80
_OBJECT: Final = TypeAdapter(dict[str, object])
_IDS: Final = TypeAdapter(tuple[str, ...])


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
        content = file.read_bytes()
    except OSError as error:
        raise InvalidSource(f"{file} cannot be read: {error.strerror or error}. It names the entities.") from error
    name = file.name.encode(errors="replace").decode()
    return content, SourceFile(name=name, size=len(content), sha256=hashlib.sha256(content).hexdigest())


def find_mentions(content: bytes, fields: Sequence[str]) -> tuple[list[Mention], list[Unknown]]:
    """Return the ids that a file holds, and the lines that hold none.

    A line is an id, or a JSON object with ids in some of its `fields`, each a text or a list of texts. Empty lines and
    those that begin with `#` are passed over.
    """
    mentions: list[Mention] = []
    wrong: list[Unknown] = []
    for number, line in enumerate(content.decode("utf-8-sig", "replace").splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            mentions += [Mention(number, each) for each in (_ids(text, fields) if text.startswith("{") else [text])]
        except InvalidRequest as error:
            wrong.append(Unknown(line=number, text=_shortened(text), reason=str(error)))
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


def _ids(text: str, fields: Sequence[str]) -> list[str]:
    try:
        line = _OBJECT.validate_json(text)
        held = [line[field] for field in fields if line.get(field) is not None]
        ids = [each for value in held for each in _IDS.validate_python([value] if isinstance(value, str) else value)]
    except ValidationError as error:
        raise InvalidRequest("It is not a JSON object whose fields hold an id or a list of ids.") from error
    if not ids:
        raise InvalidRequest(
            f"It has none of the fields {', '.join(fields)}. Name the one that holds ids with --field."
        )
    return ids


def _unknown(mention: Mention, reason: str) -> Unknown:
    return Unknown(line=mention.line, text=_shortened(mention.text), reason=reason)


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
