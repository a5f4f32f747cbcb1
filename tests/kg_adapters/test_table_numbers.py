"""Numbers as people write them, the values that are not of the kind of their column, and the rows that sum others."""

import json
from pathlib import Path

import pytest

from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.tables.options import TableOptions
from tables import TablesRead, database


def numbers(read: TablesRead, table: str, column: str) -> list[str]:
    """Return the values of a column as they were written."""
    start = f" {column} "
    rows = (
        line.partition(start)[2] for line in read.statements if line.startswith((f"{table}:", "e:")) and start in line
    )
    return [value.replace('"', "").replace("^^", " ") for value in rows]


@pytest.mark.parametrize(
    ("cells", "written"),
    [
        (["4,072,192", "643,077"], ["4072192 decimal", "643077 decimal"]),
        (["3.755.251", "1.200"], ["3755251 decimal", "1200 decimal"]),
        (["1 200", "15 000,5"], ["1200 decimal", "15000.5 decimal"]),
        (["1'200.50", "7"], ["1200.50 decimal", "7 decimal"]),
        (["12,34,567", "1.5"], ["1234567 decimal", "1.5 decimal"]),
        (["$12,500.00", "$-3.5"], ["12500.00 unit:%24", "-3.5 unit:%24"]),
        (["5,00 €", "EUR 3,50", "2"], ["5.00 unit:%E2%82%AC", "3.50 unit:%E2%82%AC", "2 unit:%E2%82%AC"]),
        (["2", "$3.50", "5.00 €"], ["2 decimal", "3.50 unit:%24", "5.00 unit:%E2%82%AC"]),
        (["48 kg", "22.5kg"], ["48 unit:kg", "22.5 unit:kg"]),
        (["12.5%", "3 %"], ["12.5 unit:%25", "3 unit:%25"]),
        (["(15.25)", "2", "3.5-", "\u22124"], ["-15.25 decimal", "2 decimal", "-3.5 decimal", "-4 decimal"]),
        (["0.0013080000000000001", "2.5"], ["0.0013080000000000001 double", "2.5 double"]),
        ([".5", "1."], ["0.5 decimal", "1 decimal"]),
        (["1", "#N/A", "<NA>", "NaT", "n/a", "inf", "..", "?", ".", "#DIV/0!", "2"], ["1 integer", "2 integer"]),
        (["007", "12"], ["007", "12"]),
        (["1.2.3", "4.5.6"], ["1.2.3", "4.5.6"]),
    ],
)
def test_numbers_are_read_as_people_write_them(tmp_path: Path, cells: list[str], written: list[str]) -> None:
    rows = "".join(f"row{place}\t{cell}\n" for place, cell in enumerate(cells))
    assert numbers(TablesRead(tmp_path, {"g.tsv": f"id\tn\n{rows}"}), "g", "n") == written


@pytest.mark.parametrize(
    ("name", "content", "options", "read_as", "guessed"),
    [
        ("g.csv", "id;n;price\na;1.200;0,12\nb;10.000;3\n", (), "1200 decimal", False),
        ("g.csv", "id;n;price\na;1.200;0.12\nb;10.000;3\n", (), "1.200 decimal", False),
        ("g.csv", "id;n\na;1.200\nb;10.000\n", (), "1200 decimal", True),
        ("g.csv", "id,n\na,1.200\nb,10.000\n", (), "1.200 decimal", True),
        ("g.csv", "id,n\na,1.200\nb,10.000\n", ("n=1.200,00",), "1200 decimal", False),
        ("g.csv", "id,n\na,1.200\nb,10.000\n", ("1.200,00",), "1200 decimal", False),
        ("g.csv", 'id,n\na,"1,200"\nb,"10,000"\n', ("g.n=1200,5",), "1.200 decimal", False),
    ],
)
def test_a_file_has_one_decimal_mark_and_the_summary_shows_how_numbers_are_read(
    tmp_path: Path, name: str, content: str, options: tuple[str, ...], read_as: str, *, guessed: bool
) -> None:
    read = TablesRead(tmp_path, {name: content}, TableOptions(numbers=options))
    assert numbers(read, "g", "n")[0] == read_as
    report = read.reports["g"]
    assert [column for column, _ in report.numbers][:1] == ["n"]
    doubts = [each.option for each in report.doubts]
    assert bool(doubts) is guessed
    assert all(option.startswith("--numbers g.n=1") for option in doubts)


def test_numbers_that_a_source_has_as_such_are_never_read_in_another_way(tmp_path: Path) -> None:
    shop = database(
        "CREATE TABLE shop (id INTEGER PRIMARY KEY, kg REAL, told TEXT)", "INSERT INTO shop VALUES (1, 1.234, '0,5')"
    )
    records = json.dumps([{"id": "a", "kg": 1.234, "told": "0,5"}, {"id": "b", "kg": 2.345, "told": "1.000,5"}])
    read = TablesRead(tmp_path, {"s.sqlite": shop, "g.json": records})
    assert numbers(read, "shop", "kg") == ["1.234 decimal", "1.234 decimal", "2.345 decimal"]
    assert numbers(read, "shop", "told") == ["0.5 decimal", "0.5 decimal", "1000.5 decimal"]
    assert [report.numbers for report in read.reports.values()] == [
        (("told", "0,5 is 0.5"),),
        (("told", "1.000,5 is 1,000.5"),),
    ]


def test_an_example_that_could_be_written_in_two_ways_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"'1\.200' does not show how numbers are written"):
        TableOptions(numbers=("n=1.200",))


def test_a_chosen_kind_leaves_misfits_as_texts_and_counts_them(tmp_path: Path) -> None:
    table = {"g.csv": "id,score\na,3.5\nb,oops\nc,4.5\n"}
    read = TablesRead(tmp_path, table, TableOptions(kinds=("score=number",)))
    assert numbers(read, "g", "score") == ["3.5 decimal", "4.5 decimal", "oops"]
    assert "  1 value is no number and kept as text, such as 'oops' in line 3: score" in read.lines


def test_a_kind_that_most_values_are_not_of_is_refused(tmp_path: Path) -> None:
    table = {"g.csv": "id,score\na,3.5\nb,oops\nc,4.5\n"}
    with pytest.raises(
        InvalidSource, match=r"line 2: '3\.5' is not of the kind that was chosen for 'score', nor are 3 of"
    ):
        TablesRead(tmp_path, table, TableOptions(kinds=("score=date",)))


def test_a_column_that_looks_like_numbers_comes_with_the_option_that_makes_it_one(tmp_path: Path) -> None:
    (doubt,) = TablesRead(tmp_path, {"g.csv": "id,name,score\na,A,3.5\nb,B,oops\nc,C,4.5\n"}).reports["g"].doubts
    assert (doubt.columns, doubt.option) == (("score",), "--column g.score=number")


TIMES = {"pop.csv": "year,population\n2001,1200\n2002,1250\n"}


@pytest.mark.parametrize(
    ("options", "told"),
    [((), "pop.csv: 2 entities, one in each row; id: year."), (("none",), "numbered, 'row 1' to 'row 2'.")],
)
def test_a_column_of_ids_is_a_value_too(tmp_path: Path, options: tuple[str, ...], told: str) -> None:
    read = TablesRead(tmp_path, TIMES, TableOptions(id_columns=options))
    assert numbers(read, "pop", "year") == ["2001 gYear", "2002 gYear"]
    assert read.lines[0].endswith(told)


def test_a_row_that_sums_those_above_is_left_out_and_told(tmp_path: Path) -> None:
    table = {"g.csv": "id;paid\na;12,50\nb;3,00\nTotal;15,50\n"}
    assert numbers(read := TablesRead(tmp_path, table), "g", "paid") == ["12.50 decimal", "3.00 decimal"]
    assert "  left out, as these rows sum the ones above: line 4, 'Total' (--keep-totals)" in read.lines
    kept = TablesRead(tmp_path, table, TableOptions(keep_totals=True))
    assert numbers(kept, "g", "paid") == ["12.50 decimal", "3.00 decimal", "15.50 decimal"]
    assert "  rows that look like totals count as any other: line 4, 'Total'" in kept.lines


def test_codes_of_which_most_are_numbers_stay_codes(tmp_path: Path) -> None:
    rows = "".join(f"n{place},{code}\n" for place, code in enumerate(["1001", "1002", "1003", "1004", "A-5"]))
    read = TablesRead(tmp_path, {"g.csv": f"id,sku\n{rows}"})
    assert numbers(read, "g", "sku") == ["1001", "1002", "1003", "1004", "A-5"]


def test_a_remark_below_a_table_is_left_out_and_told(tmp_path: Path) -> None:
    read = TablesRead(tmp_path, {"g.csv": "team,points,town\nAjax,5,A\nReal Oviedo,,\nSource: the league,,\n"})
    assert read.reports["g"].rows == 2
    assert "  left out, as these rows are remarks: line 4, 'Source: the league' (--keep-totals)" in read.lines
    assert "  rows with a first cell only count as any other: line 3, 'Real Oviedo'" in read.lines


def test_a_few_texts_among_numbers_stay_texts_and_are_told(tmp_path: Path) -> None:
    prices = ["$1,249.00", "$39.00", "$12.50", "$7.00", "on request"]
    rows = "".join(f'n{place},"{price}"\n' for place, price in enumerate(prices))
    read = TablesRead(tmp_path, {"g.csv": f"id,price\n{rows}"})
    assert numbers(read, "g", "price") == [
        "on request",
        *(f"{each} unit:%24" for each in ("1249.00", "39.00", "12.50", "7.00")),
    ]
    assert "  1 value is no number and kept as text, such as 'on request': price" in read.lines


def test_a_row_that_is_only_called_a_total_stays(tmp_path: Path) -> None:
    read = TablesRead(tmp_path, {"g.csv": "team,points\nTotal Football,9\nAjax,5\nAlbion,4\n"})
    assert numbers(read, "g", "points") == ["9 integer", "5 integer", "4 integer"]


KEYS = {"part.csv": "id,name\nA-1,Nut\nA-2,Bolt\n", "sale.csv": "no,part\n7,a-1\n8,A-2\n"}


def test_keys_that_differ_in_case_blanks_or_zeros_only_are_joined_and_told(tmp_path: Path) -> None:
    read = TablesRead(tmp_path, {"part.csv": KEYS["part.csv"], "sale.csv": "no,part\n7,a-1\n8,A -2\n9,A-1\n"})
    assert [line for line in read.statements if " part e:" in line] == [
        "sale:7 part e:A-1",
        "sale:8 part e:A-2",
        "sale:9 part e:A-1",
    ]
    told = "  part → part.id: all of 3 values, such as 'a-1'; 2 with other case, blanks or leading zeros "
    assert f"{told}(--no-link sale.part)" in read.lines
    assert not read.reports["sale"].doubts
    (apart,) = TablesRead(tmp_path, KEYS, TableOptions(no_links=("sale.part",))).reports["sale"].doubts
    assert (apart.columns, apart.option) == (("part",), "--link sale.part=part.id")


def test_keys_of_another_type_are_joined_but_not_those_that_could_mean_two_rows(tmp_path: Path) -> None:
    breeds = database(
        "CREATE TABLE breed (code TEXT PRIMARY KEY, name TEXT)", "INSERT INTO breed VALUES ('0010', 'Collie')"
    )
    pets = {"pet.csv": "id,breed_code\n1,10\n2,10\n"}
    assert "pet:1 breed_code breed:0010" in TablesRead(tmp_path, {"b.sqlite": breeds, **pets}).statements
    two = {"part.csv": "id,name\nA-1,Nut\na-1,Bolt\n", "sale.csv": "no,part\n7,A-01\n"}
    assert not any(" part e:" in line for line in TablesRead(tmp_path, two).statements)


def test_few_keys_that_are_almost_ids_are_told_with_the_option_that_joins_them(tmp_path: Path) -> None:
    table = {"part.csv": KEYS["part.csv"], "sale.csv": "no,part\n7,a-1\n8,B-9\n"}
    (doubt,) = TablesRead(tmp_path, table).reports["sale"].doubts
    assert (
        "1 of 2 values are ids of part.id, some with other case, blanks or leading zeros, such as 'a-1' for"
        in doubt.why
    )
    joined = TablesRead(tmp_path, table, TableOptions(links=("sale.part=part.id",)))
    assert "sale:7 part e:A-1" in joined.statements
    assert not joined.reports["sale"].doubts


def test_a_link_between_columns_that_have_nothing_in_common_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSource, match=r"No value of sale\.no is an id of part\.id, such as '7'"):
        TablesRead(tmp_path, KEYS, TableOptions(links=("sale.no=part.id",)))


def test_nested_objects_with_a_name_and_equal_content_are_one(tmp_path: Path) -> None:
    site = {"code": "007", "name": "North"}
    lines = [{"sku": "S1", "qty": 2}, {"sku": "S1", "qty": 2}]
    read = TablesRead(tmp_path, {"g.json": json.dumps([{"id": each, "site": site, "lines": lines} for each in "ab"])})
    assert "g.json, g.site: 1 nested object, different ones of 2; name: name." in read.lines
    assert read.reports["g.lines"].rows == 4


def test_lists_that_repeat_a_value_are_told(tmp_path: Path) -> None:
    records = [{"id": "a", "marks": [5, 5, 3]}, {"id": "b", "marks": [4]}]
    (doubt,) = TablesRead(tmp_path, {"g.json": json.dumps(records)}).reports["g"].doubts
    assert (doubt.columns, doubt.why) == (("marks",), "each value is kept once, though 1 list repeats some")


def test_dates_of_one_column_may_be_more_or_less_precise_and_before_christ(tmp_path: Path) -> None:
    cells = ["1911-06-03", "1911", "1887-11", "447 BCE", "79 CE", "4th century BCE"]
    table = "id,made\n" + "".join(f"n{place},{cell}\n" for place, cell in enumerate(cells))
    read = TablesRead(tmp_path, {"g.csv": table})
    assert read.kinds("g") == {"made": "date (of any precision)"}
    assert sorted(numbers(read, "g", "made")) == sorted(
        [
            *("1911-06-03 date", "1911 gYear", "1887-11 gYearMonth", "-0446 gYear", "0079 gYear"),
            "-0399/-0300 http://id.loc.gov/datatypes/edtf/EDTF",
        ]
    )


def test_a_declared_truth_value_is_one(tmp_path: Path) -> None:
    shop = database(
        "CREATE TABLE shop (id INTEGER PRIMARY KEY, is_mobile BOOLEAN)", "INSERT INTO shop VALUES (1, 1), (2, 0)"
    )
    assert numbers(TablesRead(tmp_path, {"s.sqlite": shop}), "shop", "is_mobile") == ["true boolean", "false boolean"]


def test_the_values_of_a_column_become_entities_by_an_option_that_the_report_proposes(tmp_path: Path) -> None:
    table = {"g.csv": "no,buyer\n1,Ann Lee\n2,Bo\n3,Ann Lee\n4,Bo\n"}
    assert "  texts that recur, and could be entities: buyer (--node g.buyer)" in TablesRead(tmp_path, table).lines
    read = TablesRead(tmp_path, table, TableOptions(nodes=("buyer",)))
    assert {line for line in read.statements if line.startswith("buyer:Bo ")} == {
        'buyer:Bo rdfs:label "Bo"',
        "buyer:Bo rdf:type type:buyer",
    }
    assert "buyer buyer:Ann%20Lee" in read.about("g:3")


def test_options_that_change_nothing_are_told(tmp_path: Path) -> None:
    options = TableOptions(splits=("town=;",), no_links=("town", "all"))
    doubts = TablesRead(tmp_path, {"g.csv": "id,town\na,Aa\nb,Bb\nc,Aa\n"}, options).reports["g"].doubts
    assert [each.why.partition(",")[0] for each in doubts] == ["--split changes nothing", "--no-link changes nothing"]
