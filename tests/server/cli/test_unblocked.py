"""What is written to standard error never waits for its reader."""

import os
import sys
import threading

import pytest

from kg_server.commands.serve import MAX_HELD, UnblockedStream, unblocked_standard_error

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
    for _ in range(30):
        stream.write("x" * (MAX_HELD // 10))
    with os.fdopen(reading) as pipe:
        received: list[str] = []
        reader = threading.Thread(target=lambda: received.append(pipe.read()))
        reader.start()
        assert stream.end()
        os.close(writing)
        reader.join()
    text, _, told = received[0].rpartition("x")
    assert MAX_HELD / 2 < len(text) < MAX_HELD * 2
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
