"""How this installation was made, and the command that installs it again, also with more packages."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from pydantic import BaseModel

APP: Final = "kg-sextant"
CACHE_NAMES: Final = frozenset({".cache", "Caches"})
CACHE_TAG: Final = "CACHEDIR.TAG"

_EXTRA: Final = re.compile(r"(?P<package>[\w.-]+)(?P<rest>[^;]*);.*\bextra\s*==\s*[\"'](?P<extra>[\w-]+)[\"']")


class _Versioned(BaseModel):
    vcs: str
    commit_id: str


class _Folder(BaseModel):
    editable: bool = False


class _Origin(BaseModel):
    """What an installer notes of where a package came from, if that is no index (PEP 610)."""

    url: str
    vcs_info: _Versioned | None = None
    dir_info: _Folder | None = None
    subdirectory: str | None = None

    @property
    def path(self) -> Path | None:
        """The folder or file that it came from, if that is on this machine."""
        parts = urlsplit(self.url)
        return Path(url2pathname(parts.path)) if parts.scheme == "file" and self.vcs_info is None else None

    @property
    def address(self) -> str:
        """What an installer takes in place of a path."""
        where = f"#subdirectory={self.subdirectory}" if self.subdirectory else ""
        versioned = self.vcs_info
        return (f"{versioned.vcs}+{self.url}@{versioned.commit_id}" if versioned else self.url) + where


def in_cache(folder: Path) -> bool:
    """Return whether a folder lies inside a cache, as the environments of `uvx` and `pipx run` do."""
    # An environment may itself be tagged, so that backups leave it out; what counts is what it lies in.
    return any(parent.name in CACHE_NAMES or (parent / CACHE_TAG).is_file() for parent in folder.resolve().parents)


def requirement() -> str:
    """Return what an installer takes to install this version of the program again."""
    installed = distribution(APP)
    origin = _origin(installed)
    if origin is None:
        return f"{APP}=={installed.version}"
    return origin.address if origin.path is None else str(origin.path)


def install_command(*extras: str) -> str:
    """Return the command that installs the program again with some of its extras, as a line for a shell.

    It installs from where this installation came from, into the environment that this Python runs in. Where the folder
    or file that it came from is gone, it adds the packages of the extras to that environment.
    """
    words = _install_words(extras, Path(sys.prefix))
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def _install_words(extras: Sequence[str], prefix: Path) -> list[str]:
    by_uv, by_pipx = (prefix / "uv-receipt.toml").is_file(), (prefix / "pipx_metadata.json").is_file()
    inside = (
        [sys.executable, "-m", "pip", "install"]
        if find_spec("pip") is not None
        else ["uv", "pip", "install", "--python", sys.executable]
    )
    installed = _installed()
    if installed is None:
        return [*inside, f"{APP}{_brackets(extras)}"]
    origin = _origin(installed)
    if origin is not None and origin.path is not None and not origin.path.exists():
        packages = [f"{name}{rest}" for name, rest, extra in _packages(installed) if extra in extras]
        return [*(["pipx", "inject", APP] if by_pipx else inside), *(packages or [APP])]
    if by_pipx or by_uv or in_cache(prefix):
        # The environment is made anew, and holds no more than what is named.
        extras = sorted({*extras, *_present(installed)})
        inside = ["pipx", "install", "--force"] if by_pipx else ["uv", "tool", "install"]
    if origin is None:
        return [*inside, f"{APP}{_brackets(extras)}"]
    if origin.path is None:
        return [*inside, f"{APP}{_brackets(extras)} @ {origin.address}"]
    editable = ["--editable"] if origin.dir_info is not None and origin.dir_info.editable else []
    return [*inside, *editable, f"{origin.path}{_brackets(extras)}"]


def _brackets(extras: Sequence[str]) -> str:
    return f"[{','.join(extras)}]" if extras else ""


def _installed() -> Distribution | None:
    try:
        return distribution(APP)
    except PackageNotFoundError:
        return None


def _origin(installed: Distribution) -> _Origin | None:
    noted = installed.read_text("direct_url.json")
    return None if noted is None else _Origin.model_validate(json.loads(noted))


def _packages(installed: Distribution) -> list[tuple[str, str, str]]:
    """Return the packages of all extras: name, versions, extra."""
    found = (_EXTRA.match(each) for each in installed.requires or ())
    return [(each["package"], each["rest"].strip(), each["extra"]) for each in found if each is not None]


def _present(installed: Distribution) -> frozenset[str]:
    """Return the extras whose packages are all installed."""
    packages = _packages(installed)
    missing = {extra for package, _, extra in packages if not _is_there(package)}
    return frozenset(extra for _, _, extra in packages) - missing


def _is_there(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True
