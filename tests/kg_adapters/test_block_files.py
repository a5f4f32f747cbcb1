"""Arrays of a store are verified block by block, each block before it is first used."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from kg_adapters.index.block_files import BLOCK_BYTES, Damage
from kg_adapters.index.graph_index import Longs, StringTable
from kg_adapters.local.array_files import ArrayFiles, open_tables
from kg_adapters.local.checksums import sealed_files

COUNT = 96 * BLOCK_BYTES // 8
NUMBERS = np.arange(COUNT, dtype=np.int64)
LATE = 3 * BLOCK_BYTES // 8
"""The place of a number in the fourth block, which a test damages."""


@dataclass(frozen=True)
class Numbers:
    """What a file of numbers is opened as."""

    numbers: Longs


class Opened:
    """A file of numbers in a folder, opened as those of a store are."""

    def __init__(self, folder: Path, change: Callable[[Path], None] = lambda _: None) -> None:
        self.path = folder / "index" / "numbers.npy"
        self.path.parent.mkdir()
        np.save(self.path, NUMBERS)
        sealed = sealed_files(folder, [self.path])
        change(self.path)
        self.files = ArrayFiles(folder, "index", sealed)
        self.numbers = open_tables(Numbers, self.files).numbers

    def damage(self) -> None:
        flip(self.path)


def flip(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(128 + LATE * 8)
        file.write(b"\xff")


def test_whatever_is_read_of_an_array_is_what_was_written(tmp_path: Path) -> None:
    numbers = Opened(tmp_path).numbers
    assert (numbers[7], numbers[-1], len(numbers), numbers.shape) == (7, COUNT - 1, COUNT, (COUNT,))
    assert np.array_equal(numbers[10:50_000:7], NUMBERS[10:50_000:7])
    assert np.array_equal(numbers[np.array([LATE, -2])], NUMBERS[[LATE, -2]])
    assert np.array_equal(numbers[NUMBERS % 3 == 0], NUMBERS[NUMBERS % 3 == 0])
    assert np.array_equal(numbers + 1, NUMBERS + 1)
    assert np.array_equal(np.diff(numbers), np.diff(NUMBERS))
    assert int(np.searchsorted(numbers, LATE)) == LATE


READS: tuple[Callable[[npt.NDArray[np.int64]], object], ...] = (
    lambda numbers: numbers[LATE],
    lambda numbers: numbers[LATE - COUNT],
    lambda numbers: numbers[LATE - 1 : LATE + 1],
    lambda numbers: numbers[::-1],
    lambda numbers: numbers[np.array([1, LATE])],
    lambda numbers: numbers[[1, LATE]],
    lambda numbers: numbers[np.ones(COUNT, dtype=np.bool_)],
    lambda numbers: numbers == 1,
    lambda numbers: 1 - numbers,
    list,
    lambda numbers: numbers.tolist(),
    np.asarray,
    lambda numbers: np.isin(numbers, [1]),
    np.flatnonzero,
    lambda numbers: np.arange(COUNT)[numbers],
)


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("moment", ["before opening", "after opening", "after use"])
def test_no_read_of_a_damaged_block_is_answered(
    tmp_path: Path, read: Callable[[npt.NDArray[np.int64]], object], moment: str
) -> None:
    opened = Opened(tmp_path, flip if moment == "before opening" else lambda _: None)
    if moment == "after use":
        read(opened.numbers)
    opened.damage()
    opened.files.watch()
    assert (opened.numbers[7], opened.numbers[COUNT - 1]) == (7, COUNT - 1)
    for _ in range(2):
        with pytest.raises(Damage, match=r"the content of index/numbers\.npy has changed"):
            read(opened.numbers)


def test_a_file_that_is_cut_off_while_it_is_open_is_damage(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    with opened.path.open("r+b") as file:
        file.truncate(BLOCK_BYTES)
    for _ in range(2):
        with pytest.raises(Damage, match=r"index/numbers\.npy was cut off to 16,384 bytes"):
            opened.files.watch()


def test_rows_that_lie_in_two_blocks_are_verified_in_both(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    path = tmp_path / "index" / "numbers.npy"
    np.save(path, np.ones((BLOCK_BYTES // 100, 1_000), dtype=np.int16))
    sealed = sealed_files(tmp_path, [path])
    with path.open("r+b") as file:
        file.seek(BLOCK_BYTES)
        file.write(b"\xff")
    rows = open_tables(Numbers, ArrayFiles(tmp_path, "index", sealed)).numbers
    row = (BLOCK_BYTES - 128) // 2_000
    assert rows[row - 1].sum() == 1_000
    for key in (row, slice(row, row + 1), np.array([row])):
        with pytest.raises(Damage):
            rows[key]


def test_a_row_of_several_blocks_is_verified_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    path = tmp_path / "index" / "numbers.npy"
    np.save(path, np.ones((4, 4 * BLOCK_BYTES), dtype=np.int8))
    sealed = sealed_files(tmp_path, [path])
    with path.open("r+b") as file:
        file.seek(128 + 6 * BLOCK_BYTES)
        file.write(b"\xff")
    rows = open_tables(Numbers, ArrayFiles(tmp_path, "index", sealed)).numbers
    assert rows[0].sum() == 4 * BLOCK_BYTES
    for key in (1, slice(1, 2), np.array([1])):
        with pytest.raises(Damage):
            rows[key]


def test_a_table_of_strings_finds_each_and_reads_few_blocks(tmp_path: Path) -> None:
    texts = [f"http://example.org/{number:06}".encode() for number in range(100_000)]
    offsets: Longs = np.cumsum([0, *map(len, texts)])
    (tmp_path / "index").mkdir()
    for name, values in (("offsets", offsets), ("text", np.frombuffer(b"".join(texts), np.uint8))):
        np.save(tmp_path / "index" / f"{name}.npy", values)
    sealed = sealed_files(tmp_path, sorted((tmp_path / "index").iterdir()))
    table = open_tables(StringTable, ArrayFiles(tmp_path, "index", sealed))
    flip_at = len(texts[0]) * 3_000 + 128
    with (tmp_path / "index" / "text.npy").open("r+b") as file:
        file.seek(flip_at)
        file.write(b"\xff")
    assert table.find("http://example.org/099999") == 99_999
    assert table.find("http://example.org/x") is None
    with pytest.raises(Damage):
        table.find("http://example.org/003000")
