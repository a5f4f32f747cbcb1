"""The benchmarks that can be loaded, by name."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeAlias

from kg_eval.questions.formats import (
    CreakRow,
    PlainRow,
    QaldRow,
    SimpleRow,
    SlotRow,
    WebRow,
    WorldRow,
    read_grbench,
    read_kgdata,
)
from kg_eval.questions.record import Edge, Gold, InvalidQuestions, Record, Topic, read_records

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
    "qald10": partial(read_records, kind=QaldRow),
    "creak": partial(read_records, kind=CreakRow),
    "t-rex": partial(read_records, kind=SlotRow),
    "zero-shot-re": partial(read_records, kind=SlotRow),
    "webqsp": partial(read_records, kind=WebRow, member="Questions"),
    "grbench": read_grbench,
    "kgdata": read_kgdata,
    "simplequestions": partial(read_records, kind=SimpleRow),
    "world": partial(read_records, kind=WorldRow),
    "jsonl": partial(read_records, kind=PlainRow),
}


def read_questions(benchmark: BenchmarkName, path: Path) -> tuple[Record, ...]:
    """Return the questions of a benchmark from its published file, or from the folder of its files.

    Raises:
        InvalidQuestions: A file cannot be read, or a row is wrong; the text names the line.
    """
    return READERS[benchmark](path)
