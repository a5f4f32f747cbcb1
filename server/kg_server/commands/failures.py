"""What people see of a failure: one sentence, the next step and an exit code."""

import os
import sys
import traceback
from collections.abc import Callable, Mapping
from enum import IntEnum
from types import TracebackType
from typing import Final

from kg_adapters.errors import InvalidRequest, KGError
from kg_boundary.addresses import masked
from kg_server.commands.output import warn


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
    ExitCode.BUG: "a bug in this program",
    ExitCode.NO_MODEL: "`ask` without a model: facts, but no answer",
    ExitCode.NOT_IN_GRAPH: "`ask`: the graph does not hold the answer",
    ExitCode.UNKNOWN_ENTITY: "`ask`: no entity matches a name in the question",
    70: "`serve`: it stood still and ended itself, to be started again",
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
    """Write what is still buffered, and end quietly where nobody reads it any more."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes again when it exits, and would complain then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(ExitCode.REFUSED) from None


def sentence(error: BaseException) -> str:
    """Return what went wrong and what to do next, for a person."""
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
    """Return how a command ends that was stopped by this error."""
    if isinstance(error, InvalidRequest):
        return ExitCode.WRONG_USAGE
    return ExitCode.REFUSED if isinstance(error, KGError | OSError) else ExitCode.BUG


def only_cause(error: BaseException) -> BaseException:
    """Return what a task group holds if it is one thing, since people care for that and not for the group."""
    inner: tuple[object, ...] = getattr(error, "exceptions", ())
    match inner:
        case (BaseException() as only,):
            return only_cause(only)
        case _:
            return error
