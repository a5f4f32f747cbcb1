"""Reading files: lines that need no parser, the depth of nesting, and the time a parser may take."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import count, product
from pathlib import Path
from tempfile import TemporaryDirectory

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_adapters.files.frames import ReadingEnded, ReadOrder, parsed_frames
from kg_adapters.files.nesting import JsonDepth
from kg_adapters.files.reader import SourceReader
from kg_adapters.files.rows import NOT_PLAIN, Row, line_of, quad_of, row_of, terms_of
from kg_adapters.files.sources import Source
from kg_adapters.local.sparql.store import sparql_part
from kg_adapters.open_options import MAX_DEPTH, ReadingLimits, Refused

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

STEP_S = 30


def endless(folder: Path) -> Source:
    """Return a file whose parser compares each attribute of an element with each, which takes minutes."""
    attributes = " ".join(f'e:a{number}="x"' for number in range(300_000))
    path = folder / "g.rdf"
    path.write_text(f'<r:RDF xmlns:r="{RDF}" xmlns:e="http://e/"><e:a {attributes}/></r:RDF>', encoding="utf-8")
    return Source(path, path.name)


class Steps:
    """Counts the steps of a clock since the parser last got ahead."""

    def __init__(self) -> None:
        self.since = 0

    def wait(self) -> None:
        self.since += 1

    def follow(self, order: ReadOrder) -> None:
        played = count(step=STEP_S)
        got_ahead = 0
        for frame in parsed_frames(order, self.wait, lambda: next(played)):
            self.since = 0 if frame.ticks > got_ahead else self.since + 1
            got_ahead = max(got_ahead, frame.ticks)


@pytest.mark.parametrize(("stall_s", "steps"), [(STEP_S, 2), (3 * STEP_S + 1, 4), (9 * STEP_S - 1, 9)])
def test_parsing_has_the_time_of_the_setting_since_it_last_got_ahead(
    tmp_path: Path, stall_s: float, steps: int
) -> None:
    counted = Steps()
    with pytest.raises(ReadingEnded, match=rf"made no progress for {stall_s} s$"):
        counted.follow(ReadOrder(endless(tmp_path), ReadingLimits(stall_s=stall_s), salvage=False))
    assert counted.since == steps


WORDS = st.lists(st.text(alphabet='[]{}"\\a', max_size=8), max_size=8)


def is_too_deep(text: bytes, step: int) -> bool:
    depth = JsonDepth()
    try:
        for start in range(0, len(text), step):
            depth.feed(text[start : start + step])
    except Refused:
        return True
    return False


@settings(deadline=None, max_examples=30)
@given(WORDS, st.integers(1, 9))
def test_json_is_as_deep_as_it_is_whatever_its_parts(words: list[str], step: int) -> None:
    value: object = words
    for _ in range(MAX_DEPTH - 1):
        value = [*words, value]
    assert not is_too_deep(json.dumps(value).encode(), step)
    assert is_too_deep(json.dumps({"a": value}).encode(), step)


XSD = "http://www.w3.org/2001/XMLSchema#"

IRIS = [
    *(
        "<http://e/a>",
        "<http://e/b?q=1&r=/#x/y?>",
        "<urn:isbn:1>",
        "<mailto:x@e.org>",
        "<x:>",
        "<http://e>",
        "<http://e?q>",
    ),
    "<http://e:80/>",
    "<file:///a/b>",
    "<http://e/%C3%A9>",
    "<http://e/é>",
    "<http://e/\\u00E9>",
    "<http://é.org/>",
    *(
        "<http://[::1]/>",
        "<http://u:p@e/>",
        "<http://e/a//b>",
        "<x://>",
        "<http://e/\U0001f600>",
        "<http://e/\\U0001F600>",
    ),
    *(
        "<http://e/%zz>",
        "<http://e/a b>",
        "<a>",
        "<>",
        "<http://e/#a#b>",
        "<http://e/\\u0020>",
        "<http://e/[>",
        "<x:?>",
    ),
    "<http://e:x/>",
    "<x:/>",
    "<x:/a>",
    "<x:a/b>",
    "<1:a>",
    "<http://e/\ue000>",
    "<http://e/\ufffd>",
    "<http://e/{>",
    "<http://e/\\uD800>",
]

BLANKS = [
    *(
        "_:b0",
        "_:x",
        "_:a-b",
        "_:a.b",
        "_:a_b",
        "_:0",
        "_:é",
        "_:abcdef0123456789",
        "_:abcdef0123456789abcdef0123456789",
    ),
    "_:anon-0",
    "_:a.",
    "_:-",
    "_:",
    "_:B1",
    "_:a\\u0062",
    "_:f1-x",
]

LITERALS = [
    '""',
    '"x"',
    '"a b . <c> _:d"',
    '"é\U0001f600"',
    '"a\\tb\\nc\\rd\\be\\ff"',
    '"\\"x\\" \\\\ \\\\n"',
    '"\\u00e9\\U0001F600"',
    '"\\\\u00e9"',
    '"\\u0041\\u0022"',
    '"\\uD83D\\uDE00"',
    '"\\x"',
    '"\\u12"',
    '"a\tb"',
    '"a\x01b"',
    '"a\x85b"',
    '"\\\'"',
    '"a"b"',
    '"x"@en',
    '"x"@EN-gb',
    '"x"@zh-Hant-TW',
    '"x"@be-tarask',
    '"x"@abcd',
    '"x"@e',
    '"x"@en--ltr',
    '"x"@e\\u006E',
    '"x"@en-',
    f'"1"^^<{XSD}integer>',
    f'"x"^^<{XSD}string>',
    f'"x"^^<{RDF}langString>',
    f'"x"^^<{RDF}HTML>',
    '"x"^^<a>',
    '"x"^^_:b',
    '"x" @en',
    f'"x" ^^<{XSD}integer>',
    '"<<"',
    '"x',
    "'x'",
    '"\ue000\ufffe"',
    "<<( <x:a> <x:b> <x:c> )>>",
]

A, P = "<http://e/a>", "<http://e/p>"

FORMS = [
    *(
        "{0} {1} {2} .",
        "{0}\t{1}\t{2}\t.",
        "{0} {1} {2} .\r",
        "{0} {1} {2}.",
        "{0}  {1} {2} .",
        " {0} {1} {2} .",
        "{0} {1} {2}",
    ),
    *(
        "{0} {1} {2} . ",
        "{0} {1} {2} . # {0}",
        "{0} {1} {2} . {0}",
        "{0} {2} {1} .",
        "{2} {1} {0} .",
        "{0} {1} {2} ..",
        "# {0}",
    ),
    "{0} {1} {2} <http://e/g> .",
    "{0} {1} {2} _:g .",
    "{0} {1} {2} <http://e/g>.",
    "{0} {1} .",
    "",
    " ",
    "{0} {1} {2} <http://e/g> <http://e/h> .",
]

LINES = [
    *(f"{head} {P} {A} ." for head in (*IRIS, *BLANKS, *LITERALS)),
    *(f"{A} {relation} {A} ." for relation in (*IRIS, *BLANKS[:2], *LITERALS[:2])),
    *(f"{A} {P} {tail} ." for tail in (*IRIS, *BLANKS, *LITERALS)),
    *(
        form.format(head, P, tail)
        for form, head, tail in product(FORMS, (A, "_:b"), (A, "_:c", '"x y"@en', '"x"^^<x:y>'))
    ),
    *(f"{A} {P} {A} {graph} ." for graph in IRIS),
]


class Parsed:
    """What a parser finds in the lines of a file, taken one by one."""

    def __init__(self, path: Path) -> None:
        self.places: list[str] = []
        self._path = path
        self._names: dict[str, str] = {}
        self._form = {".nt": ox.RdfFormat.N_TRIPLES, ".nq": ox.RdfFormat.N_QUADS}[path.suffix]
        self.rows = list(self._rows())

    def _rows(self) -> Iterator[Row]:
        for number, line in enumerate(self._path.read_bytes().split(b"\n"), start=1):
            try:
                quads = list(ox.parse(line, format=self._form))
            except SyntaxError as error:
                self.places.append(f"{self._path}, line {number}, column {error.offset}")
                continue
            for quad in quads:
                head, tail = quad.subject, quad.object
                if isinstance(head, ox.Triple) or isinstance(tail, ox.Triple):
                    # A statement about a triple has no row.
                    continue
                key = self._key(head)
                yield row_of(key, quad.predicate.value, tail if isinstance(tail, ox.Literal) else self._key(tail))

    def _key(self, node: ox.NamedNode | ox.BlankNode) -> str:
        if isinstance(node, ox.NamedNode):
            return node.value
        label = node.value
        if label not in self._names:
            drawn = re.fullmatch(r"[a-f][0-9a-f]{15,31}|anon-.*", label) is not None
            count = sum(name.startswith("_:anon-") for name in self._names.values())
            self._names[label] = f"_:anon-{count}" if drawn else f"_:{label}"
        return self._names[label]


def check_read_as_parsed(path: Path) -> Parsed:
    reader = SourceReader(skip_errors=True)
    rows = [row for rows in reader.read(Source(path, path.name)) for row in rows]
    parsed = Parsed(path)
    assert rows == parsed.rows
    assert reader.skipped == len(parsed.places)
    assert [problem.partition(": ")[0] for problem in reader.problems] == parsed.places[:10]
    return parsed


def write(folder: Path, name: str, lines: Sequence[str]) -> Path:
    path = folder / name
    path.write_bytes("\n".join(lines).encode(errors="surrogatepass"))
    return path


@pytest.mark.parametrize("ending", [".nt", ".nq"])
def test_every_kind_of_line_is_read_as_the_parser_reads_it(tmp_path: Path, ending: str) -> None:
    parsed = check_read_as_parsed(write(tmp_path, f"g{ending}", LINES))
    assert len(parsed.rows) > len(LINES) / 3
    assert len(parsed.places) > len(LINES) / 20


@pytest.mark.parametrize(("quads", "form"), [(False, ox.RdfFormat.N_TRIPLES), (True, ox.RdfFormat.N_QUADS)])
def test_a_line_is_plain_only_if_it_is_sound(quads: bool, form: ox.RdfFormat) -> None:
    for line in LINES:
        found = terms_of(line.encode(errors="surrogatepass"), quads=quads)
        assert len(found) == 1
        if not found[0][NOT_PLAIN]:
            assert len(list(ox.parse(line, format=form))) == bool(line.strip())


def test_lines_as_programs_write_them_need_no_parser() -> None:
    usual = [
        f"{A} {P} <http://www.wikidata.org/entity/Q42> .",
        f"_:b12 {P} _:genid-2_B13 .",
        f'{A} {P} "5"^^<{XSD}integer> .\r',
        f'{A}\t{P}\t"a \\"b\\" <c> _:d .\\n"@en-GB\t.',
        f'<http://e/caf\\u00E9> {P} "caf\\u00E9 \\U0001F600".',
        f'<http://e/%C3%A9?a=b&c=d#e> {P} "é" .',
    ]
    assert not any(terms[NOT_PLAIN] for terms in terms_of("\n".join(usual).encode(), quads=False))
    named = [f"{A} {P} {A} <http://e/g> .", f'{A} {P} "x"@en <http://e/g> .', f"{A} {P} {A} ."]
    assert not any(terms[NOT_PLAIN] for terms in terms_of("\n".join(named).encode(), quads=True))
    assert [bool(terms[NOT_PLAIN]) for terms in terms_of("\n".join(named).encode(), quads=False)] == [True, True, False]


@settings(max_examples=40, deadline=None)
@given(
    lines=st.lists(
        st.one_of(
            st.sampled_from(LINES),
            st.text(max_size=20).map(lambda text: f"{A} {P} {ox.Literal(text)} ."),
            st.from_regex(r"<http://e/[^ <>]{0,5}>", fullmatch=True).map(lambda iri: f"{A} {P} {iri} ."),
            st.from_regex(r"<[a-z:/?#.@%\[]{1,8}>", fullmatch=True).map(lambda iri: f"{iri} {P} {A} ."),
            st.from_regex(r'"x"@[a-zA-Z0-9-]{1,12}', fullmatch=True).map(lambda text: f"{A} {P} {text} ."),
            st.builds("{} {} {} .".format, st.sampled_from(IRIS), st.sampled_from(IRIS), st.sampled_from(LITERALS)),
        ),
        max_size=30,
    ),
    ending=st.sampled_from([".nt", ".nq"]),
)
def test_files_are_read_as_the_parser_reads_them(lines: list[str], ending: str) -> None:
    with TemporaryDirectory() as folder:
        check_read_as_parsed(write(Path(folder), f"g{ending}", lines))


def test_a_row_is_the_statement_that_its_line_says(tmp_path: Path) -> None:
    rows = check_read_as_parsed(write(tmp_path, "g.nq", LINES)).rows
    again = Parsed(write(tmp_path, "again.nt", [line_of(row).removesuffix("\n") for row in rows]))
    assert (again.rows, again.places) == (rows, [])
    assert [row_of_quad(quad_of(row)) for row in rows] == rows


def test_a_text_longer_than_a_parser_takes_is_part_of_what_sparql_sees(tmp_path: Path) -> None:
    row: Row = ("http://e/a", "http://e/p", "é" * 9_000_000, f"{XSD}string", None)
    with sparql_part(tmp_path / "oxigraph") as part:
        part.add([row, ("_:b", "http://e/p", "http://e/a", None, None)])
    stored = {row_of_quad(quad) for quad in ox.Store.read_only(str(tmp_path / "oxigraph"))}
    assert stored == {row, ("_:b", "http://e/p", "http://e/a", None, None)}


def row_of_quad(quad: ox.Quad) -> Row:
    head, tail = quad.subject, quad.object
    assert not isinstance(head, ox.Triple)
    assert not isinstance(tail, ox.Triple)
    said = tail if isinstance(tail, ox.Literal) else key_of(tail)
    return row_of(key_of(head), quad.predicate.value, said)


def key_of(node: ox.NamedNode | ox.BlankNode) -> str:
    return node.value if isinstance(node, ox.NamedNode) else str(node)
