"""Graphs that may be replaced as a whole while they are open."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable


@runtime_checkable
class SupportsSnapshots(Protocol):
    """A graph whose content another one may take the place of while it is open."""

    def snapshot(self, *, newest: bool = False) -> AbstractAsyncContextManager[None]:
        """Have everything that is asked inside answered by one and the same state of the graph.

        What the replaced state has not read yet and cannot read any more raises `GraphReplaced`; then everything that
        was asked belongs asked again, in another snapshot.

        Args:
            newest: Whether to wait for the state that is taking the place of the present one.
        """
        ...
