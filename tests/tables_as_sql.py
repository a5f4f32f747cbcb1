"""Random tables, and random questions about them as expressions and as SQL."""

# ruff: noqa: S608, S311 - a test's own database is asked, and its data and questions are random

import random
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, TypeVar, cast

from mcp import Client

from calls import reply_of, rows, unhurried
from kg_adapters.algebra import DatePart
from kg_adapters.importing.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_server.answers.results import MOST_TOKENS
from kg_server.app import build_server

Value: TypeAlias = int | float | str | None

_ROUNDED: Final = 1e-4

TABLES: Final = """
CREATE TABLE owner (owner_id INTEGER PRIMARY KEY, town TEXT);
CREATE TABLE pet (pet_id INTEGER PRIMARY KEY, owner_id INTEGER REFERENCES owner, weight INTEGER);
CREATE TABLE visit (visit_id INTEGER PRIMARY KEY, pet_id INTEGER REFERENCES pet, seen_at DATE, fee REAL);
CREATE TABLE drug (drug_id INTEGER PRIMARY KEY, price INTEGER);
CREATE TABLE given (given_id INTEGER PRIMARY KEY, visit_id INTEGER REFERENCES visit, drug_id INTEGER REFERENCES drug);
CREATE TABLE bill (bill_id INTEGER PRIMARY KEY, owner_id INTEGER REFERENCES owner, paid REAL);
"""
LINKS: Final = {
    ("pet", "owner_id"): "owner",
    ("visit", "pet_id"): "pet",
    ("given", "visit_id"): "visit",
    ("given", "drug_id"): "drug",
    ("bill", "owner_id"): "owner",
}
"""Where the keys of a table lead to; a key of two tables is one relation."""
NUMBERS: Final = {"pet": "weight", "visit": "fee", "drug": "price", "bill": "paid"}
TEXTS: Final = {"owner": "town"}
DATES: Final = {"visit": "seen_at"}
VIEWS: Final = (
    " UNION ALL ".join(
        f"SELECT '{relation}' r, '{table}:' || {table}_id h, '{target}:' || {relation} t FROM {table} "
        f"WHERE {relation} NOT NULL"
        for (table, relation), target in LINKS.items()
    ),
    " UNION ALL ".join(
        f"SELECT '{feature}' r, '{table}:' || {table}_id h, {feature} v FROM {table} WHERE {feature} NOT NULL"
        for features in (NUMBERS, TEXTS, DATES)
        for table, feature in features.items()
    ),
)
FUNCTIONS: Final = {"Sum": "SUM", "Mean": "AVG", "Min": "MIN", "Max": "MAX", "Count": "COUNT"}
OPERATORS: Final = (">", ">=", "<", "<=", "=", "!=")
PARTS: Final[dict[DatePart, int]] = {"year": 4, "month": 7, "day": 10}


def filled(seed: int) -> sqlite3.Connection:
    """Return a database of few different values and keys, so that many are equal, and some missing."""
    chosen = random.Random(seed)
    made = sqlite3.connect(":memory:")
    made.executescript(TABLES)

    def maybe(values: Sequence[Value]) -> Value:
        return None if chosen.random() < 0.15 else chosen.choice(values)

    sizes = {table: chosen.randint(2, 9) for table in ("owner", "pet", "drug")}
    sizes |= {table: chosen.randint(8, 25) for table in ("visit", "given", "bill")}
    keys = {table: range(1, size + 1) for table, size in sizes.items()}
    dates = ["2023-12-30", "2024-01-02", "2024-01-31", "2024-02-01", "2025-01-02"]
    records: dict[str, list[tuple[Value, ...]]] = {
        "owner": [(key, maybe(["Ulm", "Bern"])) for key in keys["owner"]],
        "pet": [(key, maybe(keys["owner"]), maybe([2, 3, 7])) for key in keys["pet"]],
        "visit": [(key, maybe(keys["pet"]), maybe(dates), maybe([10.0, 12.5, 15.0])) for key in keys["visit"]],
        "drug": [(key, maybe([1, 4])) for key in keys["drug"]],
        "given": [(key, maybe(keys["visit"]), maybe(keys["drug"])) for key in keys["given"]],
        "bill": [(key, maybe(keys["owner"]), maybe([0.25, 10.0, -3.5])) for key in keys["bill"]],
    }
    # Without any value a column would not be in the graph; a text that is different in every row would be the name.
    first = {"owner": ("Ulm",), "pet": (1, 2), "visit": (1, dates[0], 10.0), "drug": (1,), "given": (1, 1)}
    for table, values in (first | {"bill": (1, 10.0)}).items():
        records[table][0] = (1, *values)
    records["owner"][1] = (2, "Ulm")
    for table, every in records.items():
        made.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(every[0]))})", every)
    for name, view in zip(("link", "value"), VIEWS, strict=True):
        made.execute(f"CREATE VIEW {name} AS {view}")
    made.commit()
    return made


Known: TypeAlias = float | str | None


def known(value: object) -> Known:
    """Return a number or a text; None for none."""
    if value is None or value in {"", "none"}:
        return None
    text = str(value).replace(",", "")
    try:
        return float(text)
    except ValueError:
        return text


def _is_same(one: Mapping[Known, Known], other: Mapping[Known, Known]) -> bool:
    """Return whether two answers are the same, but for the fourth decimal, to which answers are rounded."""
    pairs = [(value, other.get(key, "no such key")) for key, value in one.items()]
    return len(one) == len(other) and all(
        abs(mine - theirs) < _ROUNDED if isinstance(mine, float) and isinstance(theirs, float) else mine == theirs
        for mine, theirs in pairs
    )


@dataclass(frozen=True)
class Question:
    """An expression, and the SQL that asks the same.

    Args:
        expression: The expression.
        sql: Gives one number or date, or rows of a key and a number or date.
        variables: Of the SPARQL, those for the key and the number, or for the number; none where there is no SPARQL.
        keyed: Whether there are rows.
        best: Up to which rank rows count, those that equal the last included; 0 where all do.
        lowest: Whether the lowest are the best.
        only_keys: Whether only the keys of rows are compared.
    """

    expression: str
    sql: str
    variables: tuple[str, ...]
    keyed: bool = True
    best: int = 0
    lowest: bool = False
    only_keys: bool = False

    def answer(self, made: sqlite3.Connection) -> dict[Known, Known]:
        """Return the answer of SQLite; one number has no key."""
        found = made.execute(self.sql).fetchall()
        rows = {known(row[0]) if self.keyed else None: known(row[-1]) for row in found}
        if self.best:
            sizes = sorted(rows.values(), key=_order, reverse=not self.lowest)
            kept = [_order(each) for each in sizes[: self.best]]
            rows = {key: value for key, value in rows.items() if _order(value) in kept}
        return dict.fromkeys(rows) if self.only_keys else rows


def _order(value: Known) -> tuple[bool, float, str]:
    return (False, value, "") if isinstance(value, float) else (True, 0, str(value))


@dataclass(frozen=True)
class Members:
    """A set as an expression, the SQL that gives its members as `m`, and the tables that they are rows of."""

    expression: str
    sql: str
    tables: frozenset[str]


@dataclass(frozen=True)
class Walk:
    """A path as an expression, the SQL of where it leads from each member, once for each way, and to which tables."""

    expression: str
    sql: str
    tables: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Total:
    """What values come to, as an expression, and as SQL over values `v`."""

    expression: str
    walk: Walk
    sql: str
    variables: tuple[str, ...]


_MADE = TypeVar("_MADE")


class Asking:
    """Makes questions.

    Args:
        seed: What they depend on.
    """

    def __init__(self, seed: int) -> None:
        self._chosen = random.Random(seed)

    def question(self) -> Question:
        """Return a question."""
        kinds = self._count, self._aggregate, self._group, self._group_total, self._best, self._best_total, self._table
        return self._until(self._chosen.choice(kinds))

    def _until(self, make: Callable[[], _MADE | None]) -> _MADE:
        while (made := make()) is None:
            pass
        return made

    def _is(self, chance: float) -> bool:
        return self._chosen.random() < chance

    def _set(self, depth: int = 1) -> Members:
        table = self._chosen.choice(("owner", "pet", "visit", "drug", "given", "bill"))
        sql = f"SELECT '{table}:' || {table}_id m FROM {table}"
        return self._within(Members(f"Type[{table}]", sql, frozenset((table,))), depth)

    def _within(self, of: Members, depth: int) -> Members:
        """Return a set that is made of another one."""
        if not depth or self._is(0.35):
            return of
        if self._is(0.6):
            return self._within(self._until(lambda: self._where(of)), depth - 1)
        if self._is(0.6):
            one, two = (self._until(lambda: self._where(of)) for _ in range(2))
            names = (("Union", "UNION"), ("Intersect", "INTERSECT"), ("Minus", "EXCEPT"))
            function, operator = self._chosen.choice(names)
            sql = f"SELECT m FROM ({one.sql}) {operator} SELECT m FROM ({two.sql})"
            return Members(f"{function}[{one.expression}, {two.expression}]", sql, of.tables)
        walk = self._until(lambda: self._walk(of, 1))
        sql = f"SELECT DISTINCT v m FROM ({walk.sql})"
        return self._within(Members(f"Neighbor[{of.expression}, {walk.expression}]", sql, walk.tables), depth - 1)

    def _walk(self, of: Members, steps: int) -> Walk | None:
        """Return a path of so many steps to nodes; None where there is none."""
        tables, names, end, sql = of.tables, list[str](), "s.m", f"FROM ({of.sql}) s"
        for place in range(steps):
            out = [(relation, False) for table, relation in LINKS if table in tables]
            back = [(relation, True) for (_, relation), target in LINKS.items() if target in tables]
            if not (out or back):
                return None
            relation, backwards = self._chosen.choice(out + back)
            here, there = ("t", "h") if backwards else ("h", "t")
            sql += f" JOIN link l{place} ON l{place}.r = '{relation}' AND l{place}.{here} = {end}"
            end = f"l{place}.{there}"
            names.append(f"-{relation}" if backwards else relation)
            pairs = [(table, target) for (table, name), target in LINKS.items() if name == relation]
            tables = frozenset(pair[not backwards] for pair in pairs if pair[backwards] in tables)
        return Walk("/".join(names), f"SELECT s.m m, {end} v {sql}", tables)

    def _values(self, of: Members, features: Mapping[str, str], most: int = 2) -> Walk | None:
        """Return a path of up to so many steps to values; None where there is none."""
        start = Walk("", f"SELECT m, m v FROM ({of.sql})", of.tables)
        walk = self._walk(of, steps) if (steps := self._chosen.randint(0, most)) else start
        found = [] if walk is None else [features[table] for table in sorted(walk.tables) if table in features]
        if walk is None or not found:
            return None
        feature = self._chosen.choice(found)
        sql = f"SELECT e.m m, value.v v FROM ({walk.sql}) e JOIN value ON value.r = '{feature}' AND value.h = e.v"
        return Walk("/".join(filter(None, (walk.expression, feature))), sql)

    def _where(self, of: Members) -> Members | None:
        compare = self._chosen.choice((self._by_number, self._by_date, self._by_text, self._by_count, self._by_having))
        if (found := compare(of)) is None:
            return None
        condition, sql = found
        return Members(f"Where[{of.expression}, {condition}]", f"SELECT b.m m FROM ({of.sql}) b WHERE {sql}", of.tables)

    def _by_number(self, of: Members) -> tuple[str, str] | None:
        number = self._chosen.choice(("2", "3", "10", "12.5", "0.25"))
        return self._compared(self._values(of, NUMBERS), self._chosen.choice(OPERATORS), number, "v", number)

    def _by_date(self, of: Members) -> tuple[str, str] | None:
        date = self._chosen.choice(("2024", "2024-01", "2024-01-31"))
        up_to = f"substr(v, 1, {len(date)})"
        return self._compared(self._values(of, DATES), self._chosen.choice(OPERATORS), date, up_to, f"'{date}'")

    def _by_text(self, of: Members) -> tuple[str, str] | None:
        return self._compared(self._values(of, TEXTS), self._chosen.choice(("=", "!=")), "Ulm", "v", "'Ulm'")

    def _compared(
        self, walk: Walk | None, operator: str, written: str, value: str, given: str
    ) -> tuple[str, str] | None:
        if walk is None:
            return None
        # Of several values any may meet a condition; none may be equal for !=.
        equals = "=" if operator == "!=" else operator
        sql = f"b.m IN (SELECT m FROM ({walk.sql}) WHERE {value} {equals} {given})"
        sql = f"b.m IN (SELECT m FROM ({walk.sql})) AND NOT {sql}" if operator == "!=" else sql
        return f"{walk.expression} {operator} {written}", sql

    def _by_count(self, of: Members) -> tuple[str, str] | None:
        operator, number = self._chosen.choice(OPERATORS), self._chosen.randint(0, 3)
        if (walk := self._walk(of, self._chosen.randint(1, 2))) is None:
            return None
        count = f"(SELECT COUNT(DISTINCT v) FROM ({walk.sql}) w WHERE w.m = b.m)"
        return f"Count[{walk.expression}] {operator} {number}", f"{count} {operator} {number}"

    def _by_having(self, of: Members) -> tuple[str, str] | None:
        walk = self._values(of, NUMBERS | TEXTS, 1) if self._is(0.5) else self._walk(of, 1)
        if walk is None:
            return None
        none, no = (" = none", "NOT ") if self._is(0.5) else ("", "")
        return f"{walk.expression}{none}", f"b.m {no}IN (SELECT m FROM ({walk.sql}))"

    def _count(self) -> Question:
        of = self._set(2)
        return Question(f"Count[{of.expression}]", f"SELECT COUNT(*) FROM ({of.sql})", ("n",), keyed=False)

    def _aggregate(self) -> Question | None:
        of = self._set()
        function = self._chosen.choice(("Sum", "Mean", "Min", "Max"))
        dates = function in {"Min", "Max"} and self._is(0.3)
        if (walk := self._values(of, DATES if dates else NUMBERS)) is None:
            return None
        variable = "m" if function in {"Sum", "Mean"} else "x"
        expression, sql = f"{function}[{of.expression}, {walk.expression}]", f"SELECT {FUNCTIONS[function]}(v) FROM"
        return Question(expression, f"{sql} ({walk.sql})", (variable,), keyed=False)

    def _groups(self) -> tuple[Members, Walk] | None:
        """Return a set, and what leads to groups."""
        of = self._set()
        if self._is(0.3):
            if (walk := self._values(of, DATES)) is None:
                return None
            part: DatePart = self._chosen.choice(("year", "month", "day"))
            sql = f"SELECT m, substr(v, 1, {PARTS[part]}) v FROM ({walk.sql})"
            return of, Walk(f"{walk.expression} by {part}", sql)
        steps = self._chosen.randint(1, 2)
        walk = self._values(of, NUMBERS | TEXTS) if self._is(0.4) else self._walk(of, steps)
        return None if walk is None else (of, walk)

    def _group(self) -> Question | None:
        of, walk = self._until(self._groups)
        sql = f"SELECT v, COUNT(DISTINCT m) FROM ({walk.sql}) GROUP BY v"
        return self._some_groups(f"Group[{of.expression}, {walk.expression}]", sql, ("x", "n"))

    def _some_groups(self, group: str, sql: str, variables: tuple[str, ...]) -> Question:
        """Return a question about all groups, or about the largest or smallest."""
        if self._is(0.7):
            return Question(group, sql, variables)
        function, best = self._chosen.choice(("Top", "Bottom")), self._chosen.randint(1, 2)
        return Question(f"{function}[{group}, {best}]", sql, (), best=best, lowest=function == "Bottom")

    def _total(self, of: Members) -> Total | None:
        function = self._chosen.choice(tuple(FUNCTIONS))
        is_end = function in {"Min", "Max"}
        variables = ("x", "y") if is_end else ("x", "m")
        if function == "Count" and self._is(0.5):
            walk, sql, variables = self._walk(of, self._chosen.randint(1, 2)), "COUNT(DISTINCT v)", ("x", "n")
        else:
            walk = self._values(of, DATES if is_end and self._is(0.3) else NUMBERS)
            sql = f"{FUNCTIONS[function]}(v)"
        return None if walk is None else Total(f"{function}[{walk.expression}]", walk, sql, variables)

    def _group_total(self) -> Question | None:
        of, walk = self._until(self._groups)
        if (total := self._total(of)) is None:
            return None
        inside = f"SELECT DISTINCT m, v g FROM ({walk.sql})"
        sql = f"SELECT g, {total.sql} FROM ({inside}) JOIN ({total.walk.sql}) USING (m) GROUP BY g"
        return self._some_groups(f"Group[{of.expression}, {walk.expression}, {total.expression}]", sql, total.variables)

    def _best(self) -> Question | None:
        """Return a question for the members with the greatest or least value of several, or number of nodes."""
        of, best, function = self._set(), self._chosen.randint(1, 3), self._chosen.choice(("Top", "Bottom"))
        if self._is(0.3):
            walk, measure = self._walk(of, self._chosen.randint(1, 2)), "COUNT(DISTINCT v)"
        else:
            walk = self._values(of, DATES if self._is(0.3) else NUMBERS)
            measure = "MAX(v)" if function == "Top" else "MIN(v)"
        if walk is None:
            return None
        sql, lowest = f"SELECT m, {measure} FROM ({walk.sql}) GROUP BY m", function == "Bottom"
        expression = f"{function}[{of.expression}, {walk.expression}, {best}]"
        return Question(expression, sql, ("x",), best=best, lowest=lowest, only_keys=True)

    def _best_total(self) -> Question | None:
        of, best, function = self._set(), self._chosen.randint(1, 3), self._chosen.choice(("Top", "Bottom"))
        if (total := self._total(of)) is None:
            return None
        sql, lowest = f"SELECT m, {total.sql} FROM ({total.walk.sql}) GROUP BY m", function == "Bottom"
        expression = f"{function}[{of.expression}, {total.expression}, {best}]"
        return Question(expression, sql, ("x", "c0"), best=best, lowest=lowest)

    def _table(self) -> Question | None:
        of = self._set()
        if (total := self._total(of)) is None:
            return None
        joined = f"({of.sql}) s LEFT JOIN ({total.walk.sql}) w ON w.m = s.m"
        sql = f"SELECT s.m, {total.sql} FROM {joined} GROUP BY s.m"
        return Question(f"Table[{of.expression}, {total.expression}]", sql, ("x", "c0"))


async def differing(seed: int, questions: int, folder: Path) -> list[str]:
    """Return which of some random questions about a random database have an answer that is not SQLite's.

    Args:
        seed: What the database and the questions depend on.
        questions: How many questions are asked.
        folder: Where the database is imported.
    """
    asking, found = Asking(seed), list[str]()
    with closing(filled(seed)) as made:
        (folder / "vet.sqlite").write_bytes(made.serialize())
        build_store([folder / "vet.sqlite"], folder / "store", ImportOptions())
        graph = LocalAdapter(open_store(folder / "store"))
        async with Client(build_server(graph, unhurried(max_tokens=MOST_TOKENS))) as client:
            for question in (asking.question() for _ in range(questions)):
                wanted = question.answer(made)
                for answer in await _answers(client, question):
                    if isinstance(answer, str) or not _is_same(answer, wanted):
                        found.append(f"{question.expression}: {answer}, {wanted} by {question.sql}")
        await graph.aclose()
    return found


async def _answers(client: Client, question: Question) -> list[dict[Known, Known] | str]:
    """Return what the index and the SPARQL of `explain` answer; the text of an answer that refuses."""
    arguments = {"expression": question.expression, "evidence": "none", "explain": True}
    reply = reply_of(await client.call_tool("Compose", arguments))
    if reply.is_error:
        return [reply.text]
    results = rows(reply.data["results"])
    # The line of a total over a table is about no row.
    answer = {known(row[1]): known(row[3]) for row in results if row[1] or not question.keyed}
    answers: list[dict[Known, Known] | str] = [_as_asked(question, answer)]
    if question.variables:
        ((_, query),) = rows(reply.data["sparql"])
        answers.append(await _by_sparql(client, question, str(query)))
    return answers


def _as_asked(question: Question, answer: dict[Known, Known]) -> dict[Known, Known]:
    if not question.keyed and not answer:
        return {None: None}
    return dict.fromkeys(answer) if question.only_keys else answer


async def _by_sparql(client: Client, question: Question, query: str) -> dict[Known, Known] | str:
    reply = reply_of(await client.call_tool("Sparql", {"query": query, "max_rows": 1_000}))
    if reply.is_error:
        return reply.text
    columns = [str(each).lstrip("?") for each in cast("list[object]", reply.data["variables"])]
    places = [columns.index(each) for each in question.variables]
    answer = {
        known(row[places[0]]) if question.keyed else None: known(row[places[-1]]) for row in rows(reply.data["rows"])
    }
    return _as_asked(question, answer)
