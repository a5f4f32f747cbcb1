"""The benchmarks that can be loaded, by name."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

from kg_eval.questions.formats import (
    read_creak,
    read_grbench,
    read_kgdata,
    read_plain,
    read_qald,
    read_simple,
    read_slots,
    read_webqsp,
    read_world,
)
from kg_eval.questions.record import Edge, Gold, InvalidQuestions, Record, Topic

__all__ = ["READERS", "BenchmarkName", "Edge", "Gold", "InvalidQuestions", "Record", "Topic", "read_questions"]

BenchmarkName: TypeAlias = Literal[
    "qald10",
    "creak",
    "t-rex",
    "zero-shot-re",
    "webqsp",
    "grbench",
    "kgdata",
    "simplequestions",
    "world",
    "jsonl",
]

READERS: Final[Mapping[BenchmarkName, Callable[[Path], tuple[Record, ...]]]] = {
    "qald10": read_qald,
    "creak": read_creak,
    "t-rex": read_slots,
    "zero-shot-re": read_slots,
    "webqsp": read_webqsp,
    "grbench": read_grbench,
    "kgdata": read_kgdata,
    "simplequestions": read_simple,
    "world": read_world,
    "jsonl": read_plain,
}


def read_questions(benchmark: BenchmarkName, path: Path) -> tuple[Record, ...]:
    """Return the questions of a benchmark from its published file, or from the folder of its files.

    Raises:
        InvalidQuestions: A file cannot be read, or a row is wrong; the text names the line.
    """
    return READERS[benchmark](path)
