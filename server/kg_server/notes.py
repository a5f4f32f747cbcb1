"""What a graph's owner wrote of it: what it is about, traps, preferred names of relations, and examples.

Notes are a Markdown file that people edit. Of its headings (`#` and `##`) four are read: *About*, *Traps*, *Prefer* and
*Examples*; lines below any other are shown as they stand. Deeper headings name the class that the lines below are
about, as in `### film`. Lines before the first heading belong to *About*.
"""

import logging
import re
from collections.abc import Collection, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol, Self

from anyio import to_thread
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

from kg_adapters.errors import InvalidRequest
from kg_adapters.files.sources import PACKINGS
from kg_adapters.folding import fold
from kg_adapters.local.swap import NOTES_FILE
from kg_adapters.protocol import KGAdapter
from kg_adapters.registry import path_of
from kg_boundary.regular_files import read_regular
from kg_boundary.shown import one_line, shown_within
from kg_server.answers.results import affordable, token_count

logger = logging.getLogger(__name__)

MAX_BYTES: Final = 64_000
"""How large a file of notes may be."""
MAX_LINES: Final = 1_000
MAX_LINE: Final = 400
"""How many characters of a line are read."""
ABOUT_TOKENS: Final = 60
"""How much of what a graph is about is in the server's instructions."""

MARK: Final = "note | "
"""How lines of notes begin in an answer."""
_ABOUT, _PREFER, _EXAMPLES = "about", "prefer", "examples"
_OWN_LEVELS: Final = 2
"""Of how many levels headings begin a part of the notes; deeper ones name a class."""
_HEADING: Final = re.compile(r"(#{1,6})\s+(.*)\Z")
_BULLET: Final = re.compile(r"\A(?:[-*+]|\d{1,3}[.)])\s+")
_CALL: Final = re.compile(r"`(?P<quoted>[^`]+)`\Z|(?P<command>kg-sextant call .+)\Z")
_COMMAND: Final = "kg-sextant call "
_ANSWER: Final = re.compile(r"(?:answer:|->|→)\s*", re.IGNORECASE)
_QUESTION: Final = re.compile(r"\Aquestion:\s*", re.IGNORECASE)
_PREFERRED: Final = re.compile(r"(?P<name>[^:]{1,100}?)\s*:\s+(?P<relation>\S{1,400})\Z")
_SPOKEN: Final = re.compile(r"[\w:]+")
_FENCE: Final = "```"
_COMMENT: Final = "<!--"
_TITLE: Final = 60
_SHORTEST: Final = 3
"""How many letters a word has that makes a line fit a text."""


@dataclass(frozen=True, slots=True)
class NotedLine:
    """One line, with the heading that it stands below, the class it is of (or nothing), and its number in the file."""

    heading: str
    topic: str
    text: str
    number: int

    @property
    def shown(self) -> str:
        """The line as an answer shows it."""
        return f"{MARK}{', '.join(filter(None, (self.heading, self.topic)))}: {self.text}"


@dataclass(frozen=True, slots=True)
class Preferred:
    """A name, and the id of the relation that it means here, as they are written."""

    name: str
    relation: str
    number: int


@dataclass(frozen=True, slots=True)
class Example:
    """A question, the calls that answer it as words of `kg-sextant call`, and the answer, which may be empty."""

    question: str
    calls: tuple[str, ...]
    answer: str
    number: int

    @property
    def text(self) -> str:
        """The example on one line."""
        answer = f" = {self.answer}" if self.answer else ""
        return f"{self.question} {'; '.join(self.calls)}{answer}"


@dataclass(frozen=True, slots=True)
class Notes:
    """What is written of one graph.

    Args:
        lines: Every line but those of Prefer and Examples that were understood.
        preferred: What names of relations mean.
        examples: Questions with their calls.
        problems: Lines that could not be read, each as a sentence that names its number.
    """

    lines: tuple[NotedLine, ...] = ()
    preferred: tuple[Preferred, ...] = ()
    examples: tuple[Example, ...] = ()
    problems: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return what a text in Markdown notes; what cannot be read is among its problems."""
        lines: list[NotedLine] = []
        preferred: list[Preferred] = []
        examples: list[Example] = []
        problems: list[str] = []
        for line in _lines(text, problems):
            if fold(line.heading) == _PREFER:
                if (found := _PREFERRED.fullmatch(line.text.replace("`", ""))) is None:
                    problems.append(
                        f"Line {line.number}: write a name and the id of a relation, as in `author: ex:p7`."
                    )
                else:
                    preferred.append(Preferred(found["name"].strip("\"' "), found["relation"], line.number))
            elif fold(line.heading) == _EXAMPLES:
                _add_example(line, examples, problems)
            else:
                lines.append(line)
        uncalled = [each for each in examples if not each.calls]
        problems.extend(f"Line {each.number}: this example has no call, a line in `backticks`." for each in uncalled)
        return cls(tuple(lines), tuple(preferred), tuple(each for each in examples if each.calls), tuple(problems))

    @property
    def about(self) -> str:
        """The first lines on what the graph is about, on one line; empty where none say so."""
        about = (each.text for each in self.lines if fold(each.heading) == _ABOUT)
        return " ".join(affordable(about, ABOUT_TOKENS))

    @property
    def relations(self) -> Mapping[str, str]:
        """The ids of preferred relations by their folded names; of two for one name the first."""
        return {fold(each.name): each.relation for each in reversed(self.preferred)}

    def tokens(self, most: int) -> int:
        """Return how much of a budget all lines would take, at most `most`."""
        return min(most, sum(token_count(f"{line.shown}\n") for line in self._every()))

    def fitting(self, about: str | None, names: Collection[str], max_tokens: int) -> tuple[str, ...]:
        """Return the lines that fit what is asked about, best first, as an answer shows them.

        Args:
            about: What is asked about; None for the whole graph, which every line fits.
            names: Labels and ids of what the answer shows.
            max_tokens: How long they may be together.
        """
        every = self._every()
        if about is not None:
            wanted, shown = _words(about), {fold(name) for name in names}
            ranked = [(_rank(line, fold(about), wanted, shown), line) for line in every]
            every = tuple(line for rank, line in sorted(ranked, key=lambda each: -each[0]) if rank)
        return tuple(affordable((line.shown for line in every), max_tokens))

    def _every(self) -> tuple[NotedLine, ...]:
        """Return every line to show, those on what the graph is about first."""
        preferred = (
            NotedLine("Prefer", "", f"{each.name} means {each.relation}", each.number) for each in self.preferred
        )
        examples = (NotedLine("Example", "", each.text, each.number) for each in self.examples)
        return (*self.lines, *preferred, *examples)


def _lines(text: str, problems: list[str]) -> Iterator[NotedLine]:
    """Yield every line that is neither a heading nor blank, each on one line and of bounded length."""
    heading, topic = "About", ""
    written = text.splitlines()
    if len(written) > MAX_LINES:
        problems.append(f"Line {MAX_LINES + 1} and those below are not read: notes have at most {MAX_LINES:,} lines.")
    for number, line in enumerate(written[:MAX_LINES], 1):
        plain = line.strip()
        if (found := _HEADING.fullmatch(plain)) is not None:
            title = shown_within(one_line(found[2].strip("# ")), _TITLE)
            heading, topic = (title, "") if len(found[1]) <= _OWN_LEVELS else (heading, title)
        elif plain and not plain.startswith((_FENCE, _COMMENT)):
            said = one_line(_BULLET.sub("", plain, count=1))
            if len(said) > MAX_LINE:
                problems.append(f"Line {number} is cut: a line has at most {MAX_LINE} characters.")
            yield NotedLine(heading, topic, said[:MAX_LINE], number)


def _add_example(line: NotedLine, examples: list[Example], problems: list[str]) -> None:
    """Add a line to the example that it continues, or begin the next one with it."""
    call, answer = _CALL.match(line.text), _ANSWER.match(line.text)
    if call is None and answer is None:
        examples.append(Example(_QUESTION.sub("", line.text, count=1), (), "", line.number))
    elif not examples:
        problems.append(f"Line {line.number}: a question stands before its calls and its answer.")
    elif call is not None:
        text = (call["quoted"] or call["command"]).strip().removeprefix(_COMMAND)
        examples[-1] = replace(examples[-1], calls=(*examples[-1].calls, text))
    elif answer is not None:
        examples[-1] = replace(examples[-1], answer=line.text[answer.end() :])


def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in re.findall(r"\w+", fold(text)) if len(word) >= _SHORTEST)


def _rank(line: NotedLine, about: str, wanted: frozenset[str], shown: Collection[str]) -> float:
    """Return how well a line fits: by the class it is of, by words of the question, or by what the answer shows."""
    said = fold(line.text)
    of_class = 10.0 if line.topic and fold(line.topic) in {about, *shown, *wanted} else 0.0
    shared = len(wanted & _words(f"{line.topic} {line.text}"))
    padded = f" {' '.join(_SPOKEN.findall(said))} "
    named = any(f" {name} " in padded for name in shown if len(name) >= _SHORTEST)
    return of_class + shared + (0.5 if named else 0.0)


def notes_file(graph: str, chosen: Path | None) -> Path | None:
    """Return where the notes of a graph may be: in a chosen file, in its store or folder, or beside its file.

    Args:
        graph: The graph's name, as the settings give it.
        chosen: The file that the settings name, if they do.
    """
    if chosen is not None:
        return chosen
    path = path_of(graph)
    if path is None:
        return None
    if path.is_dir():
        return path / NOTES_FILE
    # What is compressed has two endings.
    name = Path(path.stem).stem if path.suffix.lower() in PACKINGS else path.stem
    return path.with_name(f"{name}.{NOTES_FILE}")


def read_notes(file: Path) -> Notes:
    """Return what a file notes.

    Raises:
        InvalidRequest: It cannot be read, is too large or is no text.
    """
    try:
        return Notes.parse(read_regular(file, MAX_BYTES).decode("utf-8-sig"))
    except OSError as error:
        raise InvalidRequest(f"The notes {file} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"The notes {file} are not text in UTF-8. Save them so.") from error


class NotesFile:
    """The notes of a graph, read again when their file changes.

    Args:
        file: Where they may be; None for nowhere.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._stamp: tuple[int, int, int] | None = None
        self._notes = Notes()
        self._relations: Mapping[str, str] = {}
        if file is not None:
            self._refresh(file)
        self.at_start = self._notes

    @classmethod
    def of(cls, graph: str, chosen: Path | None) -> Self:
        """Return the notes of the graph of this name.

        Raises:
            InvalidRequest: The chosen file cannot be read.
        """
        if chosen is not None:
            read_notes(chosen)
        return cls(notes_file(graph, chosen))

    async def read(self) -> Notes:
        """Return the present notes; those before a change, with a warning in the log, where they cannot be read."""
        if self._file is not None:
            await to_thread.run_sync(self._refresh, self._file)
        return self._notes

    async def preferred_ids(self) -> Mapping[str, str]:
        """Return the ids that the present notes give names of relations, by folded name."""
        await self.read()
        return self._relations

    def _refresh(self, file: Path) -> None:
        if (stamp := _stamp_of(file)) == self._stamp:
            return
        try:
            self._notes = Notes() if stamp is None else read_notes(file)
        except InvalidRequest as error:
            logger.warning("%s What they said before stays in use.", error)
        self._relations = self._notes.relations
        self._stamp = stamp


class HasNotes(Protocol):
    """What has the notes of graphs."""

    def notes_of(self, graph: KGAdapter) -> NotesFile | None:
        """Return the notes of a graph; None where it has none."""


_NOTED: Final[ContextVar[HasNotes]] = ContextVar("_NOTED")


async def preferred_ids(graph: KGAdapter) -> Mapping[str, str]:
    """Return the ids that the notes of a graph give names of relations in the call under way, by folded name."""
    noted = _NOTED.get(None)
    notes = None if noted is None else noted.notes_of(graph)
    return {} if notes is None else await notes.preferred_ids()


@dataclass(frozen=True)
class Preferring:
    """Middleware in whose calls names of relations mean what the notes of their graph prefer.

    Args:
        noted: What has the notes.
    """

    noted: HasNotes

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Pass a message on."""
        token = _NOTED.set(self.noted)
        try:
            return await call_next(ctx)
        finally:
            _NOTED.reset(token)


def _stamp_of(file: Path) -> tuple[int, int, int] | None:
    """Return what tells the content of a file from the next one; None where there is no file."""
    try:
        at = file.stat()
    except OSError:
        return None
    return at.st_ino, at.st_size, at.st_mtime_ns
