"""Break one module in many small ways, and list those that no test notices: `python tools/mutate.py FILE TEST …`.

A survivor is a line that nobody would miss: add a test, delete the line, or know why it makes no difference. The files
stay as they are: each run of the tests, in a process of its own, imports the module with one place changed. Processes
that the tests start import it unchanged.
"""

import argparse
import ast
import os
import sys
from collections.abc import Iterator, Sequence
from copy import deepcopy
from importlib import import_module
from importlib.machinery import SourceFileLoader
from multiprocessing import get_context
from pathlib import Path
from types import CodeType
from typing import Final
from unittest.mock import patch

import pytest

_LARGE: Final = ("hypothesis", "mcp", "numpy", "pyoxigraph", "rdflib.plugins.sparql.parser")
"""What is imported once for all runs, since that takes longer than most tests."""
_PAIRS: Final = (
    (ast.Eq, ast.NotEq),
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.In, ast.NotIn),
    (ast.Is, ast.IsNot),
    (ast.And, ast.Or),
    (ast.Add, ast.Sub),
    (ast.BitOr, ast.BitAnd),
)
_OPPOSITES: Final[dict[type[ast.AST], type[ast.AST]]] = {
    one: other for pair in _PAIRS for one, other in (pair, pair[::-1])
}


def mutations(tree: ast.Module, within: Sequence[str]) -> list[tuple[ast.AST, ast.AST]]:
    """Return all changes of a module, always in the same order, as a node of its tree and what replaces it.

    Args:
        tree: The module.
        within: The names of the functions and classes to change; all of the module if there are none.
    """
    found: list[tuple[ast.AST, ast.AST]] = []
    waiting: list[tuple[ast.AST, bool]] = [(tree, not within)]
    while waiting:
        node, wanted = waiting.pop()
        wanted = wanted or getattr(node, "name", None) in within
        if wanted:
            found += [(node, after) for after in (*_changed_flow(node), *_changed_value(node))]
        # Types, decorators and texts for people make no difference.
        types = [getattr(node, "annotation", None), getattr(node, "returns", None), *getattr(node, "bases", ())]
        silent = [*types, *getattr(node, "decorator_list", ())]
        waiting += [
            (child, wanted)
            for child in ast.iter_child_nodes(node)
            if not isinstance(child, ast.JoinedStr) and not any(child is each for each in silent)
        ]
    return sorted(found, key=lambda change: (getattr(change[0], "lineno", 0), _shown(*change)))


def _changed_flow(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.If(body=[ast.Raise(), *_]):
            # The change of what it raises is the same one.
            pass
        case ast.While() | ast.If():
            yield _with(node, test=ast.Constant(False))
        case ast.Raise() | ast.Continue() | ast.Break() | ast.Expr(value=ast.Call() | ast.Await()):
            yield ast.Pass()
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.IfExp():
            yield from (node.body, node.orelse)
        case ast.BoolOp():
            yield _with(node, op=_OPPOSITES[type(node.op)]())
            yield from node.values
        case _:
            pass


def _changed_value(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare():
            for place, operator in enumerate(node.ops):
                yield _with(node, ops=[*node.ops[:place], _OPPOSITES[type(operator)](), *node.ops[place + 1 :]])
        case ast.BinOp() if type(node.op) in _OPPOSITES:
            yield _with(node, op=_OPPOSITES[type(node.op)]())
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() as number):
            yield from (ast.Constant(number + 1), ast.Constant(number - 1))
        case ast.Set(elts=elements) | ast.Tuple(elts=elements, ctx=ast.Load()):
            for place in range(len(elements)):
                yield _with(node, elts=[*elements[:place], *elements[place + 1 :]])
        case ast.Call(func=ast.Name(id="max" | "min"), args=[_, _, *_]):
            yield from node.args
        case _:
            pass


def _with(node: ast.AST, **parts: object) -> ast.AST:
    changed = deepcopy(node)
    for name, part in parts.items():
        setattr(changed, name, part)
    return changed


def _shown(before: ast.AST, after: ast.AST) -> str:
    return "  ->  ".join(" ".join(ast.unparse(node).split())[:90] for node in (before, after))


def _mutated(tree: ast.Module, before: ast.AST, after: ast.AST) -> ast.Module:
    class Exchange(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return after if node is before else self.generic_visit(node)

    Exchange().visit(tree)
    return ast.fix_missing_locations(tree)


def run_tests(file: Path, code: CodeType, tests: Sequence[str], *, quiet: bool) -> None:
    """Run tests with other code in place of a module's, and end this process with their status."""
    if quiet:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
    usual = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        return code if Path(loader.path) == file else usual(loader, name)

    plain = ("-q", "-x", "-p", "no:cacheprovider", "-n", "0", "-W", "ignore::pytest.PytestAssertRewriteWarning")
    with patch.object(SourceFileLoader, "get_code", get_code):
        os._exit(int(pytest.main([*plain, *tests])))


def is_noticed(file: Path, code: CodeType, tests: Sequence[str], timeout_s: float) -> bool:
    """Return whether a test fails, or takes too long, with other code in place of a module's."""
    run = get_context("fork").Process(target=run_tests, args=(file, code, tests), kwargs={"quiet": True})
    run.start()
    run.join(timeout_s)
    if run.is_alive():
        run.kill()
        run.join()
    return run.exitcode != 0


def main() -> int:
    """Make one change after the other, run the tests with each, and print those that all tests pass with."""
    parser = argparse.ArgumentParser(prog="python tools/mutate.py", description=__doc__)
    parser.add_argument("file", type=Path, help="the module to change")
    parser.add_argument("tests", nargs="+", help="the tests that should notice")
    parser.add_argument("--within", action="append", default=[], metavar="NAME", help="only this function or class")
    parser.add_argument("--from", type=int, default=0, dest="first", help="start at this change, to go on")
    parser.add_argument("--timeout-s", type=float, default=120.0, help="how long a run of the tests may take (120)")
    parser.add_argument("--change", type=int, help="run the tests with this one change, and show their output")
    given = parser.parse_args()
    file: Path = given.file.resolve()
    source = file.read_bytes()
    for name in _LARGE:
        import_module(name)
    if given.change is None and is_noticed(file, compile(source, str(file), "exec"), given.tests, 600):
        print("The tests fail without any change; make them pass first.", file=sys.stderr)
        return 2
    survivors = 0
    count = len(mutations(ast.parse(source), given.within))
    for number in range(given.first, count) if given.change is None else [given.change]:
        tree = ast.parse(source)
        before, after = mutations(tree, given.within)[number]
        place = f"{given.file}:{getattr(before, 'lineno', 0)}: {_shown(before, after)}  (--change {number})"
        code = compile(_mutated(tree, before, after), str(file), "exec")
        if given.change is not None:
            run_tests(file, code, given.tests, quiet=False)
        if not is_noticed(file, code, given.tests, given.timeout_s):
            survivors += 1
            print(place, flush=True)
    print(f"{given.file}: {survivors} of {count - given.first} changes go unnoticed", flush=True)
    return min(survivors, 1)


if __name__ == "__main__":
    sys.exit(main())
