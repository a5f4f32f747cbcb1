"""Counts, sums and groups over tables: equal from the index, from the SPARQL that `explain` gives, and from SQLite."""

# ruff: noqa: S608 - a test's own database is asked

import random
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import pytest
from mcp import Client

from calls import Reply, reply_of, rows
from kg_adapters.importing.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_server.app import build_server
from kg_server.settings import Settings, SparqlSettings

DATABASES: Final = 3
UNHURRIED: Final = Settings(timeout_s=600, sparql=SparqlSettings(timeout_s=600))
TABLES: Final = """
CREATE TABLE owner (owner_id INTEGER PRIMARY KEY, town TEXT);
CREATE TABLE pet (pet_id INTEGER PRIMARY KEY, owner_id INTEGER REFERENCES owner, weight INTEGER);
CREATE TABLE visit (visit_id INTEGER PRIMARY KEY, pet_id INTEGER REFERENCES pet, fee REAL);
CREATE TABLE drug (drug_id INTEGER PRIMARY KEY, price INTEGER);
CREATE TABLE given (given_id INTEGER PRIMARY KEY, visit_id INTEGER REFERENCES visit, drug_id INTEGER REFERENCES drug);
"""
Value: TypeAlias = int | float | str | None


@dataclass(frozen=True)
class Question:
    """An expression, and the SQL that asks the same: of a number, or of rows of a key and a number."""

    expression: str
    sql: str


def filled(seed: int) -> sqlite3.Connection:
    """Return a database of few different values and keys, so that many are equal, and some missing."""
    chosen = random.Random(seed)  # noqa: S311 - the data of a test
    made = sqlite3.connect(":memory:")
    made.executescript(TABLES)

    def maybe(values: Sequence[Value]) -> Value:
        return None if chosen.random() < 0.15 else chosen.choice(values)

    sizes = {table: chosen.randint(2, 9) for table in ("owner", "pet", "drug")}
    sizes["visit"], sizes["given"] = chosen.randint(8, 25), chosen.randint(8, 25)
    keys = {table: range(1, size + 1) for table, size in sizes.items()}
    records: dict[str, list[tuple[Value, ...]]] = {
        # Without any value the column would not be in the graph, with different ones it would be the name.
        "owner": [(1, "Ulm"), (2, "Ulm"), *((key, maybe(["Ulm", "Bern"])) for key in keys["owner"][2:])],
        "pet": [(key, maybe(keys["owner"]), maybe([2, 3, 7])) for key in keys["pet"]],
        "visit": [(key, maybe(keys["pet"]), maybe([10.0, 12.5, 15.0])) for key in keys["visit"]],
        "drug": [(key, maybe([1, 4])) for key in keys["drug"]],
        "given": [(key, maybe(keys["visit"]), maybe(keys["drug"])) for key in keys["given"]],
    }
    for table, every in records.items():
        made.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(every[0]))})", every)
    made.commit()
    return made


FEES: Final = "pet JOIN visit USING (pet_id)"
OWNED: Final = "owner JOIN pet USING (owner_id) JOIN visit USING (pet_id)"
PRICES: Final = "visit JOIN given USING (visit_id) JOIN drug USING (drug_id)"


def questions() -> Iterator[Question]:
    for table in ("owner", "pet", "visit", "drug", "given"):
        yield Question(f"Count[Type[{table}]]", f"SELECT COUNT(*) FROM {table}")
    for function, named in (("Sum", "SUM"), ("Mean", "AVG"), ("Min", "MIN"), ("Max", "MAX")):
        for of, by, value, source in (
            ("Type[visit]", "fee", "fee", "visit"),
            ("Type[pet]", "weight", "weight", "pet"),
            ("Type[pet]", "-pet_id/fee", "fee", FEES),
            ("Type[owner]", "-owner_id/-pet_id/fee", "fee", OWNED),
            ("Type[owner]", "-owner_id/weight", "weight", "owner JOIN pet USING (owner_id)"),
            ("Type[visit]", "-visit_id/drug_id/price", "price", PRICES),
            (
                "Type[drug]",
                "-drug_id/visit_id/fee",
                "fee",
                "drug JOIN given USING (drug_id) JOIN visit USING (visit_id)",
            ),
            ("Type[given]", "drug_id/price", "price", "given JOIN drug USING (drug_id)"),
            ("Where[Type[pet], weight > 2]", "-pet_id/fee", "fee", f"{FEES} WHERE weight > 2"),
            ("Where[Type[visit], fee >= 12.5]", "-visit_id/drug_id/price", "price", f"{PRICES} WHERE fee >= 12.5"),
        ):
            yield Question(f"{function}[{of}, {by}]", f"SELECT {named}({value}) FROM {source}")
    for condition, true in (
        ("fee > 10", "SELECT COUNT(*) FROM visit WHERE fee > 10"),
        ("fee = none", "SELECT COUNT(*) FROM visit WHERE fee IS NULL"),
        ("pet_id = none", "SELECT COUNT(*) FROM visit WHERE pet_id IS NULL"),
        ("pet_id/weight = 3", "SELECT COUNT(*) FROM visit JOIN pet USING (pet_id) WHERE weight = 3"),
        ("-visit_id/drug_id/price > 1", f"SELECT COUNT(DISTINCT visit_id) FROM {PRICES} WHERE price > 1"),
        (
            "Count[-visit_id] > 1",
            "SELECT COUNT(*) FROM (SELECT 1 FROM given WHERE visit_id NOT NULL GROUP BY visit_id HAVING COUNT(*) > 1)",
        ),
    ):
        yield Question(f"Count[Where[Type[visit], {condition}]]", true)
    for of, by, sql in (
        ("visit", "pet_id", "SELECT pet_id, COUNT(*) FROM visit WHERE pet_id NOT NULL GROUP BY 1"),
        ("owner", "town", "SELECT town, COUNT(*) FROM owner WHERE town NOT NULL GROUP BY 1"),
        ("visit", "pet_id/weight", f"SELECT weight, COUNT(*) FROM {FEES} WHERE weight NOT NULL GROUP BY 1"),
    ):
        yield Question(f"Group[Type[{of}], {by}]", sql)


@pytest.fixture(scope="module", params=range(DATABASES))
def imported(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, sqlite3.Connection]]:
    folder = tmp_path_factory.mktemp("tables")
    with closing(filled(int(request.param))) as made:
        (folder / "vet.sqlite").write_bytes(made.serialize())
        build_store([folder / "vet.sqlite"], folder / "store", ImportOptions())
        yield folder / "store", made


def number(text: str) -> float | None:
    """Return the number of an answer; None where nothing has a value."""
    found = re.match(r"-?[\d,]+(?:\.\d+)?", text)
    return None if found is None else float(found[0].replace(",", ""))


def table(cells: Sequence[Sequence[object]]) -> dict[str, float]:
    """Return rows of a key, as in the tables or as an id, and a number."""
    return {str(key).rpartition(":")[2]: float(str(count)) for key, count, *_ in cells}


async def test_every_question_has_the_same_answer_from_the_index_from_sparql_and_from_sql(
    imported: tuple[Path, sqlite3.Connection],
) -> None:
    store, made = imported
    graph = LocalAdapter(open_store(store))

    async def ask(tool: str, **arguments: object) -> Reply:
        reply = reply_of(await client.call_tool(tool, arguments))
        assert not reply.is_error, (arguments, reply.text)
        return reply

    async with Client(build_server(graph, UNHURRIED)) as client:
        for question in questions():
            reply = await ask("Compose", expression=question.expression, evidence="none", explain=True)
            ((_, query),) = rows(reply.data["sparql"])
            explained = rows((await ask("Sparql", query=query, max_rows=1_000)).data["rows"])
            wanted = made.execute(question.sql).fetchall()
            if question.expression.startswith("Group"):
                found = [[row[1], row[3]] for row in rows(reply.data["results"])]
                assert table(found) == table(explained) == table(wanted), question
                continue
            (value,) = wanted[0]
            assert number(reply.text) == (None if value is None else pytest.approx(value, abs=1e-4)), question
            if value is not None:
                assert float(explained[0][0]) == pytest.approx(value), question
    await graph.aclose()
