"""What runs in the process that parses one file: whatever the file does to it, it does to nothing else."""

import json
import os
import sys
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from kg_adapters.errors import InvalidSource
from kg_adapters.local.graph_json import read_graph_json
from kg_adapters.local.rdf_document import RdfDocument
from kg_adapters.local.reading_frames import Kind
from kg_adapters.local.reading_told import Stopped, Told
from kg_adapters.local.source_bytes import opened
from kg_adapters.local.sources import GRAPH_JSON, Source
from kg_adapters.local.watched_text import WatchedText
from kg_adapters.reading_limits import ReadingLimits, Refused
from kg_adapters.worker_process import end_with_parent, limit_memory

OUT_OF_MEMORY: Final = 75
"""The exit code of a process whose memory did not suffice."""
BAD_FILE: Final = (OSError, EOFError, zlib.error)
"""What reading a file may raise that is not whole, or not what its name says."""
_MB: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Order:
    """What to read, and how.

    Args:
        source: The file.
        limits: What it may ask for.
        salvage: Whether to go on behind what cannot be read.
    """

    source: Source
    limits: ReadingLimits
    salvage: bool

    def arguments(self) -> tuple[str, ...]:
        """Return the command line of this module."""
        rest = json.dumps({"limits": asdict(self.limits), "salvage": self.salvage})
        return str(self.source.path), self.source.name, rest

    @classmethod
    def of(cls, path: str, name: str, rest: str) -> Self:
        """Read the command line of this module."""
        told = json.loads(rest)
        return cls(Source(Path(path), name), ReadingLimits(**told["limits"]), told["salvage"])


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
            if source.ending == GRAPH_JSON:
                told.statements(read_graph_json(text, str(source.path), told.problem))
            else:
                document = RdfDocument(source, text, told.problem, order.limits, salvage=order.salvage)
                told.statements(document.read())
    except Refused as error:
        told.problem(f"{source.path}, {error}.", error)
    except BAD_FILE as error:
        told.problem(f"{source.path} cannot be read to its end: {error}.", error)
    return {} if document is None else document.prefixes


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
