"""Conditions drawn at random over tables whose columns share names and keys: equal from the index, from the SPARQL that
`explain` gives, and from SQLite."""

# ruff: noqa: S608 - a test's own database is asked

import random
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from mcp import Client

from calls import Reply, reply_of, rows, unhurried
from kg_adapters.importing.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_server.app import build_server

DATABASES: Final = 2
QUESTIONS: Final = 60
TABLES: Final = """
CREATE TABLE owner (owner_id INTEGER PRIMARY KEY, town TEXT, tag TEXT);
CREATE TABLE pet (pet_id INTEGER PRIMARY KEY, owner_id INTEGER REFERENCES owner, tag INTEGER REFERENCES owner,
    kind TEXT);
CREATE TABLE visit (visit_id INTEGER PRIMARY KEY, pet_id INTEGER REFERENCES pet, fee REAL, tag INTEGER, note TEXT);
CREATE TABLE given (visit_id INTEGER REFERENCES visit, pet_id INTEGER REFERENCES pet, drug TEXT, dose INTEGER,
    note TEXT);
"""
OWNERS, PETS, VISITS, GIVEN = range(1, 6), range(1, 9), range(1, 16), range(25)
TEXT, NUMBER, LINK = ("=", "=", "!=", "~"), ("=", "=", "!=", ">", "<="), ("=", "=", "!=")
COLUMNS: Final[dict[str, Sequence[tuple[str, Sequence[str], Sequence[object]]]]] = {
    "owner": [("town", TEXT, ["Ulm", "Bern"]), ("tag", TEXT, ["Ulm", "x y"])],
    "pet": [("owner_id", LINK, OWNERS), ("tag", LINK, OWNERS), ("kind", TEXT, ["cat", "dog"])],
    "visit": [
        ("pet_id", LINK, PETS),
        ("fee", NUMBER, [10, 12.5]),
        ("tag", NUMBER, [1, 2, 3]),
        ("note", TEXT, ["old", "new"]),
    ],
    "given": [
        ("pet_id", LINK, PETS),
        ("drug", TEXT, ["a1", "b2"]),
        ("dose", NUMBER, [1, 2, 3]),
        ("note", TEXT, ["old", "new"]),
    ],
}
"""The columns of each table, how they compare, and with what."""
STEPS: Final = [
    ("visit", "-visit_id", "given", "there.visit_id = visit.visit_id"),
    ("owner", "-owner_id", "pet", "there.owner_id = owner.owner_id"),
    ("visit", "pet_id", "pet", "there.pet_id = visit.pet_id"),
    ("given", "visit_id", "visit", "there.visit_id = given.visit_id"),
]
"""Which table a step leads from, the step, which table it leads to, and which rows of that."""


@dataclass(frozen=True)
class Condition:
    """A condition on a column, as it is written and in SQL; `denies` where a row without the value may meet it."""

    column: str
    rest: str
    sql: str
    denies: bool = False


def filled(chosen: random.Random) -> sqlite3.Connection:
    """Return a database of few different values, some missing, and ids that all tables have."""
    made = sqlite3.connect(":memory:")
    made.executescript(TABLES)

    def maybe(values: Sequence[object]) -> object:
        return None if chosen.random() < 0.2 else chosen.choice(values)

    records: dict[str, list[tuple[object, ...]]] = {
        "owner": [(key, chosen.choice(["Ulm", "Bern"]), maybe(["x y", "Ulm", "z"])) for key in OWNERS],
        "pet": [(key, maybe(OWNERS), maybe(OWNERS), chosen.choice(["cat", "dog"])) for key in PETS],
        "visit": [
            (key, maybe(PETS), maybe([10.0, 12.5, 15.0]), maybe([1, 2, 3]), maybe(["old", "new"])) for key in VISITS
        ],
        "given": [
            (maybe(VISITS), maybe(PETS), chosen.choice(["a1", "b2", "c3"]), maybe([1, 2, 3]), maybe(["old", "new"]))
            for _ in GIVEN
        ],
    }
    for table, every in records.items():
        made.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(every[0]))})", every)
    made.commit()
    return made


def condition(chosen: random.Random, table: str, alias: str) -> Condition:
    column, operators, values = chosen.choice(COLUMNS[table])
    field, value, operator = f"{alias}.{column}", chosen.choice(values), chosen.choice(["none", "any", *operators])
    written = f"'{value}'" if isinstance(value, str) else str(value)
    match operator:
        case "none":
            return Condition(column, "= none", f"{field} IS NULL", denies=True)
        case "any":
            return Condition(column, "!= none", f"{field} NOT NULL")
        case "~":
            return Condition(column, f"~ {value}", f"{field} LIKE '%{value}%'")
        case _:
            denies = operator == "!="
            return Condition(column, f"{operator} {value}", f"{field} {operator} {written}", denies=denies)


def of_rows(chosen: random.Random) -> tuple[str, str]:
    """Return conditions on rows themselves, and the SQL that asks the same."""
    table = chosen.choice(list(COLUMNS))
    every = [condition(chosen, table, table) for _ in range(chosen.randint(1, 3))]
    written = ", ".join(f"{each.column} {each.rest}" for each in every)
    return (
        f"Count[Where[Type[{table}], {written}]]",
        f"SELECT COUNT(*) FROM {table} WHERE {' AND '.join(each.sql for each in every)}",
    )


def of_one_there(chosen: random.Random) -> tuple[str, str]:
    """Return conditions on one row that a step leads to, and the SQL that asks the same."""
    table, step, there, joined = chosen.choice(STEPS)
    every: list[Condition] = []
    while len({each.column for each in every}) < 2 or all(each.denies for each in every):
        every = [condition(chosen, there, "there") for _ in range(2)]
    written = ", ".join(f"{step}/{each.column} {each.rest}" for each in every)
    met = " AND ".join((joined, *(each.sql for each in every)))
    return (
        f"Count[Where[Type[{table}], {written}]]",
        f"SELECT COUNT(*) FROM {table} WHERE EXISTS (SELECT 1 FROM {there} AS there WHERE {met})",
    )


@pytest.mark.parametrize("draw", [of_rows, of_one_there])
@pytest.mark.parametrize("seed", range(DATABASES))
async def test_conditions_keep_the_rows_that_sql_keeps(
    tmp_path: Path, seed: int, draw: Callable[[random.Random], tuple[str, str]]
) -> None:
    chosen = random.Random(seed)  # noqa: S311 - the data of a test
    with closing(filled(chosen)) as made:
        (tmp_path / "vet.sqlite").write_bytes(made.serialize())
        build_store([tmp_path / "vet.sqlite"], tmp_path / "store", ImportOptions())
        questions = dict(draw(chosen) for _ in range(QUESTIONS))
        wanted = {expression: made.execute(sql).fetchone()[0] for expression, sql in questions.items()}
    async with (
        aclosing(LocalAdapter(open_store(tmp_path / "store"))) as graph,
        Client(build_server(graph, unhurried())) as client,
    ):

        async def ask(tool: str, **arguments: object) -> Reply:
            reply = reply_of(await client.call_tool(tool, arguments))
            assert not reply.is_error, (arguments, reply.text)
            return reply

        counted, explained = dict[str, int](), dict[str, int]()
        for expression in questions:
            reply = await ask("Compose", expression=expression, evidence="none", explain=True)
            counted[expression] = int(reply.text.partition(".")[0])
            ((_, query),) = rows(reply.data["sparql"])
            explained[expression] = int(rows((await ask("Sparql", query=query)).data["rows"])[0][0])
    assert counted == wanted
    assert explained == wanted
    assert len(set(wanted.values())) > 3, "questions with the same answer prove little"
