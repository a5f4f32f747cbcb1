"""What was learned about an endpoint, kept on disk for the next time."""

import hashlib
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from kg_adapters.errors import InvalidRequest
from kg_adapters.local.profile_file import profile_text, read_profile
from kg_adapters.local.seal import Damage
from kg_adapters.models import GraphSchema
from kg_adapters.prefixes import Prefixes
from kg_adapters.profile import GraphProfile
from kg_boundary.private_files import private_folder, write_private
from kg_boundary.regular_files import read_regular

FORMAT: Final = 1
FOLDER: Final = "endpoints"
EXPIRY_S: Final = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Learned:
    """What one file holds.

    Args:
        format: The version of the file's form.
        prefixes: The graph's prefixes, which stay as they are so that ids keep their meaning.
        schema: Its definition, if it was asked for.
        schema_time: When that was, in seconds since 1970.
    """

    format: int
    prefixes: Prefixes
    schema: GraphSchema | None = None
    schema_time: float = 0.0


@dataclass(frozen=True, slots=True)
class Profiled:
    """What the file beside it holds: a profile as its own text.

    Args:
        format: The version of the file's form.
        profile: The text.
        time: When it was counted, in seconds since 1970.
    """

    format: int
    profile: str
    time: float


_LEARNED: Final = TypeAdapter(Learned)
_PROFILED: Final = TypeAdapter(Profiled)


class SchemaFile:
    """The files for one endpoint and choice of graphs; one that is damaged or of another version counts as missing.

    Args:
        cache_folder: Where they are kept.
        key: What tells this graph from others.
        expiry_s: After how many seconds a schema or profile is out of date.
        clock: Tells the time, in seconds since 1970.
    """

    def __init__(
        self,
        cache_folder: Path,
        key: tuple[str, ...],
        *,
        expiry_s: float = EXPIRY_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        name = hashlib.sha256("\n".join(key).encode()).hexdigest()[:24]
        self.path = cache_folder / FOLDER / f"{name}.json"
        self.profile_path = self.path.with_name(f"{name}-profile.json")
        self._expiry_s = expiry_s
        self._clock = clock

    def prefixes(self) -> Prefixes | None:
        """Return the prefixes, or None where none are kept."""
        learned = self._read()
        return None if learned is None else learned.prefixes

    def schema(self) -> GraphSchema | None:
        """Return the schema, or None where none is kept that is young enough."""
        learned = self._read()
        if learned is None or learned.schema is None:
            return None
        return learned.schema if self._is_young(learned.schema_time) else None

    def profile(self) -> GraphProfile | None:
        """Return the profile, or None where none is kept that is young enough."""
        try:
            kept = _PROFILED.validate_json(read_regular(self.profile_path))
            return read_profile(kept.profile.encode()) if kept.format == FORMAT and self._is_young(kept.time) else None
        except (OSError, ValidationError, Damage):
            return None

    def keep_prefixes(self, prefixes: Prefixes) -> None:
        """Write prefixes; a schema that went with other ones is dropped."""
        self._write(self.path, _LEARNED.dump_json(Learned(FORMAT, prefixes)))

    def keep_schema(self, schema: GraphSchema) -> None:
        """Write a schema with its prefixes."""
        learned = replace(Learned(FORMAT, schema.prefixes), schema=schema, schema_time=self._clock())
        self._write(self.path, _LEARNED.dump_json(learned))

    def _read(self) -> Learned | None:
        try:
            learned = _LEARNED.validate_json(read_regular(self.path))
        except (OSError, ValidationError, InvalidRequest):
            return None
        return learned if learned.format == FORMAT else None

    def keep_profile(self, profile: GraphProfile) -> None:
        """Write a profile."""
        self._write(self.profile_path, _PROFILED.dump_json(Profiled(FORMAT, profile_text(profile), self._clock())))

    def _is_young(self, time_s: float) -> bool:
        return 0 <= self._clock() - time_s < self._expiry_s

    def _write(self, path: Path, content: bytes) -> None:
        # A full or read-only disk costs the next start some seconds, and nothing else.
        with suppress(OSError):
            private_folder(path.parent, ours=True)
            write_private(path, content)
