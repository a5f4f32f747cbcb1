"""Whatever happens to the files of a store: an answer is the right one, or it says that the store is damaged."""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import anyio
import numpy as np
import numpy.typing as npt
import pytest

from damaged_stores import (
    CALLS,
    GRAPH,
    INTERNAL,
    asked_about,
    embedded,
    everything,
    files_of,
    imported,
    settings_in,
    trials_of,
)
from kg_adapters.local.store import read_store_info, stored_files, write_store_info
from kg_server.settings import Settings

SHARDS: Final = 4
WHOLE_SHARD_S: Final = 280.0
Values: TypeAlias = npt.NDArray[Any]


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


def forge(store: Path, path: str, change: Callable[[Values], Values]) -> None:
    """Change an array of a store, and seal the store as if that were right."""
    np.save(store / path, change(np.load(store / path)), allow_pickle=False)
    info = read_store_info(store)
    write_store_info(store, info.model_copy(update={"files": stored_files(store)}))


def last(value: int) -> Callable[[Values], Values]:
    return lambda values: np.append(values[:-1], np.array([value], dtype=values.dtype))


FORGERIES: tuple[tuple[str, Callable[[Values], Values]], ...] = (
    ("index/nodes.offsets.npy", lambda values: values[::-1]),
    ("index/nodes.offsets.npy", last(10**9)),
    ("index/nodes.offsets.npy", last(-1)),
    ("index/nodes.offsets.npy", lambda values: values[:0]),
    ("index/nodes.text.npy", lambda values: np.full_like(values, 0xFF)),
    ("index/features.values.text.npy", lambda values: values[:-1]),
    ("index/out.groups.npy", last(10**6)),
    ("index/out.relations.npy", last(10**6)),
    ("index/out.starts.npy", lambda values: np.where(values == 1, -1, values).astype(values.dtype)),
    ("index/out.neighbors.npy", last(-7)),
    ("index/into.neighbors.npy", last(2**30)),
    ("index/into.neighbors.npy", lambda values: values.astype(np.int64)),
    ("index/links.edges.npy", last(-16_777_212)),
    ("index/links.edges.npy", lambda values: values[:-1]),
    ("index/walks.starts.npy", lambda values: values.reshape(1, -1)),
    ("index/features.relations.npy", last(99)),
    ("index/features.datatypes.npy", last(-1)),
    ("index/features.languages.npy", last(-2)),
    ("index/relation_nodes.npy", last(10**6)),
    ("index/labels.npy", last(10**6)),
    ("index/descriptions.npy", last(-2)),
    ("text/nodes.bearers.npy", last(10**6)),
    ("text/nodes.rows.npy", last(10**6)),
    ("text/nodes.starts.npy", last(3)),
    ("text/nodes.aliases.npy", last(2)),
    ("text/relations.offsets.npy", last(-1)),
)


async def test_a_value_that_stands_for_nothing_is_damage_whatever_the_hashes_say(
    store: Path, settings: Settings, tmp_path: Path
) -> None:
    for path, change in FORGERIES:
        forged = tmp_path / "store"
        shutil.copytree(store, forged)
        forge(forged, path, change)
        found = await everything(forged, settings, asked_about(path))
        table = path.rpartition(".npy")[0].rpartition(".")[0] or path
        assert any(is_error and f"is damaged: {table}" in text for is_error, text in found.values()), (path, found)
        assert not any(INTERNAL in text for _, text in found.values()), path
        shutil.rmtree(forged)


async def test_no_numbers_in_an_index_make_an_internal_error(store: Path, settings: Settings, tmp_path: Path) -> None:
    chance = random.Random(4)  # noqa: S311 - no secret
    arrays = [path for path in files_of(store) if path.startswith(("index/", "text/")) and path.endswith(".npy")]
    forged = tmp_path / "store"
    shutil.copytree(store, forged)
    for path in arrays:
        intact = (forged / path).read_bytes()

        def change(values: Values) -> Values:
            place = chance.randrange(len(values)) if len(values) else 0
            value = chance.choice((0, 1, 2, 3, 5, 8, 100))
            return np.concatenate((values[:place], np.array([value], values.dtype), values[place + 1 :]))

        forge(forged, path, change)
        found = await everything(forged, settings, asked_about(path))
        assert not any(INTERNAL in text for _, text in found.values()), (path, found)
        (forged / path).write_bytes(intact)
