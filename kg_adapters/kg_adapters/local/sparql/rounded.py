"""The relations of which an Oxigraph folder holds numbers as doubles, since they have too many digits for it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

ROUNDED_FILE: Final = "rounded.txt"


def write_rounded(folder: Path, relations: Iterable[str]) -> None:
    """Write their IRIs, one a line, into a folder of Oxigraph before the checksums of its files are written."""
    (folder / ROUNDED_FILE).write_text("".join(f"{relation}\n" for relation in sorted(relations)), encoding="utf-8")


def read_rounded(folder: Path) -> frozenset[str]:
    """Return their IRIs; none where there is no list.

    Raises:
        OSError: The list cannot be read.
    """
    try:
        return frozenset((folder / ROUNDED_FILE).read_text(encoding="utf-8").splitlines())
    except FileNotFoundError:
        return frozenset()
