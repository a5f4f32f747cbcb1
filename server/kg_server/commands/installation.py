"""How this installation is started from anywhere, and installed again where it runs from a cache."""

import json
import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel

from kg_adapters.errors import InvalidRequest
from kg_server.settings import APP

CACHE_NAMES: Final = frozenset({".cache", "Caches"})

CACHE_TAG: Final = "CACHEDIR.TAG"


class _Versioned(BaseModel):
    vcs: str
    commit_id: str


class _Origin(BaseModel):
    """What an installer notes of where a package came from, if that is no registry."""

    url: str
    vcs_info: _Versioned | None = None


def lasting_command(environ: Mapping[str, str], prefix: Path | None = None) -> list[str]:
    """Return the words that start this installation from anywhere, now and later.

    Args:
        environ: The environment; its `PATH` is searched where this runs from a cache.
        prefix: The folder of the environment that holds it; that of this Python if None.

    Raises:
        InvalidRequest: It runs from a cache, and nothing here could install it again.
    """
    if not in_cache(Path(sys.prefix) if prefix is None else prefix):
        script = Path(sysconfig.get_path("scripts")) / (f"{APP}.exe" if os.name == "nt" else APP)
        return [str(script)] if script.is_file() else [sys.executable, "-m", "kg_server"]
    path = environ.get("PATH")
    for program, words in (("uvx", ("--from",)), ("uv", ("tool", "run", "--from")), ("pipx", ("run", "--spec"))):
        found = shutil.which(program, path=path)
        if found is not None:
            return [str(Path(found).absolute()), *words, requirement(), APP]
    raise InvalidRequest(
        f"This {APP} runs from a cache ({sys.prefix}), which may be emptied at any time. Install it first, "
        f"as in uv tool install {requirement()}, and run this command again."
    )


def in_cache(folder: Path) -> bool:
    """Return whether a folder lies inside a cache, as the environments of `uvx` and `pipx run` do."""
    # An environment may itself be tagged, so that backups leave it out; what counts is what it lies in.
    return any(parent.name in CACHE_NAMES or (parent / CACHE_TAG).is_file() for parent in folder.resolve().parents)


def requirement() -> str:
    """Return what an installer takes to install this version of the program again."""
    installed = distribution(APP)
    noted = installed.read_text("direct_url.json")
    if noted is None:
        return f"{APP}=={installed.version}"
    origin = _Origin.model_validate(json.loads(noted))
    if origin.vcs_info is not None:
        return f"{origin.vcs_info.vcs}+{origin.url}@{origin.vcs_info.commit_id}"
    parts = urlsplit(origin.url)
    return unquote(parts.path) if parts.scheme == "file" else origin.url
