"""Looks at files again and again, for `import --watch`."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from kg_adapters.errors import InvalidSource
from kg_adapters.local.reading.sources import FileState, gather_sources, look

PAUSE_S: Final = 1.0

_Seen: TypeAlias = Mapping[Path, FileState]


@dataclass(frozen=True, slots=True)
class Change:
    """What became of watched files since they were imported.

    Args:
        fresh: Files that were not there before, or have changed.
        replaced: Whether a file that was there before has changed or is gone.
    """

    fresh: tuple[Path, ...]
    replaced: bool


class Watch:
    """Watches files and folders from now on.

    Args:
        paths: Files and folders.
        follow_links: Whether links in a folder are followed that lead outside of it.
    """

    def __init__(self, paths: Sequence[Path], *, follow_links: bool = False) -> None:
        self._paths = paths
        self._follow_links = follow_links
        self._known = self._look()

    def changes(self, pause: Callable[[], None] = lambda: time.sleep(PAUSE_S)) -> Iterator[Change]:
        """Yield changes without end, each when nothing has changed any more between two looks.

        Args:
            pause: Waits between two looks.
        """
        before = self._known
        while True:
            pause()
            now = self._look()
            if now == before and now != self._known and now:
                known, self._known = self._known, now
                fresh = tuple(path for path, state in now.items() if known.get(path) != state)
                yield Change(fresh, any(now.get(path) != state for path, state in known.items()))
            before = now

    def _look(self) -> _Seen:
        try:
            sources = gather_sources(self._paths, follow_links=self._follow_links).files
            return {source.path: look(source.path) for source in sources}
        except InvalidSource:
            # A file that is written anew is not there for a moment.
            return {}
