"""Files are read by what they hold, packed or not; what is hostile or of no known form is refused with its reason."""

import bz2
import gzip
import json
import lzma
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from kg_adapters.errors import InvalidSource
from kg_adapters.files.reader import SourceReader
from kg_adapters.files.recognition import parts_of
from kg_adapters.files.rows import line_of
from kg_adapters.files.sources import gather_sources
from kg_adapters.importing.build import build_store
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_adapters.open_options import ReadingLimits

A_P_B = "<http://e/a> <http://e/p> <http://e/b>"
TURTLE = "@prefix e: <http://e/> .\ne:a e:p e:b .\n"
XML = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://e/">'
    '<rdf:Description rdf:about="http://e/a"><p rdf:resource="http://e/b"/></rdf:Description></rdf:RDF>'
)
JSON_LD = '{"@context": {"e": "http://e/"}, "@id": "e:a", "e:p": {"@id": "e:b"}}'


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(path: Path, limits: ReadingLimits | None = None, **options: object) -> list[str]:
    limits = limits or ReadingLimits()
    reader = SourceReader(limits=limits)
    return [
        line_of(row).removesuffix(" .\n")
        for file in gather_sources([path]).files
        for part in parts_of(file, limits)
        for rows in reader.read(part)
        for row in rows
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.owl", TURTLE),
        ("g.rdf", TURTLE),
        ("g.xml", TURTLE),
        ("g.txt", TURTLE),
        ("g", TURTLE),
        ("g.ttl", XML),
        ("g.owl", XML),
        ("g.dat", XML),
        ("g.json", JSON_LD),
        ("g.txt", f"# one\n{A_P_B} .\n"),
        ("g.txt", f"{A_P_B} <http://e/g> .\n"),
        ("g.txt", "PREFIX e: <http://e/>\ne:g {\n e:a e:p e:b }\n"),
        ("g.gz", gzip.compress(TURTLE.encode(), mtime=0)),
        ("packed", gzip.compress(TURTLE.encode(), mtime=0)),
        ("g.ttl.bz2", bz2.compress(TURTLE.encode())),
        ("g.ttl.xz", lzma.compress(TURTLE.encode())),
        ("g.ttl.zst", zstandard.compress(TURTLE.encode())),
    ],
)
def test_a_file_is_read_by_what_it_holds(tmp_path: Path, name: str, content: str | bytes) -> None:
    assert read(write(tmp_path, name, content)) == [A_P_B]


def zipped(folder: Path, **members: str) -> Path:
    path = folder / "g.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_", "."), content)
    return path


def test_a_zip_is_read_member_by_member(tmp_path: Path) -> None:
    path = zipped(tmp_path, a_ttl=TURTLE, b_nt="<http://e/c> <http://e/p> _:x .", readme_md="nothing")
    assert read(path) == [A_P_B, "<http://e/c> <http://e/p> _:x"]
    report = build_store([path], tmp_path / "store", ImportOptions(sparql=False))
    assert (report.counts.triples, report.skipped) == (2, 0)


@pytest.mark.parametrize("name", ["notes.xyz", "notes", "notes.md"])
def test_what_is_of_no_known_form_is_refused_with_what_is(tmp_path: Path, name: str) -> None:
    begins = r"Unknown file extension: \.\w+" if "." in name else "A file without an extension"
    with pytest.raises(
        InvalidSource, match=rf"{begins}, and the content is of no known format: .*Expected \.csv, \.db, "
    ):
        read(write(tmp_path, name, "Dear diary, nothing happened.\nNor today.\n"))


@pytest.mark.parametrize("packing", [".gz", ".bz2", ".xz", ".zst", ".zip"])
def test_what_inflates_too_far_is_refused(tmp_path: Path, packing: str) -> None:
    line = f"{A_P_B} .\n".encode()
    content = line * (12_000_000 // len(line))
    packers: dict[str, Callable[[bytes], bytes]] = {
        ".gz": gzip.compress,
        ".bz2": bz2.compress,
        ".xz": lzma.compress,
        ".zst": zstandard.compress,
    }
    if packing == ".zip":
        path = zipped(tmp_path, g_nt=content.decode())
    else:
        path = write(tmp_path, f"g.nt{packing}", packers[packing](content))
    with pytest.raises(InvalidSource, match=r"g\.\w+.*decompresses to over 2 times its size; .* imports.inflate_ratio"):
        read(path, ReadingLimits(inflate_ratio=2))


@pytest.mark.parametrize("name", ["g.ttl.bz2", "g.ttl.xz", "g.ttl.zst", "g.ttl.gz", "bad.gz"])
def test_a_damaged_packing_is_refused_with_the_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidSource, match=rf"{name} cannot be read to its end"):
        read(write(tmp_path, name, b"not packed at all, though its name says so"))


def test_a_broken_zip_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSource, match="cannot be read as a zip archive"):
        read(write(tmp_path, "g.zip", b"PK\x03\x04 no more"))
    with pytest.raises(InvalidSource, match="holds no graph"):
        read(zipped(tmp_path, a_md="x", b_md="y"))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["../../x.ttl", "b.zip"], r"g\.zip holds a file that is to lie outside of it, '\.\./\.\./x\.ttl'"),
        (["a.ttl", "b/../../x.md"], r"g\.zip holds a file that is to lie outside of it, 'b/"),
        (["b.zip"], r"g\.zip holds another archive, 'b\.zip', which is not looked into\. Unpack .*g\.zip first"),
        (["notes"], r"A file without an extension, .* known format: 'notes' in .*g\.zip\. Expected"),
        (["b.zip", "notes"], r"g\.zip holds no graph, but 'b\.zip', 'notes'\. Expected names that end in"),
        ([], r"g\.zip holds no graph, but no file"),
    ],
)
def test_an_archive_without_a_graph_is_refused_with_what_it_holds(
    tmp_path: Path, names: list[str], message: str
) -> None:
    path = tmp_path / "g.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, TURTLE if name.endswith(".ttl") else "nothing")
    with pytest.raises(InvalidSource, match=message):
        read(path)


@pytest.mark.parametrize(
    "context", ["https://schema.org", "http://schema.org/", "https://schema.org/docs/jsonldcontext.jsonld"]
)
def test_the_context_of_schema_org_is_known(tmp_path: Path, context: str) -> None:
    person = {
        "@context": [context, {"e": "http://e/"}],
        "@id": "e:a",
        "name": "A",
        "birthDate": "1815-12",
        "sameAs": "e:b",
    }
    assert sorted(read(write(tmp_path, "g.jsonld", json.dumps(person)))) == [
        '<http://e/a> <http://schema.org/birthDate> "1815-12"^^<http://www.w3.org/2001/XMLSchema#gYearMonth>',
        '<http://e/a> <http://schema.org/name> "A"',
        "<http://e/a> <http://schema.org/sameAs> <http://e/b>",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,name\n1,a\n2,b,c\n", r"g\.csv, line 3: it has 3 cells, and the header 2"),
        (b"id,name\n1,M\xfcller\n", r"g\.csv is not UTF-8 text: .* Save it as UTF-8 \(iconv -f latin1"),
        ("id,name\n1,a\n".encode("utf-16"), r"g\.csv is not UTF-8 text: .* Save it as UTF-8 \(iconv -f utf-16"),
        ("id,name\n1,a\n".encode("utf-16-le"), r"g\.csv is not UTF-8 text: .* Save it as UTF-8 \(iconv -f utf-16"),
        ('id,name\n\n1,"a\n2,b\n3,c\n', r"g\.csv, line 3: a quote in this row is never closed\."),
        (",".join(["c"] * 25_001) + "\n", r"g\.csv, line 1: it has 25,001 columns, and at most 25,000 are read"),
        ("a" * 2_000_000, r"g\.csv, line 1: field larger than field limit"),
        ('id,name\n1,"' + "a" * 2_000_000 + '"\n', r"g\.csv, line 2: field larger than field limit"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_with_the_line(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    with pytest.raises(InvalidSource, match=message):
        read(write(tmp_path, "g.csv", content), ReadingLimits(literal_mb=1))


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on memory is Linux's")
@pytest.mark.parametrize("row", ["{}", "{}" + "," * 1_999], ids=["short rows", "empty cells"])
def test_a_table_takes_memory_for_the_cells_that_hold_something(tmp_path: Path, row: str) -> None:
    header = ",".join(f"c{place}" for place in range(2_000))
    path = write(tmp_path, "g.csv", "\n".join([header, *map(row.format, range(5_000))]))
    assert len(read(path, ReadingLimits(memory_mb=64))) == 3 * 5_000 + 2


def entity(**claims: object) -> dict[str, object]:
    return {"type": "item", "id": "Q1", "labels": {"en": {"language": "en", "value": "one"}}, "claims": claims}


def test_the_dump_of_wikidata_is_read_line_by_line(tmp_path: Path) -> None:
    snak = {
        "snaktype": "value",
        "datavalue": {"type": "wikibase-entityid", "value": {"numeric-id": 2, "entity-type": "item"}},
    }
    first = entity(
        P31=[{"mainsnak": snak, "rank": "normal"}, {"mainsnak": {"snaktype": "somevalue"}, "rank": "normal"}]
    )
    second: dict[str, object] = {
        **entity(),
        "id": "Q2",
        "labels": {"fr": {"language": "fr", "value": "deux"}},
        "claims": list[object](),
    }
    path = write(tmp_path, "dump.json", "[\n" + ",\n".join(map(json.dumps, (first, second))) + "\n]\n")
    wd = "http://www.wikidata.org"
    assert read(path) == [
        f'<{wd}/entity/Q1> <http://www.w3.org/2000/01/rdf-schema#label> "one"@en',
        f"<{wd}/entity/Q1> <{wd}/prop/direct/P31> <{wd}/entity/Q2>",
        f'<{wd}/entity/Q2> <http://www.w3.org/2000/01/rdf-schema#label> "deux"@fr',
    ]


@pytest.mark.parametrize(
    ("time", "precision", "stored"),
    [
        ("-0044-03-15T00:00:00Z", 11, '"-0043-03-15"^^<http://www.w3.org/2001/XMLSchema#date>'),
        ("-0100-00-00T00:00:00Z", 9, '"-0099"^^<http://www.w3.org/2001/XMLSchema#gYear>'),
        ("-0001-01-01T00:00:00Z", 9, '"0000"^^<http://www.w3.org/2001/XMLSchema#gYear>'),
        ("+0044-03-00T00:00:00Z", 10, '"0044-03"^^<http://www.w3.org/2001/XMLSchema#gYearMonth>'),
        ("-0400-00-00T00:00:00Z", 7, '"-0399/-0300"^^<http://id.loc.gov/datatypes/edtf/EDTF>'),
        ("-0301-00-00T00:00:00Z", 7, '"-0399/-0300"^^<http://id.loc.gov/datatypes/edtf/EDTF>'),
        ("-2000-00-00T00:00:00Z", 6, '"-1999/-1000"^^<http://id.loc.gov/datatypes/edtf/EDTF>'),
        ("-4567000000-00-00T00:00:00Z", 3, '"Y-4566999999~"^^<http://id.loc.gov/datatypes/edtf/EDTF>'),
        ("-13798000000-00-00T00:00:00Z", 9, '"-13797999999"^^<http://www.w3.org/2001/XMLSchema#gYear>'),
    ],
)
def test_dates_of_wikidata_before_christ_are_stored_by_the_years_of_rdf(
    tmp_path: Path, time: str, precision: int, stored: str
) -> None:
    value = {"type": "time", "value": {"time": time, "precision": precision}}
    claims = entity(P570=[{"mainsnak": {"snaktype": "value", "datavalue": value}, "rank": "normal"}])
    path = write(tmp_path, "one.json", json.dumps(claims))
    assert f"<http://www.wikidata.org/entity/Q1> <http://www.wikidata.org/prop/direct/P570> {stored}" in read(path)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({**entity(), "id": "../etc"}, "line 2: expected an id such as Q42, found '\"../etc\"'"),
        (entity(P1="x"), r"line 2: claims: expected a list"),
        (
            entity(
                P2=[{"mainsnak": {"snaktype": "value", "datavalue": {"type": "quantity", "value": {"amount": "1;"}}}}]
            ),
            "'1;' is not an amount",
        ),
    ],
)
def test_a_misshapen_entity_is_refused_with_its_line(tmp_path: Path, broken: object, message: str) -> None:
    with pytest.raises(InvalidSource, match=message):
        read(write(tmp_path, "dump.json", f"[\n{json.dumps(broken)}\n]\n"))


def test_only_wanted_relations_and_names_in_wanted_languages_are_kept(tmp_path: Path) -> None:
    wd, label = "http://www.wikidata.org", "<http://www.w3.org/2000/01/rdf-schema#label>"
    lines = [
        f'<{wd}/entity/Q1> {label} "one"@en .',
        f'<{wd}/entity/Q1> {label} "eins"@de .',
        f"<{wd}/entity/Q1> <{wd}/prop/direct/P31> <{wd}/entity/Q2> .",
        f"<{wd}/entity/Q1> <{wd}/prop/direct/P17> <{wd}/entity/Q3> .",
        "this line is broken, and is about nothing that is wanted",
    ]
    path = write(tmp_path, "truthy.nt.gz", gzip.compress("\n".join(lines).encode()))
    report = build_store([path], tmp_path / "store", ImportOptions(sparql=False, relations=("P31",)))
    assert (report.counts.triples, report.counts.features, report.skipped) == (1, 1, 0)
    with pytest.raises(InvalidSource, match="'nope:x' is not a relation"):
        build_store([path], tmp_path / "store", ImportOptions(relations=("nope:x",)))


def test_what_properties_are_called_names_the_relations_that_are_used(tmp_path: Path) -> None:
    wd, label = "http://www.wikidata.org", "http://www.w3.org/2000/01/rdf-schema#label"
    lines = [
        f'<{wd}/entity/P31> <{label}> "instance of"@en .',
        f'<{wd}/entity/P31> <{label}> "ist ein"@de .',
        f'<{wd}/entity/P17> <{label}> "country"@en .',
        f"<{wd}/entity/Q1> <{wd}/prop/direct/P31> <{wd}/entity/Q2> .",
    ]
    path = write(tmp_path, "truthy.nt", "\n".join(lines))
    store = open_store(build_store([path], tmp_path / "store", ImportOptions(relations=("P31",))).folder)
    index = store.index
    place = index.nodes.find(f"{wd}/prop/direct/P31")
    assert place is not None
    assert index.features.values[int(index.labels[place])] == "instance of"
    assert index.nodes.find(f"{wd}/prop/direct/P17") is None
