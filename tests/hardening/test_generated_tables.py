"""Many random questions about random tables: equal from the index, from the SPARQL of `explain`, and from SQLite."""

from pathlib import Path

import pytest

from tables_as_sql import differing

GENERATED = 300
"""How many questions are asked, unless --generated-questions says otherwise."""
OF_ONE_DATABASE = 50


async def test_every_question_about_tables_has_the_answer_of_sqlite(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    number: int = request.config.getoption("--generated-questions", GENERATED) or GENERATED
    found: list[str] = []
    # Other seeds than those of the quick suite.
    for seed in range(1_000, 1_000 + -(-number // OF_ONE_DATABASE)):
        (tmp_path / str(seed)).mkdir()
        found += await differing(seed, OF_ONE_DATABASE, tmp_path / str(seed))
    assert found == []
