"""Output of commands, and objects that are freed without the garbage collector."""

import gc
import io
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from kg_boundary.shown import visible_lines


@contextmanager
def uncollected() -> Generator[Callable[[], None]]:
    """Keep the collector off; yield a function that ends this early, for when the work begins.

    What was made until then lasts as long as the process, so that later rounds of the collector leave it out.
    """
    gc.disable()
    try:
        yield _begin
    finally:
        gc.enable()


def _begin() -> None:
    gc.freeze()
    gc.enable()
    collect_in_small_steps()


def collect_in_small_steps() -> None:
    """Let the collector stop all threads for some 20 ms at most, but for a rare round over everything.

    A round over everything takes 200 ms while a large answer is made, and its objects are in no cycles.
    """
    gc.set_threshold(5_000, 10, 400)


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
