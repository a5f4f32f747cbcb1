"""How far a long piece of work has come, for people."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from kg_adapters.progress import EmbeddingProgress, ExtractionProgress, OnProgress, Progress
from kg_boundary.shown import counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

DOING: Final = {
    "waiting": "Waiting for another import of the same graph",
    "reading": "Reading",
    "indexing": "Building the adjacency index",
    "searching": "Building the text search",
    "saving": "Saving",
    "relations": "Embedding the relations",
    "labels": "Embedding the labels",
    "entities": "Embedding what entities are",
    "linking": "Linking the nearest entities",
    "walking": "Looking around, hop",
    "typing": "Asking for the types of the outermost entities",
    "valuing": "Asking for literals",
    "describing": "Asking for labels and descriptions",
}
NOT_MEASURED: Final = frozenset({"waiting", "indexing", "searching", "saving"})

Step: TypeAlias = Progress | EmbeddingProgress | ExtractionProgress


class OnEither(Protocol):
    """Told about the steps of imports, of computing vectors and of taking subgraphs."""

    def __call__(self, progress: Step) -> None:
        """Take note of a step."""
        ...


@contextmanager
def shown_progress() -> Generator[OnEither]:
    """Show progress on standard error: a bar on a terminal, a line for each stage elsewhere.

    Nothing appears until there is something to report.
    """
    if not sys.stderr.isatty():
        yield PlainProgress()
        return
    from rich.console import Console

    with drawn_bar(Console(stderr=True)) as progress:
        yield progress


@contextmanager
def drawn_bar(console: "Console") -> Generator[OnEither]:
    """Draw a bar that is gone at the end."""
    from rich.progress import Progress as RichProgress

    bars = RichProgress(console=console, transient=True)
    try:
        yield BarProgress(bars)
    finally:
        if bars.live.is_started:
            bars.stop()


class ImportStopped(Exception):
    """Nobody waits for the graph of an import any more."""


class StoppableProgress:
    """Passes steps on, and ends the import that reports them once it was told to stop.

    Args:
        told: Who is told of every step.
    """

    def __init__(self, *told: OnProgress) -> None:
        self._told = told
        self._stopped = False

    def stop(self) -> None:
        """End the import at its next step; may be called from another thread."""
        self._stopped = True

    def __call__(self, progress: Progress) -> None:
        """Take note of a step.

        Raises:
            ImportStopped: It was told to stop.
        """
        if self._stopped:
            raise ImportStopped
        for told in self._told:
            told(progress)


class PlainProgress:
    """Prints one line when a stage begins."""

    def __init__(self) -> None:
        self._stage = ""

    def __call__(self, progress: Step) -> None:
        """Take note of a step."""
        if _stage(progress) != self._stage:
            self._stage = _stage(progress)
            print(_words(progress), file=sys.stderr, flush=True)


class BarProgress:
    """Moves one bar, which begins again with every stage.

    Args:
        bars: Where the bar is drawn; started with the first step.
    """

    def __init__(self, bars: "RichProgress") -> None:
        self._bars = bars
        self._stage = ""
        self._task: TaskID | None = None

    def __call__(self, progress: Step) -> None:
        """Take note of a step."""
        if self._task is None or _stage(progress) != self._stage:
            self._begin(progress)
        else:
            self._bars.update(self._task, description=_words(progress), completed=progress.done)

    def _begin(self, progress: Step) -> None:
        if self._task is not None:
            self._bars.remove_task(self._task)
        measured = progress.stage not in NOT_MEASURED
        self._task = self._bars.add_task(_words(progress), total=progress.total if measured else None)
        self._stage = _stage(progress)
        self._bars.start()
        self._bars.refresh()


def _stage(progress: Step) -> str:
    hop = f" {progress.hop}" if isinstance(progress, ExtractionProgress) and progress.stage == "walking" else ""
    return f"{DOING[progress.stage]}{hop}"


def _words(progress: Step) -> str:
    match progress:
        case Progress() if progress.statements:
            read = f", {counted(progress.statements, 'statement')}"
        case ExtractionProgress() if progress.triples:
            read = f", {counted(progress.triples, 'triple')}"
        case _:
            read = ""
    return f"{_stage(progress)}{read} …"
