"""The command line that tests run."""

from pathlib import Path

import pytest

from cli_runs import CommandLine


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)
