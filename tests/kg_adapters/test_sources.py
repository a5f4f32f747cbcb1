"""Which files an import reads."""

import gzip
import os
from pathlib import Path

import pytest

from kg_adapters.errors import InvalidSource
from kg_adapters.files.reader import SourceReader
from kg_adapters.files.rows import line_of
from kg_adapters.files.sources import Source, gather_sources, look


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_a_folder_gives_its_rdf_files_sorted_and_nothing_else(tmp_path: Path) -> None:
    touch(tmp_path, "b.nt", "a.TTL", "sub/c.jsonld.gz", "readme.md", "data.xml", "package.json", ".hidden.nt", "x.gz")
    found = gather_sources([tmp_path])
    assert found.name == tmp_path.name
    assert list(found.files) == [
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
    found = gather_sources([tmp_path / "graph.json", tmp_path / "ontology.xml"])
    assert ([source.name for source in found.files], found.name) == (["graph.json", "ontology.xml"], "graph")


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
    touch(tmp_path, "blobs/a", "data/readme.md", "data/b.json")
    (tmp_path / "data" / "a.nt").symlink_to("../blobs/a")
    with pytest.raises(
        InvalidSource,
        match=r"data holds no RDF file .*data/b\.json are read if you name.*/data/a\.nt, .*import --follow-links",
    ):
        list(gather_sources([tmp_path / "data"]).files)


A_P_B = "<http://e/a> <http://e/p> <http://e/b>"

XML_A_P_B = '<rdf:Description rdf:about="http://e/a"><p rdf:resource="http://e/b"/></rdf:Description>'

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(reader: SourceReader, *paths: Path) -> list[str]:
    return [
        line_of(row).removesuffix(" .\n")
        for source in gather_sources(paths).files
        for rows in reader.read(source)
        for row in rows
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.nt", f"{A_P_B} .\n"),
        ("g.nq", f"{A_P_B} <http://e/g> .\n"),
        ("g.ttl", "@prefix e: <http://e/> . e:a e:p e:b ."),
        ("g.trig", "@prefix e: <http://e/> . e:g { e:a e:p e:b }"),
        ("g.n3", "@prefix e: <http://e/> . e:a e:p e:b ."),
        (
            "g.rdf",
            f'<rdf:RDF xmlns:rdf="{RDF}" xmlns="http://e/">{XML_A_P_B}</rdf:RDF>',
        ),
        ("g.jsonld", '{"@context": {"e": "http://e/"}, "@id": "e:a", "e:p": {"@id": "e:b"}}'),
        ("g.json", '{"x_nodes": {}}'),
    ],
)
def test_every_format_is_read_plain_and_compressed(tmp_path: Path, name: str, content: str) -> None:
    plain, packed = write(tmp_path, name, content), write(tmp_path, name + ".gz", gzip.compress(content.encode()))
    expected = [] if name == "g.json" else [A_P_B]
    assert read(SourceReader(), plain) == read(SourceReader(), packed) == expected


def test_literals_keep_datatype_and_language(tmp_path: Path) -> None:
    path = write(tmp_path, "g.ttl", '<http://e/a> <http://e/p> "x"@en, 1, "y" .')
    integer = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert read(SourceReader(), path) == [f"<http://e/a> <http://e/p> {text}" for text in ('"x"@en', integer, '"y"')]


def test_a_syntax_error_names_file_line_column_and_reason(tmp_path: Path) -> None:
    path = write(tmp_path, "g.ttl", f"{A_P_B} .\n<http://e/a> e:p <http://e/b> .\n")
    message = r"g\.ttl, line 2, column 14: The prefix e: has not been declared\. Fix the file, or .* --skip-errors"
    with pytest.raises(InvalidSource, match=message):
        read(SourceReader(), path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n<x>\n</rdf:RDF>", "line 3: ill-formed document: expected `</x>`"),
        (f'\n{XML_A_P_B}\n<x xmlns="http://e/" rdf:about="b c"/>\n</rdf:RDF>', "line 3: error while parsing IRI 'b c'"),
        (f"\n{XML_A_P_B}\n", "line 2: the file ends before its first element does; it may be cut off"),
    ],
)
def test_an_error_in_rdf_xml_names_file_line_and_reason(tmp_path: Path, content: str, message: str) -> None:
    path = write(tmp_path, "g.rdf", f'<rdf:RDF xmlns:rdf="{RDF}" xmlns="http://e/">{content}')
    with pytest.raises(InvalidSource, match=rf"g\.rdf, {message}"):
        read(SourceReader(), path)


def test_xml_that_the_parser_puts_up_with_is_read(tmp_path: Path) -> None:
    text = f'<rdf:RDF xmlns:rdf="{RDF}" xmlns="http://e/">\n<!-- a -- b -->\n{XML_A_P_B}\n</rdf:RDF>'
    assert read(SourceReader(), write(tmp_path, "g.rdf", text)) == [A_P_B]


def test_a_context_on_the_web_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    path = write(tmp_path, "g.jsonld", '{"@context": "https://e.org/context", "@id": "http://e/a", "name": "A"}')
    with pytest.raises(
        InvalidSource, match=r"g\.jsonld, after 0 statements: its context.*write the context into the file"
    ):
        read(SourceReader(), path)


def test_skipping_goes_on_behind_a_broken_statement_and_counts_it(tmp_path: Path) -> None:
    path = write(
        tmp_path, "g.nt", f"<http://e/a b> <http://e/p> <http://e/b> .\n{A_P_B} .\n<http://e/a> oops .\n{A_P_B} ."
    )
    reader = SourceReader(skip_errors=True)
    assert read(reader, path) == [A_P_B, A_P_B]
    assert (reader.skipped, len(reader.problems)) == (2, 2)
    assert reader.problems[0].startswith(f"{path}, line 1, column 1: Invalid IRI code point ' '")


def test_skipping_keeps_what_stands_before_an_error_that_the_rest_hangs_on(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "g.rdf",
        f'<rdf:RDF xmlns:rdf="{RDF}" xmlns="http://e/">{XML_A_P_B}</broken>',
    )
    reader = SourceReader(skip_errors=True)
    assert read(reader, path) == [A_P_B]
    assert reader.skipped == 1


def test_a_line_counts_once_however_much_is_wrong_in_it(tmp_path: Path) -> None:
    path = write(tmp_path, "g.nt", f"<a> <p> <b> .\n{A_P_B} .\n")
    reader = SourceReader(skip_errors=True)
    assert read(reader, path) == [A_P_B]
    assert reader.problems == [f"{path}, line 1, column 1: No scheme found in an absolute IRI."]


@pytest.mark.parametrize("name", ["g.nt", "g.ttl", "g.jsonld", "g.rdf"])
def test_a_byte_order_mark_means_nothing(tmp_path: Path, name: str) -> None:
    content = {
        "g.nt": f"{A_P_B} .",
        "g.ttl": f"{A_P_B} .",
        "g.jsonld": '{"@id": "http://e/a", "http://e/p": {"@id": "http://e/b"}}',
        "g.rdf": f'<rdf:RDF xmlns:rdf="{RDF}" xmlns="http://e/">{XML_A_P_B}</rdf:RDF>',
    }
    assert read(SourceReader(), write(tmp_path, name, content[name].encode("utf-8-sig"))) == [A_P_B]


@pytest.mark.parametrize("behind", ["", f"\n{A_P_B} .\n"])
def test_a_statement_that_is_too_long_is_left_out_and_the_next_lines_are_read(tmp_path: Path, behind: str) -> None:
    path = write(tmp_path, "g.nt", f'{A_P_B} .\n<http://e/a> <http://e/p> "{"x" * 17_000_000}" .{behind}')
    with pytest.raises(InvalidSource, match=r"g\.nt, line 2: a statement has over 16,777,216 bytes"):
        read(SourceReader(), path)
    reader = SourceReader(skip_errors=True)
    assert read(reader, path) == [A_P_B] * (2 if behind else 1)
    assert reader.skipped == 1


def test_a_statement_that_is_too_long_ends_the_reading_of_a_document(tmp_path: Path) -> None:
    path = write(tmp_path, "g.ttl", f'{A_P_B} .\n<http://e/a> <http://e/p> "{"x" * 17_000_000}" .\n{A_P_B} .')
    with pytest.raises(InvalidSource, match=r"g\.ttl, after 1 statements: a statement has over 16,777,216 bytes"):
        read(SourceReader(), path)
    assert read(SourceReader(skip_errors=True), path) == [A_P_B]


def test_an_error_is_fit_to_be_printed(tmp_path: Path) -> None:
    with pytest.raises(InvalidSource, match=r"column 1: '\\u001b' is not allowed"):
        read(SourceReader(), write(tmp_path, "g.ttl", b"\x1b[31m"))


def test_only_the_first_problems_are_kept_but_all_are_counted(tmp_path: Path) -> None:
    reader = SourceReader(skip_errors=True)
    read(reader, write(tmp_path, "g.nt", "<oops> .\n" * 50))
    assert (reader.skipped, len(reader.problems)) == (50, 10)


@pytest.mark.parametrize("damage", ["cut", "end", "wrong", "bits"])
def test_a_damaged_archive_is_an_error_or_is_read_as_far_as_it_goes(tmp_path: Path, damage: str) -> None:
    packed = gzip.compress(
        "".join(f"<http://e/{n * 7919 % 9_000}> <http://e/p> <http://e/b> .\n" for n in range(9_000)).encode()
    )
    half = len(packed) // 2
    content = {
        "cut": packed[:half],
        "end": packed[:-20],
        "wrong": b"no archive",
        "bits": packed[:half] + b"\xff" * 99 + packed[half + 99 :],
    }
    path = write(tmp_path, "g.nt.gz", content[damage])
    with pytest.raises(InvalidSource, match=r"g\.nt\.gz cannot be read to its end|g\.nt\.gz, line \d+"):
        read(SourceReader(), path)
    reader = SourceReader(skip_errors=True)
    found = len(read(reader, path))
    assert 8_900 < found < 9_000 if damage == "end" else (found == 0) == (damage == "wrong")
    assert reader.skipped >= 1


def test_skipping_leaves_out_a_line_that_is_not_utf_8_and_no_other(tmp_path: Path) -> None:
    path = write(
        tmp_path, "g.nt", f"{A_P_B} .\n".encode() + b'<http://e/a> <http://e/p> "\xff" .\n' + A_P_B.encode() + b"."
    )
    with pytest.raises(InvalidSource, match=r"g\.nt, line 2, column 28: Invalid UTF-8"):
        read(SourceReader(), path)
    reader = SourceReader(skip_errors=True)
    assert read(reader, path) == [A_P_B, A_P_B]
    assert reader.skipped == 1


def test_skipping_leaves_out_what_is_not_utf_8_in_turtle_and_nothing_else(tmp_path: Path) -> None:
    content = b"""
        @prefix e: <http://e/> . # caf\xe9
        e:a e:p "caf\xe9" , "caf\xc3\xa9" .
        e:a e:p \"\"\" \xff . e:x e:y e:z . \"\"\" .
        <http://e/caf\xe9> e:p e:b .
        e:a e:p e:b .
    """
    reader = SourceReader(skip_errors=True)
    assert read(reader, write(tmp_path, "g.ttl", content)) == ['<http://e/a> <http://e/p> "café"', A_P_B]
    assert (reader.skipped, reader.problems[0]) == (3, f"{tmp_path / 'g.ttl'}, statement 1: its text is not UTF-8.")


def test_a_file_that_may_not_be_read_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, "g.nt", "")
    sources = list(gather_sources([path]).files)
    path.unlink()
    with pytest.raises(InvalidSource, match=r"g\.nt cannot be read to its end"):
        list(SourceReader().read(sources[0]))


def test_a_triple_in_a_triple_may_be_nested_so_deep(tmp_path: Path) -> None:
    deep = "_:r <http://e/p> " + f"<<( {A_P_B.removesuffix('<http://e/b>')}" * 17 + "1" + " )>>" * 17 + " .\n"
    path = write(tmp_path, "g.ttl", f"{A_P_B} .\n{deep}")
    with pytest.raises(InvalidSource, match=r"g\.ttl, statement 2: triples are nested over 16 deep"):
        read(SourceReader(), path)
    reader = SourceReader(skip_errors=True)
    assert read(reader, path) == [A_P_B]
    assert reader.skipped == 1


def test_a_formula_is_refused_as_it_states_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, "g.n3", f"@prefix e: <http://e/> . {{ e:x e:y e:z }} e:says e:q . {A_P_B} .")
    with pytest.raises(InvalidSource, match="formula"):
        read(SourceReader(), path)
    reader = SourceReader(skip_errors=True)
    assert A_P_B in read(reader, path)
    assert "<http://e/x> <http://e/y> <http://e/z>" not in read(SourceReader(skip_errors=True), path)


def test_blank_nodes_keep_their_labels_within_one_file(tmp_path: Path) -> None:
    path = write(tmp_path, "g.nt", "_:x <http://e/p> _:y .\n_:y <http://e/p> _:x .\n")
    assert read(SourceReader(), path) == ["_:x <http://e/p> _:y", "_:y <http://e/p> _:x"]


def test_nodes_without_a_name_are_the_same_in_every_import(tmp_path: Path) -> None:
    path = write(tmp_path, "g.ttl", "<http://e/a> <http://e/p> [ <http://e/p> [] ], _:anon-0 .")
    first, second = read(SourceReader(), path), read(SourceReader(), path)
    assert first == second
    assert len({line.rsplit("_:")[-1] for line in first}) == 3


def test_equal_labels_in_two_files_are_two_nodes(tmp_path: Path) -> None:
    one = write(tmp_path, "1.nt", "_:x <http://e/p> _:x .")
    two = write(tmp_path, "2.nt", "_:x <http://e/p> _:x .")
    assert read(SourceReader(first_file=1), one, two) == ["_:f1-x <http://e/p> _:f1-x", "_:f2-x <http://e/p> _:f2-x"]


def test_a_label_that_ids_cannot_hold_is_numbered(tmp_path: Path) -> None:
    path = write(tmp_path, "g.nt", "_:a\u0300b <http://e/p> <http://e/b> .")
    assert read(SourceReader(), path) == ["_:anon-0 <http://e/p> <http://e/b>"]


def test_named_graphs_are_merged_unless_some_are_chosen(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "g.trig",
        "@prefix e: <http://e/> . e:a e:p e:none . e:g { e:a e:p e:g } e:h { e:a e:p e:h } _:i { e:a e:p e:i }",
    )
    tails = [f"<http://e/a> <http://e/p> <http://e/{name}>" for name in ("none", "g", "h", "i")]
    assert read(SourceReader(), path) == tails
    chosen = SourceReader(graphs=["http://e/h"])
    assert read(chosen, path) == [tails[2]]
    chosen.check_graphs()


def test_a_chosen_graph_that_is_not_there_is_an_error_that_lists_those_that_are(tmp_path: Path) -> None:
    reader = SourceReader(graphs=["http://e/x"])
    assert read(reader, write(tmp_path, "g.nq", f"{A_P_B} <http://e/g> .")) == []
    with pytest.raises(InvalidSource, match=r"graph <http://e/x>\. Named graphs that were read: <http://e/g>\."):
        reader.check_graphs()


def test_prefixes_are_collected_and_the_first_declaration_counts(tmp_path: Path) -> None:
    one = write(tmp_path, "1.ttl", "@prefix e: <http://e/> . @prefix : <http://empty/> .")
    two = write(tmp_path, "2.ttl", "@prefix e: <http://other/> . @prefix f: <http://f/> .")
    reader = SourceReader(first_file=1)
    read(reader, one, two)
    assert reader.prefixes == {"e": "http://e/", "": "http://empty/", "f": "http://f/"}


def test_relative_iris_are_resolved_against_the_name_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "my graph.ttl", "<#a> <http://e/p> <> .")
    assert read(SourceReader(), path) == ["<file:///my%20graph.ttl#a> <http://e/p> <file:///my%20graph.ttl>"]


def test_the_position_in_the_file_grows_while_it_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, "g.nt", f"{A_P_B} .\n" * 10)
    reader = SourceReader()
    assert reader.position == 0
    positions = [reader.position for source in gather_sources([path]).files for _ in reader.read(source)]
    assert set(positions) == {path.stat().st_size}
    assert reader.position == path.stat().st_size
