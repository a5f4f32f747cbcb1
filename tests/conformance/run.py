"""Runs the official conformance suite against the product's server, and against its class with all fixtures.

    .venv/bin/python tests/conformance/run.py

It needs npm, which fetches the suite and a Node that is new enough for it. The product may fail the scenarios that its
files of expected failures name, and has to; with the fixtures, every scored check has to pass. The bundle for
desktop assistants is validated and packed by its publisher's tool.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
NODE: Final = "node@22"
LIMIT_S: Final = 120
BUNDLER: Final = "2.1.2"
BUNDLE: Final = HERE.parents[1] / "packaging" / "mcpb"
FIXTURES: Final = (sys.executable, "-m", "conformance.fixture_server")
PRODUCT: Final = (sys.executable, "-m", "kg_server", "serve", "sample", "--http", "127.0.0.1:0")


@dataclass(frozen=True)
class Suite:
    """A release of the suite, the options for it, and where the product's expected failures are."""

    release: str
    options: tuple[str, ...]
    product_failures: str


SUITES: Final = (
    Suite("0.1.16", (), "product-2025-11-25.yml"),
    Suite("0.2.0-alpha.12", ("--requirements", "2026-07-28"), "product-2026-07-28.yml"),
)


@contextmanager
def served(command: tuple[str, ...], folder: str) -> Generator[str]:
    """Start a server on a free port, so that no other one can answer in its place, and give its address."""
    folders = {f"KG_SEXTANT_{kind}_FOLDER": folder for kind in ("CACHE", "DATA")}
    environment = {**os.environ, **folders, "PYTHONPATH": str(HERE.parent)}
    with (
        (Path(folder) / "log").open("w", encoding="utf-8") as log,
        subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=log) as process,
    ):
        try:
            yield address_of(process, Path(log.name))
        finally:
            process.terminate()


def address_of(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until a server says where it is."""
    while process.poll() is None:
        for line in log.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.startswith("Serving ") and line.endswith("\n"):
                return line.split()[-1]
        time.sleep(0.1)
    raise SystemExit(f"The server ended before it served: {log.read_text(encoding='utf-8')}")


def passes(suite: Suite, name: str, address: str, expected: Path | None, folder: str) -> bool:
    """Run a suite against a server, and tell how it went."""
    npx = ["npx", "--yes", "--loglevel=error", "-p", NODE, "-p", f"@modelcontextprotocol/conformance@{suite.release}"]
    words = [*npx, "conformance", "server", "--url", address, "-o", folder, *suite.options]
    if expected is not None:
        words += ["--expected-failures", str(expected)]
    run = subprocess.run(
        words, check=False, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S
    )
    summary = run.stdout[run.stdout.rfind("=== SUMMARY") :]
    total = next((line for line in summary.splitlines() if line.startswith("Total:")), "no summary")
    print(f"Conformance {suite.release}, {name}: {'as expected' if run.returncode == 0 else 'FAILED'}. {total}")
    if run.returncode:
        print(summary)
    return run.returncode == 0 and total != "no summary"


def is_bundle(folder: str) -> bool:
    """Let the publisher's own tool validate and pack the bundle for desktop assistants, and tell how it went."""
    npx = ["npx", "--yes", "--loglevel=error", "-p", NODE, "-p", f"@anthropic-ai/mcpb@{BUNDLER}", "mcpb"]
    steps = (["validate", str(BUNDLE / "manifest.json")], ["pack", str(BUNDLE), str(Path(folder) / "kg-sextant.mcpb")])
    for step in steps:
        run = subprocess.run(
            [*npx, *step],
            check=False,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
        )
        print(f"Bundle, {step[0]}: {'as expected' if run.returncode == 0 else f'FAILED: {run.stdout}'}")
        if run.returncode:
            return False
    return True


def main() -> None:
    """Run both suites against both servers, and the validator of bundles."""
    if shutil.which("npx") is None:
        raise SystemExit("The conformance suite needs npm, which is not here.")
    with tempfile.TemporaryDirectory() as folder:
        good = is_bundle(folder)
    with tempfile.TemporaryDirectory() as folder, served(FIXTURES, folder) as address:
        for suite in SUITES:
            good &= passes(suite, "the server's class with fixtures", address, None, folder)
    with tempfile.TemporaryDirectory() as folder, served(PRODUCT, folder) as address:
        for suite in SUITES:
            good &= passes(suite, "the product", address, HERE / suite.product_failures, folder)
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
