"""Files that people name are read within a limit, and what is waited for or has no end is refused at once."""

import json
import os
from pathlib import Path

import pytest

from kg_boundary.regular_files import parse_toml, parsed, read_regular, read_toml

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
