"""A folder takes another's place as a whole, and nothing that somebody else put beside it is touched."""

from pathlib import Path

import pytest

from kg_adapters.local.swap import exclusively, is_moved_aside, recover, replacing

OTHERS = (
    "store.building-1",
    ".storeroom.building-1",
    ".store.building",
    ".store.older",
    ".store2.old-1",
    "store.old-1",
)


def folder_of(path: Path, content: str) -> Path:
    path.mkdir(parents=True)
    (path / "it").write_text(content, encoding="utf-8")
    return path


def contents(folder: Path) -> dict[str, str]:
    """Return what each folder in a folder holds."""
    return {path.parent.name: path.read_text(encoding="utf-8") for path in folder.glob("*/it")}


def replace(target: Path, content: str = "new") -> None:
    with replacing(target) as building:
        (building / "it").write_text(content, encoding="utf-8")


@pytest.mark.parametrize("there", [False, True])
def test_the_new_folder_alone_is_left_and_what_stands_beside_it_stays(tmp_path: Path, there: bool) -> None:
    for name in (*OTHERS, *(["store"] if there else [])):
        folder_of(tmp_path / name, name)
    replace(tmp_path / "store")
    assert contents(tmp_path) == {**{name: name for name in OTHERS}, "store": "new"}
    assert len(list(tmp_path.iterdir())) == len(OTHERS) + 1


def test_what_dead_holders_left_is_cleared_away(tmp_path: Path) -> None:
    for name in ("store", ".store.building-1", ".store.building-2", ".store.old-1"):
        folder_of(tmp_path / name, name)
    with replacing(tmp_path / "store") as building:
        assert {path.name for path in tmp_path.iterdir()} == {"store", building.name}
        assert building.name.startswith(".store.building-")
    assert {path.name for path in tmp_path.iterdir()} == {"store"}


def test_an_error_leaves_the_old_folder_and_nothing_else(tmp_path: Path) -> None:
    folder_of(tmp_path / "store", "old")

    def fail() -> None:
        with replacing(tmp_path / "store") as building:
            folder_of(building / "half", "half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert contents(tmp_path) == {"store": "old"}
    assert {path.name for path in tmp_path.iterdir()} == {"store"}


def test_a_link_within_what_is_cleared_away_leads_nowhere(tmp_path: Path) -> None:
    folder_of(tmp_path / "elsewhere", "kept")
    for name in ("store", ".store.building-1", ".store.old-1"):
        (folder_of(tmp_path / name, name) / "link").symlink_to(tmp_path / "elsewhere")
    replace(tmp_path / "store")
    assert contents(tmp_path) == {"elsewhere": "kept", "store": "new"}


def test_the_folder_moved_aside_comes_back_through_a_link_and_never_over_a_newer_one(tmp_path: Path) -> None:
    folder_of(tmp_path / ".store.old-1", "old")
    (tmp_path / "link").symlink_to("store")
    assert is_moved_aside(tmp_path / "link")
    assert is_moved_aside(tmp_path / "store")
    recover(tmp_path / "link")
    assert contents(tmp_path)["store"] == "old"
    assert not is_moved_aside(tmp_path / "store")
    folder_of(tmp_path / ".store.old-2", "older")
    recover(tmp_path / "store")
    assert contents(tmp_path)["store"] == "old"
    assert not (tmp_path / ".store.old-2").exists()


def test_where_nothing_was_moved_aside_nothing_is_made(tmp_path: Path) -> None:
    for target in (tmp_path / "store", tmp_path / "no" / "folder" / "store"):
        recover(target)
        assert not is_moved_aside(target)
    assert list(tmp_path.iterdir()) == []


def test_the_lock_is_beside_the_target_makes_its_folders_and_is_given_back(tmp_path: Path) -> None:
    waits: list[None] = []
    for _ in range(2):
        with exclusively(tmp_path / "new" / "folder" / "store", lambda: waits.append(None)):
            assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == [".store.lock"]
    assert waits == []
