"""Counts, sums and groups over tables: equal from the index, from the SPARQL that `explain` gives, and from SQLite."""

from pathlib import Path

from tables_as_sql import differing

QUESTIONS = 25


async def test_random_questions_have_the_same_answer_from_the_index_from_sparql_and_from_sql(tmp_path: Path) -> None:
    assert await differing(0, QUESTIONS, tmp_path) == []
