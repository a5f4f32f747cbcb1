"""How this installation is started from anywhere."""

import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from kg_adapters.errors import InvalidRequest
from kg_boundary.installation import in_cache, requirement
from kg_server.settings import APP


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
