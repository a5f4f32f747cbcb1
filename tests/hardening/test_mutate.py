"""The script that breaks a module finds what no test notices."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "mutate.py"
MODULE = '''"""Depth."""


def is_deep(depth: int) -> bool:
    """Say whether something is too deep."""
    if depth < 0:
        raise ValueError
    return depth > 3
'''
TEST = """
from depth import is_deep


def test_depth() -> None:
    assert is_deep(4)
    assert not is_deep(0)
"""


def run(folder: Path, test: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "depth.py").write_text(MODULE, encoding="utf-8")
    (folder / "test_depth.py").write_text(test, encoding="utf-8")
    words = [sys.executable, str(SCRIPT), *options, "depth.py", "test_depth.py"]
    return subprocess.run(words, cwd=folder, check=False, capture_output=True, text=True)


@pytest.mark.skipif(sys.platform == "win32", reason="it forks")
def test_changes_that_no_test_notices_are_listed_with_their_place(tmp_path: Path) -> None:
    ended = run(tmp_path, TEST)
    assert ended.stdout.splitlines() == [
        "depth.py:6: 0  ->  -1  (--change 0)",
        "depth.py:7: raise ValueError  ->  pass  (--change 3)",
        "depth.py:8: 3  ->  2  (--change 4)",
        "depth.py:8: depth > 3  ->  depth >= 3  (--change 6)",
        "depth.py: 4 of 7 changes go unnoticed",
    ]
    assert ended.returncode == 1


@pytest.mark.skipif(sys.platform == "win32", reason="it forks")
def test_a_run_that_was_interrupted_goes_on_at_the_change_that_is_named(tmp_path: Path) -> None:
    ended = run(tmp_path, TEST, "--from", "5")
    assert ended.stdout.splitlines() == [
        "depth.py:8: depth > 3  ->  depth >= 3  (--change 6)",
        "depth.py: 1 of 2 changes go unnoticed",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="it forks")
def test_tests_that_fail_already_say_nothing(tmp_path: Path) -> None:
    ended = run(tmp_path, TEST.replace("is_deep(4)", "is_deep(3)"))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "The tests fail without any change; make them pass first.\n"
