"""Secrets stay in the process, and nothing is sent anywhere but where it belongs."""

import base64
import html
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import quote, quote_plus

import httpx2
import pytest

from cli_runs import COMMAND, write_graph
from patience import PATIENCE_S
from server_processes import address_of, started

PASSWORD = 'correct "horse"/bat+tery & <staple>'
KEY, EMBEDDING_KEY, URL_PASSWORD = "sk-llm-5f3a9c/key+of?mine", "sk-emb-7d2b1e-key-of-mine", "staple-of-bob"
SERVER_TOKEN, HOSTED_TOKEN = "token-of-a-server", "kgs_token-of-a-hosted-one"
SECRETS = (PASSWORD, KEY, EMBEDDING_KEY, URL_PASSWORD, SERVER_TOKEN, HOSTED_TOKEN)
RESULTS = "application/sparql-results+json"

RUN = """
import json, sys
from kg_server.cli import main
told = json.load(sys.stdin)
for words in told["commands"]:
    print("RUN", words[0], flush=True)
    try:
        main(words, told["environ"])
    except SystemExit as ended:
        print("ENDED", ended.code, flush=True)
"""


class Echo(BaseHTTPRequestHandler):
    """Answers every request with all that came with it, in the way that the path names."""

    protocol_version = "HTTP/1.1"
    seen: ClassVar[set[str]] = set()

    def do_GET(self) -> None:
        self._echo(b"")

    def do_POST(self) -> None:
        self._echo(self.rfile.read(int(self.headers["Content-Length"])))

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _echo(self, body: bytes) -> None:
        said = "".join(f"{name}: {value}\n" for name, value in self.headers.items())
        packed = self.headers.get("Authorization", "").partition(" ")[2]
        with suppress(ValueError):
            said += base64.b64decode(packed, validate=True).decode() + "\n"
        everything = f"{said}{quote(said)}\n{body.decode(errors='replace')[:100]}"
        mode = self.path.partition("?")[0].strip("/").split("/")[0]
        type(self).seen.add(mode)
        rows = {"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "literal", "value": everything}}]}}
        chat = {"choices": [{"index": 0, "message": {"role": "assistant", "content": everything}}]}
        answers: dict[str, tuple[int, str, str]] = {
            "rows": (200, RESULTS, json.dumps(rows)),
            "page": (200, "text/html", f"<html><body>{html.escape(everything)}</body></html>"),
            "refused": (401, "text/plain", everything),
            "forbidden": (
                403,
                "application/json",
                json.dumps({"error": {"message": everything}, "message": everything}),
            ),
            "failed": (500, "text/html", f"<html><body>{html.escape(everything)}</body></html>"),
            "wrong": (400, "text/plain", "x" * 280 + everything),
            "broken": (200, RESULTS, "{" + everything),
            "moved": (302, "text/plain", everything),
            "chat": (200, "application/json", json.dumps(chat)),
        }
        status, kind, text = answers[mode]
        content = text.encode()
        self.send_response(status)
        if mode == "moved":
            self.send_header("Location", f"http://ada:{quote(PASSWORD, safe='')}@example.org/?key={quote(PASSWORD)}")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        with suppress(ConnectionError):
            self.end_headers()
            self.wfile.write(content)


@contextmanager
def echoing() -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def forms_of(secret: str) -> Iterator[bytes]:
    """Yield what may be found of a secret; written down here without the code that is tested."""
    yield from (
        each.encode()
        for each in (secret, quote(secret), quote(secret, safe=""), quote(secret, safe="").lower(), quote_plus(secret))
    )
    yield from (json.dumps(secret)[1:-1].encode(), html.escape(secret).encode(), repr(secret)[1:-1].encode())
    yield json.dumps(json.dumps(secret)[1:-1])[1:-1].encode()
    for before, first in enumerate((0, 2, 3)):
        length = (before + len(secret.encode())) * 8 // 6
        yield base64.b64encode(b"\0" * before + secret.encode())[first:length]
        yield base64.urlsafe_b64encode(b"\0" * before + secret.encode())[first:length]


def told(content: bytes) -> list[str]:
    return sorted({secret for secret in SECRETS for form in forms_of(secret) if form in content})


def commands(host: str, folder: Path) -> list[list[str]]:
    """Return every command, over services that echo what they are sent."""
    graph, entities = str(write_graph(folder)), folder / "entities.txt"
    entities.write_text("http://example.org/a\n", encoding="utf-8")
    model = ["--model", "m", "--base-url"]
    base = f"http://bob:{URL_PASSWORD}@{host}"
    facts = json.dumps([["wd:Q17", "wdt:P36", "wd:Q1490"]])
    select = "text=SELECT ?x WHERE { ?x ?y ?z }"
    found = [
        ["import", graph, "--to", str(folder / "store")],
        ["import", graph, "--to", str(folder / "store"), "--embed"],
        ["config", "claude", graph],
        ["--debug", "config", "codex", f"mine://bob:{URL_PASSWORD}@{host}/?token={quote(SERVER_TOKEN)}"],
        ["--debug", "call", "Retrieve", "text=x", "--graph", f"http://ada:{quote(PASSWORD, safe='')}@{host}/rows"],
        ["call", "memory-append", f"triples={facts}", "--graph", graph],
        ["call", "observe", "question=capital", 'entities=["Q17"]', "--graph", graph],
        ["call", "Schema", "--graph", graph],
        ["doctor", graph],
        ["subgraph", "--entities", str(entities), "--out", str(folder / "part"), "--graph", f"http://{host}/rows"],
        ["--debug", "ask", "Who?", "--server", f"http://bob:{URL_PASSWORD}@{host}/refused?token={SERVER_TOKEN}"],
        ["--debug", "ask", "Who?", "--server", f"http://{host}/page"],
        ["--debug", "config", "claude-code", "--server", f"http://{host}/page"],
        ["--debug", "ask", "Who?", "--server", f"no-such-program --token {SERVER_TOKEN}"],
    ]
    for mode in ("rows", "page", "refused", "forbidden", "failed", "wrong", "broken", "moved"):
        url = f"http://{host}/{mode}"
        found.append(["--debug", "call", "Sparql", select, "--graph", url])
        found.append(["call", "Retrieve", "text=x", "--graph", url])
    found.extend(["doctor", f"http://{host}/{mode}"] for mode in ("refused", "moved"))
    for agent in ("oda", "graph-counselor"):
        about = ["ask", "Where is it?", "--entity", "Q17", "--agent", agent, "--graph", graph, *model]
        found.extend([*about, f"{base}/{mode}"] for mode in ("chat", "refused", "forbidden", "wrong", "page"))
    return found


def tool_calls() -> dict[str, dict[str, object]]:
    """Return a call of every tool, about what the graph behind the echo may or may not have."""
    entity, other = "http://example.org/a", "http://example.org/b"
    return {
        "observe": {"question": "Where is it?", "entities": [entity]},
        "GetNeighbor": {"entity": entity},
        "GetPath": {"source": entity, "target": other},
        "Retrieve": {"text": "x"},
        "Feature": {"entity": entity},
        "Degree": {"entity": entity},
        "Compose": {"expression": f"Count[Neighbor[<{entity}>, <http://example.org/p>]]"},
        "memory-append": {"triples": [[entity, "http://example.org/p", other]], "allow_unverified": True},
        "memory-read": {"memory": "no such memory"},
        "Schema": {},
        "Sparql": {"query": "SELECT ?x WHERE { ?x ?y ?z }"},
    }


def call_lines() -> list[dict[str, object]]:
    called = tool_calls().items()
    return [
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(called, start=1)
    ]


def served(graph: str, environ: dict[str, str]) -> bytes:
    """Return all that a server writes while a client calls its tools over stdio."""
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *({**line} for line in call_lines()),
        {"jsonrpc": "2.0", "id": 1_000, "method": "tools/list"},
    ]
    words = [*COMMAND, "serve", graph]
    with subprocess.Popen(
        words, env={**os.environ, **environ}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(json.dumps(line) + "\n" for line in lines).encode())
        process.stdin.flush()
        written, waiting = b"", {f'"id":{number}' for number in (*range(len(call_lines()) + 1), 1_000)}
        listed: list[str] = []
        for line in process.stdout:
            written += line
            waiting = {each for each in waiting if f"{each},".encode() not in line and f"{each}}}".encode() not in line}
            if b'"id":1000' in line:
                listed = [tool["name"] for tool in json.loads(line)["result"]["tools"]]
            if not waiting:
                break
        process.stdin.close()
        assert sorted(listed) == sorted(tool_calls())
        return written + process.stdout.read()


def served_over_http(graph: str, environ: dict[str, str]) -> bytes:
    """Return all that a server answers and logs while its tools are called over HTTP."""
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    with started(environ, graph) as process:
        address = address_of(process)
        answers = [httpx2.post(address, json=line, headers=headers, timeout=PATIENCE_S) for line in call_lines()]
        process.terminate()
        assert process.stderr is not None
        logged = process.stderr.read()
    assert {answer.status_code for answer in answers} == {200}
    return b"\n".join([*(answer.content for answer in answers), logged.encode()])


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {
        "KG_SEXTANT_CACHE_FOLDER": str(tmp_path / "home" / "cache"),
        "KG_SEXTANT_DATA_FOLDER": str(tmp_path / "home" / "data"),
        "KG_SEXTANT_ENDPOINT__USER": "ada",
        "KG_SEXTANT_ENDPOINT__PASSWORD": PASSWORD,
        "KG_SEXTANT_ENDPOINT__MAX_RETRIES": "0",
        "KG_SEXTANT_LLM__API_KEY": KEY,
        "KG_SEXTANT_SERVER_TOKEN": HOSTED_TOKEN,
        "KG_SEXTANT_EMBEDDING__API_KEY": EMBEDDING_KEY,
        "KG_SEXTANT_EMBEDDING__EMBEDDER": "openai",
        "KG_SEXTANT_LOG_LEVEL": "debug",
        "KG_SEXTANT_HOSTING__AUDIT": "json",
    }


def test_every_form_of_a_secret_is_searched_for() -> None:
    packed = base64.b64encode(f"ada:{PASSWORD}".encode())
    assert told(b"x" + packed) == [PASSWORD]
    assert told(json.dumps({"a": PASSWORD}).encode() + quote(KEY).encode()) == sorted([PASSWORD, KEY])


def test_no_command_writes_a_secret_anywhere(environ: dict[str, str], tmp_path: Path) -> None:
    with echoing() as host:
        environ["KG_SEXTANT_EMBEDDING__BASE_URL"] = f"http://bob:{URL_PASSWORD}@{host}/forbidden"
        environ["KG_SEXTANT_WIKIDATA__QUERY_URL"] = f"http://{host}/rows"
        order = json.dumps({"commands": commands(host, tmp_path), "environ": environ})
        before = os.umask(0)
        try:
            ran = subprocess.run(
                [sys.executable, "-c", RUN], input=order.encode(), capture_output=True, cwd=tmp_path, check=False
            )
            server = b"\n".join(
                [
                    served(f"http://{host}/refused", environ),
                    served(f"http://{host}/rows", environ),
                    served_over_http(f"http://{host}/forbidden", environ),
                ]
            )
            replayed = [["replay", str(path)] for path in (tmp_path / "home" / "data" / "traces").rglob("*.jsonl")]
            again = json.dumps({"commands": replayed, "environ": environ})
            replays = subprocess.run(
                [sys.executable, "-c", RUN], input=again.encode(), capture_output=True, cwd=tmp_path, check=False
            )
        finally:
            os.umask(before)
    out = ran.stdout + ran.stderr + replays.stdout + replays.stderr
    assert (ran.returncode, replays.returncode, out.count(b"ENDED")) == (0, 0, out.count(b"RUN "))
    assert replays.stdout.count(b"RUN ") > 0
    assert b" DEBUG " in ran.stderr
    assert Echo.seen == {"rows", "page", "refused", "forbidden", "failed", "wrong", "broken", "moved", "chat"}
    where = {line: told(line) for line in (*out.splitlines(), *server.splitlines())}
    assert {line: found for line, found in where.items() if found} == {}
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {str(path): found for path in kept if (found := told(path.read_bytes()))} == {}
    assert any(path.suffix == ".jsonl" for path in kept)
    assert any(path.name == "memories.sqlite3" for path in kept)
    ours = [tmp_path / "home" / "cache", tmp_path / "home" / "data", tmp_path / "home" / "data" / "traces"]
    assert [str(each) for each in ours if each.stat().st_mode & 0o077] == []
    records = [*(tmp_path / "home" / "data").rglob("*"), *(tmp_path / "home" / "cache").glob("vectors/*")]
    assert [str(each) for each in records if each.stat().st_mode & 0o077] == []


def test_a_password_in_the_address_of_wikidata_is_refused_and_not_shown(environ: dict[str, str]) -> None:
    environ["KG_SEXTANT_WIKIDATA__QUERY_URL"] = f"http://bob:{URL_PASSWORD}@127.0.0.1:1/rows"
    ran = subprocess.run(
        [*COMMAND, "serve", "wikidata"], env={**os.environ, **environ}, capture_output=True, check=False, timeout=120
    )
    assert ran.returncode == 2
    assert b"must not hold a user or password" in ran.stderr
    assert URL_PASSWORD.encode() not in ran.stdout + ran.stderr


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
        timeout=PATIENCE_S,
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
