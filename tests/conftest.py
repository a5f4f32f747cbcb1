"""Where tests write, and fixtures that every test shares."""

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import settings

from kg_adapters.local.cache import open_sample
from kg_adapters.local.store import LocalStore
from played_time import PlayedLoop
from postgres_server import PostgresServer, running_postgres
from small_graphs import SHARED_STORES

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"
IN_MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a folder of its own in it
ROOM = 8_000_000_000
"""How many bytes must be free in memory before tests write there; they take some hundred megabytes."""
OBJECTS = 100_000
"""After how many new objects Python looks for garbage: what was imported is looked through each time."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep what tests write in memory, look for garbage less often, and let examples take the time they take.

    An import writes 79 files through to the disk, and waits for that several times longer than it works. A `TMPDIR`
    that somebody chose stays. Nothing that tests, or modules that they import, write by default goes into the folders
    of the user.
    """
    settings.register_profile("no deadline", deadline=None)
    settings.load_profile("no deadline")
    # A folder that pytest comes back to has lost the fixtures of its conftest.
    config.args.sort()
    gc.set_threshold(OBJECTS, 20, 20)
    if "TMPDIR" not in os.environ and os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > ROOM:
        os.environ["TMPDIR"] = str(IN_MEMORY)
        tempfile.tempdir = None
    home = tempfile.TemporaryDirectory(prefix="kg-sextant-home-")
    config.add_cleanup(home.cleanup)
    # The processes that share the tests share these as well.
    os.environ.setdefault(SHARED_STORES, str(Path(home.name, "stores")))
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        os.environ[name] = str(Path(home.name, name))


def pytest_collection_finish() -> None:
    """Look for no garbage among what is imported now: it stays to the end."""
    gc.freeze()


@pytest.fixture
def anyio_backend() -> tuple[str, Mapping[str, object]]:
    """asyncio, with a clock that `played_time.let_pass` puts forward."""
    return "asyncio", {"loop_factory": PlayedLoop}


@pytest.fixture(scope="session")
def sample_source() -> Path:
    """The slice of Wikidata that the sample graph is made of."""
    return _shared("wikidata-15k.nt.gz")


@pytest.fixture(scope="session")
def sample_files(tmp_path_factory: pytest.TempPathFactory) -> LocalStore:
    """The sample graph as it is shipped; that it is what an import makes of its source is tested with the cache."""
    return open_sample(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server; tests that ask for it belong to the group `postgres`, so that one process starts it."""
    with running_postgres() as server:
        yield server


def _shared(name: str) -> Path:
    path = SHARED_DATA / name
    if not path.exists():
        pytest.skip(f"needs {name} in {SHARED_DATA}")
    return path
