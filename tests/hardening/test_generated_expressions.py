"""Many random expressions about sparse graphs: none fails within, and each counts what its SPARQL counts."""

from pathlib import Path

import pytest

from sparse_graphs import GRAPHS, compared

GENERATED = 20_000
"""How many expressions are asked of all graphs, unless --generated-expressions says otherwise."""


@pytest.mark.parametrize("name", GRAPHS)
async def test_every_expression_counts_what_its_sparql_counts(
    request: pytest.FixtureRequest, tmp_path: Path, name: str
) -> None:
    number: int = request.config.getoption("--generated-expressions", GENERATED) or GENERATED
    found = await compared(name, number, tmp_path)
    assert found.wrong == {}
    assert found.equal
