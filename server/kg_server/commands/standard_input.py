"""Standard input as a file, for commands that read files."""

import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.reading_limits import ReadingLimits, setting

STANDARD_INPUT: Final = Path("-")
_CHUNK: Final = 1 << 20


@contextmanager
def standard_input(files: Sequence[Path], limits: ReadingLimits) -> Generator[list[Path]]:
    """Give files with a copy of standard input in the place of `-`, for as long as they are read.

    Raises:
        InvalidRequest: There is more of it than may be read.
        InvalidSource: There is nothing.
    """
    if STANDARD_INPUT not in files:
        yield list(files)
        return
    with tempfile.TemporaryDirectory(prefix="kg-sextant-") as folder:
        copy = Path(folder) / "standard input"
        with copy.open("wb") as file:
            while chunk := sys.stdin.buffer.read(_CHUNK):
                if file.tell() + len(chunk) > limits.inflate_bytes:
                    raise InvalidRequest(
                        f"Standard input has over {limits.inflate_mb:,} MB; {setting('import_inflate_mb')} allows more."
                    )
                file.write(chunk)
            if not file.tell():
                raise InvalidSource("Standard input is empty. Pipe a file into it, as in: kg-sextant import - < FILE")
        yield [copy if path == STANDARD_INPUT else path for path in files]
