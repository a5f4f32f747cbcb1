"""A log whose records cannot be forged by the texts that they hold."""

import io
import logging

from kg_boundary.shown import LogLines


def logged(message: str, *arguments: object, error: BaseException | None = None) -> list[str]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LogLines("%(levelname)s %(name)s: %(message)s"))
    info = None if error is None else (type(error), error, error.__traceback__)
    handler.handle(logging.LogRecord("kg", logging.WARNING, "here", 1, message, arguments, info))
    return stream.getvalue().split("\n")[:-1]


def test_a_record_stays_on_one_line_whatever_it_says() -> None:
    assert logged("Tool %s failed", "x\nERROR kg: forged\u2028\x1b[2J\u202e") == [
        r"WARNING kg: Tool x\nERROR kg: forged\u2028\u001b[2J\u202e failed"
    ]


def test_a_traceback_is_set_in_so_that_no_line_of_it_passes_for_a_record() -> None:
    first, *rest = logged("It failed", error=ValueError("x\nERROR kg: forged\x9b"))
    assert (first, rest) == ("WARNING kg: It failed", ["    ValueError: x", r"    ERROR kg: forged\u009b"])
