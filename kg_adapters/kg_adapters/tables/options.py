"""The options of tables: which columns hold ids, what others hold, and where they lead."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.tables.numbers import Mark, mark_in
from kg_adapters.tables.values import AS_PEOPLE_WRITE, CHOSEN_KINDS, Kind
from kg_boundary.shown import in_quotes, listed

ALL_LINKS: Final = "all"
"""The value that means every column, where links are switched off."""
NO_COLUMN: Final = "none"
"""The value that means no column, where rows have no ids of their own."""


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The options of the tables of an import; what they leave open is found.

    Args:
        id_columns: Columns with the ids of rows: `COLUMN` of every table that has it, or `TABLE=COLUMN`.
        kinds: What columns hold, as `COLUMN=KIND` or `TABLE.COLUMN=KIND`.
        splits: What separates the values in the cells of columns, as `COLUMN=SIGN` or `TABLE.COLUMN=SIGN`.
        links: Which column refers to which, as `TABLE.COLUMN=TABLE.COLUMN`.
        no_links: Columns that refer to no table, as `COLUMN` or `TABLE.COLUMN`; `all` for every column.
        numbers: A number as it is written in a column, as `COLUMN=NUMBER` or `TABLE.COLUMN=NUMBER`, or in all tables.
        nodes: Columns whose values become entities of a class of the same name, as `COLUMN` or `TABLE.COLUMN`.
        keep_totals: Whether rows that sum others are rows like these.

    Raises:
        InvalidRequest: One of them is malformed.
    """

    id_columns: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    no_links: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    keep_totals: bool = False

    def __post_init__(self) -> None:
        for flag, texts, form in (
            ("--column", self.kinds, "COLUMN=KIND"),
            ("--split", self.splits, "COLUMN=SIGN"),
            ("--link", self.links, "TABLE.COLUMN=TABLE.COLUMN"),
        ):
            for text in texts:
                column, _, value = text.partition("=")
                if not column or not value:
                    raise InvalidRequest(f"{in_quotes(text)} is no {form}. Write it as in {flag} {_EXAMPLES[flag]}.")
        for text in self.kinds:
            kind = text.partition("=")[2]
            if kind not in CHOSEN_KINDS:
                raise InvalidRequest(
                    f"{in_quotes(kind)} is no kind of values. --column takes {listed(CHOSEN_KINDS, ', ')}."
                )

        for text in self.numbers:
            mark_in(text.rpartition("=")[2])

    def numbers_rows(self, table: str, columns: Sequence[str]) -> bool:
        """Return whether a table was chosen to have no ids, so that its rows are numbered."""
        return any(
            wanted == NO_COLUMN and (not sign or _same(named, table)) and _column_of(NO_COLUMN, columns) is None
            for named, sign, wanted in (text.rpartition("=") for text in self.id_columns)
        )

    def id_column(self, table: str, columns: Sequence[str]) -> str | None:
        """Return the column that was chosen to hold the ids of a table's rows.

        Raises:
            InvalidSource: The table was named with a column that it does not have.
        """
        for text in self.id_columns:
            if (column := _column_of(text, columns)) is not None:
                return column
            named, sign, wanted = text.partition("=")
            if sign and _same(named, table) and wanted != NO_COLUMN:
                if (column := _column_of(wanted, columns)) is None:
                    raise InvalidSource(_no_column(table, wanted, columns))
                return column
        return None

    def kind_of(self, table: str, column: str) -> tuple[Kind, ...]:
        """Return the kinds that a column may have; empty without an option."""
        if number := _said(self.numbers, table, column):
            return tuple(kind for kind, mark in AS_PEOPLE_WRITE.items() if mark == mark_in(number))
        return CHOSEN_KINDS.get(_said(self.kinds, table, column), ())

    @property
    def mark(self) -> Mark | None:
        """The decimal mark of numbers that could have either, without an option for their column."""
        return next((mark_in(text) for text in self.numbers if "=" not in text), None)

    def separator_of(self, table: str, column: str) -> str:
        """Return what separates the values in a column's cells; empty without an option."""
        return _said(self.splits, table, column)

    def link_of(self, table: str, column: str) -> str:
        """Return what a column refers to, as `TABLE.COLUMN`; empty without an option."""
        return _said(self.links, table, column)

    def makes_nodes(self, table: str, column: str) -> bool:
        """Return whether the values of a column become entities."""
        return any(names_column(text, table, column) for text in self.nodes)

    def may_link(self, table: str, column: str) -> bool:
        """Return whether a column may refer to a table without an option."""
        return not any(text == ALL_LINKS or names_column(text, table, column) for text in self.no_links)

    def check(self, tables: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Make sure that every column that is named is there.

        Args:
            tables: The name and the columns of each table of the import.

        Raises:
            InvalidSource: A column is in no table.
        """
        columns = [(table, column) for table, names in tables for column in names]
        # Columns that link together are named after the table that they lead to.
        together = [(table, other) for table, _ in tables for other, _ in tables]
        ends = [end for text in self.links for end in text.split("=", 1)]
        named = [text.rpartition("=")[0] for text in (*self.kinds, *self.splits, *self.numbers) if "=" in text]
        for text in (*named, *ends, *self.nodes, *(text for text in self.no_links if text != ALL_LINKS)):
            if not any(names_column(text, *each) for each in (*columns, *together)):
                known = listed((f"{table}.{column}" for table, column in columns), ", ", 20)
                raise InvalidSource(f"No table has a column {in_quotes(text)}. There are {known}.")
        for text in self.id_columns:
            found = any(_column_of(text, names) for _, names in tables) or text == NO_COLUMN
            table, sign, _ = text.partition("=")
            if found or (sign and any(_same(table, name) for name, _ in tables)):
                continue
            if len(tables) == 1:
                raise InvalidSource(_no_column(tables[0][0], text, tables[0][1]))
            known = listed((f"{name}={column}" for name, names in tables for column in names[:1]), ", ")
            raise InvalidSource(f"No table has a column {in_quotes(text)}. Write --id-column as in {known}.")


_EXAMPLES: Final = {
    "--column": "phone=text",
    "--split": "borders=,",
    "--link": "orders.customer_id=customers.id",
}


def names_column(text: str, table: str, column: str) -> bool:
    """Return whether a text names a column, alone or behind its table."""
    return any(_same(text, name) for name in (column, f"{table}.{column}"))


def _said(texts: Sequence[str], table: str, column: str) -> str:
    return next(_values(texts, table, column), "")


def _values(texts: Sequence[str], table: str, column: str) -> Iterator[str]:
    for text in texts:
        # The sign that separates values may be any, in a column of any name.
        name, _, value = text.partition("=")
        if names_column(name, table, column):
            yield value


def _column_of(text: str, columns: Sequence[str]) -> str | None:
    return next((column for column in columns if _same(text, column)), None)


def _same(text: str, name: str) -> bool:
    return text.strip().casefold() == name.casefold()


def _no_column(table: str, wanted: str, columns: Sequence[str]) -> str:
    return f"{table} has no column {in_quotes(wanted)}. It has {', '.join(map(in_quotes, columns[:20]))}."
