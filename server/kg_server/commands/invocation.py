"""What a command is told about its surroundings."""

import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

import typer

from kg_server.settings_loading import LoadedSettings, default_config_file, load_settings

TELL_TOO_MUCH: Final = ("httpx2", "httpcore2")
"""Loggers that write whole addresses, in which a password may stand."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """The environment and the settings file of one run.

    Args:
        environ: The environment variables.
        config: The settings file that was named; None for the one in the user's configuration folder.
    """

    environ: Mapping[str, str]
    config: Path | None = None

    @property
    def settings_file(self) -> Path | None:
        """The settings file that is read, or None."""
        return self.config or default_config_file()

    def load(self, **flags: object) -> LoadedSettings:
        """Return the settings with these flags on top, and begin to log as they say.

        Raises:
            InvalidRequest: A setting is unknown or has a wrong value.
        """
        loaded = load_settings(flags, self.environ, self.settings_file)
        log_to(sys.stderr, loaded.settings.log_level)
        return loaded


def invocation(context: typer.Context) -> Invocation:
    """Return the invocation that a command was called with."""
    found = context.find_object(Invocation)
    assert found is not None  # noqa: S101 - the callback of the command line always sets it
    return found


def log_to(stream: TextIO, level: str) -> None:
    """Send the log to a stream; standard output belongs to the protocol."""
    logging.basicConfig(stream=stream, level=level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in TELL_TOO_MUCH:
        logging.getLogger(name).setLevel(logging.WARNING)
