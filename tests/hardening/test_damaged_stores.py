"""Whatever happens to the files of a store: an answer is the right one, or it says that the store is damaged."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import anyio
import pytest

from damaged_stores import (
    CALLS,
    GRAPH,
    embedded,
    everything,
    imported,
    settings_in,
    trials_of,
)
from kg_server.settings import Settings

SHARDS: Final = 4
WHOLE_SHARD_S: Final = 280.0


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return settings_in(tmp_path_factory.mktemp("settings"))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that has everything, vectors included."""
    folder = tmp_path_factory.mktemp("intact")
    imported(folder / "store", GRAPH)
    anyio.run(embedded, folder / "store")
    return folder / "store"


async def test_the_intact_store_answers_every_call(store: Path, settings: Settings, tmp_path: Path) -> None:
    shutil.copytree(store, tmp_path / "right")
    found = await everything(tmp_path / "right", settings, CALLS)
    assert not any(is_error for is_error, _ in found.values()), found


@pytest.mark.parametrize("shard", range(SHARDS))
def test_whatever_is_done_to_a_file_an_answer_is_right_or_reports_the_damage(
    store: Path, tmp_path: Path, shard: int
) -> None:
    command = [sys.executable, "-m", "damaged_stores", str(store), str(tmp_path), str(shard), str(SHARDS), "11"]
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=WHOLE_SHARD_S,
        check=False,
        env=environ,
        stdin=subprocess.DEVNULL,
    )
    made = done.stdout.splitlines()
    assert done.returncode == 0, f"ended after {made[-1:]}: {done.stderr[-2_000:]}"
    assert len(made) == len(trials_of(store)[shard::SHARDS]) >= 500 // SHARDS
    assert [line for line in made if not line.endswith(": []")] == []
