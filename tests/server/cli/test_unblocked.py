"""A server's event loop is watched, and writing its log never blocks it."""

import os
import subprocess
import sys
import threading

import pytest

from kg_server.commands.serve import (
    MAX_HELD,
    REPORTED_S,
    STACKS_S,
    STUCK_EXIT,
    UnblockedStream,
    unblocked_standard_error,
)
from patience import PATIENCE_S

PIPE_HOLDS = 1_000_000


def test_what_is_written_arrives_in_order_and_as_far_as_it_can_be_encoded() -> None:
    reading, writing = os.pipe()
    stream = UnblockedStream(writing, "ascii")
    print("one", end="", file=stream)
    print(" two…", file=stream)
    assert stream.end()
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.read() == "one two\\u2026\n"


def test_what_nobody_reads_is_dropped_and_counted() -> None:
    reading, writing = os.pipe()
    stream = UnblockedStream(writing)
    for _ in range(3 * MAX_HELD):
        stream.write("x" * 100)
    with os.fdopen(reading) as pipe:
        received: list[str] = []
        reader = threading.Thread(target=lambda: received.append(pipe.read()))
        reader.start()
        assert stream.end()
        os.close(writing)
        reader.join()
    text, _, told = received[0].rpartition("x")
    assert MAX_HELD * 50 < len(text) < MAX_HELD * 200
    assert told.endswith(" parts of the log were dropped here, because nothing read it.\n")


def test_the_end_does_not_wait_for_a_reader_that_never_comes() -> None:
    reading, writing = os.pipe()
    stream = UnblockedStream(writing)
    stream.write("x" * PIPE_HOLDS)
    assert not stream.end()
    os.close(reading)


def test_a_reader_that_has_gone_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    stream = UnblockedStream(writing)
    stream.write("x")
    assert stream.end()
    assert stream.writable()
    assert not stream.isatty()
    assert stream.fileno() == writing
    os.close(writing)


def test_a_stream_without_a_descriptor_stays_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with unblocked_standard_error():
        sys.stderr.write("seen")
    assert capsys.readouterr().err == "seen"


STUCK = """
import io, re, sys
import anyio
from kg_server.commands import serve

class Log(io.StringIO):
    def write(self, text):
        sys.__stderr__.write(text)
        return super().write(text)

sys.stderr = Log()

def spin_in_python():
    while True:
        pass

def spin_until_reported():
    while not sys.stderr.getvalue():
        pass

def spin_in_c():
    re.match("(a+)+b", "a" * 60)

async def main(limit_s):
    with serve.watched(limit_s, reported_s=1, stacks_s=0.75 * limit_s, tick_s=0.02):
        await anyio.sleep(0.2)
        print("running", flush=True)
        {spin}

anyio.run(main, {limit_s})
"""


def run(spin: str, limit_s: float) -> subprocess.CompletedProcess[str]:
    program = STUCK.replace("{spin}", spin).replace("{limit_s}", str(limit_s))
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def test_a_loop_that_python_code_blocks_is_reported_then_where_it_is_and_ended() -> None:
    assert (REPORTED_S, STACKS_S) == (5, 20)
    done = run("spin_in_python()", 2)
    assert (done.returncode, done.stdout) == (STUCK_EXIT, "running\n")
    line, where, *stacks, end = done.stderr.splitlines()
    assert line.endswith("has not run for 1 s. Calls wait until it does.")
    assert where.endswith("has not run for 1.5 s. All its threads:")
    assert sum("in spin_in_python" in each for each in stacks) == 1
    assert end.endswith("has not run for 2 s. The process ends.")


def test_a_loop_that_is_blocked_for_a_while_is_reported_in_one_line() -> None:
    done = run("spin_until_reported()", 60)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no timer of CPU time")
def test_code_that_never_lets_go_of_the_interpreter_is_ended_with_its_stack() -> None:
    done = run("spin_in_c()", 0.5)
    assert done.returncode < 0
    assert "in spin_in_c" in done.stderr


def test_a_loop_that_runs_is_left_alone_and_zero_watches_nothing() -> None:
    assert run("await anyio.sleep(0.7)", 0.6).stderr == ""
    assert run("__import__('time').sleep(0.5)", 0).returncode == 0
