"""The embedding model that ships with the package: all-MiniLM-L6-v2 in 8 bits, on this machine's processor."""

import hashlib
import json
import os
import re
import unicodedata
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from threading import Event, Lock
from typing import Final, Protocol

import anyio
import anyio.to_thread
import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

from kg_adapters.embedding.lexical import LexicalEmbedder
from kg_adapters.embedding.protocol import Embedder, Vectors, encodable, is_blank, unit_rows
from kg_adapters.errors import Unsupported

_UNKNOWN, _BEGIN, _END = "[UNK]", "[CLS]", "[SEP]"
_LONGEST_WORD: Final = 100
_WORDS_KEPT: Final = 50_000
# Whatever a line may be broken at counts as a space, other control characters as nothing.
_SPACES: Final = frozenset("\t\n\r")
_DROPPED: Final = frozenset({"Cc", "Cf", "Co"})
_CHINESE: Final = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class _Added(BaseModel):
    id: int
    content: str


class _Vocabulary(BaseModel):
    vocab: dict[str, int]


class _File(BaseModel):
    """What is read of a `tokenizer.json`."""

    added_tokens: list[_Added]
    model: _Vocabulary


class WordPieces:
    """Splits texts into the pieces of a vocabulary.

    Args:
        content: A `tokenizer.json` with a vocabulary of word pieces for text without capitals.
        max_pieces: The most pieces of a text, with one before and one behind it; more are left out.
    """

    def __init__(self, content: bytes, max_pieces: int) -> None:
        file = _File.model_validate(json.loads(content))
        self._vocabulary = file.model.vocab
        self._special = {added.content: added.id for added in file.added_tokens}
        self._between = re.compile("(" + "|".join(map(re.escape, self._special)) + ")")
        self._max_pieces = max_pieces
        self._begin, self._end = self._vocabulary[_BEGIN], self._vocabulary[_END]
        self._pieces = lru_cache(maxsize=_WORDS_KEPT)(self._split)

    def numbers(self, text: str) -> list[int]:
        """Return the numbers of a text's pieces."""
        room = self._max_pieces - 2
        found: list[int] = []
        for part in self._between.split(text) if "[" in text else (text,):
            if part in self._special:
                found.append(self._special[part])
            else:
                for word in _words(part):
                    found += self._pieces(word)
                    if len(found) >= room:
                        break
        return [self._begin, *found[:room], self._end]

    def _split(self, word: str) -> Sequence[int]:
        """Return the numbers of the longest pieces that a word begins with, one after the other."""
        unknown = (self._vocabulary[_UNKNOWN],)
        if len(word) > _LONGEST_WORD:
            return unknown
        numbers: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in self._vocabulary), None)
            if end is None:
                return unknown
            numbers.append(self._vocabulary[prefix + word[start:end]])
            start = end
        return tuple(numbers)


def _words(text: str) -> Iterator[str]:
    """Yield the words of a text without capitals and accents, and its punctuation marks."""
    plain = text.lower() if text.isascii() and text.isprintable() else _plain(text)
    for word in plain.split():
        if word.isalnum():
            yield word
        else:
            yield from _around_marks(word)


def _plain(text: str) -> str:
    cleaned = "".join(map(_cleaned, text))
    bare = "".join(letter for letter in unicodedata.normalize("NFD", cleaned) if unicodedata.category(letter) != "Mn")
    # Letter by letter: which sigma stands at the end of a word makes no difference then.
    return "".join(letter.lower() for letter in bare)


@lru_cache(maxsize=4_096)
def _cleaned(letter: str) -> str:
    if letter in _SPACES or (letter.isspace() and unicodedata.category(letter) not in _DROPPED):
        return " "
    if letter in "\0\ufffd" or unicodedata.category(letter) in _DROPPED:
        return ""
    code = ord(letter)
    return f" {letter} " if code >= 0x3400 and any(first <= code <= last for first, last in _CHINESE) else letter


def _around_marks(word: str) -> Iterator[str]:
    start = 0
    for place, letter in enumerate(word):
        if _is_mark(letter):
            if start < place:
                yield word[start:place]
            yield letter
            start = place + 1
    if start < len(word):
        yield word[start:]


@lru_cache(maxsize=4_096)
def _is_mark(letter: str) -> bool:
    if letter.isascii():
        return not letter.isalnum()
    return unicodedata.category(letter).startswith("P")


class FairLock:
    """Held by one thread at a time, as a context; who waits longest is next.

    A plain lock often goes to the thread that has just released it, so that one with much to do keeps all others out.
    """

    def __init__(self) -> None:
        self._guard = Lock()
        self._waiting: deque[Lock] = deque()
        self._held = False

    def __enter__(self) -> None:
        """Wait for the turn."""
        with self._guard:
            if not self._held:
                self._held = True
                return
            turn = Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()

    def __exit__(self, *_: object) -> None:
        """Give it on."""
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._held = False


MODEL_FOLDER: Final = Path(__file__).parent / "model"
MODEL_FILE, TOKENIZER_FILE = "minilm-l6-v2-int8.onnx", "tokenizer.json"
MODEL_SHA256: Final = "83e3ec2ec247f74d0a06ce758d6a7461960b7b03bc11477fb4f0a07b50ad7cd3"
TOKENIZER_SHA256: Final = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
DIMENSIONS: Final = 384
_MAX_TOKENS: Final = 128
# No 128 tokens of written language are longer, and the tokenizer reads a text to its end before it cuts.
_MAX_CHARACTERS: Final = 2_000
_BATCH: Final = 16
# So many threads wait for the model at most; further calls wait outside.
_CALLS_AT_ONCE: Final = 8
_TOKENIZED_AT_ONCE: Final = 4_096
# Batches are small: more threads would wait for each other.
_MOST_THREADS: Final = 8


class MiniLmEmbedder:
    """Embeds with the shipped model; it is loaded by the first call, which takes a quarter of a second.

    One batch runs at a time, and callers take turns batch by batch, so that a long call does not hold up a short one;
    where many long ones may come at once, `QueuedEmbedder` puts them in a row. The next batch begins when one ends,
    however busy the event loop is. Who cancels a call goes on at once; at most a batch of it is computed in vain.

    Args:
        folder: Where the two files of the model lie.
        threads: How many processor cores a batch may use; all of them, but at most 8, when None.
    """

    def __init__(self, *, folder: Path = MODEL_FOLDER, threads: int | None = None) -> None:
        self._folder = folder
        self._threads = threads or min(_cores(), _MOST_THREADS)
        self._turn = FairLock()
        self._calls = anyio.CapacityLimiter(_CALLS_AT_ONCE)
        self._model: _Model | None = None

    @property
    def fingerprint(self) -> str:
        """See `Embedder`."""
        return f"minilm-l6-v2-int8-{MODEL_SHA256[:8]}-{TOKENIZER_SHA256[:8]}-{_MAX_TOKENS}"

    @property
    def dimensions(self) -> int:
        """See `Embedder`."""
        return DIMENSIONS

    def load(self) -> None:
        """Load the model now, where it is not loaded yet; this blocks.

        Raises:
            Unsupported: A library cannot be imported or does not run the model, or a file is missing or damaged.
        """
        self._loaded()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`."""
        given_up = Event()
        try:
            return await anyio.to_thread.run_sync(
                self._embed, texts, given_up, abandon_on_cancel=True, limiter=self._calls
            )
        finally:
            given_up.set()

    def _embed(self, texts: Sequence[str], given_up: Event) -> Vectors:
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        places = [place for place, text in enumerate(texts) if not is_blank(text)]
        for first in range(0, len(places), _TOKENIZED_AT_ONCE):
            for part, found in self._batches(texts, places[first : first + _TOKENIZED_AT_ONCE]):
                if given_up.is_set():
                    return vectors
                vectors[part] = found
        return vectors

    def _batches(self, texts: Sequence[str], places: Sequence[int]) -> Iterator[tuple[Sequence[int], Vectors]]:
        """Yield the vectors of some places, batch by batch."""
        with self._turn:
            tokens = self._loaded().tokenize([encodable(texts[place][:_MAX_CHARACTERS]) for place in places])
        order = sorted(range(len(places)), key=lambda number: len(tokens[number]))
        for first in range(0, len(order), _BATCH):
            batch = order[first : first + _BATCH]
            with self._turn:
                found = self._loaded().run([tokens[number] for number in batch])
            yield [places[number] for number in batch], found

    def _loaded(self) -> "_Model":
        if self._model is None:
            self._model = _Model(self._folder, self._threads)
        return self._model


class _Session(Protocol):
    """What is used of onnxruntime's `InferenceSession`, which has no types."""

    def run(
        self, output_names: Sequence[str], input_feed: Mapping[str, npt.NDArray[np.int64]], /
    ) -> Sequence[Vectors]: ...


class _Model:
    """The tokenizer and the network, loaded."""

    def __init__(self, folder: Path, threads: int) -> None:
        self._tokenizer = WordPieces(_content(folder / TOKENIZER_FILE, TOKENIZER_SHA256), _MAX_TOKENS)
        self._session = _open_session(_content(folder / MODEL_FILE, MODEL_SHA256), threads)

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        return list(map(self._tokenizer.numbers, texts))

    def run(self, tokens: Sequence[Sequence[int]]) -> Vectors:
        """Return the vectors of one batch, given the numbers of its tokens; the last text is the longest."""
        ids = np.zeros((len(tokens), len(tokens[-1])), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, numbers in enumerate(tokens):
            ids[row, : len(numbers)] = numbers
            mask[row, : len(numbers)] = 1
        return unit_rows(self._session.run(["v"], {"input_ids": ids, "attention_mask": mask})[0])


def _content(path: Path, sha256: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Unsupported(f"The embedding model's file {path} cannot be read: {error.strerror}. {_AGAIN}") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise Unsupported(f"The embedding model's file {path} is damaged. {_AGAIN}")
    return content


def _open_session(content: bytes, threads: int) -> _Session:
    # It is read when the library is loaded; otherwise a device id is written and a host is looked up.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        onnxruntime = import_module("onnxruntime")
        failures = _failures(vars(import_module("onnxruntime.capi.onnxruntime_pybind11_state")))
    except ImportError as error:
        raise _unusable("onnxruntime", error) from error
    try:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        # Threads that spin while they wait take the cores from everything else.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session: _Session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except failures as error:
        raise _unusable("onnxruntime", error) from error
    return session


def _failures(module: Mapping[str, object]) -> tuple[type[Exception], ...]:
    """Return the exceptions of onnxruntime, which have no base of their own."""
    classes = tuple(value for value in module.values() if isinstance(value, type) and issubclass(value, Exception))
    return (OSError, RuntimeError, ValueError, *classes)


def _unusable(library: str, error: Exception) -> Unsupported:
    return Unsupported(f"The embedding model needs {library}, which does not work here: {error}.")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_AGAIN: Final = "Install the package again."


@dataclass(frozen=True, slots=True)
class AvailableEmbedder:
    """An embedder that works, and why it is not the shipped model, in a sentence; None where it is."""

    embedder: Embedder
    fallback_reason: str | None = None


def best_available(*, folder: Path = MODEL_FOLDER, threads: int | None = None) -> AvailableEmbedder:
    """Return the shipped model, or the lexical embedder where it cannot run.

    Finding out means loading the model: this blocks for a quarter of a second, so call it in a thread.

    Args:
        folder: Where the two files of the model lie.
        threads: How many processor cores the model may use; None for all.
    """
    minilm = MiniLmEmbedder(folder=folder, threads=threads)
    try:
        minilm.load()
    except Unsupported as error:
        return AvailableEmbedder(LexicalEmbedder(), f"{error} Texts are compared by their letters instead.")
    return AvailableEmbedder(minilm)
