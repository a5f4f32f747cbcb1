"""The embedding model that ships with the package: all-MiniLM-L6-v2 in 8 bits, on this machine's processor."""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from threading import Event
from typing import Final, Protocol

import anyio
import anyio.to_thread
import numpy as np
import numpy.typing as npt

from kg_adapters.embedding.fair_lock import FairLock
from kg_adapters.embedding.protocol import Vectors, encodable, is_blank, unit_rows
from kg_adapters.embedding.word_pieces import WordPieces
from kg_adapters.errors import Unsupported

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
