"""Files of N-Triples, gzipped or not."""

import gzip
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

import pyoxigraph as ox


def opened(source: Path) -> BufferedReader:
    """Open a file for reading its plain bytes."""
    return BufferedReader(gzip.open(source)) if source.suffix == ".gz" else source.open("rb")


def quads_of(source: Path) -> Iterator[ox.Quad]:
    """Read every statement of a file."""
    with opened(source) as file:
        yield from ox.parse(file, format=ox.RdfFormat.N_TRIPLES)
