"""A file that asks for more than it may is refused with a sentence, whatever command reads it."""

import gzip
import json
import os
import random
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli_runs import COMMAND, CommandLine
from kg_adapters.errors import InvalidSource
from kg_adapters.files.reader import SourceReader
from kg_adapters.files.rows import line_of
from kg_adapters.files.sources import Source
from kg_adapters.importing.build import build_store
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_adapters.open_options import Progress, ReadingLimits

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
EDGE = b"<http://e/a> <http://e/p> <http://e/b> .\n"
HEAD = b"<http://e/a> <http://e/p> "
DEEP = "it is nested more than 256 deep"
ENTITY = "only those are accepted that stand for a text of at most 256 bytes within the file"
# Over stdio, a server that takes more than a moment to refuse stays to say so.
SERVE = ["serve", "--http", "127.0.0.1:0"]
RUBBISH = random.Random(7).randbytes(100_000)  # noqa: S311 - any will do
LIMITS = ReadingLimits(memory_mb=256, literal_mb=1)
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits on memory, and /proc, are Linux's")

IMPORT_THAT_NAMES_ITS_CHILD = """
import os, sys
from pathlib import Path
from kg_adapters.importing.build import build_store
from kg_adapters.local.import_options import ImportOptions

def tell(progress):
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    if children:
        print(*children, flush=True)

build_store([Path(sys.argv[1])], Path(sys.argv[2]), ImportOptions(), tell)
"""


IMPORT_THAT_WEIGHS_ITSELF = """
import sys
from pathlib import Path
from kg_adapters.importing.build import build_store
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.worker_process import limit_memory

def peak_mb():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024

limit_memory(1_500_000_000)
before = peak_mb()
build_store([Path(sys.argv[1])], Path(sys.argv[2]), ImportOptions(sparql=False))
print(peak_mb() - before)
"""

IMPORT_WITHOUT_MEMORY = """
import sys
from pathlib import Path
from kg_adapters.errors import InvalidSource
from kg_adapters.importing.build import build_store
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.worker_process import limit_memory

def tell(progress):
    if progress.stage == "indexing":
        limit_memory(0)

try:
    build_store([Path(sys.argv[1])], Path(sys.argv[2]), ImportOptions(sparql=False), tell)
except InvalidSource as error:
    print(error)
"""


def xml(body: str, dtd: str = "") -> bytes:
    return f'<?xml version="1.0"?>{dtd}<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="http://e/">{body}</rdf:RDF>'.encode()


def valued(text: str) -> str:
    return f'<rdf:Description rdf:about="http://e/a"><e:p>{text}</e:p></rdf:Description>'


def laughs() -> bytes:
    """Return 730 bytes that stand for a gigabyte."""
    nested = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 9))
    return xml(valued("&a8;"), f'<!DOCTYPE rdf:RDF [<!ENTITY a0 "hahahahaha">{nested}]>')


def attributes(number: int) -> bytes:
    """Return an element whose attributes its parser compares each with each."""
    listed = " ".join(f'e:a{n}="x"' for n in range(number))
    return xml(f'<rdf:Description rdf:about="http://e/a" {listed}/>')


def declaring(declaration: str) -> bytes:
    return xml(valued("&b;"), f'<!DOCTYPE rdf:RDF [<!ENTITY a "xx">\n{declaration}]>')


def read(folder: Path, name: str, content: bytes, limits: ReadingLimits = LIMITS) -> list[str]:
    path = folder / name
    path.write_bytes(content)
    return [
        line_of(row).removesuffix(" .\n")
        for rows in SourceReader(limits=limits).read(Source(path, name))
        for row in rows
    ]


def test_nested_entities_are_refused_before_they_are_expanded(tmp_path: Path) -> None:
    with pytest.raises(InvalidSource, match=rf"laughs\.rdf, line 1: its DTD declares the entity 'a1', and {ENTITY}"):
        read(tmp_path, "laughs.rdf", laughs())


@pytest.mark.parametrize(
    ("declaration", "reason"),
    [
        ('<!ENTITY b "&a;&a;">', ENTITY),
        ('<!ENTITY b "&#38;a;">', ENTITY),
        ('<!ENTITY b SYSTEM "file:///etc/hostname">', ENTITY),
        ('<!ENTITY b PUBLIC "b" "http://127.0.0.1/b">', ENTITY),
        ('<!ENTITY % b "xx">', ENTITY),
        ('<!ENTITY b "&#60;e:p/>">', ENTITY),
        (f'<!ENTITY b "{"x" * 257}">', ENTITY),
        # The parser that is asked for triples takes this for a declaration.
        ('<!-- <!ENTITY b "&a;&a;"> -->', "its DTD mentions entities outside of declarations"),
    ],
)
def test_an_entity_that_is_more_than_a_short_text_is_refused(tmp_path: Path, declaration: str, reason: str) -> None:
    with pytest.raises(InvalidSource, match=rf"g\.owl, line 2: .*{reason}"):
        read(tmp_path, "g.owl", declaring(declaration))


@pytest.mark.parametrize(
    "content",
    [
        declaring('<!ENTITY b "&a;&a;">').replace(b"<!DOCTYPE", b"<!doctype"),
        xml(valued("\x01") + '\n<!DOCTYPE rdf:RDF [<!ENTITY a "x"><!ENTITY b "&a;&a;">]>' + valued("&b;")),
    ],
)
def test_a_dtd_that_cannot_be_followed_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InvalidSource, match="what the DTD declares is unknown"):
        read(tmp_path, "g.rdf", content)


def test_names_of_namespaces_as_entities_are_read(tmp_path: Path) -> None:
    dtd = '<!DOCTYPE rdf:RDF [\n  <!ENTITY e "http://e/" >\n  <!ENTITY owl "http://www.w3.org/2002/07/owl#" >\n]>\n'
    content = xml('<rdf:Description rdf:about="&e;a"><e:p rdf:resource="&owl;Thing"/></rdf:Description>', dtd)
    assert read(tmp_path, "g.owl", content) == ["<http://e/a> <http://e/p> <http://www.w3.org/2002/07/owl#Thing>"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.rdf", xml("<e:a><e:p>" * 25_000)),
        ("g.jsonld", b'{"http://e/p":' * 10_000 + b"1" + b"}" * 10_000),
        ("g.jsonld", b'{"http://e/p":' + b"[" * 75_000 + b"]" * 75_000 + b"}"),
        ("g.json", b'{"x_nodes":{"a":{"features":{"f":' + b"[" * 300 + b"]" * 300 + b"}}}}"),
        ("g.nt", HEAD + b"<<( <http://e/a> <http://e/p> " * 20_000 + b"<http://e/b>" + b" )>>" * 20_000 + b" .\n"),
        ("g.nq", HEAD + b'"\\"<<" . # ' + b"<<(" * 300),
    ],
)
def test_what_is_nested_too_deeply_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    with pytest.raises(InvalidSource, match=rf"{name}, (line|before byte) [\d,]+: {DEEP}"):
        read(tmp_path, name, content)


@pytest.mark.parametrize(
    ("name", "content", "statements"),
    [
        ("g.rdf", xml("<e:a><e:p>" * 127 + "</e:p></e:a>" * 127), 254),
        ("g.ttl", HEAD + b"[ <http://e/p> " * 20_000 + b"1 " + b"]" * 20_000 + b" .", 20_001),
        ("g.json", b'{"x_nodes":{"a":{"features":{"f":' + b"[" * 250 + b"]" * 250 + b"}}}}", 2),
        ("g.nt", HEAD + b'"' + b"<<(" * 300 + b'" .\n', 1),
    ],
)
def test_what_is_nested_less_or_does_no_harm_is_read(
    tmp_path: Path, name: str, content: bytes, statements: int
) -> None:
    assert len(read(tmp_path, name, content)) == statements


def test_a_file_that_crashes_its_parser_is_refused(tmp_path: Path) -> None:
    deep = HEAD + b"<<( <http://e/a> <http://e/p> " * 200_000 + b"1" + b" )>>" * 200_000 + b" ."
    with pytest.raises(InvalidSource, match=r"g\.ttl, byte [\d,]+: the parser crashed .* nested too deeply"):
        read(tmp_path, "g.ttl", deep, ReadingLimits(memory_mb=1_000))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.rdf", xml(valued("x" * 1_100_000))),
        ("g.rdf", xml(f'<rdf:Description rdf:about="http://e/{"x" * 1_100_000}"/>')),
        ("g.json", json.dumps({"x_nodes": {"a": {"features": {"f": "x" * 1_100_000}}}}).encode()),
        ("g.jsonld", json.dumps({"@id": "http://e/a", "http://e/p": "x" * 1_100_000}).encode()),
        ("g.ttl", HEAD + b'"""' + b"x\n" * 550_000 + b'""" .'),
        ("g.trig", HEAD + b"<http://e/" + b"x" * 1_100_000 + b"> ."),
        ("g.nt", HEAD + b'"' + b"x" * 2_000_000 + b'" .'),
        ("g.nq", HEAD + b"<http://e/" + b"x" * 2_000_000 + b"> ."),
    ],
)
def test_a_literal_or_iri_that_is_too_long_is_refused_and_the_setting_is_named(
    tmp_path: Path, name: str, content: bytes
) -> None:
    message = rf"{name}, (line|statement) \d+: .*over 1 MB.*; the setting imports.literal_mb \(KG_SEXTANT_"
    with pytest.raises(InvalidSource, match=message):
        read(tmp_path, name, content)


def test_a_literal_that_is_longer_than_a_parser_takes_at_once_arrives_whole(tmp_path: Path) -> None:
    text = "é" * 9_000_000
    (statement,) = read(tmp_path, "g.rdf", xml(valued(text)), ReadingLimits(memory_mb=512))
    assert statement == f'<http://e/a> <http://e/p> "{text}"'


@pytest.mark.parametrize("name", ["g.nt.gz", "g.ttl.gz", "g.json.gz"])
def test_what_inflates_out_of_proportion_is_refused(tmp_path: Path, name: str) -> None:
    content = gzip.compress((b" " if name == "g.json.gz" else b"#" + b" " * 998 + b"\n") * 12_000)
    if name == "g.json.gz":
        content = gzip.compress(b" " * 12_000_000)
    message = (
        rf"{name}, byte [\d,]+: the file decompresses to over 100 times its size.*the setting imports.inflate_ratio \("
    )
    with pytest.raises(InvalidSource, match=message):
        read(tmp_path, name, content)
    if name == "g.nt.gz":
        assert read(tmp_path, name, content, ReadingLimits(inflate_ratio=1_100)) == []


def test_what_inflates_to_too_much_in_all_is_refused(tmp_path: Path) -> None:
    content = gzip.compress("".join(f"# {number}\n" for number in range(150_000)).encode())
    message = r"g\.nt\.gz, byte [\d,]+: the file decompresses to over 1 MB.*the setting imports.inflate_mb \("
    with pytest.raises(InvalidSource, match=message):
        read(tmp_path, "g.nt.gz", content, ReadingLimits(inflate_mb=1))


def test_a_small_archive_may_inflate_as_it_likes(tmp_path: Path) -> None:
    assert len(read(tmp_path, "g.nt.gz", gzip.compress(EDGE * 100_000))) == 100_000


@ON_LINUX
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.json", b'{"x_nodes":{"a":{"features":{"f":[' + b"1.5," * 2_000_000 + b"1]}}}}"),
        ("g.jsonld", b'{"http://e/p":[' + b"[]," * 2_000_000 + b"1]"),
    ],
)
def test_a_file_that_takes_too_much_memory_is_refused_and_the_setting_is_named(
    tmp_path: Path, name: str, content: bytes
) -> None:
    message = rf"{name}, byte [\d,]+: reading it takes more memory than 64 MB; the setting imports.memory_mb \("
    with pytest.raises(InvalidSource, match=message):
        read(tmp_path, name, content, ReadingLimits(memory_mb=64))


def test_parsing_that_does_not_get_ahead_is_ended_and_the_setting_is_named(tmp_path: Path) -> None:
    message = r"g\.rdf, byte [\d,]+: reading was stopped because it made no progress for 1 s"
    with pytest.raises(InvalidSource, match=message):
        read(tmp_path, "g.rdf", attributes(300_000), ReadingLimits(stall_s=1))


@pytest.mark.parametrize("content", [RUBBISH, bytes(100_000)])
@pytest.mark.parametrize("ending", [".nt", ".ttl", ".rdf", ".jsonld", ".json", ".nt.gz", ".n3.gz"])
def test_rubbish_is_refused_in_a_few_words_that_name_the_file(tmp_path: Path, ending: str, content: bytes) -> None:
    with pytest.raises(InvalidSource) as refused:
        read(tmp_path, f"g{ending}", content)
    assert str(refused.value).startswith(f"{tmp_path / 'g'}{ending}")
    assert len(str(refused.value)) < 1_000
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("ending", [".nt", ".ttl", ".nt.gz", ".trig.gz"])
def test_an_empty_file_holds_nothing(tmp_path: Path, ending: str) -> None:
    assert read(tmp_path, f"g{ending}", b"") == []


@pytest.mark.parametrize("name", ["g.nt.gz", "g.ttl.gz"])
def test_an_archive_within_an_archive_is_read_once(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidSource, match=rf"{name}, line 1, column 1: "):
        read(tmp_path, name, gzip.compress(gzip.compress(EDGE)))


def test_skipping_errors_leaves_out_the_rest_of_a_refused_file_and_reads_the_next(tmp_path: Path) -> None:
    (tmp_path / "1.rdf").write_bytes(laughs())
    (tmp_path / "2.ttl").write_bytes(EDGE + HEAD + b"[ <http://e/p> " * 300)
    (tmp_path / "3.ttl").write_bytes(HEAD + b'"' + b"x" * 1_100_000 + b'" .\n' + EDGE)
    (tmp_path / "4.nt").write_bytes(EDGE.replace(b"/b>", b"/c>"))
    options = ImportOptions(skip_errors=True, sparql=False, limits=LIMITS)
    files = [tmp_path / name for name in ("1.rdf", "2.ttl", "3.ttl", "4.nt")]
    report = build_store(files, tmp_path / "s", options)
    assert (report.counts.triples, report.skipped) == (2, 3)
    assert [problem.partition(",")[0] for problem in report.problems] == [str(file) for file in files[:3]]


def test_a_refused_file_leaves_the_old_store_and_nothing_of_the_attempt(tmp_path: Path) -> None:
    (tmp_path / "old.nt").write_bytes(EDGE)
    (tmp_path / "new.rdf").write_bytes(laughs())
    build_store([tmp_path / "old.nt"], tmp_path / "store", ImportOptions())
    with pytest.raises(InvalidSource, match=ENTITY):
        build_store([tmp_path / "new.rdf"], tmp_path / "store", ImportOptions())
    assert open_store(tmp_path / "store").info.counts.triples == 1
    left = {path.name for path in tmp_path.iterdir()}
    assert left - {".store.lock"} == {"old.nt", "new.rdf", "store"}


@pytest.mark.parametrize("words", [["import", "--to", "store"], ["call", "Schema", "--graph"], SERVE])
def test_every_command_refuses_with_a_sentence(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "laughs.rdf").write_bytes(laughs())
    environ = {**os.environ, "KG_SEXTANT_CACHE_FOLDER": str(tmp_path / "cache")}
    command = [*COMMAND, *words, "laughs.rdf"]
    ended = subprocess.run(command, cwd=tmp_path, env=environ, stdin=subprocess.PIPE, capture_output=True, check=False)
    assert ended.returncode == 1
    assert b"laughs.rdf, line 1: its DTD declares the entity" in ended.stderr
    assert b"Traceback" not in ended.stderr


def test_the_settings_reach_an_import_and_a_file_that_is_opened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli = CommandLine(tmp_path, capsys)
    (tmp_path / "g.ttl").write_bytes(HEAD + b'"' + b"x" * 1_100_000 + b'" .')
    path = str(tmp_path / "g.ttl")
    for words in (["import", path, "--to", str(tmp_path / "s")], ["call", "Schema", "--graph", path]):
        refused = cli.run(*words, KG_SEXTANT_IMPORTS__LITERAL_MB="1")
        assert (refused.code, "the setting imports.literal_mb" in refused.err) == (1, True)
    assert cli.run("import", path, "--to", str(tmp_path / "s")).code == 0


def many_types() -> str:
    listed = ", ".join(f"e:c{number}" for number in range(700))
    return f"e:x a {listed} ; {' ; '.join(f'e:p{number} e:x' for number in range(700))} ."


def many_types_each() -> str:
    types = [f"e:n{node} a e:c{(node * 7 + number * number) % 600} ." for node in range(1_000) for number in range(60)]
    facts = [f"e:n{node} e:p{number} e:n{node * number % 1_000} ." for node in range(1_000) for number in range(20)]
    return "\n".join([*types, *facts])


def pairs_with_many_relations() -> str:
    ends = [(f"e:a{pair}", f"e:b{pair}") for pair in range(5)]
    return "\n".join(
        f"{one} e:p{number} {two} . {two} e:p{number} {one} ." for one, two in ends for number in range(1_000)
    )


def cycle_of_classes() -> str:
    over = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    return "\n".join(
        f"e:c{number} {over} e:c{(number + 1) % 3_000} . e:n{number} a e:c{number} ." for number in range(3_000)
    )


def many_datatypes() -> str:
    types = ", ".join(f"e:c{number}" for number in range(300))
    values = ", ".join(f'"{number}"^^e:u{number}' for number in range(8_000))
    return f"e:x a {types} ; e:v {values} ."


def many_relations() -> str:
    types = ", ".join(f"e:c{number}" for number in range(300))
    return f"e:x a {types} ; {' ; '.join(f'e:p{number} e:y' for number in range(8_000))} ."


@ON_LINUX
@pytest.mark.parametrize(
    "graph",
    [many_types, many_types_each, pairs_with_many_relations, cycle_of_classes, many_datatypes, many_relations],
)
def test_a_graph_with_very_many_types_or_relations_takes_little_memory(
    tmp_path: Path, graph: Callable[[], str]
) -> None:
    (tmp_path / "g.ttl").write_text(f"@prefix e: <http://e/> .\n{graph()}\n", encoding="utf-8")
    command = [sys.executable, "-c", IMPORT_THAT_WEIGHS_ITSELF, str(tmp_path / "g.ttl"), str(tmp_path / "store")]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(ended.stdout) < 300


@ON_LINUX
def test_an_import_that_runs_out_of_memory_ends_with_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "g.nt").write_bytes(
        b"".join(b"<http://e/a%d> <http://e/p> <http://e/b> .\n" % n for n in range(50_000))
    )
    command = [sys.executable, "-c", IMPORT_WITHOUT_MEMORY, str(tmp_path / "g.nt"), str(tmp_path / "store")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "store cannot be built: memory ran out after 50,000 statements, while indexing." in ended.stdout
    assert {path.name for path in tmp_path.iterdir()} - {".store.lock"} == {"g.nt"}


def test_schema_says_that_counts_of_a_dense_graph_are_approximate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "g.ttl"
    path.write_text(f"@prefix e: <http://e/> .\n{pairs_with_many_relations()}\ne:a0 a e:c .\n", encoding="utf-8")
    cli = CommandLine(tmp_path, capsys)
    for words in ([], ["about=c"]):
        assert "Counts are approximate" in cli.run("call", "Schema", *words, "--graph", str(path)).out


@ON_LINUX
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_process_that_parses_ends_with_the_import(tmp_path: Path, ending: signal.Signals) -> None:
    (tmp_path / "g.rdf").write_bytes(attributes(500_000))
    command = [sys.executable, "-c", IMPORT_THAT_NAMES_ITS_CHILD, str(tmp_path / "g.rdf"), str(tmp_path / "store")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as importing:
        assert importing.stdout is not None
        child = os.pidfd_open(int(importing.stdout.readline()))
        importing.send_signal(ending)
        importing.communicate()
    ended, _, _ = select.select([child], [], [], 60)
    os.close(child)
    assert ended == [child]
    if ending is signal.SIGINT:
        assert [path.name for path in tmp_path.iterdir() if path.name != ".store.lock"] == ["g.rdf"]


def test_an_import_that_is_told_to_stop_ends_a_parser_that_spins(tmp_path: Path) -> None:
    (tmp_path / "g.rdf").write_bytes(attributes(500_000))
    told: list[Progress] = []

    class StopError(Exception):
        pass

    def stop(progress: Progress) -> None:
        told.append(progress)
        if len(told) > 2:
            raise StopError

    with pytest.raises(StopError):
        build_store([tmp_path / "g.rdf"], tmp_path / "store", ImportOptions(), stop)
    assert not (tmp_path / "store").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="only POSIX has named pipes")
@pytest.mark.parametrize("name", ["g.nt", "g.ttl"])
def test_a_pipe_is_never_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(InvalidSource, match="neither a file nor a folder"):
        build_store([tmp_path / name], tmp_path / "store", ImportOptions())
    with pytest.raises(InvalidSource, match=rf"{name} cannot be read to its end: Not a regular file"):
        list(SourceReader().read(Source(tmp_path / name, name)))


@pytest.mark.parametrize("change", ["grown", "gone", "pipe"])
def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path: Path, change: str) -> None:
    path = tmp_path / "g.ttl"
    path.write_bytes(EDGE)

    def alter(progress: Progress) -> None:
        if progress.stage == "indexing":
            path.write_bytes(EDGE * 2) if change == "grown" else path.unlink()
            if change == "pipe":
                os.mkfifo(path)

    with pytest.raises(InvalidSource, match=r"g\.ttl (was changed while it was read|cannot be read: No such file)"):
        build_store([path], tmp_path / "store", ImportOptions(), alter)
    assert not (tmp_path / "store").exists()
