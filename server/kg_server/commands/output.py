"""What commands print: lines, the progress of long work, and failures with their exit codes."""

import gc
import io
import os
import sys
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from pydantic_core import to_jsonable_python

from kg_adapters.errors import InvalidRequest, KGError
from kg_adapters.open_options import EmbeddingProgress, ExtractionProgress, OnProgress, Progress
from kg_boundary.addresses import masked
from kg_boundary.shown import counted, json_text, visible_line, visible_lines

if TYPE_CHECKING:
    from mcp.types import CallToolResult
    from rich.console import Console
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from kg_adapters.local.store import Counts


@contextmanager
def uncollected() -> Generator[Callable[[], None]]:
    """Disable the garbage collector; yield a function that enables it again before the body ends.

    Objects that exist by then live as long as the process, so later collections skip them.
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
    """Make collections short, about 20 ms, and full collections rare.

    A full collection takes 200 ms while a large answer is made, whose objects are in no cycles.
    """
    gc.set_threshold(5_000, 10, 400)


def escape_what_cannot_be_shown() -> None:
    r"""Write characters that the encoding of the output lacks as `\u2026`, where Python would give up."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(text: str, *, tabs: bool = False) -> None:
    """Print lines on standard output with control characters escaped; tabs can be kept."""
    parts = text.split("\t") if tabs else (text,)
    print("\t".join(map(visible_lines, parts)), flush=True)


def show(result: object, lines: Iterable[str], *, as_json: bool) -> None:
    """Print the result of a command on standard output: as JSON, or as these lines."""
    if as_json:
        plain = to_jsonable_python(result, by_alias=True, exclude_none=True, fallback=str)
        in_unicode = sys.stdout.encoding.lower().startswith("utf")
        say(json_text(plain, indent=2, ascii_only=not in_unicode))
        return
    for line in lines:
        say(line)


def skipped_lines(skipped: int, problems: Sequence[str]) -> Iterator[str]:
    """Yield how many statements were skipped, and the first reasons."""
    if skipped:
        yield f"Skipped: {counted(skipped, 'unreadable statement')}. The first reasons:"
        yield from (f"  {visible_line(problem)}" for problem in problems)


def contents(counts: "Counts") -> str:
    """Return the numbers of triples, entities, relations and literals of a store."""
    triples, entities = counted(counts.triples, "triple"), counted(counts.entities, "entity", "entities")
    relations, literals = counted(counts.relations, "relation"), counted(counts.features, "literal")
    return f"{triples} between {entities} over {relations}, and {literals}"


def text_of(result: "CallToolResult") -> str:
    """Return the text of a tool's answer."""
    return "\n".join(block.text for block in result.content if block.type == "text")


def warn(text: str) -> None:
    """Print lines on standard error, escaped as in `say`."""
    print(visible_lines(text), file=sys.stderr, flush=True)


class ExitCode(IntEnum):
    """How a command ended.

    Wrong usage is a wrong argument or setting. Typer itself ends with 2 for unknown options, with 130 after Ctrl-C,
    and quietly with 1 when the reader of its output has gone.
    """

    OK = 0
    REFUSED = 1
    WRONG_USAGE = 2
    BUG = 3
    NO_MODEL = 4
    NOT_IN_GRAPH = 5
    UNKNOWN_ENTITY = 6


EXIT_CODES: Final[Mapping[int, str]] = {
    ExitCode.OK: "success",
    ExitCode.REFUSED: "the request failed or was refused",
    ExitCode.WRONG_USAGE: "wrong usage or settings",
    ExitCode.BUG: "a bug in KG Sextant",
    ExitCode.NO_MODEL: "`ask` without a model: facts, but no answer",
    ExitCode.NOT_IN_GRAPH: "`ask`: the graph does not hold the answer",
    ExitCode.UNKNOWN_ENTITY: "`ask`: no entity matches a name in the question",
    70: "`serve`: it stopped responding and ended itself; start it again",
    130: "interrupted",
}
"""What the exit codes mean, in every command."""


class FailuresForPeople:
    """Ends the process with one sentence on standard error when its body fails.

    Args:
        debug: Show the traceback too.
        redacted: Takes the secrets out of what is shown.
    """

    def __init__(self, *, debug: bool, redacted: Callable[[str], str] = masked) -> None:
        self._debug = debug
        self._redacted = redacted

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _flush()
        if error is None:
            return
        cause = only_cause(error)
        if isinstance(cause, SystemExit | KeyboardInterrupt):
            raise cause
        if self._debug:
            warn(self._redacted("".join(traceback.format_exception(error))).rstrip("\n"))
        warn(self._redacted(sentence(cause)))
        raise SystemExit(exit_code(cause))


def _flush() -> None:
    """Flush standard output; exit quietly if its reader has gone."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes again when it exits, and would complain then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(ExitCode.REFUSED) from None


def sentence(error: BaseException) -> str:
    """Return one line that describes an error and the next step."""
    match error:
        case KGError():
            return f"kg-sextant: {error}"
        case OSError():
            place = f" ({error.filename})" if error.filename is not None else ""
            return f"kg-sextant: {error.strerror or error}{place}. Check the path and its permissions, then try again."
        case _:
            return (
                f"kg-sextant: a bug stopped this command ({type(error).__name__}: {error}). "
                "Run it again with --debug and report what it prints."
            )


def exit_code(error: BaseException) -> ExitCode:
    """Return the exit code of a command that this error stopped."""
    if isinstance(error, InvalidRequest):
        return ExitCode.WRONG_USAGE
    return ExitCode.REFUSED if isinstance(error, KGError | OSError) else ExitCode.BUG


def only_cause(error: BaseException) -> BaseException:
    """Return the only exception in a group, however deeply nested, or the error itself."""
    inner: tuple[object, ...] = getattr(error, "exceptions", ())
    match inner:
        case (BaseException() as only,):
            return only_cause(only)
        case _:
            return error


DOING: Final = {
    "waiting": "Waiting for another import of the same graph",
    "surveying": "Surveying the tables",
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
    """Receives the progress of imports, of computing vectors and of extracting subgraphs."""

    def __call__(self, progress: Step) -> None:
        """Record a step."""
        ...


@contextmanager
def shown_progress(console: "Console | None" = None) -> Generator[OnEither]:
    """Show progress on standard error: a bar that is removed at the end on a terminal, a line for each stage elsewhere.

    Nothing appears until there is something to report.

    Args:
        console: A terminal in place of standard error.
    """
    if console is None and not sys.stderr.isatty():
        yield PlainProgress()
        return
    from rich.console import Console
    from rich.progress import Progress as RichProgress

    bars = RichProgress(console=console or Console(stderr=True), transient=True)
    try:
        yield BarProgress(bars)
    finally:
        if bars.live.is_started:
            bars.stop()


class ImportStopped(Exception):
    """An import was stopped because nobody waits for its graph any more."""


class StoppableProgress:
    """Forwards progress, and stops the import that reports it after a call of `stop`.

    Args:
        listeners: Called with every step.
    """

    def __init__(self, *listeners: OnProgress) -> None:
        self._listeners = listeners
        self._stopped = False

    def stop(self) -> None:
        """End the import at its next step; may be called from another thread."""
        self._stopped = True

    def __call__(self, progress: Progress) -> None:
        """Record a step.

        Raises:
            ImportStopped: `stop` was called.
        """
        if self._stopped:
            raise ImportStopped
        for listener in self._listeners:
            listener(progress)


class PlainProgress:
    """Prints one line when a stage begins."""

    def __init__(self) -> None:
        self._stage = ""

    def __call__(self, progress: Step) -> None:
        """Record a step."""
        if _stage(progress) != self._stage:
            self._stage = _stage(progress)
            print(_words(progress), file=sys.stderr, flush=True)


@contextmanager
def plain_progress() -> Generator[OnEither]:
    """Show progress on standard error as a line for each stage."""
    yield PlainProgress()


class BarProgress:
    """Moves one bar, which restarts with every stage.

    Args:
        bars: Where the bar is drawn; started with the first step.
    """

    def __init__(self, bars: "RichProgress") -> None:
        self._bars = bars
        self._stage = ""
        self._task: TaskID | None = None

    def __call__(self, progress: Step) -> None:
        """Record a step."""
        if self._task is None or _stage(progress) != self._stage:
            self._stage = _stage(progress)
            if self._task is not None:
                self._bars.remove_task(self._task)
            self._task = self._bars.add_task("", total=None if progress.stage in NOT_MEASURED else progress.total)
            self._bars.start()
        self._bars.update(self._task, description=_words(progress), completed=progress.done, refresh=True)


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
