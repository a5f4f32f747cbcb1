"""A server whose event loop stands still reports where, and ends, so that it can be started again."""

import subprocess
import sys

import pytest

from kg_server.commands.serve import STUCK_EXIT

STUCK = """
import re
import anyio
from kg_server.commands import serve

def spin_in_python():
    while True:
        pass

def spin_in_c():
    re.match("(a+)+b", "a" * 60)

async def main(limit_s):
    with serve.watched(limit_s, tick_s=0.02):
        await anyio.sleep(0.2)
        print("running", flush=True)
        {spin}

anyio.run(main, {limit_s})
"""


def run(spin: str, limit_s: float) -> subprocess.CompletedProcess[str]:
    program = STUCK.replace("{spin}", spin).replace("{limit_s}", str(limit_s))
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)


def test_a_loop_that_python_code_blocks_is_reported_once_and_ended() -> None:
    done = run("spin_in_python()", 6)
    assert (done.returncode, done.stdout) == (STUCK_EXIT, "running\n")
    assert done.stderr.count("has not run for 5 s") == 1
    assert done.stderr.count("has not run for 6 s. The process ends") == 1
    assert "in spin_in_python" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no timer of CPU time")
def test_code_that_never_lets_go_of_the_interpreter_is_ended_with_its_stack() -> None:
    done = run("spin_in_c()", 0.5)
    assert done.returncode < 0
    assert "in spin_in_c" in done.stderr


def test_a_loop_that_runs_is_left_alone_and_zero_watches_nothing() -> None:
    assert run("await anyio.sleep(0.7)", 0.6).stderr == ""
    assert run("__import__('time').sleep(0.5)", 0).returncode == 0
