"""What processes of ours pass on to those that they start: what these need to run, and nothing that is secret."""

import os
from typing import Final

_NEEDED: Final = frozenset(
    {"PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP", "VIRTUAL_ENV", "LD_LIBRARY_PATH"}
    # Without these a process of Windows does not start.
    | {"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA"}
)
# Of Python, of the loader of macOS, the locale, and what measures which lines the tests reach.
_NEEDED_BEGINNINGS: Final = ("PYTHON", "DYLD_", "LC_", "COVERAGE_")


def child_environment() -> dict[str, str]:
    """Return the environment of a process that reads no settings."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.upper() in _NEEDED or name.upper().startswith(_NEEDED_BEGINNINGS)
    }
