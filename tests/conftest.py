"""Fixtures that every test shares."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kg_adapters.local.cache import sample_store
from kg_adapters.local.store import LocalStore, open_store

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session", autouse=True)
def _folders_of_their_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction] - pytest calls it
    """Keep what tests write by default, and what their processes write, out of the folders of the user."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as environment:
        for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
            environment.setenv(name, str(home / name))
        yield


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def sample_source() -> Path:
    """The slice of Wikidata that the sample graph is made of."""
    return _shared("wikidata-15k.nt.gz")


@pytest.fixture(scope="session")
def sample_files(tmp_path_factory: pytest.TempPathFactory) -> LocalStore:
    """The sample graph as it is shipped; that it is what an import makes of its source is tested with the cache."""
    return open_store(sample_store(tmp_path_factory.mktemp("cache")))


def _shared(name: str) -> Path:
    path = SHARED_DATA / name
    if not path.exists():
        pytest.skip(f"needs {name} in {SHARED_DATA}")
    return path
