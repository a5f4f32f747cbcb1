"""The form of KGdata: any of the published sets, whose rows give their entities as `topic_entity`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from kg_eval.questions.published import (
    CreakRow,
    QaldRow,
    SlotRow,
    WebRow,
    creak_record,
    qald_record,
    slot_record,
    web_record,
)
from kg_eval.questions.reading import Row, is_object, numbered, read_rows, validated, wrong
from kg_eval.questions.record import Record

_BY_FIELD: Final[Mapping[str, Callable[[Row, Path, int], Record]]] = {
    "sentence": lambda row, path, number: creak_record(validated(CreakRow, row, path), number),
    "input": lambda row, path, number: slot_record(validated(SlotRow, row, path), number),
    "RawQuestion": lambda row, path, number: web_record(validated(WebRow, row, path), number),
    "question": lambda row, path, number: qald_record(validated(QaldRow, row, path), number),
}
"""What makes a question of a row, by the field that tells which set it is of."""


def read_kgdata(path: Path) -> tuple[Record, ...]:
    """Read questions of KGdata; which set they are of follows from their fields.

    Raises:
        InvalidQuestions: A row is of none of the sets.
    """
    rows = enumerate(read_rows(path, "Questions"), start=1)
    return numbered(path, ((row.line, _record(row, path, number)) for number, row in rows))


def _record(row: Row, path: Path, number: int) -> Record:
    if is_object(row.value):
        for field, record_of in _BY_FIELD.items():
            if field in row.value:
                return record_of(row, path, number)
    raise wrong(path, row.line, f"A row has one of the fields {', '.join(_BY_FIELD)}, and this one has none.")
