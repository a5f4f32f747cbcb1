"""What the package offers, and what importing it costs."""

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import kg_adapters
import kg_adapters.testing
from kg_adapters import errors, models, protocol

HEAVY = ("anyio", "numpy", "pydantic", "pyoxigraph", "pytest", "rapidfuzz", "rdflib", "tantivy")


@pytest.mark.parametrize("package", [kg_adapters, kg_adapters.testing])
def test_all_names_are_exactly_what_the_package_imports_or_defines(package: ModuleType) -> None:
    assert package.__file__ is not None
    bound: set[str] = set()
    for statement in ast.parse(Path(package.__file__).read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ImportFrom):
            bound |= {alias.asname or alias.name for alias in statement.names}
        elif isinstance(statement, ast.ClassDef | ast.FunctionDef):
            bound.add(statement.name)
    parts = {name for name in bound if name.endswith("Contract")} - {"KGAdapterContract"}
    public: list[str] = package.__all__
    assert sorted(public) == sorted(bound - parts)


@pytest.mark.parametrize("module", [errors, models, protocol])
def test_every_error_model_and_protocol_is_public(module: ModuleType) -> None:
    classes = {name for name, value in vars(module).items() if isinstance(value, type) and not name.startswith("_")}
    own = {name for name in classes if getattr(module, name).__module__ == module.__name__}
    assert own <= set(kg_adapters.__all__)


def test_importing_the_package_loads_no_heavy_library() -> None:
    program = f"import sys, kg_adapters; print([name for name in {HEAVY!r} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (shown.stdout.strip(), shown.stderr) == ("[]", "")
