"""Which files an import reads."""

import gzip
import os
from pathlib import Path

import pytest

from kg_adapters.errors import InvalidSource
from kg_adapters.files.sources import Source, gather_sources, look


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_a_folder_gives_its_rdf_files_sorted_and_nothing_else(tmp_path: Path) -> None:
    touch(tmp_path, "b.nt", "a.TTL", "sub/c.jsonld.gz", "readme.md", "data.xml", "package.json", ".hidden.nt", "x.gz")
    assert list(gather_sources([tmp_path]).files) == [
        Source(tmp_path / "a.TTL", "a.TTL"),
        Source(tmp_path / "b.nt", "b.nt"),
        Source(tmp_path / "sub/c.jsonld.gz", "sub/c.jsonld.gz"),
    ]


def test_a_source_knows_its_ending_and_whether_it_is_compressed() -> None:
    source = Source(Path("/x/g.v1.NT.GZ"), "g.v1.NT.GZ")
    assert (source.ending, source.packing) == (".nt", ".gz")
    assert (Source(Path("/x/g.owl"), "g.owl").ending, Source(Path("/x/g.owl"), "g.owl").packing) == (".owl", "")


def test_a_named_file_may_have_an_ending_that_says_little(tmp_path: Path) -> None:
    touch(tmp_path, "graph.json", "ontology.xml")
    found = list(gather_sources([tmp_path / "graph.json", tmp_path / "ontology.xml"]).files)
    assert [source.name for source in found] == ["graph.json", "ontology.xml"]


def test_no_file_is_read_twice(tmp_path: Path) -> None:
    touch(tmp_path, "a.nt")
    assert list(gather_sources([tmp_path / "a.nt", tmp_path, tmp_path / ".." / tmp_path.name / "a.nt"]).files) == [
        Source(tmp_path / "a.nt", "a.nt")
    ]


def test_files_of_one_name_from_two_folders_keep_apart(tmp_path: Path) -> None:
    touch(tmp_path, "one/a.nt", "two/a.nt", "two/b.nt")
    names = [source.name for source in list(gather_sources([tmp_path / "one", tmp_path / "two"]).files)]
    assert names == ["1/a.nt", "2/a.nt", "b.nt"]


def test_a_missing_path_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidSource, match=r"There is no file or folder .*nowhere\.nt"):
        list(gather_sources([tmp_path / "nowhere.nt"]).files)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="only POSIX has named pipes")
def test_a_pipe_is_no_file_whether_it_is_named_or_found_in_a_folder(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "g.nt")
    with pytest.raises(InvalidSource, match=r"g\.nt is neither a file nor a folder"):
        list(gather_sources([tmp_path / "g.nt"]).files)
    touch(tmp_path, "h.nt")
    assert [source.name for source in list(gather_sources([tmp_path]).files)] == ["h.nt"]


def test_a_file_that_went_away_has_no_state(tmp_path: Path) -> None:
    with pytest.raises(InvalidSource, match=r"gone\.nt cannot be read: No such file.*moved or deleted"):
        look(tmp_path / "gone.nt")


def test_a_folder_without_rdf_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "notes.txt.gz").write_bytes(gzip.compress(b"nothing"))
    with pytest.raises(InvalidSource, match="holds no RDF file"):
        list(gather_sources([tmp_path]).files)


def name_sources(folder: Path, *, follow_links: bool = False) -> tuple[list[str], list[str]]:
    found = gather_sources([folder], follow_links=follow_links)
    return [source.name for source in found.files], [path.name for path in found.outside]


def test_the_ending_of_a_link_is_that_of_the_name_that_was_given(tmp_path: Path) -> None:
    touch(tmp_path, "blobs/4c1f", "data/readme.md")
    (tmp_path / "g.nt.gz").symlink_to("blobs/4c1f")
    (tmp_path / "link").symlink_to("data")
    (tmp_path / "data" / "g.ttl").symlink_to("../data/.git/4c1f")
    touch(tmp_path, "data/.git/4c1f")
    named, in_folder = (
        list(gather_sources([tmp_path / "g.nt.gz"]).files),
        list(gather_sources([tmp_path / "link"]).files),
    )
    assert named == [Source(tmp_path / "blobs/4c1f", "g.nt.gz")]
    assert (named[0].ending, named[0].packing) == (".nt", ".gz")
    assert in_folder == [Source(tmp_path / "data/.git/4c1f", "g.ttl")]


def test_links_in_a_folder_are_followed_only_within_it_unless_asked_for(tmp_path: Path) -> None:
    touch(tmp_path, "data/a.nt", "data/sub/b.nt", "data/.hidden/c.nt", "elsewhere/d.nt", "elsewhere/e.nt")
    data = tmp_path / "data"
    (data / "again").symlink_to("sub")
    (data / "shown").symlink_to(".hidden")
    (data / "d.nt").symlink_to(tmp_path / "elsewhere" / "d.nt")
    (data / "out").symlink_to("../elsewhere")
    (data / "notes.txt").symlink_to("/etc/hostname")
    inside = ["a.nt", "shown/c.nt", "sub/b.nt"]
    assert name_sources(data) == (inside, ["d.nt", "out"])
    assert name_sources(data, follow_links=True) == (sorted([*inside, "d.nt", "out/e.nt"]), [])


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    touch(tmp_path, "data/sub/a.nt")
    for name, target in {"up": "..", "self.nt": "self.nt", "lost.nt": "nowhere", "further": "../.."}.items():
        (tmp_path / "data" / "sub" / name).symlink_to(target)
    for follow_links in (False, True):
        assert name_sources(tmp_path / "data", follow_links=follow_links)[0] == ["sub/a.nt"]


def test_a_folder_whose_links_all_lead_outside_says_how_to_read_them(tmp_path: Path) -> None:
    touch(tmp_path, "blobs/a", "data/readme.md")
    (tmp_path / "data" / "a.nt").symlink_to("../blobs/a")
    with pytest.raises(InvalidSource, match=r"data holds no RDF file\..*/data/a\.nt, .*import --follow-links"):
        list(gather_sources([tmp_path / "data"]).files)
