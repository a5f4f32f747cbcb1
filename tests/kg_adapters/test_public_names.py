"""What the package offers, and what importing it costs."""

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import kg_adapters
import kg_adapters.testing
import kg_server
from kg_adapters import errors, models, protocol

HEAVY = ("anyio", "mcp", "numpy", "pydantic", "pyoxigraph", "pytest", "rapidfuzz", "rdflib", "tantivy")


@pytest.mark.parametrize("package", [kg_adapters, kg_adapters.testing, kg_server])
def test_all_names_are_exactly_what_the_package_imports_or_defines(package: ModuleType) -> None:
    assert package.__file__ is not None
    bound: set[str] = set()
    module = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    for statement in ast.walk(module):
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("kg_"):
            bound |= {alias.asname or alias.name for alias in statement.names}
        elif isinstance(statement, ast.ClassDef) and statement in module.body:
            bound.add(statement.name)
    assert all(hasattr(package, name) for name in bound)
    parts = {part.__name__ for part in kg_adapters.testing.KGAdapterContract.__bases__}
    public: list[str] = package.__all__
    assert sorted(public) == sorted(bound - parts)


@pytest.mark.parametrize("module", [errors, models, protocol])
def test_every_error_model_and_protocol_is_public(module: ModuleType) -> None:
    classes = {name for name, value in vars(module).items() if isinstance(value, type) and not name.startswith("_")}
    own = {name for name in classes if getattr(module, name).__module__ == module.__name__}
    assert own <= set(kg_adapters.__all__)


@pytest.mark.parametrize("package", ["kg_adapters", "kg_server"])
def test_importing_the_package_loads_no_heavy_library(package: str) -> None:
    program = f"import sys, {package}; print([name for name in {HEAVY!r} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (shown.stdout.strip(), shown.stderr) == ("[]", "")


def test_what_loads_a_library_is_there_by_name_and_nothing_else_is() -> None:
    assert kg_adapters.RdflibAdapter.__module__ == "kg_adapters.rdflib_adapter"
    assert kg_adapters.open_graph.__module__ == "kg_adapters.registry"
    assert kg_server.build_server.__module__ == "kg_server.app"
    for package in (kg_adapters, kg_server):
        with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
            _ = package.Nonsense
