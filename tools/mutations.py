"""The small changes of a module that `tools/mutate.py` makes, one after the other."""

import ast
import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

NEVER: Final = "(?!)"
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
_WIDTH: Final = 90


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change of a module: a node of its tree, and what comes in its place."""

    line: int
    before: ast.AST
    after: ast.AST

    def __str__(self) -> str:
        """Return the change for people: the parts that differ, and a little before them."""
        before, after = (" ".join(ast.unparse(node).split()) for node in (self.before, self.after))
        alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
        start = max(0, alike - _WIDTH // 3)
        return "  ->  ".join(f"{'…' * (start > 0)}{text[start : start + _WIDTH]}" for text in (before, after))


def mutations(tree: ast.Module, within: Sequence[str] = ()) -> list[Mutation]:
    """Return all changes of a module, always in the same order.

    Args:
        tree: The module.
        within: The names of the functions and classes to change; all of the module if there are none.
    """
    found: list[Mutation] = []
    waiting: list[tuple[ast.AST, bool]] = [(tree, not within)]
    while waiting:
        node, wanted = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            wanted = wanted or node.name in within
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
            continue
        if wanted and isinstance(node, (ast.expr, ast.stmt)):
            found += [Mutation(node.lineno, node, after) for after in _changes(node)]
        waiting += [(child, wanted) for child in _children(node)]
    return sorted(found, key=lambda each: (each.line, str(each)))


def mutated(tree: ast.Module, change: Mutation) -> ast.Module:
    """Return the module with a change made; the tree is used up."""

    class Exchange(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return change.after if node is change.before else self.generic_visit(node)

    Exchange().visit(tree)
    return ast.fix_missing_locations(tree)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node that say what happens: no types, decorators or texts that nobody but people read."""
    types = [getattr(node, "annotation", None), getattr(node, "returns", None), *getattr(node, "bases", ())]
    silent = [*types, *getattr(node, "decorator_list", ())]
    for child in ast.iter_child_nodes(node):
        is_docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        if not (is_docstring or isinstance(child, ast.JoinedStr) or any(child is each for each in silent)):
            yield child


def _changes(node: ast.expr | ast.stmt) -> Iterator[ast.AST]:
    if isinstance(node, ast.stmt):
        yield from _changed_statement(node)
    elif isinstance(node, (ast.Compare, ast.BoolOp, ast.BinOp)):
        yield from _changed_operator(node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield from (ast.Constant(node.value + 1), ast.Constant(node.value - 1))
    elif isinstance(node, ast.Set) or (isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load)):
        yield from _shortened(node.elts, node)
    elif isinstance(node, ast.Call):
        yield from _changed_call(node)


def _changed_statement(node: ast.stmt) -> Iterator[ast.AST]:
    if isinstance(node, ast.While) or (isinstance(node, ast.If) and not isinstance(node.body[0], ast.Raise)):
        yield _with(node, test=ast.Constant(False))
    elif isinstance(node, (ast.Raise, ast.Continue, ast.Break)) or (
        isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Await))
    ):
        yield ast.Pass()


def _changed_operator(node: ast.Compare | ast.BoolOp | ast.BinOp) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            opposite = _OPPOSITES[type(operator)]()
            yield _with(node, ops=[*node.ops[:place], opposite, *node.ops[place + 1 :]])
    elif type(node.op) in _OPPOSITES:
        yield _with(node, op=_OPPOSITES[type(node.op)]())
    if isinstance(node, ast.BoolOp):
        for place in range(len(node.values)):
            rest = [*node.values[:place], *node.values[place + 1 :]]
            yield _with(node, values=rest) if len(rest) > 1 else rest[0]


def _shortened(parts: Sequence[ast.expr], node: ast.expr) -> Iterator[ast.AST]:
    for place in range(len(parts)):
        yield _with(node, elts=[*parts[:place], *parts[place + 1 :]])


def _changed_call(node: ast.Call) -> Iterator[ast.AST]:
    name = ast.unparse(node.func)
    if name in {"max", "min"} and len(node.args) > 1:
        yield from node.args
    elif name == "re.compile":
        pattern = node.args[0]
        if len(node.args) > 1:
            yield _with(node, args=[pattern])
        yield _with(node, args=[ast.Constant(NEVER), *node.args[1:]])
        if isinstance(pattern, ast.Constant) and isinstance(pattern.value, str):
            fewer = (each for each in fewer_matches(pattern.value) if _is_pattern(each))
            yield from (_with(node, args=[ast.Constant(each), *node.args[1:]]) for each in fewer)


def fewer_matches(pattern: str) -> Iterator[str]:
    """Yield the patterns without one of their outermost alternatives, or one of the ranges of their sets."""
    alternatives = re.split(r"\|(?![^(\[]*[)\]])", pattern)
    if len(alternatives) > 1:
        for place in range(len(alternatives)):
            yield "|".join(alternatives[:place] + alternatives[place + 1 :])
    for found in re.finditer(r"\[\^?((?:\\.[^\]]*?|[^\]\\])+)\]", pattern):
        for part in re.finditer(r"(?:\\(?:x..|u....|.)|.)(?:-(?:\\(?:x..|u....|.)|.))?", found[1]):
            rest = found[1][: part.start()] + found[1][part.end() :]
            if rest:
                yield pattern[: found.start(1)] + rest + pattern[found.end(1) :]


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True


def _with(node: ast.AST, **parts: object) -> ast.AST:
    changed = deepcopy(node)
    for name, part in parts.items():
        setattr(changed, name, part)
    return changed
