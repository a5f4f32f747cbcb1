"""What the store says to a caller whom it refuses: the limit, and what to do."""

from math import ceil
from typing import Final

from kg_adapters.errors import InvalidRequest
from kg_boundary.shown import in_quotes
from kg_server.memory.store import MemoryLimits

MB: Final = 1_000_000
_SECONDS_PER_MINUTE: Final = 60


def unknown_memory(limits: MemoryLimits, *, replaced: bool = False) -> InvalidRequest:
    """Return the error for a handle that opens nothing, whatever is wrong with it; it does not repeat the handle.

    Args:
        limits: For how long memories are kept.
        replaced: Whether the file was another one when this server began.
    """
    why = (
        "The memory file was removed, replaced or set back while this server ran, and what was kept in it before is "
        "not there any more. "
        if replaced
        else ""
    )
    return InvalidRequest(
        f"No memory has this handle, or its last append is more than {limits.age_days:g} days ago, or it was not used "
        f"again after a single append and gave way. {why}Pass the handle unchanged as memory-append gave it, or call "
        "memory-append without one to begin a new memory."
    )


def foreign_memory(graph: str, wanted: str) -> InvalidRequest:
    """Return the error for a memory of another graph."""
    return InvalidRequest(
        f"This memory belongs to the graph {in_quotes(graph)}; this server answers from {in_quotes(wanted)}. "
        "Call memory-append without a handle to begin a memory here."
    )


def full_memory(limits: MemoryLimits, held: int, coming: int) -> InvalidRequest:
    """Return the error for facts that do not fit."""
    return InvalidRequest(
        f"This memory holds {held:,} of at most {limits.facts:,} facts: {coming:,} more do not fit, and nothing was "
        "stored. Call memory-append without a handle to begin another memory."
    )


def heavy_memory(limits: MemoryLimits, held: int, coming: int) -> InvalidRequest:
    """Return the error for facts whose texts are too long for what is left."""
    return InvalidRequest(
        f"The texts of this memory take {held:,} of at most {limits.memory_bytes:,} bytes (memory_max_mb): {coming:,} "
        "more do not fit, and nothing was stored. Call memory-append without a handle to begin another memory."
    )


def heavy_fact(limits: MemoryLimits, size: int) -> str:
    """Return why a fact is refused whose texts are too long."""
    return (
        f"its texts take {size:,} bytes where a memory keeps at most {limits.fact_bytes:,} of one fact "
        "(memory_max_fact_kb). Keep another fact that proves the same, such as a shorter value."
    )


def hasty_client(limits: MemoryLimits, wait_s: float) -> InvalidRequest:
    """Return the error for a client that begins too many memories."""
    return InvalidRequest(
        f"You have begun {limits.new_per_hour:,} memories within an hour, as many as one client may "
        f"(memory_new_per_hour). Continue with a memory that you have, or begin the next in {_minutes(wait_s)}."
    )


def full_share(limits: MemoryLimits, wait_s: float) -> InvalidRequest:
    """Return the error for a client that uses all that it may have at once."""
    return InvalidRequest(
        f"You have {limits.client_share:.0%} of what this server keeps, as much as one client may "
        f"(memory_client_share), and used all of it within the last hour. Continue with a memory that you have, "
        f"or come back in {_minutes(wait_s)}: the oldest that is not used gives way."
    )


def full_store(limits: MemoryLimits, wait_s: float) -> InvalidRequest:
    """Return the error for a store in which everything is in use."""
    return InvalidRequest(
        f"This server keeps at most {limits.memories:,} memories (memory_max_count) in {limits.store_bytes // MB:,} MB "
        "(memory_file_max_mb), and all were used within the last hour. Continue with a memory that you have, or come "
        f"back in {_minutes(wait_s)}: the oldest that is not used gives way."
    )


def _minutes(seconds: float) -> str:
    minutes = max(1, ceil(seconds / _SECONDS_PER_MINUTE))
    return f"{minutes} minute{'' if minutes == 1 else 's'}"
