"""Which files an import reads."""

import gzip
from pathlib import Path

import pytest

from kg_adapters.errors import InvalidSource
from kg_adapters.local.sources import Source, find_sources


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_a_folder_gives_its_rdf_files_sorted_and_nothing_else(tmp_path: Path) -> None:
    touch(tmp_path, "b.nt", "a.TTL", "sub/c.jsonld.gz", "readme.md", "data.xml", "package.json", ".hidden.nt", "x.gz")
    assert find_sources([tmp_path]) == [
        Source(tmp_path / "a.TTL", "a.TTL"),
        Source(tmp_path / "b.nt", "b.nt"),
        Source(tmp_path / "sub/c.jsonld.gz", "sub/c.jsonld.gz"),
    ]


def test_a_source_knows_its_ending_and_whether_it_is_compressed() -> None:
    source = Source(Path("/x/g.v1.NT.GZ"), "g.v1.NT.GZ")
    assert (source.ending, source.gzipped) == (".nt", True)
    assert (Source(Path("/x/g.owl"), "g.owl").ending, Source(Path("/x/g.owl"), "g.owl").gzipped) == (".owl", False)


def test_a_named_file_may_have_an_ending_that_says_little(tmp_path: Path) -> None:
    touch(tmp_path, "graph.json", "ontology.xml")
    found = find_sources([tmp_path / "graph.json", tmp_path / "ontology.xml"])
    assert [source.name for source in found] == ["graph.json", "ontology.xml"]


def test_no_file_is_read_twice(tmp_path: Path) -> None:
    touch(tmp_path, "a.nt")
    assert find_sources([tmp_path / "a.nt", tmp_path, tmp_path / ".." / tmp_path.name / "a.nt"]) == [
        Source(tmp_path / "a.nt", "a.nt")
    ]


def test_files_of_one_name_from_two_folders_keep_apart(tmp_path: Path) -> None:
    touch(tmp_path, "one/a.nt", "two/a.nt", "two/b.nt")
    names = [source.name for source in find_sources([tmp_path / "one", tmp_path / "two"])]
    assert names == ["1/a.nt", "2/a.nt", "b.nt"]


@pytest.mark.parametrize("name", ["graph.csv", "graph", "graph.gz", "graph.nt.bz2"])
def test_an_unknown_ending_is_an_error_that_lists_the_known_ones(tmp_path: Path, name: str) -> None:
    touch(tmp_path, name)
    with pytest.raises(InvalidSource, match=r"graph.* ending that is not known\. Expected \.json, \.jsonld, \.n3"):
        find_sources([tmp_path / name])


def test_a_missing_path_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidSource, match=r"There is no file or folder .*nowhere\.nt"):
        find_sources([tmp_path / "nowhere.nt"])


def test_a_folder_without_rdf_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "notes.txt.gz").write_bytes(gzip.compress(b"nothing"))
    with pytest.raises(InvalidSource, match="holds no RDF file"):
        find_sources([tmp_path])
