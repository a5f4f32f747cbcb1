r"""The one writer of everything that is shown: ids, labels, values, errors, notes, logs and traces.

What comes from a graph, a service, a model or a caller is data. Shown as it stands, a label with a line break could add
a line that no triple says, one with a `|` a column; a bidi control could turn a line round, and an invisible character
could hide from people what models read. So the writer escapes, as N-Triples does where N-Triples can:

- controls and line breaks (`\n`, `\r`, `\t`, else `\u0085`), and every blank but the usual one;
- marks that nobody sees: bidi controls, zero-width characters, soft hyphens, tags, fillers, lone surrogates, characters
  without a meaning (`\u202e`, `\U000e0041`);
- what gives answers their form: `\|`, and what draws arrows, as in `-\[capital]\->`;
- the backslash itself, `\\`, so that `read_back` returns the very text.

Joiners (U+200C, U+200D) are escaped as well. Some names in Persian or Hindi, and some emoji, are written with them and
read a little worse so; but nobody could tell two names apart that differ in one only, and nothing is lost. A selector
that makes an emoji out of a sign (U+FE0F), or the sign again (U+FE0E), stays behind the character that it is for. All
other text is left as it is, whatever its script.
"""

import json
import logging
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Final, TypeAlias

# What Python takes for printable although nothing is seen of it: fillers, and what selects a form of another character.
_FILLERS: Final = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\uffa0"
_SELECTORS: Final = "\ufe00-\ufe0d\U000e0100-\U000e01ef"
_RISKY: Final = re.compile(rf"[\\|\[\]>{_FILLERS}{_SELECTORS}\ufe0e\ufe0f]")
_HIDDEN: Final = re.compile(rf"[{_FILLERS}{_SELECTORS}]|(?<![^\ufe0e\ufe0f])[\ufe0e\ufe0f]")
# What draws the arrows of relations: the bracket of `-[` and `<-[`, the hyphen of `]->` and `]-`, the head of `->`.
_FORM: Final = re.compile(
    r"[\\|]|(?:(?<=\A-)|(?<=[ <]-))\[|(?<=\])-(?=>?(?: |\Z))|(?:(?<=\A-)|(?<= -))>(?= |\Z)",
)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U(000[0-9A-Fa-f]{5}|0010[0-9A-Fa-f]{4})|([\\|\[>\"'nrt-]))")
_UNIT: Final = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)|.", re.DOTALL)
_COUNTED: Final = r"\A\d[\d,]*\+?: "
"""What a list begins with that is longer than what is shown of it."""
_LETTERS: Final = {"\n": "n", "\r": "r", "\t": "t"}
_MARKS: Final = {letter: mark for mark, letter in _LETTERS.items()}


def is_plain(text: str) -> bool:
    """Return whether a text is shown as it stands."""
    if not text.isprintable():
        return False
    return _RISKY.search(text) is None or (_FORM.search(text) is None and _HIDDEN.search(text) is None)


def shown(text: str) -> str:
    """Return a text as it is shown: on one line, in one column, every character of it to be seen."""
    return text if is_plain(text) else visible_line(_FORM.sub(r"\\\g<0>", text))


def read_back(text: str) -> str:
    r"""Return the text that is shown like this; a backslash that begins no escape stands for itself.

    The quotation marks that `in_quotes` and literals escape are read back too.
    """
    return _ESCAPE.sub(_meant, text) if "\\" in text else text


def shown_within(text: str, most: int) -> str:
    """Return a text as it is shown, of at most `most` characters and twice as many bytes; no escape is cut in two."""
    if len(text) * 2 <= most and is_plain(text):
        return text
    return clipped(shown(text[: most + 1]), most)


def clipped(text: str, most: int) -> str:
    """Return a text that is shown already, cut to at most `most` characters and twice as many bytes."""
    if len(text) <= most and (len(text) * 2 <= most or _bytes(text) <= most * 2):
        return text
    if "\\" not in text:
        return f"{text[: most - 1].encode(errors='replace')[: most * 2 - 3].decode(errors='ignore')}…"
    end, size = 0, 0
    for unit in _UNIT.finditer(text):
        size += _bytes(unit.group())
        if unit.end() > most - 1 or size > most * 2 - 3:
            break
        end = unit.end()
    return f"{text[:end]}…"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun, as in `1 triple` and `2 triples`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def listed(parts: Iterable[str], mark: str, most: int = 12) -> str:
    """Return the first of some texts on one line, and how many more there are."""
    every = tuple(parts)
    more = f"{mark}and {len(every) - most:,} more" if len(every) > most else ""
    return visible_line(mark.join(every[:most])) + more


def in_quotes(text: str, most: int = 80) -> str:
    """Return a text in quotation marks, cut to `most` characters, as a message repeats what it was given."""
    inside = shown_within(text, most)
    mark = '"' if "'" in inside and '"' not in inside else "'"
    return f"{mark}{inside.replace(mark, chr(92) + mark)}{mark}"


def set_apart(name: str, marks: str) -> str:
    """Return a name that is shown already; in quotation marks where it could pass for several, or for more than a name.

    Args:
        name: The name, without an id behind it.
        marks: What separates names in its place: of `,;:<` those that do, with a blank behind them. Without any it
            stands alone where a list could, and only must not look like one that begins with a count.
    """
    if _misleading(marks).search(name) is None:
        return name
    # What keeps a name from looking like a literal is no part of it.
    inside = name[1:] if name.startswith('\\"') else name
    return '"' + inside.replace('"', '\\"') + '"'


@cache
def _misleading(marks: str) -> re.Pattern[str]:
    """Return what finds in a name what could be misread beside these separators."""
    return re.compile(rf'{_COUNTED}|["\[\]→⇄]|…(?!\Z)|%\Z|[{marks}](?: |\Z)' if marks else _COUNTED)


def visible_line(text: str) -> str:
    r"""Return a text on one line with what cannot be seen escaped, and nothing else.

    It is for messages that are put together from shown texts, or written by people and models: backslashes stay single,
    so that what is shown already does not change.
    """
    if text.isprintable() and _HIDDEN.search(text) is None:
        return text
    seen = _HIDDEN.sub(lambda found: _escaped(found.group()), text)
    return "".join(mark if mark.isprintable() else _escaped(mark) for mark in seen)


def one_line(text: str) -> str:
    """Return a text of several lines on one, as `visible_line` writes it."""
    return visible_line(" ".join(text.split()))


def visible_lines(text: str) -> str:
    """Return a text of several lines, each as `visible_line` writes it."""
    return "\n".join(map(visible_line, text.split("\n")))


def json_text(value: object, *, indent: int | None = None, ascii_only: bool = False) -> str:
    """Return JSON in which what cannot be seen is escaped; without an indent on one line.

    Args:
        value: What is written.
        indent: How many blanks a level is set in; None for one line.
        ascii_only: Whether everything but ASCII is escaped.
    """
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    if text.isprintable() and _HIDDEN.search(text) is None:
        return text
    seen = _HIDDEN.sub(lambda found: json.dumps(found.group())[1:-1], text)
    return "".join(mark if mark == "\n" or mark.isprintable() else json.dumps(mark)[1:-1] for mark in seen)


def _escaped(mark: str) -> str:
    number = ord(mark)
    return "\\" + (_LETTERS.get(mark) or (f"u{number:04x}" if number < 0x10000 else f"U{number:08x}"))


def _meant(found: re.Match[str]) -> str:
    short, long, mark = found.groups()
    return _MARKS.get(mark, mark) if mark else chr(int(short or long, 16))


def _bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


_ExceptionInfo: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
_BEHIND = "    "


class LogLines(logging.Formatter):
    """Writes each record on one line, and what belongs to it, such as a traceback, on lines that are set in."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is that of the standard library
        """Return the record's own line."""
        return visible_line(super().formatMessage(record))

    def formatException(self, ei: _ExceptionInfo) -> str:  # noqa: N802 - the name is that of the standard library
        """Return a traceback, set in."""
        return _set_in(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:  # noqa: N802 - the name is that of the standard library
        """Return the place of a record, set in."""
        return _set_in(super().formatStack(stack_info))


def _set_in(text: str) -> str:
    return "\n".join(f"{_BEHIND}{visible_line(line)}" for line in text.split("\n"))


_BEGINNINGS: Final = (
    ("Value error, ", ""),
    ("Input should ", "it must "),
    ("String should ", "the text must "),
    ("List should ", "the list must "),
    ("Field required", "it is missing"),
    ("Extra inputs are not permitted", "there is no such field"),
)
_KINDS: Final = (
    ("a valid string, unable to parse raw data as a unicode string", "a text without broken characters"),
    ("a valid string", "a text"),
    ("a valid integer", "a whole number"),
    ("a valid number", "a number"),
    ("a valid boolean", "true or false"),
    ("a valid dictionary", "an object"),
    ("a valid list", "a list"),
)
_REASON: Final = ", unable to parse string"
_STEP: Final = " after validation"


def in_plain_words(message: str) -> str:
    """Return a message of pydantic in plain words, to stand behind a colon: `it must be a whole number`."""
    said = message.partition(_REASON)[0].replace(_STEP, "")
    for theirs, ours in _BEGINNINGS:
        if said.startswith(theirs):
            said = ours + said.removeprefix(theirs)
            break
    for theirs, ours in _KINDS:
        said = said.replace(theirs, ours)
    return said


_PART: Final = r"[^\s/\\'\"`,;:()<>|*?]+"


class FileNames:
    """Replaces the path of a file or folder by its name.

    A path begins with a known folder or with a folder at the root of this machine; IRIs and paths in them are kept.

    Args:
        folders: Known folders, whose names may contain spaces.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        known = {str(form) for folder in folders for form in (folder.absolute(), folder.resolve())}
        self._known = [(folder, Path(folder).name) for folder in sorted(known, key=len, reverse=True) if folder != "/"]
        roots = "|".join(re.escape(entry.name) for entry in Path("/").iterdir())
        self._path = re.compile(
            rf"(?<![\w/.:~%-])(?:file://)?(?:/(?:{roots})|[A-Za-z]:)(?:[/\\]{_PART})*[/\\]({_PART})[/\\]?"
        )

    def shown(self, text: str) -> str:
        """Return a text in which paths are names."""
        for folder, name in self._known:
            text = text.replace(f"{folder}/", "").replace(folder, name)
        return self._path.sub(r"\1", text)
