"""Install pip into an environment whose Python has no `ensurepip`, as Debian's has none without python3-venv.

It comes from another installer on this machine, else from the package index that pip's files and variables name, else
from the packages of Debian.
"""

import base64
import configparser
import hashlib
import json
import netrc
import os
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit
from urllib.request import HTTPSHandler, OpenerDirector, ProxyHandler, Request, build_opener, url2pathname

JSON_PAGE: Final = "application/vnd.pypi.simple.v1+json"
TIMEOUT_S: Final = 60
DEBIAN_PACKAGE: Final = "python3-pip-whl"


class NoPip(Exception):
    """Pip cannot be had from anywhere; the message lists what was tried, one line each."""


def bring_pip(python: Path, version: str, environ: Mapping[str, str]) -> None:
    """Install pip into the environment of a Python.

    Args:
        python: The Python of the environment.
        version: Which pip is taken from an index; Debian offers only its own.
        environ: The environment variables.

    Raises:
        NoPip: It cannot be had from anywhere.
    """
    wanted = f"pip=={version}"
    for command in (
        [sys.executable, "-m", "pip", "--python", str(python), "install", wanted],
        ["uv", "pip", "install", "--python", str(python), wanted],
    ):
        if _succeeds(command, environ):
            return
    with tempfile.TemporaryDirectory() as folder:
        wheel: Path | None
        try:
            wheel = _from_index(version, Path(folder), environ)
        except NoPip as error:
            wheel = _from_debian(Path(folder), environ)
            if wheel is None:
                raise NoPip(f"{error}\napt-get download {DEBIAN_PACKAGE}: failed") from error
        # What pip is set to do holds for the project, not for this one file.
        bare = {name: value for name, value in environ.items() if not name.startswith("PIP_")}
        bare["PIP_CONFIG_FILE"] = os.devnull
        if not _succeeds([str(python), f"{wheel}/pip", "install", "--no-index", "--no-deps", str(wheel)], bare):
            raise NoPip(f"{wheel.name}: cannot be installed")


def _succeeds(command: list[str], environ: Mapping[str, str], folder: Path | None = None) -> bool:
    try:
        done = subprocess.run(command, cwd=folder, env=dict(environ), capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def _from_debian(folder: Path, environ: Mapping[str, str]) -> Path | None:
    if not _succeeds(["apt-get", "download", DEBIAN_PACKAGE], environ, folder):
        return None
    for package in folder.glob("*.deb"):
        _succeeds(["dpkg-deb", "--extract", package.name, "."], environ, folder)
    return next(folder.glob("usr/share/python-wheels/pip-*.whl"), None)


def _from_index(version: str, folder: Path, environ: Mapping[str, str]) -> Path:
    """Download the wheel from the first page that lists it.

    Raises:
        NoPip: None has it.
    """
    reasons: list[str] = []
    try:
        settings = pip_settings(environ)
        trusted_hosts = frozenset(settings.get("trusted-host", "").split())
        index = _Index(_opener(settings, check=True), _opener(settings, check=False), trusted_hosts)
    except (OSError, ValueError, configparser.Error) as error:
        raise NoPip(f"pip's settings: {error}") from error
    name = f"pip-{version}-py3-none-any.whl"
    for page in _pages(settings):
        shown = _without_login(page)[0]
        try:
            link = next((each for each in index.links(page) if _file_name(each) == name), None)
            if link is not None:
                wheel = folder / name
                wheel.write_bytes(index.checked(link, page))
                return wheel
            reasons.append(f"{shown}: has no {name}")
        except (OSError, ValueError, HTTPException) as error:
            reasons.append(f"{shown}: {error}")
    raise NoPip("\n".join(reasons) or "No package index is set for pip (PIP_INDEX_URL).")


def pip_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what pip would be set to install with: files of the system and of the user, then variables."""
    home = Path(environ.get("HOME") or Path.home())
    named = environ.get("PIP_CONFIG_FILE")
    folders = [
        *(Path(each) / "pip" for each in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)),
        Path("/etc"),
        home / ".pip",
        Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip",
    ]
    files = [folder / "pip.conf" for folder in folders] + ([Path(named)] if named else [])
    parser = configparser.RawConfigParser()
    parser.read([] if named == os.devnull else files, encoding="utf-8")
    found = {
        key.lower().replace("_", "-").removeprefix("--"): value
        for section in ("global", "install")
        if parser.has_section(section)
        for key, value in parser.items(section)
    }
    variables = {
        key[4:].lower().replace("_", "-"): value for key, value in environ.items() if key.startswith("PIP_") and value
    }
    return found | variables


def _pages(settings: Mapping[str, str]) -> Iterator[str]:
    if settings.get("no-index", "0").lower() in {"0", "false", "no", "off", "n", "f"}:
        for index in f"{settings.get('index-url', '')} {settings.get('extra-index-url', '')}".split():
            yield f"{index.rstrip('/')}/pip/"
    for found in settings.get("find-links", "").split():
        path = Path(found).expanduser()
        yield path.resolve().as_uri() + ("/" if path.is_dir() else "") if path.exists() else found


def _opener(settings: Mapping[str, str], *, check: bool) -> OpenerDirector:
    context = ssl.create_default_context(cafile=settings.get("cert"))
    if client := settings.get("client-cert"):
        context.load_cert_chain(client)
    if not check:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    proxy = settings.get("proxy")
    proxies = ProxyHandler({"http": proxy, "https": proxy} if proxy else None)
    return build_opener(HTTPSHandler(context=context), proxies)


@dataclass(frozen=True, slots=True)
class _Index:
    """Reads the pages and files of package indexes.

    Args:
        checking: Opens addresses, with the certificates and the proxy that are set.
        unchecking: The same without checking certificates.
        trusted: The hosts, with or without a port, whose certificates are not checked.
    """

    checking: OpenerDirector
    unchecking: OpenerDirector
    trusted: frozenset[str]

    def links(self, page: str) -> list[str]:
        """Return the addresses of the files of a page, each with its checksum as the fragment where one is given."""
        parts = urlsplit(page)
        if parts.scheme == "file" and (folder := Path(url2pathname(parts.path))).is_dir():
            if not (folder / "index.html").is_file():
                return [path.as_uri() for path in folder.iterdir()]
            page = (folder / "index.html").as_uri()
        base, kind, content = self._read(page, page)
        if kind == JSON_PAGE:
            return [
                urljoin(
                    base, f"{file['url']}#{'&'.join(f'{name}={digest}' for name, digest in file['hashes'].items())}"
                )
                for file in json.loads(content)["files"]
            ]
        found = _Anchors(base)
        found.feed(content.decode())
        return found.links

    def checked(self, link: str, page: str) -> bytes:
        """Return the content of a file.

        Raises:
            ValueError: It differs from its checksum.
        """
        url, checksum = urldefrag(link)
        content = self._read(url, page)[2]
        for pair in checksum.split("&"):
            kind, _, digest = pair.partition("=")
            if kind in hashlib.algorithms_guaranteed and hashlib.new(kind, content).hexdigest() != digest.lower():
                raise ValueError(f"{_file_name(link)} differs from its {kind}")
        return content

    def _read(self, url: str, page: str) -> tuple[str, str, bytes]:
        """Return where an address led, the kind of what is there, and that; the login of a page is its host's alone."""
        bare, login = _without_login(url)
        home, home_login = _without_login(page)
        if login is None and urlsplit(bare).netloc == urlsplit(home).netloc:
            login = home_login
        accepted = {"Accept": f"{JSON_PAGE}, text/html;q=0.5, */*;q=0.1"}
        request = Request(bare, headers=accepted)  # noqa: S310 - folders are indexes
        if login is not None or (login := _noted_login(urlsplit(bare).hostname)) is not None:
            # A redirection to another host must not take it along.
            request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
        parts = urlsplit(bare)
        opener = self.unchecking if {parts.hostname, parts.netloc} & self.trusted else self.checking
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            return answer.url, answer.headers.get_content_type(), answer.read()


class _Anchors(HTMLParser):
    """Collects where the links of a page lead."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self._base = base
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take the link of an anchor, or the base of all links."""
        target = dict(attrs).get("href")
        if target and tag == "base":
            self._base = urljoin(self._base, target)
        elif target and tag == "a":
            self.links.append(urljoin(self._base, target))


def _without_login(url: str) -> tuple[str, str | None]:
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=host)), unquote(login) if at else None


def _noted_login(host: str | None) -> str | None:
    try:
        noted = netrc.netrc().authenticators(host or "")
    except (OSError, netrc.NetrcParseError):
        return None
    return f"{noted[0]}:{noted[2]}" if noted else None


def _file_name(link: str) -> str:
    return unquote(urlsplit(link).path.rpartition("/")[2])
