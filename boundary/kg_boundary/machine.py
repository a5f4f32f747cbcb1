"""The machine and the environment of this process: memory, processors, and what child processes inherit."""

import os
from pathlib import Path
from typing import Final

_UNKNOWN_BYTES: Final = 4 << 30
_CONTAINER_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def memory_bytes(container_limits: tuple[Path, ...] = _CONTAINER_LIMITS) -> int:
    """Return the bytes of memory: those of the machine, or of the container around this process if it has fewer.

    Args:
        container_limits: Files that may state how much memory a container has.
    """
    return min((_physical_bytes(), *(limit for path in container_limits if (limit := _limit_bytes(path)) is not None)))


def processor_count() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _physical_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        return _UNKNOWN_BYTES


def _limit_bytes(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return int(text) if text.isdecimal() and int(text) > 0 else None


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
