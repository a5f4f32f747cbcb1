"""Load the settings of one run from flags, the environment and a file, and start its log."""

import atexit
import difflib
import logging
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Annotated, Final, TextIO, TypeAlias

import platformdirs
import typer
from pydantic import SecretStr, ValidationError

from kg_adapters.errors import InvalidRequest
from kg_boundary.private_files import private_folder
from kg_boundary.regular_files import read_toml
from kg_boundary.secrets import RedactingFormatter, Redactor
from kg_boundary.shown import in_plain_words, shown_within
from kg_server.commands.output import warn
from kg_server.settings import APP, ENVIRONMENT_PREFIX, Settings

# Options and arguments that several commands share.
_GRAPH: Final = "`sample`, RDF files, a store, or an endpoint's URL."
GraphArgument: TypeAlias = Annotated[str | None, typer.Argument(help=_GRAPH)]
GraphOption: TypeAlias = Annotated[str | None, typer.Option(help=_GRAPH)]
ModelOption: TypeAlias = Annotated[str | None, typer.Option(help="The language model.")]
BaseUrlOption: TypeAlias = Annotated[
    str | None, typer.Option(help="The URL of its service: any OpenAI-compatible one.")
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the answer as JSON, and nothing else.")]
LanguagesOption: TypeAlias = Annotated[
    str | None, typer.Option(help="Languages of labels, the preferred first: en,mul.")
]
CacheFolderOption: TypeAlias = Annotated[Path | None, typer.Option(help="Where imported files are kept.")]

OPENAI_VARIABLES: Final = {
    "OPENAI_API_KEY": ("embedding_api_key", "llm_api_key"),
    "OPENAI_BASE_URL": ("embedding_base_url", "llm_base_url"),
}
"""What the environment may hold for any program that speaks to OpenAI, and the settings that it stands for."""

SECRET_VARIABLES: Final = frozenset(
    {
        *OPENAI_VARIABLES,
        *(
            f"{ENVIRONMENT_PREFIX}{name.upper()}"
            for name, field in Settings.model_fields.items()
            if field.annotation == SecretStr | None
        ),
    }
)
"""Variables that may hold a secret, which no process that is started here needs."""

DEFAULT: Final = "the default"
"""Where a setting comes from that nobody has set."""

_MAX_NAME: Final = 80

_WORDS: Final = {
    "graph": "the graph",
    "http_host": "--http",
    "http_port": "--http",
    "llm": "--model",
    "llm_base_url": "--base-url",
}
"""The flag of a setting, where it differs from the name of the setting."""


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings, and for each field where its value came from, in words such as `the default`."""

    settings: Settings
    origins: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Entry:
    """One value under the name that people wrote, and where they wrote it."""

    field: str
    written: str
    origin: str
    value: object


def default_config_file() -> Path | None:
    """Return the settings file in the user's configuration folder, or None where there is none."""
    path = config_path()
    return path if path.is_file() else None


def config_path() -> Path:
    """Return where the settings file is looked for."""
    return platformdirs.user_config_path(APP, appauthor=False) / "config.toml"


def load_settings(
    flags: Mapping[str, object], environ: Mapping[str, str], toml_path: Path | None = None
) -> LoadedSettings:
    """Build the settings from flags, then the environment, then a file; the first that has a value wins.

    Args:
        flags: Values from the command line by field name; None stands for a flag that was not given.
        environ: The environment; only names that start with `KG_SEXTANT_`, and those of `OPENAI_VARIABLES`, are read.
        toml_path: A TOML file to read, or None.

    Raises:
        InvalidRequest: A name is unknown, a value has the wrong form, or the file cannot be read.
    """
    entries: dict[str, _Entry] = {}
    for entry in (*_file_entries(toml_path), *_environment_entries(environ), *_flag_entries(flags)):
        if entry.field not in Settings.model_fields:
            raise InvalidRequest(_unknown(entry))
        entries[entry.field] = entry
    try:
        settings = Settings.model_validate({field: entry.value for field, entry in entries.items()})
    except ValidationError as error:
        raise InvalidRequest(_invalid(error, entries)) from error
    origins = {field: entries[field].origin if field in entries else DEFAULT for field in Settings.model_fields}
    return LoadedSettings(settings, origins)


def _flag_entries(flags: Mapping[str, object]) -> Iterator[_Entry]:
    for name, value in flags.items():
        if value is not None:
            yield _Entry(name, _WORDS.get(name) or f"--{name.replace('_', '-')}", "the command line", value)


def _environment_entries(environ: Mapping[str, str]) -> Iterator[_Entry]:
    for name, fields in OPENAI_VARIABLES.items():
        if environ.get(name):
            yield from (_Entry(field, name, "the environment", environ[name]) for field in fields)
    for name in sorted(environ):
        if name.startswith(ENVIRONMENT_PREFIX):
            yield _Entry(name.removeprefix(ENVIRONMENT_PREFIX).lower(), name, "the environment", environ[name])


def _file_entries(path: Path | None) -> Iterator[_Entry]:
    if path is None:
        return
    try:
        table = read_toml(path)
    except OSError as error:
        raise InvalidRequest(f"The settings file {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise InvalidRequest(f"The settings file {path} is not valid TOML: {error}.") from error
    for key, value in table.items():
        yield _Entry(key, key, f"the file {path}", value)


def _unknown(entry: _Entry) -> str:
    close = difflib.get_close_matches(entry.field, Settings.model_fields, n=1)
    known = (
        f"Did you mean {_as_written(close[0], entry)}?" if close else f"Known are {', '.join(Settings.model_fields)}."
    )
    return f"Unknown setting: {shown_within(entry.written, _MAX_NAME)} in {entry.origin}. {known}"


def _as_written(field: str, entry: _Entry) -> str:
    if entry.written.startswith(ENVIRONMENT_PREFIX):
        return ENVIRONMENT_PREFIX + field.upper()
    return f"--{field.replace('_', '-')}" if entry.written.startswith("--") else field


def _invalid(error: ValidationError, entries: Mapping[str, _Entry]) -> str:
    """Return what is wrong, and never the value: it may be a secret that was written at the wrong place."""
    first = error.errors(include_url=False)[0]
    entry = entries[str(first["loc"][0])]
    problem = in_plain_words(first["msg"])
    return f"{entry.written} in {entry.origin} is wrong: {problem}. {Settings.model_fields[entry.field].description}"


FOLDERS: Final = ("cache_folder", "data_folder")

TELL_TOO_MUCH: Final = ("httpx2", "httpcore2")
"""Loggers that write whole addresses, in which a password may stand."""


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

    def load(self, **flags: object) -> LoadedSettings:
        """Return the settings with these flags on top, and begin to log as they say.

        Raises:
            InvalidRequest: A setting is unknown or has a wrong value.
        """
        loaded = with_folders_that_can_be_written(load_settings(flags, self.environ, self.settings_file))
        redactor = loaded.settings.redactor
        self.secrecy.redactor = redactor.also(self.secrecy.redactor.secrets, self.secrecy.redactor.users)
        log_to(sys.stderr, loaded.settings.log_level, self.secrecy.message)
        return loaded


def with_folders_that_can_be_written(loaded: LoadedSettings) -> LoadedSettings:
    """Return the settings with temporary folders, after a warning, in place of default ones that cannot be written."""
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
