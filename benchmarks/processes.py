"""Jobs in fresh processes, and what they took."""

import json
import subprocess
import sys
from collections.abc import Sequence
from statistics import median
from typing import TypeAlias

from pydantic import TypeAdapter

from benchmarks.child import Usage
from benchmarks.figures import Figure, Peer

_USAGE = TypeAdapter(Usage)
Job: TypeAlias = tuple[str, str, str]


def run_job(job: Job) -> Usage:
    """Run one job of `benchmarks.child` in a process of its own.

    Raises:
        subprocess.CalledProcessError: It failed; what it said is on standard error.
    """
    command = [sys.executable, "-m", "benchmarks.child", *job]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own module
    return _USAGE.validate_python(json.loads(done.stdout))


def seconds_of(usages: Sequence[Usage]) -> Figure:
    """Return the median time."""
    return Figure(median(usage.seconds for usage in usages))


def peak_of(usages: Sequence[Usage]) -> Figure:
    """Return the median of the most memory that was held."""
    return Figure(median(usage.peak_mb for usage in usages), "MB")


def held_of(usages: Sequence[Usage]) -> Figure:
    """Return the median of the memory that was held in the end."""
    return Figure(median(usage.held_mb for usage in usages), "MB")


def beside(own: Figure, theirs: Figure) -> Peer:
    """Return a figure as that of a peer."""
    return Peer(theirs, theirs.median / own.median)
