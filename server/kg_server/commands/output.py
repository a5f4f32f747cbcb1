"""What standard output and standard error can take, and what people may be shown there."""

import io
import sys

from kg_boundary.shown import visible_lines


def escape_what_cannot_be_shown() -> None:
    r"""Write characters that the encoding of the output lacks as `\u2026`, where Python would give up."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(text: str, *, tabs: bool = False) -> None:
    """Print lines on standard output; what a terminal obeys, and nobody sees, is escaped; tabs may be meant."""
    parts = text.split("\t") if tabs else (text,)
    print("\t".join(map(visible_lines, parts)), flush=True)


def warn(text: str) -> None:
    """Print lines on standard error, as `say` does."""
    print(visible_lines(text), file=sys.stderr, flush=True)
