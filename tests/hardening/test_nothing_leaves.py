"""Nothing leaves the machine: with a fresh home, files appear in our own folders only, and nobody is called.

Where `strace` is installed, every process and library is watched; elsewhere only what Python itself opens.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

_STRACE: Final = shutil.which("strace")
_CALLS: Final = "trace=connect,sendto,sendmsg,sendmmsg,openat,creat,mkdir,mkdirat,rename,renameat,renameat2"
_TO_A_NETWORK: Final = re.compile(r"(?:connect|sendto|sendmsg|sendmmsg)\(.*sa_family=AF_INET6?\b")
_NAME_SERVICE: Final = re.compile(r'connect\(.*sun_path="[^"]*nscd')
_RESOLVER: Final = re.compile(r'openat\([^"]*"/etc/(?:resolv\.conf|hosts)"')
_MODELS_HERE: Final = re.compile(r"(?=.*127\.0\.0\.1)(?=.*\b(?:11434|1234|8080)\b)")
"""Where `ask` looks for models while none is set."""
_WRITTEN: Final = re.compile(r'(?:openat|creat|mkdir|mkdirat)\([^"]*"([^"]+)".*(?:O_CREAT|creat\(|mkdir)')
_AUDIT: Final = """
import sys

def _heard(event, arguments):
    if event in {"socket.getaddrinfo", "socket.gethostbyname"} or event == "socket.connect" and arguments[1][0] != "":
        sys.stderr.write(f"CALLED OUT: {event} {arguments[1:]}\\n")

sys.addaudithook(_heard)
"""
_ASKED: Final[list[dict[str, object]]] = [
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "a host", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {
        "id": 2,
        "method": "tools/call",
        "params": {"name": "observe", "arguments": {"question": "Where was he born?", "entities": ["Q1203"]}},
    },
]
_GRAPH: Final = """\
<http://example.org/tower> <http://www.w3.org/2000/01/rdf-schema#label> "Old Tower" .
<http://example.org/tower> <http://example.org/stands-in> <http://example.org/town> .
<http://example.org/town> <http://www.w3.org/2000/01/rdf-schema#label> "Lower Town" .
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home where nothing was ever kept."""
    folder = tmp_path / "home"
    folder.mkdir()
    (tmp_path / "tower.nt").write_text(_GRAPH)
    return folder


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["call", "--graph", "sample", "observe", "question=Where was he born?", "entities=Q1203"], "Liverpool"),
        (["ask", "Where was John Lennon born?"], "Liverpool"),
        (["import", "../tower.nt", "--to", "store", "--embed"], "store"),
        (["serve", "sample"], "Liverpool"),
    ],
    ids=["observe", "ask", "import", "serve"],
)
def test_no_file_appears_elsewhere_and_nobody_is_called(home: Path, arguments: list[str], shown: str) -> None:
    ran = _run(home, arguments)

    assert shown in ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
    assert list(_called(ran, home)) == []
    assert list(_strange_files(home)) == []


def test_a_call_out_would_be_seen(home: Path) -> None:
    code = "import socket; s = socket.socket(); s.settimeout(1); s.connect_ex(('127.0.0.1', 9)); s.close()"
    ran = _run(home, ["-c", code], program=[sys.executable])
    assert list(_called(ran, home))


def _run(home: Path, arguments: list[str], program: list[str] | None = None) -> subprocess.CompletedProcess[str]:
    hooks = home.parent / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "sitecustomize.py").write_text(_AUDIT)
    watched = [_STRACE, "-f", "-qq", "-o", str(home.parent / "trace"), "-e", _CALLS] if _STRACE else []
    return subprocess.run(
        [*watched, *(program or [sys.executable, "-m", "kg_server"]), *arguments],
        cwd=home,
        env={"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": str(hooks), "PYTHONDONTWRITEBYTECODE": "1"},
        input="".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in _ASKED),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def _called(ran: subprocess.CompletedProcess[str], home: Path) -> Iterator[str]:
    """Yield every sign that a host was called, or that its name was looked up."""
    heard = (line for line in ran.stderr.splitlines() if line.startswith("CALLED OUT"))
    yield from (line for line in heard if not _MODELS_HERE.search(line))
    trace = home.parent / "trace"
    if trace.exists():
        for line in trace.read_text(errors="replace").splitlines():
            if _MODELS_HERE.search(line):
                continue
            if _TO_A_NETWORK.search(line) or _NAME_SERVICE.search(line) or _RESOLVER.search(line):
                yield line


def _strange_files(home: Path) -> Iterator[str]:
    """Yield what was written outside the folders of this program, the store asked for, and temporary folders."""
    for path in home.rglob("*"):
        inside = path.relative_to(home).parts
        if path.is_file() and "kg-sextant" not in inside and inside[0] not in {"store", ".store.lock"}:
            yield str(path)
    trace = home.parent / "trace"
    if trace.exists():
        for written in _WRITTEN.findall(trace.read_text(errors="replace")):
            place = Path(home, written).resolve()
            if place.is_absolute() and not _expected(place, home):
                yield str(place)


def _expected(place: Path, home: Path) -> bool:
    return place.is_relative_to(home) or any(place.is_relative_to(folder) for folder in ("/tmp", "/var/tmp", "/dev"))  # noqa: S108
