"""Starting without the garbage collector, which would look again and again through all that is imported."""

import gc
from collections.abc import Callable, Generator
from contextlib import contextmanager


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
