"""How an agent goes about its method: as the paper has it, or with what practice taught."""

from typing import Literal, TypeAlias

Manner: TypeAlias = Literal["paper", "sextant"]
"""`paper` does what the paper does, to reproduce its tables; `sextant` is the same method, grounded and cheap."""
