"""A matrix of vectors that is computed piece by piece into a file, and goes on where it was interrupted."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, ValidationError

from kg_adapters.embedding.protocol import Embedder, Vectors

Packing: TypeAlias = Callable[[Vectors], npt.NDArray[np.integer]]
OnRows: TypeAlias = Callable[[int], None]
_Mapped: TypeAlias = np.memmap[tuple[int, int], np.dtype[np.integer]]

CHUNK: Final = 2_048


class _Noted(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Plan(_Noted):
    """What a matrix is to be: a digest of its texts, its shape and the type of its numbers."""

    texts: str
    rows: int
    dimensions: int
    dtype: str


class _Chunk(_Noted):
    """The rows from the end of the chunk before up to `end`, and their CRC-32."""

    end: int
    crc: int


class _Journal(_Noted):
    plan: _Plan
    chunks: tuple[_Chunk, ...] = ()

    @property
    def end(self) -> int:
        return self.chunks[-1].end if self.chunks else 0


@dataclass(frozen=True, slots=True)
class MatrixFile:
    """The vectors of some texts, one row each, in the file `path`.

    The file appears under its name when it is complete; until then it is `*.part`. A journal beside it says which texts
    it is about and which rows are written.

    Args:
        path: A name that ends in `.npy`, in a folder that exists.
        texts: What the rows are about.
        dimensions: The length of a row.
        pack: How vectors become rows.
    """

    path: Path
    texts: Sequence[str]
    dimensions: int
    pack: Packing

    @property
    def complete(self) -> bool:
        """Whether the file has the vectors of exactly these texts, as they were written; this reads all of it."""
        if not self.path.is_file() or self._part.exists():
            return False
        journal, plan = self._noted(), self._plan()
        if journal is None or journal.end != len(self.texts) or journal.plan != plan:
            return False
        matrix = _mapped(self.path, plan, "r")
        return matrix is not None and len(tuple(_whole(matrix, journal.chunks))) == len(journal.chunks)

    async def grow(self, embedder: Embedder, on_rows: OnRows) -> None:
        """Compute the rows that are missing, and call `on_rows` with how many there are, after every few thousand.

        What an interrupted call has written is kept where it is undamaged. One process at a time.

        Raises:
            OSError: The file cannot be written.
            KGError: The embedder failed.
        """
        if self.complete:
            on_rows(len(self.texts))
            return
        matrix, journal = self._open_part()
        on_rows(journal.end)
        for first in range(journal.end, len(self.texts), CHUNK):
            rows = self.pack(await embedder.embed(self.texts[first : first + CHUNK]))
            end = first + len(rows)
            matrix[first:end] = rows
            matrix.flush()
            journal = _Journal(plan=journal.plan, chunks=(*journal.chunks, _Chunk(end=end, crc=_crc(rows))))
            self._note(journal)
            on_rows(end)
        self._part.replace(self.path)

    @property
    def _part(self) -> Path:
        return self.path.with_suffix(".part")

    @property
    def _journal(self) -> Path:
        return self.path.with_suffix(".journal.json")

    def _plan(self) -> _Plan:
        texts = blake2b(digest_size=16)
        for text in self.texts:
            encoded = text.encode(errors="surrogatepass")
            texts.update(len(encoded).to_bytes(8, "little") + encoded)
        kind = self.pack(np.zeros((1, self.dimensions), dtype=np.float32)).dtype
        return _Plan(texts=texts.hexdigest(), rows=len(self.texts), dimensions=self.dimensions, dtype=str(kind))

    def _open_part(self) -> tuple[_Mapped, _Journal]:
        """Open the unfinished matrix, or a new one, with a journal of the chunks in it that are whole."""
        plan, noted = self._plan(), self._noted()
        matrix = _mapped(self._part, plan, "r+") if noted is not None and noted.plan == plan else None
        if noted is None or matrix is None:
            noted = _Journal(plan=plan)
            matrix = np.lib.format.open_memmap(
                self._part, mode="w+", dtype=np.dtype(plan.dtype), shape=(plan.rows, plan.dimensions)
            )
        journal = _Journal(plan=plan, chunks=tuple(_whole(matrix, noted.chunks)))
        self._note(journal)
        return matrix, journal

    def _noted(self) -> _Journal | None:
        try:
            return _Journal.model_validate_json(self._journal.read_bytes())
        except (OSError, ValidationError):
            return None

    def _note(self, journal: _Journal) -> None:
        # Written beside and moved there, so that an interruption leaves the old one.
        fresh = self._journal.with_suffix(".new")
        fresh.write_text(journal.model_dump_json(), encoding="utf-8")
        fresh.replace(self._journal)


def _mapped(path: Path, plan: _Plan, mode: Literal["r", "r+"]) -> _Mapped | None:
    """Return the matrix in a file if it is of the planned shape and type."""
    try:
        matrix: _Mapped = np.lib.format.open_memmap(path, mode=mode)
    except (OSError, ValueError):
        return None
    fits = matrix.shape == (plan.rows, plan.dimensions) and str(matrix.dtype) == plan.dtype
    return matrix if fits else None


def _whole(matrix: _Mapped, chunks: Sequence[_Chunk]) -> Iterator[_Chunk]:
    first = 0
    for chunk in chunks:
        if not first < chunk.end <= len(matrix) or _crc(matrix[first : chunk.end]) != chunk.crc:
            return
        yield chunk
        first = chunk.end


def _crc(rows: npt.NDArray[np.integer]) -> int:
    return zlib.crc32(rows.tobytes())
