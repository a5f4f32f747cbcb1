"""The pages that people read, and the code that stands in them."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
EXAMPLES: Final = ROOT / "docs" / "examples"
PAGES: Final = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
LOCAL_MODEL: Final = "http://localhost:11434/v1"

_BLOCK: Final = re.compile(r"(^<!-- \S+ -->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ASSIGNMENT: Final = re.compile(r"[A-Z_]+=\S*")


@dataclass(frozen=True)
class Block:
    """A fenced block; `included` when it repeats a file of the repository."""

    page: str
    line: int
    language: str
    text: str
    included: bool

    @property
    def asks_model(self) -> bool:
        """Whether it asks a model at `LOCAL_MODEL`, with `await` outside functions as in a notebook."""
        return LOCAL_MODEL in self.text

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(*languages: str) -> list[Block]:
    """Return the blocks in some languages, in reading order."""
    return [
        Block(page.name, text[: found.start(2)].count("\n") + 1, found[2], found[3], found[1] is not None)
        for page in PAGES
        if (text := page.read_text(encoding="utf-8"))
        for found in _BLOCK.finditer(text)
        if found[2] in languages
    ]


def prose(page: Path) -> str:
    """Return a page without its blocks."""
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))


def shell_lines() -> list[str]:
    """Return the command lines of all blocks for a shell."""
    return [line for block in blocks("bash", "sh") for line in block.text.splitlines() if line.strip()]


def kg_sextant_words(line: str) -> list[str] | None:
    """Return what a command line passes to `kg-sextant`, whatever starts that; None where nothing does."""
    words = [word.rstrip(";") for word in shlex.split(line, comments=True)]
    while words and _ASSIGNMENT.fullmatch(words[0]):
        del words[0]
    started = [
        place
        for place, word in enumerate(words)
        if word == "kg-sextant" and (place == 0 or words[place - 1] in {"--", "|"})
    ]
    return [word for word in words[started[-1] + 1 :] if word != "}"] if started else None


def tool_calls() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield every tool call on the sample that a shell block makes: its tool and its arguments."""
    for line in shell_lines():
        words = kg_sextant_words(line)
        given = words is not None and any(word == "-" or word.startswith("@") for word in words)
        if words is not None and words[0] == "call" and "--graph" not in words and not given:
            yield words[1], tuple(takewhile(lambda word: not word.startswith("--"), words[2:]))
        if line.startswith("inspect ") and "--tool-name" in line:
            yield _inspected(shlex.split(line))


def _inspected(words: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    pairs = list(pairwise(words))
    (tool,) = (value for option, value in pairs if option == "--tool-name")
    return tool, tuple(value for option, value in pairs if option == "--tool-arg")
