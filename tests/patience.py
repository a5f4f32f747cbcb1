"""How long tests wait for what has to come, on a machine that is busy with much else."""

from typing import Final

PATIENCE_S: Final = 600.0
"""The deadline of whatever must not be late; it only ends a test that hangs."""
