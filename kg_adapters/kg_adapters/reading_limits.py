"""How much a file may ask for while it is read, and how its refusal is worded."""

from dataclasses import dataclass
from typing import Final

from kg_boundary.machine import memory_bytes

MAX_DEPTH: Final = 256
"""How deep elements, objects, lists, blank nodes and triple terms may be nested."""
_MB: Final = 1_000_000
_LEAST_MEMORY_MB: Final = 64
_MOST_MEMORY_MB: Final = 2_048


class Refused(Exception):
    """A file asks for more than it may; the message names the place, the limit and the setting, without a stop."""


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """What one file may ask for while it is read.

    Args:
        memory_mb: The most megabytes of memory that the process takes which parses; a quarter of the machine's, at most
            2,048, when None. Linux only.
        stall_s: Seconds after which parsing that does not get ahead is ended.
        literal_mb: The most megabytes of one literal or IRI.
        inflate_ratio: How many times its own size a compressed file may inflate to.
        inflate_mb: How many megabytes a compressed file may inflate to.
    """

    memory_mb: int | None = None
    stall_s: float = 60.0
    literal_mb: int = 64
    inflate_ratio: int = 100
    inflate_mb: int = 32_768

    @property
    def memory(self) -> int:
        """The most memory of the process that parses, megabytes."""
        return memory_of_the_machine_mb() if self.memory_mb is None else self.memory_mb

    @property
    def literal_bytes(self) -> int:
        """The most bytes of one literal or IRI."""
        return self.literal_mb * _MB

    @property
    def inflate_bytes(self) -> int:
        """The most bytes that a compressed file may inflate to, whatever its size."""
        return self.inflate_mb * _MB


def setting(name: str) -> str:
    """Return how a message names a setting that lifts a limit."""
    return f"the setting {name} (KG_SEXTANT_{name.upper()})"


def memory_of_the_machine_mb() -> int:
    """Return how much memory parsing takes at most unless it is set: a quarter of what there is, at most 2,048 MB."""
    return max(min(memory_bytes() // 4 // _MB, _MOST_MEMORY_MB), _LEAST_MEMORY_MB)
