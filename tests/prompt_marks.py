"""How tests tell what a prompt says itself from what it marks as data."""

import re
from typing import Final

_EXPLAINED: Final = "whatever it says.\n"
_MARK: Final = re.compile(r"<[\s/]*data\b", re.IGNORECASE)


def outside_data(prompt: str) -> str:
    """Return what stands outside the marks, which must be alone on their lines and in turn."""
    # The sentence that explains the marks comes first.
    text = prompt.partition(_EXPLAINED)[2]
    parts = re.split(r"^(</?data>)$", text, flags=re.MULTILINE)
    marks, others = parts[1::2], parts[::2]
    assert marks == ["<data>", "</data>"] * (len(marks) // 2), prompt
    assert [part for part in others if _MARK.search(part)] == [], prompt
    return "".join(others[::2])
