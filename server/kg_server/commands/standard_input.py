"""Standard input as a file, for commands that read files."""

import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.reading_limits import ReadingLimits, setting

STANDARD_INPUT: Final = Path("-")
_CHUNK: Final = 1 << 20


@dataclass(frozen=True)
class Given:
    """What is read.

    Attributes:
        files: The files.
        copy: The one of them that holds what came on standard input.
    """

    files: Sequence[Path]
    copy: Path | None = None

    def told(self, text: str) -> str:
        """Return a text in which standard input goes by its own name, not by that of its copy."""
        return text if self.copy is None else text.replace(str(self.copy), self.copy.name)


@contextmanager
def standard_input(files: Sequence[Path], limits: ReadingLimits) -> Generator[Given]:
    """Give files with a copy of standard input in the place of `-`, for as long as they are read.

    Raises:
        InvalidRequest: There is more of it than may be read.
        InvalidSource: There is nothing.
    """
    if STANDARD_INPUT not in files:
        yield Given(files)
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
        yield Given([copy if path == STANDARD_INPUT else path for path in files], copy)
