"""None"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import platformdirs
import pytest

from kg_boundary.private_files import open_private, private_database, private_file, private_folder, write_private
from kg_boundary.regular_files import parse_toml, parsed, read_regular, read_toml


@pytest.fixture(autouse=True)
def _loose_umask() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction] - pytest calls it
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> str:
    return f"{path.stat().st_mode & 0o777:o}"


def test_folders_that_are_missing_are_made_for_their_owner_and_others_stay_as_they_are(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o777)
    private_folder(theirs / "a" / "b")
    private_folder(theirs)
    assert [mode(each) for each in (theirs, theirs / "a", theirs / "a" / "b")] == ["777", "700", "700"]


def test_a_folder_of_ours_that_is_there_is_tightened(tmp_path: Path) -> None:
    ours = tmp_path / "traces"
    ours.mkdir(mode=0o755)
    private_folder(ours, ours=True)
    assert mode(ours) == "700"


@pytest.mark.parametrize("default", [platformdirs.user_cache_path, platformdirs.user_data_path])
@pytest.mark.parametrize("inside", ["", "vectors"])
def test_a_folder_where_things_are_kept_by_default_is_tightened(default: Callable[..., Path], inside: str) -> None:
    folder = default("kg-sextant", appauthor=False)
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    folder.chmod(0o755)
    private_folder(folder / inside)
    assert mode(folder) == "700"


def test_a_file_in_the_place_of_a_folder_of_ours_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "traces"
    file.write_text("theirs", encoding="utf-8")
    with pytest.raises(NotADirectoryError):
        private_folder(file, ours=True)
    assert mode(file) == "666"


@pytest.mark.parametrize("others", [0o001, 0o004, 0o010, 0o020, 0o077])
def test_every_right_of_others_is_taken_and_those_of_the_owner_stay(tmp_path: Path, others: int) -> None:
    file, folder = tmp_path / "x", tmp_path / "traces"
    file.touch()
    file.chmod(0o400 | others)
    folder.mkdir()
    folder.chmod(0o700 | others)
    private_file(file)
    private_folder(folder, ours=True)
    assert (mode(file), mode(folder)) == ("400", "700")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_what_belongs_to_another_user_stays_as_it_is(tmp_path: Path) -> None:
    file, folder = tmp_path / "x", tmp_path / "traces"
    file.write_text("theirs", encoding="utf-8")
    folder.mkdir(mode=0o755)
    for path in (file, folder):
        os.chown(path, 65534, -1)
    private_file(file)
    private_folder(folder, ours=True)
    assert (mode(file), mode(folder)) == ("666", "755")


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    def lowest_free() -> int:
        descriptor = os.open(os.devnull, os.O_RDONLY)
        os.close(descriptor)
        return descriptor

    (tmp_path / "traces").mkdir()
    before = lowest_free()
    private_folder(tmp_path / "traces", ours=True)
    private_file(tmp_path / "x")
    write_private(tmp_path / "y", b"new")
    assert lowest_free() <= before


def test_a_link_in_the_place_of_a_folder_of_ours_is_not_followed(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o755)
    (tmp_path / "traces").symlink_to(theirs)
    with pytest.raises(OSError, match="traces"):
        private_folder(tmp_path / "traces", ours=True)
    assert mode(theirs) == "755"


def test_a_file_is_made_or_tightened_and_keeps_what_it_holds(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_text("kept", encoding="utf-8")
    for path in (new, old):
        private_file(path)
        assert mode(path) == "600"
    assert old.read_text(encoding="utf-8") == "kept"


def test_what_sqlite_keeps_beside_a_database_is_tightened_with_it(tmp_path: Path) -> None:
    names = ("x.sqlite3", "x.sqlite3-wal", "x.sqlite3-shm")
    for name in names:
        (tmp_path / name).write_bytes(b"")
    private_database(tmp_path / "x.sqlite3")
    assert sorted((path.name, mode(path)) for path in tmp_path.iterdir()) == sorted((name, "600") for name in names)


@pytest.mark.parametrize("make", [private_file, private_database, open_private])
def test_a_file_is_never_reached_through_a_link(tmp_path: Path, make: object) -> None:
    theirs, link = tmp_path / "theirs", tmp_path / "link"
    theirs.write_text("theirs", encoding="utf-8")
    link.symlink_to(theirs)
    assert callable(make)
    with pytest.raises(OSError, match="link"):
        make(link)
    link.unlink()
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(OSError, match="link"):
        make(link)
    assert (theirs.read_text(encoding="utf-8"), mode(theirs)) == ("theirs", "666")
    assert not (tmp_path / "nowhere").exists()


def test_a_file_that_must_be_new_is_no_file_that_is_there(tmp_path: Path) -> None:
    os.close(open_private(tmp_path / "x", new=True))
    with pytest.raises(FileExistsError):
        open_private(tmp_path / "x", new=True)


def test_a_file_is_written_as_a_whole_in_the_place_of_what_is_there(tmp_path: Path) -> None:
    theirs, path = tmp_path / "theirs", tmp_path / "x.json"
    theirs.write_text("theirs", encoding="utf-8")
    path.symlink_to(theirs)
    write_private(path, b"new")
    assert (path.read_bytes(), mode(path), theirs.read_text(encoding="utf-8")) == (b"new", "600", "theirs")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["theirs", "x.json"]
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_private(tmp_path / "folder", b"new")
    assert len(list(tmp_path.iterdir())) == 3


def test_opening_for_writing_begins_anew_and_leaves_devices_alone(tmp_path: Path) -> None:
    path, device = tmp_path / "x", tmp_path / "device"
    path.write_text("old", encoding="utf-8")
    os.close(open_private(path))
    assert (path.read_bytes(), mode(path)) == (b"", "600")
    # A pipe stands for any device: were the rule broken, a run as root would change the device itself.
    os.mkfifo(device, 0o666)
    reader = os.open(device, os.O_RDONLY | os.O_NONBLOCK)
    os.close(open_private(device))
    os.close(reader)
    private_file(device)
    assert mode(device) == "666"


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
def test_a_link_that_leads_nowhere_beside_a_database_is_refused(tmp_path: Path, ending: str) -> None:
    (tmp_path / f"x.sqlite3{ending}").symlink_to(tmp_path / "nowhere")
    with pytest.raises(OSError, match="symbolic links"):
        private_database(tmp_path / "x.sqlite3")
    assert not (tmp_path / "nowhere").exists()


pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="only POSIX has named pipes")


def test_a_file_is_read_up_to_its_limit_and_not_beyond(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    (tmp_path / "link").symlink_to(file)
    assert read_regular(tmp_path / "link", 5) == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes"):
        read_regular(file, 4)


def test_pipes_devices_folders_and_links_to_them_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    for odd in (tmp_path / "pipe", tmp_path / "link", Path("/dev/zero")):
        with pytest.raises(OSError, match="Not a regular file"):
            read_regular(odd)
    with pytest.raises(IsADirectoryError):
        read_regular(tmp_path)


def test_what_is_nested_too_deep_is_malformed(tmp_path: Path) -> None:
    for text in ("x=" + "[" * 10_000, "a." * 10_000 + "a=1"):
        with pytest.raises(ValueError, match=r"nested too deep|more than 1,000 dots"):
            parse_toml(text)
    with pytest.raises(ValueError, match="nested too deep"):
        parsed(json.loads, "[" * 200_000)
    (tmp_path / "long.toml").write_text("x" * 64_000 + " = 1", encoding="utf-8")
    with pytest.raises(OSError, match="more than 64,000 bytes"):
        read_toml(tmp_path / "long.toml")
