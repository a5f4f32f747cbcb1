"""Runs a notebook without its server, for the little that the notebooks of this project need."""

import ast
import asyncio
import contextlib
import inspect
import io
import json
import os
import tempfile
from collections.abc import Generator
from importlib import import_module
from types import FunctionType
from typing import Literal

from pydantic import BaseModel, ConfigDict

# Servers inherit the standard error that their client finds when it is imported: it has to be a real one.
import_module("kg_agents")


class _Stream(BaseModel):
    """What a cell printed."""

    output_type: Literal["stream"] = "stream"
    name: Literal["stdout"] = "stdout"
    text: list[str]


class _Cell(BaseModel):
    """A cell of a notebook; one of prose has neither a count nor outputs."""

    model_config = ConfigDict(extra="allow")

    cell_type: Literal["markdown", "code"]
    source: list[str]
    execution_count: int | None = None
    outputs: list[_Stream] = []


class _Notebook(BaseModel):
    """The cells of a notebook, and what else it says."""

    model_config = ConfigDict(extra="allow")

    cells: list[_Cell]


def performed(text: str) -> str:
    """Return a notebook with what its cells print now, run one after the other as a notebook runs them."""
    notebook = _Notebook.model_validate_json(text)
    names: dict[str, object] = {"__name__": "__main__"}
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    with _home_of_its_own(), asyncio.Runner() as loop:
        for count, cell in enumerate(cells, start=1):
            printed = io.StringIO()
            code = compile("".join(cell.source), f"cell {count}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            with contextlib.redirect_stdout(printed):
                ended: object = FunctionType(code, names)()
                if inspect.iscoroutine(ended):
                    loop.run(ended)
            lines = printed.getvalue().splitlines(keepends=True)
            cell.execution_count, cell.outputs = (
                count,
                [_Stream(output_type="stream", name="stdout", text=lines)] if lines else [],
            )
    return json.dumps(notebook.model_dump(exclude_unset=True), indent=1, ensure_ascii=False) + "\n"


@contextlib.contextmanager
def _home_of_its_own() -> Generator[None]:
    """Keep what servers that a notebook starts write out of the way; no environment is active for them."""
    before = {name: os.environ.get(name) for name in ("HOME", "PATH")}
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(HOME=home, PATH=os.defpath)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
