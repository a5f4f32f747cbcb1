"""What runs in the process that parses one file: whatever the file does to it, it does to nothing else."""

import io
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

import pyoxigraph as ox

from kg_adapters.errors import InvalidSource
from kg_adapters.local.reading.entity_json import EntityReader
from kg_adapters.local.reading.frames import Kind
from kg_adapters.local.reading.graph_json import read_graph_json
from kg_adapters.local.reading.kgdata import read_subgraphs
from kg_adapters.local.reading.label_keys import LabelKeys
from kg_adapters.local.reading.rdf_document import RdfDocument
from kg_adapters.local.reading.schema_org import names_schema_org, with_context, with_dates
from kg_adapters.local.reading.source_bytes import BAD_FILE, opened, unreadable
from kg_adapters.local.reading.sources import ENTITY_JSON, GRAPH_JSON, KGDATA, READ_WHOLE, TABLES, Source
from kg_adapters.local.reading.table_plan import TABLE_PREFIXES
from kg_adapters.local.reading.tables import TableReader
from kg_adapters.local.reading.told import Stopped, Told
from kg_adapters.local.reading.watched_text import WatchedText
from kg_adapters.reading_limits import ReadingLimits, Refused
from kg_adapters.worker_process import end_with_parent, limit_memory

OUT_OF_MEMORY: Final = 75
"""The exit code of a process whose memory did not suffice."""
_MB: Final = 1_000_000
_OF_SOURCE: Final = ("form", "packing", "member")
_HEAD: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Order:
    """What to read, and how.

    Args:
        source: The file.
        limits: What it may ask for.
        salvage: Whether to go on behind what cannot be read.
        languages: The languages of names, where a file has those of all.
        id_column: The column with the ids of a table's rows; guessed when None.
        label_keys: Which features name the nodes of a `graph.json`, as `TYPE=FEATURE`.
    """

    source: Source
    limits: ReadingLimits
    salvage: bool
    languages: tuple[str, ...] = ("en", "mul")
    id_column: str | None = None
    label_keys: tuple[str, ...] = ()

    def arguments(self) -> tuple[str, ...]:
        """Return the command line of this module."""
        told = asdict(self)
        source = told.pop("source")
        return str(self.source.path), self.source.name, json.dumps({**told, **{key: source[key] for key in _OF_SOURCE}})

    @classmethod
    def of(cls, path: str, name: str, rest: str) -> Self:
        """Read the command line of this module."""
        told = json.loads(rest)
        source = Source(Path(path), name, **{key: told.pop(key) for key in _OF_SOURCE})
        limits = ReadingLimits(**told.pop("limits"))
        languages, label_keys = (tuple(told.pop(key)) for key in ("languages", "label_keys"))
        return cls(source, limits, languages=languages, label_keys=label_keys, **told)


def tell(order: Order, told: Told) -> None:
    """Tell everything that a file holds, to the end or to where it cannot be read."""
    prefixes: dict[str, str] = {}
    try:
        prefixes = _tell_content(order, told)
    except Stopped:
        pass
    except InvalidSource as error:
        told.end(Kind.REFUSAL, str(error).encode(errors="backslashreplace"))
        return
    told.end(Kind.END, json.dumps(prefixes).encode())


def _tell_content(order: Order, told: Told) -> dict[str, str]:
    source, document = order.source, None
    try:
        with opened(source, order.limits) as content:
            text = WatchedText(content.stream, source.ending, told.tick)
            told.source, told.text = content, text
            if source.ending in READ_WHOLE:
                told.statements(_whole(order, text, told))
            elif source.ending == ".jsonld" and names_schema_org(text.peek(_HEAD)):
                own = WatchedText(io.BufferedReader(with_context(text, str(source.path))), source.ending, told.tick)
                document = RdfDocument(source, own, told.problem, order.limits, salvage=order.salvage)
                told.statements(with_dates(document.read()))
            else:
                document = RdfDocument(source, text, told.problem, order.limits, salvage=order.salvage)
                told.statements(document.read())
    except Refused as error:
        told.problem(f"{source.path}, {error}.", error)
    except BAD_FILE as error:
        told.problem(f"{source.path} {unreadable(error)}.", error)
    if document is None:
        return TABLE_PREFIXES if source.ending in {KGDATA, *TABLES} else {}
    return document.prefixes


def _whole(order: Order, text: WatchedText, told: Told) -> Iterator[ox.Quad]:
    """Return the statements of a file that is no RDF."""
    source, limits = order.source, order.limits
    if source.ending == GRAPH_JSON:
        return read_graph_json(text, str(source.path), told.problem, LabelKeys(order.label_keys))
    if source.ending == KGDATA:
        return read_subgraphs(text, str(source.path), told.problem, told.note)
    if source.ending == ENTITY_JSON:
        return EntityReader(str(source.path), told.problem, order.languages, limits).read(text)
    table = TableReader(source.path, source.name, told.problem, told.note, limits, order.id_column)
    return table.read(text, source.ending)


def main(parent: str, *order: str) -> None:
    """Read the file of an order, and tell it on standard output."""
    end_with_parent(int(parent))
    read = Order.of(*order)
    limit_memory(read.limits.memory * _MB)
    try:
        tell(read, Told(read.source.path, sys.stdout.buffer, read.limits, salvage=read.salvage))
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


if __name__ == "__main__":
    main(*sys.argv[1:])
