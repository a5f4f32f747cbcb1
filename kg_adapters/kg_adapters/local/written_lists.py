"""Lists as they were written, beside an index in which they are unfolded: what SPARQL asks for is what was written."""

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from kg_adapters.files.rows import Row
from kg_adapters.index.block_files import Damage
from kg_adapters.local.store import LocalStore

FILE: Final = "lists.json.gz"
_ROWS: Final = TypeAdapter(tuple[frozenset[Row], frozenset[Row]])


@dataclass(frozen=True, slots=True)
class WrittenLists:
    """What an index says otherwise than it was written.

    Args:
        written: Statements that it does not have.
        unfolded: Those that it has in their place, and that nobody wrote.
    """

    written: frozenset[Row] = frozenset()
    unfolded: frozenset[Row] = frozenset()

    def rows(self, said: Iterable[Row]) -> Iterator[Row]:
        """Yield what was written, given what the index says."""
        yield from (row for row in said if row not in self.unfolded) if self.unfolded else said
        yield from self.written

    def joined(self, more: "WrittenLists") -> "WrittenLists":
        """Return both together."""
        return WrittenLists(self.written | more.written, self.unfolded | more.unfolded)

    def save(self, folder: Path) -> None:
        """Write them into a store's folder, where there are any."""
        if self.written:
            content = json.dumps([sorted(self.written, key=str), sorted(self.unfolded, key=str)], ensure_ascii=False)
            (folder / FILE).write_bytes(gzip.compress(content.encode(), mtime=0))


def read_lists(store: LocalStore) -> WrittenLists:
    """Return what a store's index says otherwise than it was written.

    Raises:
        Damage: The file is not what the import wrote.
        OSError: It cannot be read.
    """
    if not any(file.path == FILE for file in store.info.files):
        return WrittenLists()
    try:
        return WrittenLists(*_ROWS.validate_json(gzip.decompress(store.read(FILE))))
    except (ValidationError, gzip.BadGzipFile, EOFError) as error:
        raise Damage(f"{FILE} cannot be read") from error
