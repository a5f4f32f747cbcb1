"""GRBench: five domains in ten files, which may lie in one folder."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import BeforeValidator, StringConstraints

from kg_eval.questions.plain import written
from kg_eval.questions.reading import PublishedRow, is_array, numbered, read_rows, validated
from kg_eval.questions.record import Gold, InvalidQuestions, Record

DOMAINS: Final[Mapping[str, str]] = {
    "amazon": "E-commerce",
    "biomedical": "Healthcare",
    "dblp": "Academic",
    "goodreads": "Literature",
    "legal": "Legal",
    "maple": "Academic",
}
"""The domain of the papers' tables, by the graph that a file is about."""

_ENDINGS: Final = {".json", ".jsonl"}
_OF_TEMPLATE: Final = 10
"""How many questions follow one template."""


def _joined(value: object) -> object:
    """Join the parts of a list, as the published scoring does."""
    parts = value if is_array(value) else [value]
    texts = [written(each) for each in parts if isinstance(each, str | int | float)]
    return ", ".join(texts) if len(texts) == len(parts) else None


class GrRow(PublishedRow):
    """A row of GRBench; `level` stands in one of its two releases."""

    qid: Annotated[str, BeforeValidator(_joined), StringConstraints(pattern=r"^\d{1,9}$")]
    question: Annotated[str, StringConstraints(min_length=1)]
    answer: Annotated[str, BeforeValidator(_joined)]
    level: str = ""


def read_grbench(path: Path) -> tuple[Record, ...]:
    """Read one file of GRBench, or all in a folder; of what graph a file is follows from its path.

    Raises:
        InvalidQuestions: There is no file, or the path names no graph of GRBench.
    """
    files = sorted(each for each in path.rglob("*") if each.suffix in _ENDINGS) if path.is_dir() else [path]
    return numbered(path, (found for file in files for found in _records(file)))


def _records(path: Path) -> Iterator[tuple[int, Record]]:
    graph = _graph_of(path)
    for row in read_rows(path):
        found = validated(GrRow, row, path)
        yield (
            row.line,
            Record(
                f"{graph}:{found.qid}",
                found.question,
                (Gold(found.answer),) if found.answer else (),
                kind=f"{graph}:{int(found.qid) // _OF_TEMPLATE}",
                group=DOMAINS[graph.partition("-")[0]],
            ),
        )


def _graph_of(path: Path) -> str:
    """Return the graph that a file is about, as `legal` or `maple-biology`."""
    parts = [path.stem, *(each.name for each in path.parents)][:3]
    for depth, part in enumerate(map(str.lower, parts)):
        name = part.partition("-")[0].partition("_")[0]
        if name in DOMAINS and name in {part, "maple"}:
            field = parts[depth - 1].lower() if part == "maple" and depth else ""
            return f"maple-{field}" if field and field != "data" else part
    raise InvalidQuestions(
        f"{path} is in no folder and has no name of a graph of GRBench. Name it as one of {', '.join(DOMAINS)}."
    )
