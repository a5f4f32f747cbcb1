"""The shape that the code keeps: who may import whom, who may touch the outside, and how long a unit may be."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).parents[1]
ROOTS: Final = {
    "kg_boundary": "boundary",
    "kg_adapters": "kg_adapters",
    "kg_server": "server",
    "kg_agents": "agents",
    "kg_prompts": "prompts",
    "kg_eval": "evaluation",
}
FORBIDDEN: Final = {
    "kg_boundary": {"kg_adapters", "kg_server", "kg_agents", "kg_prompts", "kg_eval"},
    "kg_adapters": {"kg_server", "kg_agents", "kg_prompts", "kg_eval"},
    "kg_prompts": {"kg_server", "kg_agents", "kg_adapters", "kg_eval"},
    "kg_agents": {"kg_server", "kg_adapters", "kg_eval"},
    "kg_server": {"kg_agents", "kg_eval"},
    "kg_eval": {"kg_server", "kg_adapters"},
}
WIRING: Final = ("kg_server/cli.py", "kg_server/commands/")
READS_ENVIRONMENT: Final = {
    "kg_server/cli.py": "settings come from there",
    "kg_boundary/machine.py": "it passes on what a process needs to run, and reads no setting",
    "kg_adapters/embedding/minilm.py": "it keeps a library silent, which listens to nothing else, and reads nothing",
}
SPEAKS_TO_PEOPLE: Final = ("kg_server/cli.py", "kg_server/commands/", "kg_server/demo.py")
LAYERS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "kg_adapters.importing": (
        ("kg_",),
        ("kg_adapters/importing/", "kg_adapters/extraction/", "kg_adapters/local/cache.py", "kg_server/commands/"),
    ),
    "kg_adapters.local": (
        ("kg_adapters/",),
        (
            *(
                "kg_adapters/local/",
                "kg_adapters/importing/",
                "kg_adapters/extraction/",
                "kg_adapters/rdflib_adapter.py",
            ),
            *("kg_adapters/__init__.py", "kg_adapters/registry.py", "kg_adapters/open_options.py"),
        ),
    ),
    "kg_adapters.wikidata": (("kg_adapters/local/", "kg_adapters/index/"), ()),
}
"""For a package, the modules that may not import it, and those among them that may: they build stores or open them."""
OTHER_PLACES: Final = (
    *("tests", "tools", "benchmarks", "docs", ".ci", "Makefile", "constraints.txt", "pyproject.toml"),
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md"),
)
TEXT_ENDINGS: Final = {
    *(".py", ".md", ".toml", ".txt", ".json", ".yml", ".yaml", ".cfg", ".sh"),
    *(".ts", ".mjs", ".css", ".html"),
}
MAX_FILE_LINES: Final = 500
MAX_FUNCTION_LINES: Final = 40
LONGER: Final[dict[str, str]] = {}
"""Files, and functions as `file:name`, that are longer for a reason, and the reason."""


class Module:
    """One source file of ours."""

    def __init__(self, package: str, path: Path) -> None:
        self.package = package
        self.path = path
        self.name = path.relative_to(REPOSITORY / ROOTS[package]).as_posix()
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)

    def imports(self) -> Iterator[tuple[int, str]]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{self.name}:{node.lineno} imports relatively"
                yield node.lineno, node.module or ""

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


def source_modules() -> list[Module]:
    return [
        Module(package, path)
        for package, root in ROOTS.items()
        for path in sorted((REPOSITORY / root / package).rglob("*.py"))
    ]


MODULES: Final = source_modules()


def test_each_source_root_holds_exactly_one_package() -> None:
    found = {
        root: sorted(path.name for path in (REPOSITORY / root).iterdir() if path.is_dir()) for root in ROOTS.values()
    }
    found = {root: [name for name in names if name != "__pycache__"] for root, names in found.items()}
    found["server"].remove("view")  # the source of the page, which npm builds
    assert found == {root: [package] for package, root in ROOTS.items()}
    assert not [root for root in ROOTS.values() if (REPOSITORY / root / "__init__.py").exists()]


def test_dependencies_point_one_way() -> None:
    wrong = [
        f"{module.name}:{line} imports {name}"
        for module in MODULES
        for line, name in module.imports()
        if name.partition(".")[0] in FORBIDDEN[module.package] and not module.name.startswith(WIRING)
    ]
    assert wrong == []


def test_serving_never_builds_and_generic_code_knows_no_kind_of_graph() -> None:
    wrong = [
        f"{module.name}:{line} imports {name}"
        for module in MODULES
        for line, name in module.imports()
        for package, (forbidden, allowed) in LAYERS.items()
        if f"{name}.".startswith(f"{package}.")
        and module.name.startswith(forbidden)
        and not module.name.startswith(allowed)
    ]
    assert wrong == []


def test_a_class_name_has_one_meaning() -> None:
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for module in MODULES:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module.name)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_no_agent_knows_another() -> None:
    agents = {"kg_agents.papers.oda", "kg_agents.papers.graph_counselor", "kg_agents.tools.agent"}
    imported = {module.name.removesuffix(".py").replace("/", "."): [*module.imports()] for module in MODULES}
    wrong = [
        f"{module}:{line} imports {name}"
        for module, imports in imported.items()
        for line, name in imports
        for agent in agents
        if module.startswith(agent) and name.startswith(tuple(agents - {agent}))
    ]
    assert wrong == []
    assert all(any(module.startswith(agent) for module in imported) for agent in agents)


def test_only_the_command_line_reads_the_environment() -> None:
    wrong = [
        f"{module.name}: {ast.unparse(node)}"
        for module in MODULES
        for node in ast.walk(module.tree)
        if module.name not in READS_ENVIRONMENT and _reads_environment(node)
    ]
    assert wrong == []


def test_no_error_is_caught_without_a_name() -> None:
    wrong = [
        f"{module.name}:{node.lineno}"
        for module in MODULES
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ExceptHandler) and _catches_everything(node.type)
    ]
    assert wrong == []


def test_no_error_can_become_its_own_cause() -> None:
    # `raise error if … else Other() from error` names an error as its own cause, and who follows causes never ends.
    wrong = [
        f"{module.name}:{node.lineno}"
        for module in MODULES
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Raise)
        and node.cause is not None
        and (isinstance(node.exc, ast.IfExp) or ast.dump(node.cause) == ast.dump(node.exc or node.cause))
    ]
    assert wrong == []


def test_only_commands_print() -> None:
    wrong = [
        f"{module.name}:{node.lineno}"
        for module in MODULES
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
        and not module.name.startswith(SPEAKS_TO_PEOPLE)
    ]
    assert wrong == []


def test_files_and_functions_stay_within_the_budget_or_give_a_reason() -> None:
    long = {module.name for module in MODULES if len(module.text.splitlines()) > MAX_FILE_LINES}
    long |= {
        f"{module.name}:{function.name}"
        for module in MODULES
        for function in module.functions()
        if _code_lines(function) > MAX_FUNCTION_LINES
    }
    view = (REPOSITORY / "server" / "view" / "src").glob("*.ts")
    long |= {path.name for path in view if len(path.read_text(encoding="utf-8").splitlines()) > MAX_FILE_LINES}
    assert long == set(LONGER)


def test_no_pattern_repeats_a_group_possessively() -> None:
    # Python before 3.11.5 finds too little with (?:…)*+; (?>(?:…)*) means the same.
    possessive = re.compile(r"(?<![(\\])\)(?:[*+?]|\{[\d,]+\})\+")
    assert possessive.search(r"a(?:b)*+") is not None
    assert [
        f"{module.name}:{node.lineno}"
        for module in MODULES
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant)
        if isinstance(node.value, str | bytes)
        if possessive.search(node.value if isinstance(node.value, str) else node.value.decode("latin-1"))
    ] == []


def test_no_file_names_the_host_of_a_package_registry() -> None:
    # Written in two parts, so that this file does not name one itself.
    hosts = [f"{name}.org" for name in ("pypi", "pythonhosted", "npmjs")]
    wrong = [path for path in _text_files() if any(host in path.read_text(encoding="utf-8") for host in hosts)]
    assert wrong == []


def _text_files() -> Iterator[Path]:
    for place in (*ROOTS.values(), *OTHER_PLACES):
        root = REPOSITORY / place
        for path in [root] if root.is_file() else sorted(root.rglob("*")):
            if "node_modules" not in path.parts and (path.suffix in TEXT_ENDINGS or path.name in {"Makefile", "run"}):
                yield path


def _reads_environment(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
        and node.attr in {"environ", "environb", "getenv", "putenv"}
    ) or (isinstance(node, ast.ImportFrom) and node.module == "os" and _names(node) & {"environ", "getenv"} != set())


def _names(node: ast.ImportFrom) -> set[str]:
    return {alias.name for alias in node.names}


def _catches_everything(caught: ast.expr | None) -> bool:
    if isinstance(caught, ast.Tuple):
        return any(_catches_everything(each) for each in caught.elts)
    return caught is None or (isinstance(caught, ast.Name) and caught.id in {"Exception", "BaseException"})


def _code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a body; what is said in the signature and the docstring costs nothing."""
    first = function.body[1] if ast.get_docstring(function) and len(function.body) > 1 else function.body[0]
    return (function.end_lineno or first.lineno) - first.lineno + 1
