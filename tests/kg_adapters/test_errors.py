"""The errors of adapters, and what the package exports."""

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
from kg_adapters.errors import (
    BackendError,
    BackendTimeout,
    BackendUnavailable,
    InvalidRequest,
    InvalidSource,
    KGError,
    UnknownEntity,
    UnknownRelation,
    causes,
)


def test_every_error_belongs_to_one_tree() -> None:
    found = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert [error for error in found if not issubclass(error, KGError)] == []
    assert issubclass(BackendTimeout, BackendError)
    assert issubclass(BackendUnavailable, BackendError)


def test_what_an_error_came_from_is_listed_once_even_where_it_is_its_own_cause() -> None:
    own, missing, late = KGError("own"), OSError("missing"), TimeoutError("late")
    own.__cause__, own.__context__ = own, ExceptionGroup("several", [missing, late])
    late.__cause__ = own
    assert causes(own) == [own, own.__context__, missing, late]


@pytest.mark.parametrize(("error", "kind"), [(UnknownEntity, "entity"), (UnknownRelation, "relation")])
def test_an_unknown_id_is_named_with_suggestions_and_the_next_step(
    error: type[UnknownEntity | UnknownRelation], kind: str
) -> None:
    caught = error("Q0", suggestions=["Tokyo (Q1490)", "Kyoto (Q34600)"], hint="Retrieve finds the id of a name.")
    assert str(caught) == (
        f"This graph has no {kind} 'Q0'. Did you mean Tokyo (Q1490) or Kyoto (Q34600)? Retrieve finds the id of a name."
    )
    assert caught.suggestions == ("Tokyo (Q1490)", "Kyoto (Q34600)")


def test_a_message_stays_on_its_line_and_holds_nothing_unseen() -> None:
    assert str(InvalidSource("a\nb\u202e.ttl is damaged.")) == r"a\nb\u202e.ttl is damaged."
    assert str(BackendError("a\x1b[2J\u2028b")) == r"a\u001b[2J\u2028b"


def test_only_a_wrong_request_is_pointed_at_on_several_lines() -> None:
    assert str(InvalidRequest("Here:\n\u202ex\n^")) == "Here:\n\\u202ex\n^"


def test_an_unknown_id_without_suggestions_says_only_that() -> None:
    entity, relation = UnknownEntity("a\nb"), UnknownRelation("r")
    assert (str(entity), entity.entity) == ("This graph has no entity 'a\\nb'.", "a\nb")
    assert (str(relation), relation.relation) == ("This graph has no relation 'r'.", "r")


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
