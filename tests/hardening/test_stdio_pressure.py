"""A client over stdio that does not read: neither memory nor the event loop pays for it."""

import json
import os
import select
from pathlib import Path

import pytest

from stdio_processes import Spoken, request, spoken_to

REQUESTS = 6_000
STOPPED_S = 1.0
"""After how many seconds without taking anything a server has stopped reading."""
LONG_S = 60
CALL = request(8, "tools/call", name="Degree", arguments={"entity": "Q1490"})


def test_a_client_that_does_not_read_answers_is_not_read_either(tmp_path: Path) -> None:
    lines = b"".join(request(number, "ping") + b"\n" for number in range(REQUESTS))
    with spoken_to(tmp_path) as spoken:
        sent = fill(spoken, lines)
        assert sent < len(lines)
        assert sorted(answers_while_sending(spoken, lines[sent:])) == list(range(REQUESTS))


def fill(spoken: Spoken, lines: bytes) -> int:
    """Send until the server takes no more, and return how many bytes it took."""
    os.set_blocking(spoken.stdin.fileno(), False)
    sent = 0
    while sent < len(lines) and select.select([], [spoken.stdin], [], STOPPED_S)[1]:
        sent += os.write(spoken.stdin.fileno(), lines[sent : sent + select.PIPE_BUF])
    return sent


def answers_while_sending(spoken: Spoken, rest: bytes) -> list[int]:
    """Send the rest, and return the ids of all answers."""
    received, out, into = bytearray(), spoken.stdout.fileno(), spoken.stdin.fileno()
    while received.count(b"\n") < REQUESTS:
        readable, writable, _ = select.select([out], [into] if rest else [], [])
        if writable:
            rest = rest[os.write(into, rest[: select.PIPE_BUF]) :]
        if readable:
            received += os.read(out, 65_536)
    return [json.loads(line)["id"] for line in received.splitlines()]


def test_a_client_that_does_not_read_the_log_gets_its_answers(tmp_path: Path) -> None:
    # Each of these is logged with its id; together they are more than a pipe and the server hold.
    logged = json.dumps({"jsonrpc": "2.0", "id": "x" * 900, "result": {}}).encode()
    with spoken_to(tmp_path, "--log-level", "debug") as spoken:
        for _ in range(1_300):
            spoken.say(logged)
        spoken.say(CALL)
        assert "has 1 distinct neighbour" in str(spoken.hear())
        log = spoken.process.communicate()[1]
    assert b"parts of the log were dropped here, because nothing read it." in log
    assert spoken.process.returncode == 0


def test_the_end_of_the_log_does_not_keep_a_server_alive(tmp_path: Path) -> None:
    # More than a pipe holds.
    logged = json.dumps({"jsonrpc": "2.0", "id": "x" * 900, "result": {}}).encode()
    with spoken_to(tmp_path, "--log-level", "debug") as spoken:
        for _ in range(100):
            spoken.say(logged)
        spoken.stdin.close()
        assert spoken.process.wait() == 0


def test_a_line_without_end_is_refused_once(tmp_path: Path) -> None:
    with spoken_to(tmp_path) as spoken:
        for _ in range(64):
            spoken.stdin.write(b"x" * 1_000_000)
        spoken.say(b"")
        assert "one message has at most 4,194,304 bytes" in str(spoken.hear())
        spoken.say(CALL)
        assert "has 1 distinct neighbour" in str(spoken.hear())
        assert peak_mb(spoken) < 400


def peak_mb(spoken: Spoken) -> float:
    """Return the most memory that a server had."""
    status = Path(f"/proc/{spoken.process.pid}/status")
    if not status.exists():
        pytest.skip("needs /proc")
    line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1_024


def test_what_was_asked_is_answered_after_standard_input_was_closed(tmp_path: Path) -> None:
    with spoken_to(tmp_path) as spoken:
        for number in range(50):
            spoken.say(request(number, "tools/call", name="GetNeighbor", arguments={"entity": "Q1490"}))
        answers = spoken.process.communicate()[0].splitlines()
        assert spoken.process.returncode == 0
    assert sorted(json.loads(line)["id"] for line in answers) == list(range(50))
    assert not any("error" in json.loads(line) for line in answers)


def test_a_client_that_leaves_during_a_long_query_ends_the_server_and_its_processes(tmp_path: Path) -> None:
    pairs = " . ".join(f"?a{number} ?b{number} ?c{number}" for number in range(14))
    query = f"SELECT (COUNT(*) AS ?n) {{ {pairs} }}"
    with spoken_to(tmp_path, "--timeout-s", "600") as spoken:
        spoken.say(request(1, "tools/call", name="Sparql", arguments={"query": query, "timeout_s": LONG_S}))
        workers = children_of(spoken)
        while not workers and not select.select([spoken.stdout], [], [], 0.05)[0]:
            workers = children_of(spoken)
        assert workers
        spoken.stdin.close()
        assert spoken.process.wait(timeout=LONG_S / 2) == 0
        while any(map(is_at_work, workers)):
            select.select([], [], [], 0.05)


def children_of(spoken: Spoken) -> list[str]:
    """Return the processes that a server has started."""
    listed = Path(f"/proc/{spoken.process.pid}/task/{spoken.process.pid}/children")
    if not listed.exists():
        pytest.skip("needs /proc")
    return listed.read_text(encoding="ascii").split()


def is_at_work(process: str) -> bool:
    """Say whether a process has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
