import sys

import anyio
import pytest

from kg_adapters.worker_pool import WorkerPool
from kg_boundary.machine import child_environment

TELLING = "import os, sys\nfor line in sys.stdin: print(sorted(os.environ), flush=True)"


async def test_a_worker_is_told_nothing_that_it_does_not_need(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KG_SEXTANT_ENDPOINT_PASSWORD", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "correct-horse")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    pool = WorkerPool([sys.executable, "-c", TELLING], workers=1, max_line_bytes=100_000)
    with anyio.fail_after(30):
        said = (await pool.ask(b"tell\n", timeout_s=30)).decode()
    await pool.aclose()
    assert [name for name in ("KG_SEXTANT", "OPENAI", "AWS") if name in said] == []
    assert {"PATH", "LC_ALL"} <= child_environment().keys()
    assert "'LC_ALL'" in said
