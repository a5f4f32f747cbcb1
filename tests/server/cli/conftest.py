"""The command line that tests run."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_runs import CommandLine


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


@pytest.fixture
def heard_interrupts() -> Iterator[None]:
    """Lets Ctrl-C reach commands, although a process that runs in the background hands down that it ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
