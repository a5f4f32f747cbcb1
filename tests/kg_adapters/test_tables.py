"""Tables say what they were taken for, however many columns they have, and what is missing in them."""

import io
from pathlib import Path

import pytest

from kg_adapters.errors import InvalidSource
from kg_adapters.files.tables import TableReader
from kg_adapters.importing.build import build_store
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.open_options import ReadingLimits


class Told:
    """What a reader of tables told, and what it read."""

    def __init__(self, folder: Path, content: str, id_column: str | None = None) -> None:
        path = folder / "g.csv"
        self.problems: list[str] = []
        self.notes: list[str] = []
        reader = TableReader(
            path, path.name, lambda text, _: self.problems.append(text), self.notes.append, ReadingLimits(), id_column
        )
        self.statements = [str(quad) for quad in reader.read(io.BytesIO(content.encode()), ".csv")]
        self.notes = [note.removeprefix(f"{folder}/") for note in self.notes]
        self.problems = [problem.removeprefix(f"{folder}/") for problem in self.problems]


@pytest.mark.parametrize("content", ["", "\n\n", "  \n,,\n"])
def test_an_empty_table_says_what_belongs_there(tmp_path: Path, content: str) -> None:
    told = Told(tmp_path, content)
    assert told.problems == ["g.csv is empty: a table is a header and rows below it."]
    assert (told.statements, told.notes) == ([], [])


@pytest.mark.parametrize("content", ["id,name\n", "head,relation,tail", "a,b,c\n\n"])
def test_a_header_alone_is_no_table(tmp_path: Path, content: str) -> None:
    told = Told(tmp_path, content)
    assert told.problems == ["g.csv has a header and no row below it."]
    assert (told.statements, told.notes) == ([], [])


def test_an_import_of_a_header_alone_fails_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("id,name\n", encoding="utf-8")
    with pytest.raises(InvalidSource, match=r"g\.csv has a header and no row below it\. Fix the file"):
        build_store([tmp_path / "g.csv"], tmp_path / "store", ImportOptions(sparql=False))
    assert not (tmp_path / "store").exists()


REPEATED = "id,name,boss\n1,Ann,\n2,Bob,1\n2,Cid,1\n3,Dee,2\n"


def test_ids_that_repeat_are_told_with_their_lines_and_rows_are_numbered(tmp_path: Path) -> None:
    told = Told(tmp_path, REPEATED)
    assert told.notes == [
        "g.csv, line 4: the id '2' is in line 3 too, so the rows are numbered. To make rows with the same id one "
        "entity: --id-column id.",
        "g.csv: 4 entities, one in each row. They are numbered; named by name; id: whole number; boss: whole number.",
    ]
    assert sum("urn:table:type:g>" in each and "#type" in each for each in told.statements) == 4


def test_rows_with_the_same_id_in_a_chosen_column_are_one_entity(tmp_path: Path) -> None:
    told = Told(tmp_path, REPEATED, "id")
    assert told.notes[0] == "g.csv, line 4: the id '2' is in line 3 too; rows with the same id become one entity."
    about = [each for each in told.statements if each.startswith("<urn:table:g:2> ")]
    assert [each for each in about if "label" in each] == [
        '<urn:table:g:2> <http://www.w3.org/2000/01/rdf-schema#label> "Bob"',
        '<urn:table:g:2> <http://www.w3.org/2000/01/rdf-schema#label> "Cid"',
    ]


@pytest.mark.parametrize("content", ["id,name\n1,Ann\n2,Bob\n", "name,n\nAnn,1\nAnn,1\n", "city,code\nA,x\nA,x\n"])
def test_nothing_is_told_where_no_column_of_ids_repeats(tmp_path: Path, content: str) -> None:
    assert not [note for note in Told(tmp_path, content).notes if "line" in note]


def test_one_entity_and_one_edge_are_told_as_one(tmp_path: Path) -> None:
    assert Told(tmp_path, "id,age\na,3\n").notes == [
        "g.csv: 1 entity, one in each row. They are known by id; age: whole number."
    ]
    assert Told(tmp_path, "head,relation,tail\na,near,b\n").notes == [
        "g.csv: 1 edge, one in each row. Relations: near (edges)."
    ]


def test_a_list_of_edges_of_which_none_is_whole_has_no_relations(tmp_path: Path) -> None:
    told = Told(tmp_path, "head,relation,tail\n,near,\n")
    assert told.problems == ["g.csv, line 2: an edge needs a head and a tail."]
    assert told.statements == []


def test_of_very_many_columns_the_first_are_told_and_how_many_more_there_are(tmp_path: Path) -> None:
    width = 20_000
    header, row = (",".join(f"{letter}{place}" for place in range(width)) for letter in "cv")
    (note,) = Told(tmp_path, f"id,{header}\nr,{row}\n").notes
    assert note.endswith(f"c10: text; and {width - 11:,} more.")
    assert len(note) < 400


def test_headers_that_repeat_stay_apart(tmp_path: Path) -> None:
    (note,) = Told(tmp_path, "id,n,n,n 3,\na,1,2,3,4\n").notes
    assert note.partition("known by id; ")[2] == (
        "n: whole number; n 3: whole number; n 3 4: whole number; column 5: whole number."
    )


NAMED = "http://www.w3.org/2000/01/rdf-schema#label"


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("name,born,country\nAda,1815,England\nEmmy,1882,Germany\n", ["Ada", "Emmy"]),
        ("mathematician,country\nAda,England\nEmmy,Germany\n", ["Ada", "Emmy"]),
        ("数学家,国家\n华罗庚,中国\n冈洁,日本\n", ["华罗庚", "冈洁"]),
        ("id,born,country\nm1,1815,England\nm2,1882,Germany\n", ["m1", "m2"]),
        ("id,mathematician,country\nm1,Ada,England\nm2,Emmy,Germany\n", ["Ada", "Emmy"]),
        ("thing,mathematician\nhttp://e/ada,Ada\nhttp://e/emmy,Emmy\n", ["Ada", "Emmy"]),
        ("iso,state\nGB,England\nDE,Germany\n", ["England", "Germany"]),
        ("code,country,title\nm1,England,Ada\nm2,Germany,Emmy\n", ["Ada", "Emmy"]),
        ("mathematician,born\nAda,1815\nAda,1816\nEmmy,1882\nSofia,1850\nMary,1780\n", None),
    ],
)
def test_rows_are_called_by_a_column_of_names_and_by_nothing_that_is_only_said_of_them(
    tmp_path: Path, content: str, names: list[str] | None
) -> None:
    said = [each for each in Told(tmp_path, content).statements if NAMED in each and ":type:" not in each]
    found = [each.rpartition("> ")[2].strip('"') for each in said if ":relation:" not in each]
    assert found == (["Ada", "Ada", "Emmy", "Sofia", "Mary"] if names is None else names)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("from,to,kind\na,b,near\nb,c,far\n", "Relations: near (edges), far (edges)."),
        ("from,to,bond,since\na,b,near,1990\nb,c,far,1991\n", "Relations: near (edges), far (edges). Left out: since."),
        ("from,to,since\na,b,1990\nb,c,1991\n", "Relations: g (edges). Left out: since."),
        ("from,to,bond,by\na,b,near,Ann\nb,c,far,Bob\n", "Relations: g (edges). Left out: bond, by."),
        ("from,to\na,b\n", "Relations: g (edges)."),
        ("from,to,,since\na,b,,\n", "Relations: g (edges)."),
        ("from,to,\na,b,7\n", "Relations: g (edges). Left out: column 3."),
    ],
)
def test_a_list_of_edges_takes_its_only_words_for_relations_and_tells_what_it_leaves_out(
    tmp_path: Path, content: str, told: str
) -> None:
    (note,) = Told(tmp_path, content).notes
    assert note.partition("one in each row. ")[2] == told
