"""What is published beside the code: the entry of the MCP registry, the bundle for desktop assistants, the image."""

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Final, Protocol

from pydantic import BaseModel, TypeAdapter

from kg_server.settings import FIELDS, Settings, variable
from pages import ROOT

SCHEMAS: Final = Path(__file__).parent / "data" / "schemas"
HOME: Final = "https://github.com/kg-sextant/kg-sextant"
BUNDLE: Final = ROOT / "packaging" / "mcpb"


class _Variable(BaseModel):
    name: str
    default: str | None = None
    isSecret: bool = False  # noqa: N815 - as the registry writes it


class _Package(BaseModel):
    identifier: str
    version: str
    environmentVariables: list[_Variable]  # noqa: N815


class _Server(BaseModel):
    name: str
    version: str
    packages: list[_Package]


class _Validator(Protocol):
    """What is used of a validator of `jsonschema`, which has no types."""

    def is_valid(self, instance: object, /) -> bool: ...

    def validate(self, instance: object, /) -> None: ...


def validator(draft: str, file: str) -> _Validator:
    """Return what validates by a schema of the test data."""
    made: _Validator = vars(import_module("jsonschema"))[f"Draft{draft}Validator"](read(SCHEMAS / file))
    return made


def read(path: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    return content


def test_the_entry_for_the_registry_keeps_its_schema_and_speaks_of_this_version() -> None:
    schema = validator("202012", "server.schema.json")
    content = read(ROOT / "server.json")
    schema.validate(content)
    assert not schema.is_valid({**content, "description": "x" * 101})
    server = _Server.model_validate(content)
    (package,) = server.packages
    assert (server.version, package.version, package.identifier) == (*[version("kg-sextant")] * 2, "kg-sextant")
    # The registry looks for this line in the description of the package, which is the README.
    assert f"<!-- mcp-name: {server.name} -->" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_variables_of_the_entry_are_settings_with_their_defaults() -> None:
    (package,) = _Server.model_validate(read(ROOT / "server.json")).packages
    names = {variable(name): name for name in FIELDS}
    for entry in package.environmentVariables:
        name = names[entry.name]
        default = TypeAdapter(tuple[str, ...] | None).validate_python(Settings.model_construct().value(name))
        assert entry.default == (None if default is None else ",".join(default))
        assert entry.isSecret == ("Secret" in str(FIELDS[name].annotation))


def test_the_manifest_of_the_bundle_keeps_its_schema_and_speaks_of_this_version() -> None:
    schema = validator("7", "mcpb-manifest.schema.json")
    content = read(BUNDLE / "manifest.json")
    schema.validate(content)
    assert not schema.is_valid({**content, "server": {"type": "uv"}})
    project = tomllib.loads((BUNDLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    ours = version("kg-sextant")
    assert (content["version"], project["version"], project["dependencies"]) == (ours, ours, [f"kg-sextant=={ours}"])


def test_the_bundle_holds_what_its_manifest_names_and_is_the_same_each_time(tmp_path: Path) -> None:
    for name in ("one.mcpb", "two.mcpb"):
        subprocess.run([sys.executable, ROOT / "tools" / "build_bundle.py", tmp_path / name], check=True)
    assert (tmp_path / "one.mcpb").read_bytes() == (tmp_path / "two.mcpb").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.mcpb") as bundle:
        assert bundle.namelist() == ["manifest.json", "pyproject.toml", "server.py"]
        compile(bundle.read("server.py"), "server.py", "exec")


def test_the_image_is_small_and_runs_as_an_ordinary_user() -> None:
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()
    words = [line.split() for line in lines if line and not line.startswith(("#", " "))]
    last = words[max(place for place, line in enumerate(words) if line[0] == "FROM") :]
    (base,) = (line[1] for line in words if line[0] == "ARG")
    assert (base.startswith("BASE="), base.endswith("-slim")) == (True, True)
    assert {line[1] for line in words if line[0] == "FROM"} == {"${BASE}"}
    (user,) = (line[1] for line in last if line[0] == "USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    assert ["ENTRYPOINT", '["kg-sextant"]'] in last


def test_the_package_says_where_it_is_at_home() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(project["urls"]) == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    assert [url for url in project["urls"].values() if not url.startswith(HOME)] == []


def test_links_of_the_readme_lead_to_files_in_a_clone_and_to_addresses_in_the_wheel(tmp_path: Path) -> None:
    link = re.compile(r"(!?)\[[^\]]*\]\(([^)#]+)")
    ours = link.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert [target for _, target in ours if not (ROOT / target).exists()] == []
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    (built,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(built) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        shown = link.findall(wheel.read(name).decode())
    kinds = {"!": "raw", "": "blob"}
    assert shown == [(mark, f"{HOME}/{kinds[mark]}/main/{target}") for mark, target in ours]
    assert {mark for mark, _ in ours} == {"", "!"}
