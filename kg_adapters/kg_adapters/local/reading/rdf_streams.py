"""Text on its way to a parser, with what the parser does not say about it."""

import codecs
import io
import re
from typing import Final

# The last character that there is, for private use: where it stands instead of bytes that are not UTF-8, nothing
# before or behind it is read in another way.
NO_UTF_8: Final = "\U0010fffd"
_SURROGATES: Final = re.compile("[\udc80-\udcff]+")
# One byte may become the four of `NO_UTF_8`, and up to three were held back before.
_GROWTH: Final = 8


class SalvagedText(io.BytesIO):
    """Text that is UTF-8 throughout, with `NO_UTF_8` in the place of whatever is not.

    Args:
        stream: The text as it is.

    Attributes:
        mended: Whether there was such a place.
    """

    def __init__(self, stream: io.BufferedReader) -> None:
        super().__init__()
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self.mended = False

    def read(self, size: int | None = None, /) -> bytes:
        """Return at most `size` bytes; none at the end."""
        most = max((size or io.DEFAULT_BUFFER_SIZE) // _GROWTH, 1)
        text, data = "", b"more"
        while data and not text:
            data = self._stream.read1(most)
            text = self._decoder.decode(data, final=not data)
        whole = _SURROGATES.sub(NO_UTF_8, text)
        self.mended |= whole != text
        return whole.encode()
