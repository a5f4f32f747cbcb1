"""Fixtures that every test shares."""

from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def sample_source() -> Path:
    """The slice of Wikidata that the sample graph is made of."""
    return _shared("wikidata-15k.nt.gz")


def _shared(name: str) -> Path:
    path = SHARED_DATA / name
    if not path.exists():
        pytest.skip(f"needs {name} in {SHARED_DATA}")
    return path
