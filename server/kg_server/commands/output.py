"""What standard output and standard error can take."""

import io
import sys


def escape_what_cannot_be_shown() -> None:
    r"""Write characters that the encoding of the output lacks as `\u2026`, where Python would give up."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
