"""Read the rows of Parquet files as records, behind the extra `parquet`."""

import io
from collections.abc import Callable, Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Final, TypeAlias

from kg_adapters.files.rdf import Problem
from kg_adapters.files.sources import Source
from kg_adapters.open_options import ReadingLimits, Refused
from kg_adapters.tables.records import RecordTables
from kg_adapters.tables.rows import TableBatch, check_width, stem_of
from kg_boundary.installation import install_command
from kg_boundary.json_stream import Json
from kg_boundary.regular_files import open_regular
from kg_boundary.shown import listed

if TYPE_CHECKING:
    from arro3.core import Array, RecordBatchReader

MAGIC: Final = b"PAR1"
_BATCH: Final = 1_024
_Scalar: TypeAlias = bool | int | float | str | bytes | Decimal | date | time | timedelta | None
_Cell: TypeAlias = "_Scalar | list[_Cell] | tuple[_Cell, _Cell] | dict[str, _Cell]"
_UNREAD: Final = ("Binary", "Interval")


def parquet_batches(
    source: Source, stream: IO[bytes], problem: Problem, note: Callable[[str], None], limits: ReadingLimits
) -> Iterator[TableBatch]:
    """Yield the rows of a Parquet file, and of what is nested in them.

    Args:
        source: The file.
        stream: Its content; read where the file is packed.
        problem: Called for each row that cannot be taken.
        note: Called with what is left out.
        limits: How long a value may be.

    Raises:
        Refused: It is not whole, has too many columns, or the package is missing that reads such files.
    """
    packed = bool(source.packing or source.member)
    with io.BytesIO(stream.read()) if packed else open_regular(source.path) as file:
        _check(file)
        reader = _reader(file)
        schema = reader.schema
        check_width(len(schema.names), "its schema: it")
        kinds = {name: str(schema.field(name).type) for name in schema.names}
        unread = {name for name, kind in kinds.items() if any(each in kind for each in _UNREAD)}
        if unread:
            note(f"{source.path}: {listed(sorted(unread), ', ')} left out: binary values and intervals are no text.")
        tables, number = RecordTables(str(source.path), "row", problem, limits), 0
        for batch in reader:
            names = [name for name in batch.column_names if name not in unread]
            columns = [_cells(batch.column(name)) for name in names]
            for row in zip(*columns, strict=True):
                number += 1
                record = {name: _json(value) for name, value in zip(names, row, strict=True)}
                yield from tables.add(stem_of(source.name), number, record)
    if not number:
        problem(f"{source.path} has no row.", ValueError())
    yield from tables.rest()


def _check(file: IO[bytes]) -> None:
    """Make sure that a file ends as it should, since its end holds the index of all parts.

    Raises:
        Refused: It does not.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(max(size - 8, 0))
    end = file.read(8)
    file.seek(0)
    if end[4:] != MAGIC or int.from_bytes(end[:4], "little") + 12 > size:
        raise Refused(f"byte {size:,}: a Parquet file ends with a description of its columns, and this one does not")


def _reader(file: IO[bytes]) -> "RecordBatchReader":
    try:
        from arro3.io import read_parquet  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise Refused(
            "byte 0: it is a Parquet file, which needs one more package. Save it as CSV, or run "
            f"`{install_command('parquet')}`"
        ) from error
    return read_parquet(file, batch_size=_BATCH)


def _cells(column: "Array") -> list[_Cell]:
    return [column[place].as_py() for place in range(len(column))]


def _json(value: _Cell) -> Json:
    """Return a value as JSON would have it."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {key: _json(each) for key, each in value.items()}
        case list():
            pairs = [each for each in value if isinstance(each, tuple)]
            # A map is a list of pairs.
            return {str(key): _json(each) for key, each in pairs} if pairs else [_json(each) for each in value]
        case Decimal():
            return format(value, "f")
        case _:
            return str(value)
