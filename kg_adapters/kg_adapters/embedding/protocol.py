"""What turns texts into vectors, and the forms that the vectors have."""

from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

Vectors: TypeAlias = npt.NDArray[np.float32]


@runtime_checkable
class Embedder(Protocol):
    """A model of meaning: texts that mean the same get vectors that point the same way."""

    @property
    def fingerprint(self) -> str:
        """What identifies the model and all that happens to a text before it: equal ones give equal vectors.

        It may name a folder: letters, digits, `.`, `_` and `-` only, at most 100 of them.
        """
        ...

    @property
    def dimensions(self) -> int:
        """The length of every vector."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text; shape [texts, dimensions].

        Rows have unit length, so that products are cosines; the row of a blank text is zero. Any string is welcome, and
        none at all; of a very long one the beginning counts. A vector does not depend on the texts beside it.

        Raises:
            BackendError: A remote model failed.
            Unsupported: The model cannot run on this machine.
        """
        ...


class WrappedEmbedder:
    """An embedder around another one, whose model it has.

    Args:
        embedder: The other one.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def fingerprint(self) -> str:
        """See `Embedder`."""
        return self._embedder.fingerprint

    @property
    def dimensions(self) -> int:
        """See `Embedder`."""
        return self._embedder.dimensions


def unit_rows(vectors: Vectors) -> Vectors:
    """Return the vectors scaled to unit length; rows of zeros stay as they are."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    lengths[lengths == 0] = 1
    scaled: Vectors = vectors / lengths[:, np.newaxis]
    return scaled


def products(vectors: Vectors, vector: Vectors) -> Vectors:
    """Return the product of each row with one vector, which is the cosine of unit vectors; shape [vectors]."""
    # From about a thousand rows on, `@` starts threads and waits for each: 8 ms at a time where the cores are busy.
    found: Vectors = np.vecdot(vectors, vector)
    return found


def is_blank(text: str) -> bool:
    """Return whether a text holds nothing that could be embedded."""
    return not text or text.isspace()


def encodable(text: str) -> str:
    """Return a text without halves of surrogate pairs, which no library takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="ignore").decode()
    return text


PackedRows: TypeAlias = npt.NDArray[np.int16]
_ONE: Final = 32_767


def pack(vectors: Vectors) -> PackedRows:
    """Return unit vectors as 16-bit rows; shape [vectors, dimensions]."""
    rows: PackedRows = np.rint(vectors * np.float32(_ONE)).clip(-_ONE, _ONE).astype(np.int16)
    return rows


def unpack(rows: PackedRows) -> Vectors:
    """Return 16-bit rows as vectors; shape [rows, dimensions]."""
    vectors: Vectors = rows * np.float32(1 / _ONE)
    return vectors
