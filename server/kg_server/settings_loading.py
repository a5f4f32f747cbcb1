"""Where settings come from: flags, the environment and a file."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import platformdirs
from pydantic import SecretStr, ValidationError

from kg_adapters.errors import InvalidRequest
from kg_boundary.regular_files import read_toml
from kg_boundary.shown import shown_within
from kg_boundary.validation import in_plain_words
from kg_server.settings import APP, ENVIRONMENT_PREFIX, Settings

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
"""What people write on the command line for a setting that has no flag of its own name."""


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
    for field, value in flags.items():
        if value is not None:
            yield _Entry(field, _WORDS.get(field) or f"--{field.replace('_', '-')}", "the command line", value)


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
