"""The subgraphs of KGdata, `{topic: [[head, relation, tail], …]}`, as one list of edges that can be imported."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

from kg_eval.questions.reading import is_array, is_object, read_rows, wrong
from kg_eval.questions.record import InvalidQuestions

Edge: TypeAlias = tuple[str, str, str]

HEADER: Final[Edge] = ("head", "relation", "tail")


def read_subgraphs(path: Path) -> tuple[Edge, ...]:
    """Return the triples of all topics, each once, in the order of the file.

    Args:
        path: One object of all topics, or objects one after the other, as one on each line.

    Raises:
        InvalidQuestions: The file cannot be read, or something in it is no triple; the text names its topic.
    """
    found = tuple(dict.fromkeys(edge for row in read_rows(path) for edge in _edges(row.value, path, row.line)))
    if not found:
        raise InvalidQuestions(f"{path} holds no triple.")
    return found


def edge_list(edges: tuple[Edge, ...]) -> str:
    """Return triples as a table with tabs between its columns, as `kg-sextant import` takes it."""
    text = io.StringIO()
    # A line break inside a name would end its row for readers that know no quotation marks.
    rows = (tuple(" ".join(cell.split()) for cell in edge) for edge in edges)
    csv.writer(text, delimiter="\t", lineterminator="\n").writerows((HEADER, *rows))
    return text.getvalue()


def _edges(value: object, path: Path, line: int) -> Iterator[Edge]:
    if not is_object(value):
        raise wrong(path, line, "Subgraphs are an object of topics, and this is none.")
    for topic, triples in value.items():
        if not is_array(triples):
            raise wrong(path, line, f"The topic {topic!r} has no list of triples.")
        for number, triple in enumerate(triples, start=1):
            match triple:
                case [str() | int() | float() as head, str() as relation, str() | int() | float() as tail]:
                    yield str(head), relation, str(tail)
                case _:
                    raise wrong(
                        path, line, f"The topic {topic!r}, triple {number}: a triple is three texts or numbers."
                    )
