"""Break one module in many small ways, and list those that no test notices: `python tools/mutate.py FILE TEST …`.

A survivor is a line that nobody would miss: add a test, delete the line, or know why it makes no difference. The files
stay as they are: each run of the tests, in a process of its own, imports the module with one place changed. Processes
that the tests start import it unchanged.
"""

import argparse
import ast
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from multiprocessing import get_context
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

import pytest
from mutations import mutated, mutations

_LARGE: Final = ("hypothesis", "mcp", "numpy", "pyoxigraph", "rdflib.plugins.sparql.parser")
"""What is imported once for all runs, since that takes longer than most tests."""


class _Finder(MetaPathFinder):
    """Finds one module, and gives it other code."""

    def __init__(self, file: Path, code: CodeType) -> None:
        self._file = str(file)

        class Loader(SourceFileLoader):
            def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - the name of the method's owner
                return code

        self._loader = Loader

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin != self._file:
            return None
        spec.loader = self._loader(fullname, self._file)
        return spec


def run_tests(file: Path, code: CodeType, tests: Sequence[str], *, quiet: bool) -> None:
    """Run tests with other code in place of a module's, and end this process with what came of them."""
    if quiet:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
    sys.meta_path.insert(0, _Finder(file, code))
    plain = ("-q", "-x", "-p", "no:cacheprovider", "-n", "0", "-W", "ignore::pytest.PytestAssertRewriteWarning")
    os._exit(int(pytest.main([*plain, *tests])))


def is_noticed(file: Path, code: CodeType, tests: Sequence[str], timeout_s: float) -> bool:
    """Say whether a test fails, or takes too long, with other code in place of a module's."""
    run = get_context("fork").Process(target=run_tests, args=(file, code, tests), kwargs={"quiet": True})
    run.start()
    run.join(timeout_s)
    if run.is_alive():
        run.kill()
        run.join()
    return run.exitcode != 0


def main(words: Sequence[str] | None = None) -> int:
    """Make one change after the other, run the tests with each, and print those that all tests pass with."""
    parser = argparse.ArgumentParser(prog="python tools/mutate.py", description=__doc__)
    parser.add_argument("file", type=Path, help="the module to change")
    parser.add_argument("tests", nargs="+", help="the tests that should notice")
    parser.add_argument("--within", action="append", default=[], metavar="NAME", help="only this function or class")
    parser.add_argument("--from", type=int, default=0, dest="first", help="start at this change, to go on")
    parser.add_argument("--timeout-s", type=float, default=120.0, help="how long a run of the tests may take (120)")
    parser.add_argument("--change", type=int, help="run the tests with this one change, and show what they say")
    given = parser.parse_args(words)
    file: Path = given.file.resolve()
    for name in _LARGE:
        import_module(name)
    if given.change is None and is_noticed(file, compile(file.read_bytes(), str(file), "exec"), given.tests, 600):
        print("The tests fail without any change; make them pass first.", file=sys.stderr)
        return 2
    survivors = 0
    count = len(mutations(ast.parse(file.read_bytes()), given.within))
    numbers = range(given.first, count) if given.change is None else [given.change]
    for number in numbers:
        tree = ast.parse(file.read_bytes())
        change = mutations(tree, given.within)[number]
        code = compile(mutated(tree, change), str(file), "exec")
        if given.change is not None:
            run_tests(file, code, given.tests, quiet=False)
        if not is_noticed(file, code, given.tests, given.timeout_s):
            survivors += 1
            print(f"{given.file}:{change.line}: {change}  (--change {number})", flush=True)
    print(f"{given.file}: {survivors} of {len(numbers)} changes go unnoticed", flush=True)
    return min(survivors, 1)


if __name__ == "__main__":
    sys.exit(main())
