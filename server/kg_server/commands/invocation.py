"""Load the settings of one run from flags, the environment and a file, and start its log."""

import atexit
import logging
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final, TextIO

import platformdirs
import typer
from pydantic import SecretStr

from kg_adapters.errors import InvalidRequest
from kg_boundary.private_files import private_folder
from kg_boundary.secrets import RedactingFormatter, Redactor
from kg_server.commands.options import OPTIONS
from kg_server.commands.output import warn
from kg_server.settings import APP, ENVIRONMENT_PREFIX, FIELDS, variable

if TYPE_CHECKING:
    from kg_server.commands.loading import LoadedSettings

COMPLETING: Final = "_KG_SEXTANT_COMPLETE"
"""The variable by which a shell asks for completion, with its name."""

_SECRETS: Final = [name for name, field in FIELDS.items() if field.annotation == SecretStr | None]
_SECRET_VARIABLES: Final = frozenset(
    {
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        *(form for name in _SECRETS for form in (variable(name), variable(name.replace(".", "_")))),
    }
)
_SECRET_OF_A_GRAPH: Final = re.compile(
    rf"{variable('graphs')}__.+__(?:{'|'.join(variable(name).removeprefix(ENVIRONMENT_PREFIX) for name in _SECRETS)})"
)


def may_hold_secret(name: str) -> bool:
    """Return whether a variable may hold a secret, which no process that is started here needs."""
    return name.upper() in _SECRET_VARIABLES or _SECRET_OF_A_GRAPH.fullmatch(name.upper()) is not None


def default_config_file() -> Path | None:
    """Return the settings file in the user's configuration folder, or None where there is none."""
    path = config_path()
    return path if path.is_file() else None


def config_path() -> Path:
    """Return where the settings file is looked for."""
    return platformdirs.user_config_path(APP, appauthor=False) / "config.toml"


FOLDERS: Final = ("cache_folder", "data_folder")

TELL_TOO_MUCH: Final = ("httpx2", "httpcore2", "sse_starlette")
"""Loggers that write whole addresses, in which a password may stand, or whole answers."""


@dataclass
class Secrecy:
    """What a run keeps secret; it learns more when settings are read.

    Args:
        redactor: Takes out what is known now.
    """

    redactor: Redactor = field(default_factory=Redactor)

    def message(self, text: str) -> str:
        """Return a text without what is secret now."""
        return self.redactor.message(text)


@dataclass(frozen=True, slots=True)
class Invocation:
    """The environment and the settings file of one run.

    Args:
        environ: The environment variables.
        config: The settings file that was named; None for the one in the user's configuration folder.
        secrecy: What the run keeps secret.
    """

    environ: Mapping[str, str]
    config: Path | None = None
    secrecy: Secrecy = field(default_factory=Secrecy)

    @property
    def settings_file(self) -> Path | None:
        """The settings file that is read, or None."""
        return self.config or default_config_file()

    def load(self, **options: object) -> "LoadedSettings":
        """Return the settings with these options of the command line on top, and begin to log as they say.

        Raises:
            InvalidRequest: A setting is unknown or has a wrong value, or `graph` is among the options of the command
                and there are several graphs.
        """
        loaded = self.load_for_any(**options)
        if "graph" in options and loaded.settings.graphs:
            *first, last = loaded.settings.graphs
            raise InvalidRequest(
                f"This command works with one graph, not with {', '.join(first)} and {last}: name one."
            )
        return loaded

    def load_for_any(self, **options: object) -> "LoadedSettings":
        """Return the settings as `load` does, for a command that works with any number of graphs, or without one.

        Raises:
            InvalidRequest: A setting is unknown or has a wrong value.
        """
        from kg_server.commands.loading import load_settings

        flags = {OPTIONS.get(name, name): value for name, value in options.items()}
        loaded = with_folders_that_can_be_written(load_settings(flags, self.environ, self.settings_file))
        redactor = loaded.settings.redactor
        self.secrecy.redactor = redactor.also(self.secrecy.redactor.secrets, self.secrecy.redactor.users)
        log_to(sys.stderr, loaded.settings.log_level, self.secrecy.message)
        return loaded


def with_folders_that_can_be_written(loaded: "LoadedSettings") -> "LoadedSettings":
    """Return the settings with temporary folders, after a warning, in place of default ones that cannot be written."""
    from kg_server.commands.loading import DEFAULT

    folders = {
        name: getattr(loaded.settings, name)
        for name in FOLDERS
        if loaded.origins[name] == DEFAULT and not _can_be_made(getattr(loaded.settings, name))
    }
    if not folders:
        return loaded
    place = Path(tempfile.mkdtemp(prefix="kg-sextant-"))
    _remove_at_the_end(place)
    warn(
        f"{' and '.join(map(str, folders.values()))} cannot be written; {place} is used instead, which is temporary. "
        f"Set {' and '.join(folders)} to folders that can be written."
    )
    temporary = {name: place / name for name in folders}
    return replace(
        loaded,
        settings=loaded.settings.model_copy(update=temporary),
        origins={**loaded.origins, **dict.fromkeys(folders, "what can be written")},
    )


def _remove_at_the_end(folder: Path) -> None:
    """Remove a folder when this process ends, also by SIGTERM, which runs nothing else that is registered."""

    def end(number: int, _: FrameType | None) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    signal.signal(signal.SIGTERM, end)


def _can_be_made(folder: Path) -> bool:
    try:
        private_folder(folder)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def invocation(context: typer.Context) -> Invocation:
    """Return the invocation that a command was called with."""
    found = context.find_object(Invocation)
    assert found is not None  # noqa: S101 - the callback of the command line always sets it
    return found


def log_to(stream: TextIO, level: str, redacted: Callable[[str], str]) -> None:
    """Send the log to a stream, redacted; standard output belongs to the protocol."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(RedactingFormatter(redacted, "%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler])
    for name in TELL_TOO_MUCH:
        logging.getLogger(name).setLevel(logging.WARNING)
