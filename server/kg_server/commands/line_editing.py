"""History and completion at a prompt, by the `readline` that comes with Python; without it, lines are only read."""

import re
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from kg_adapters.errors import KGError
from kg_boundary.private_files import private_file, private_folder
from kg_boundary.regular_files import open_regular
from kg_server.commands.completion import ENTITIES, argument_names
from kg_server.commands.output import warn

if TYPE_CHECKING:
    from mcp.types import Tool

FUNCTIONS: Final = (
    "Bottom[",
    "Count[",
    "Degree[",
    "Feature[",
    "Group[",
    "Intersect[",
    "Max[",
    "Mean[",
    "Min[",
    "Minus[",
    "Neighbor[",
    "Retrieve[",
    "Share[",
    "Sum[",
    "Table[",
    "Top[",
    "Type[",
    "Union[",
    "Where[",
)
KEYWORDS: Final = (
    "ASK",
    "CONSTRUCT",
    "COUNT",
    "DESCRIBE",
    "DISTINCT",
    "FILTER",
    "GROUP",
    "HAVING",
    "LIMIT",
    "MINUS",
    "OFFSET",
    "OPTIONAL",
    "ORDER",
    "PREFIX",
    "SELECT",
    "UNION",
    "VALUES",
    "WHERE",
)
HISTORY: Final = "shell-history"
HISTORY_LINES: Final = 2_000
_ARGUMENT: Final = re.compile(r"(?P<key>\w+)=(?:[\"'](?P<quoted>[^\"']*)|(?P<plain>[^\s\"']*))$")
_WORD: Final = re.compile(r"[\w.]*$")


class _Readline(Protocol):
    """What is used of the module `readline`, which not every Python has."""

    def parse_and_bind(self, string: str, /) -> None: ...
    def set_completer(self, function: Callable[[str, int], str | None] | None = None, /) -> None: ...
    def set_completer_delims(self, string: str, /) -> None: ...
    def get_line_buffer(self) -> str: ...
    def get_endidx(self) -> int: ...
    def read_history_file(self, filename: str, /) -> None: ...
    def write_history_file(self, filename: str, /) -> None: ...
    def set_history_length(self, length: int, /) -> None: ...


@contextmanager
def editing(folder: Path, tools: "Sequence[Tool]", entities: Callable[[str], list[str]]) -> Generator[None]:
    """Keep a history in a folder and complete with Tab while this is open, at a terminal.

    Args:
        folder: Where the history is kept.
        tools: The tools, whose names and arguments are completed.
        entities: Gives entities whose names begin like a text.
    """
    readline = _readline() if sys.stdin.isatty() else None
    if readline is None:
        yield
        return
    file = folder / HISTORY
    kept = _read_history(readline, file)

    def offered(_: str, number: int) -> str | None:
        line = readline.get_line_buffer()[: readline.get_endidx()]
        choices = completions(line, tools, entities)
        return choices[number] if number < len(choices) else None

    readline.set_completer_delims(" \t\n=,;(){}[]\"'")
    readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")
    readline.set_completer(offered)
    try:
        yield
    finally:
        readline.set_completer(None)
        if kept:
            readline.set_history_length(HISTORY_LINES)
            readline.write_history_file(str(file))


def completions(line: str, tools: "Sequence[Tool]", entities: Callable[[str], list[str]]) -> list[str]:
    """Return what may stand in place of the last word of a line.

    Names with spaces are completed word by word: what is offered begins where the last word does.
    """
    word = _found(_WORD, line)
    first, _, rest = line.lstrip().partition(" ")
    names = {tool.name.casefold() for tool in tools}
    if " " not in line.lstrip() and "[" not in line:
        known = [*(f"{tool.name} " for tool in tools), *FUNCTIONS, *KEYWORDS]
        return [each for each in known if word and each.casefold().startswith(word.casefold())]
    if first.casefold() in names:
        argument = _ARGUMENT.search(rest)
        if argument is None:
            given = set(re.findall(r"(\w+)=", rest))
            return [f"{name}=" for name in argument_names(tools, first) if name not in given and name.startswith(word)]
        if argument["key"] not in ENTITIES:
            return []
        return _continued(argument["quoted"] or argument["plain"] or "", word, entities)
    inner = re.split(r"[\[,{]\s*|@?\"", line)[-1]
    known = [each for each in (*FUNCTIONS, *KEYWORDS) if word and inner.strip() == word and each.startswith(word)]
    return [*known, *_continued(inner, word, entities)]


def _continued(value: str, word: str, entities: Callable[[str], list[str]]) -> list[str]:
    """Return the ends of names that begin like a value, from where its last word begins."""
    try:
        found = entities(value) if value.strip() else []
    except KGError:
        return []
    skipped = len(value) - len(word)
    return [name[skipped:] for name in found if name.casefold().startswith(value.casefold())]


def _read_history(readline: _Readline, file: Path) -> bool:
    """Read the lines of earlier times, and say whether those of now can be kept."""
    try:
        private_folder(file.parent)
        private_file(file)
        open_regular(file).close()
        readline.read_history_file(str(file))
    except OSError as error:
        warn(f"The history cannot be kept in {file}: {error.strerror}.")
        return False
    return True


def _readline() -> _Readline | None:
    try:
        import readline
    except ImportError:
        return None
    return readline


def _found(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[0] if found else ""
