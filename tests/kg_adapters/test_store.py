"""Stores: what they hold, and the blocks in which their files are verified."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from kg_adapters.errors import InvalidSource
from kg_adapters.importing.build import build_store
from kg_adapters.index.block_files import BLOCK_BYTES, Damage
from kg_adapters.index.graph_index import Longs, StringTable
from kg_adapters.local.array_files import ArrayFiles, open_tables
from kg_adapters.local.checksums import sealed_files
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import FORMAT, is_store, open_store, read_store_info, verify_store

AGAIN = r"Import the files again: kg-sextant import FILE… --to .*store"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    source = tmp_path / "g.ttl"
    source.write_text('@prefix e: <http://e/> . e:a e:p e:b ; e:name "A"@en .', encoding="utf-8")
    return build_store([source], tmp_path / "store", ImportOptions(sparql=False)).folder


def change(folder: Path, key: str, value: object) -> None:
    content = json.loads((folder / "store.json").read_text(encoding="utf-8"))
    content[key] = value
    (folder / "store.json").write_text(json.dumps(content), encoding="utf-8")


def test_a_store_opens_with_its_index_and_what_it_says_of_itself(store: Path) -> None:
    opened = open_store(store)
    assert opened.folder == store
    assert [opened.index.nodes[row] for row in range(2)] == ["http://e/a", "http://e/b"]
    assert opened.info == read_store_info(store) == verify_store(store).info
    assert opened.info.prefixes.namespaces["e"] == "http://e/"


def test_every_file_but_oxigraphs_is_listed_with_its_size(store: Path) -> None:
    listed = {file.path: file.size for file in read_store_info(store).files}
    there = {path.relative_to(store).as_posix(): path.stat().st_size for path in store.rglob("*") if path.is_file()}
    assert listed == {path: size for path, size in there.items() if path != "store.json" and not path.endswith(".lock")}
    assert {"index/nodes.text.npy", "schema.json"} <= listed.keys()


def test_any_other_folder_is_no_store(tmp_path: Path) -> None:
    assert not is_store(tmp_path)
    with pytest.raises(InvalidSource, match=r"is not a store of kg-sextant\. Build one: kg-sextant import FILE…"):
        open_store(tmp_path)
    with pytest.raises(InvalidSource, match="is not a store"):
        open_store(tmp_path / "nowhere" / "store")


@pytest.mark.parametrize(("version", "age"), [(FORMAT - 1, "an older"), (FORMAT + 1, "a newer")])
def test_a_store_of_another_version_says_so_and_what_to_do(store: Path, version: int, age: str) -> None:
    change(store, "format", version)
    change(store, "unknown", "to this version")
    message = rf"built by {age} version \(format {version}; this one reads {FORMAT}\)\. {AGAIN}"
    with pytest.raises(InvalidSource, match=message):
        open_store(store)


@pytest.mark.parametrize("content", [b"", b"garbage", b"{}", b"\xff\xfe", b'{"format": "one"}', b"[" * 100_000])
def test_an_unreadable_store_file_is_an_error(store: Path, content: bytes) -> None:
    (store / "store.json").write_bytes(content)
    with pytest.raises(InvalidSource, match=rf"is damaged: store\.json cannot be read\. {AGAIN}"):
        open_store(store)


@pytest.mark.parametrize(
    ("key", "value"), [("unknown", 1), ("counts", {}), ("vocabulary", {"labels": [{"value": "no iri"}]})]
)
def test_a_store_file_that_says_something_else_is_an_error(store: Path, key: str, value: object) -> None:
    change(store, key, value)
    with pytest.raises(InvalidSource, match=r"store\.json cannot be read"):
        open_store(store)


def test_a_store_without_its_store_file_is_a_damaged_one(store: Path) -> None:
    (store / "store.json").unlink()
    assert is_store(store)
    with pytest.raises(InvalidSource, match=rf"is damaged: store\.json cannot be read\. {AGAIN}"):
        open_store(store)


def test_a_missing_file_is_named(store: Path) -> None:
    (store / "index" / "out.neighbors.npy").unlink()
    with pytest.raises(InvalidSource, match=rf"is damaged: index/out\.neighbors\.npy is missing\. {AGAIN}"):
        open_store(store)


def test_a_cut_off_file_is_named_with_its_sizes(store: Path) -> None:
    path = store / "index" / "out.neighbors.npy"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InvalidSource, match=r"index/out\.neighbors\.npy has 131 bytes instead of 132"):
        open_store(store)


def test_a_changed_first_block_is_found_at_opening(store: Path) -> None:
    path = store / "index" / "nodes.text.npy"
    path.write_bytes(path.read_bytes().replace(b"http://e/a", b"http://e/x"))
    with pytest.raises(InvalidSource, match=rf"the content of index/nodes\.text\.npy has changed\. {AGAIN}"):
        open_store(store)


def test_changed_content_elsewhere_is_found_by_verifying(store: Path) -> None:
    path = store / "text" / "nodes.names.text.npy"
    path.write_bytes(path.read_bytes().replace(b"a", b"x"))
    open_store(store)
    with pytest.raises(InvalidSource, match=rf"the content of text/nodes\.names\.text\.npy has changed\. {AGAIN}"):
        verify_store(store)


@pytest.mark.parametrize("part", [b"counts", b'"triples": 1', b'"name": "g"'])
def test_a_store_file_whose_content_has_changed_is_damaged(store: Path, part: bytes) -> None:
    path, changed = store / "store.json", part[:-2] + bytes([part[-2] ^ 1]) + part[-1:]
    path.write_bytes(path.read_bytes().replace(part, changed))
    with pytest.raises(InvalidSource, match=rf"is damaged: .*store\.json .*\. {AGAIN}"):
        open_store(store)


def test_verifying_looks_at_oxigraphs_files_too(tmp_path: Path) -> None:
    source = tmp_path / "g.nt"
    source.write_text("<http://e/a> <http://e/p> <http://e/b> .", encoding="utf-8")
    store = build_store([source], tmp_path / "store", ImportOptions()).folder
    verify_store(store)
    path = next((store / "oxigraph").glob("*.sst"))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(InvalidSource, match=rf"in oxigraph, the content of {path.name} has changed\. {AGAIN}"):
        verify_store(store)
    path.write_bytes(content[:-1])
    with pytest.raises(InvalidSource, match=rf"in oxigraph, {path.name} has [\d,]+ bytes instead of [\d,]+\. {AGAIN}"):
        verify_store(store)


def test_a_store_that_is_replaced_again_and_again_always_opens_as_one_of_them(tmp_path: Path) -> None:
    target, sources = tmp_path / "store", (tmp_path / "1.nt", tmp_path / "2.nt")
    for count, source in enumerate(sources, start=1):
        lines = (f"<http://e/{number}> <http://e/p{count}> <http://e/a> .\n" for number in range(100 * count))
        source.write_text("".join(lines), encoding="utf-8")
    build_store([sources[0]], target, ImportOptions(sparql=False))
    seen: set[tuple[int, int, int]] = set()
    with ThreadPoolExecutor(1) as pool:
        for source in sources * 4:
            replacing = pool.submit(build_store, [source], target, ImportOptions(sparql=False))
            while not replacing.done():
                opened = open_store(target)
                index = opened.index
                seen.add((opened.info.counts.triples, len(index.out.neighbors), len(index.into.neighbors)))
    assert seen == {(100, 100, 100), (200, 200, 200)}


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
