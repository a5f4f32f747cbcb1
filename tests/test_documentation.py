"""What README.md and docs/ show is what people get."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import AsyncGenerator, Callable
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest
import typer.main
from mcp import Client
from typer.core import TyperGroup

from calls import reply_of, unhurried
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_agents.running import replay_question
from kg_agents.trace import read_trace
from kg_server.app import build_server
from kg_server.cli import application
from kg_server.commands.config import Host
from kg_server.commands.loading import load_settings
from kg_server.commands.tools import parse_arguments, split_arguments
from kg_server.settings import APP, FIELDS
from pages import EXAMPLES, LOCAL_MODEL, PAGES, ROOT, Block, blocks, kg_sextant_words, prose, shell_lines, tool_calls
from patience import PATIENCE_S
from scripted_model import serving_model

# The beginnings of lines that use the network or other programs.
INSTALLS: Final = "kg-sextant --install-completion"
NOT_OURS: Final = (
    "claude mcp add-json ",
    "inspect ",
    "export ",
    "ollama ",
    "uv tool ",
    "pipx ",
    "pip ",
    INSTALLS,
)
PUBLIC: Final = ("kg_adapters", "kg_adapters.name_index", "kg_agents", "kg_server", "mcp", "rdflib", "typing")


@pytest.fixture
async def sample(tmp_path: Path) -> AsyncGenerator[Client]:
    graph = LocalAdapter(open_sample(tmp_path))
    async with Client(build_server(graph, unhurried(cache_folder=tmp_path, data_folder=tmp_path))) as client:
        yield client
    await graph.aclose()


@pytest.fixture
def example_folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__")))


def run(*arguments: str, folder: Path = ROOT, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run Python on these arguments, without input."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("KG_SEXTANT_")}
    # Pages start `kg-sextant`, which is beside this Python whether its environment is active or not.
    inherited["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), inherited.get("PATH", "")))
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**inherited, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE_S,
        check=False,
    )


def commands() -> TyperGroup:
    """Return the command line's own parser."""
    group = typer.main.get_command(application())
    assert isinstance(group, TyperGroup)
    return group


def flags(command: str) -> set[str]:
    """Return the flags of a command that are settings."""
    params = commands().commands[command].params
    found = {option for param in params if param.name in FIELDS for option in param.opts}
    return {option for option in found if option.startswith("--")}


def test_output_of_commands_files_and_settings_in_the_pages_are_up_to_date() -> None:
    ended = run("tools/update_docs.py", "--check")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_stale_pages_and_notebooks_are_reported_and_updated(tmp_path: Path) -> None:
    for part in ("docs/examples", "tools"):
        shutil.copytree(ROOT / part, tmp_path / part)
    (tmp_path / "README.md").touch()
    stale = {
        "settings.md": ("| `hub_degree` | `1000` |", "| `hub_degree` | `7` |"),
        "agents.ipynb": ('"Answer: Frankfurt\\n"', '"Answer: Weimar\\n"'),
    }
    fresh = {name: (ROOT / "docs" / name).read_text(encoding="utf-8") for name in stale}
    for name, (right, wrong) in stale.items():
        assert right in fresh[name]
        (tmp_path / "docs" / name).write_text(fresh[name].replace(right, wrong), encoding="utf-8")
    # Each run of a notebook takes seconds, and the check of a page needs none.
    notebook = (tmp_path / "docs" / "agents.ipynb").rename(tmp_path / "agents.ipynb")
    ended = run("tools/update_docs.py", "--check", folder=tmp_path)
    notebook.rename(tmp_path / "docs" / "agents.ipynb")
    assert ended.returncode == 1
    assert "-| `hub_degree` | `7` |" in ended.stdout
    assert ended.stdout.endswith("To update the pages: python tools/update_docs.py\n")
    updated = "Updated docs/settings.md.\nUpdated docs/agents.ipynb.\n"
    assert run("tools/update_docs.py", folder=tmp_path).stdout == updated
    assert {name: (tmp_path / "docs" / name).read_text(encoding="utf-8") for name in stale} == fresh


async def test_every_field_of_every_answer_is_explained_on_one_page(sample: Client) -> None:
    page = (ROOT / "docs" / "answers.md").read_text(encoding="utf-8")
    fields = {
        f"{tool.name}: {field}"
        for tool in (await sample.list_tools()).tools
        for field in (tool.output_schema or {})["properties"]
    }
    assert len(fields) > 50
    assert [each for each in sorted(fields) if f"`{each.partition(': ')[2]}`" not in page] == []


def test_the_example_adapter_keeps_the_contract(example_folder: Path) -> None:
    ended = run("-m", "pytest", "-q", "-p", "no:cacheprovider", ".", folder=example_folder, PYTHONPATH=".")
    assert ended.returncode == 0, ended.stdout
    assert re.search(r"\b[1-9]\d* passed", ended.stdout)


@pytest.mark.parametrize(
    "block", [each for each in blocks("python") if not (each.included or each.asks_model)], ids=str
)
def test_python_in_a_page_runs(block: Block, example_folder: Path) -> None:
    # Servers that a page starts keep their files where its home is.
    ended = run("-W", "error", "-c", block.text, folder=example_folder, PYTHONPATH=".", HOME=str(example_folder))
    assert (ended.returncode, ended.stderr) == (0, "")


CONFIGURED = """
import sys
from contextlib import suppress
from kg_server.cli import main
for host in sys.argv[1:]:
    with suppress(SystemExit):
        main(["config", host], {})
    print(end="\\0")
"""
"""Prints the block of each host, with a zero behind each."""


def test_configuration_blocks_are_those_that_config_prints(tmp_path: Path) -> None:
    hosts: tuple[Host, ...] = ("claude", "cursor", "vscode", "zed", "codex")
    printed: dict[str, object] = {}
    texts = run("-c", CONFIGURED, *hosts, XDG_CONFIG_HOME=str(tmp_path)).stdout.split("\0")
    for host, text in zip(hosts, texts[:-1], strict=True):
        command = re.search(r'"?command"?\s*[:=]\s*("[^"]*")', text)
        assert command is not None
        block = text.replace(command[1], '"kg-sextant"')
        printed[host] = tomllib.loads(block) if host == "codex" else json.loads(block)
    shown = [json.loads(block.text) for block in blocks("json")]
    toml = [tomllib.loads(block.text) for block in blocks("toml") if block.page == "connect.md"]
    assert printed["cursor"] == printed["claude"]
    assert [*shown, *toml] == [printed[host] for host in hosts if host != "cursor"]


def test_the_settings_files_in_the_page_are_read(tmp_path: Path) -> None:
    block, named = (each for each in blocks("toml") if each.page == "settings.md")
    file = tmp_path / "settings.toml"
    file.write_text(block.text, encoding="utf-8")
    loaded = load_settings({}, {}, file)
    assert loaded.settings.model_dump(exclude_defaults=True, exclude={"cache_folder", "data_folder"}) == {
        "graph": "/home/you/graphs/people",
        "languages": ("de", "en"),
        "max_tokens": 4_000,
        "timeout_s": 20.0,
        "llm": {"model": "qwen3", "base_url": "http://127.0.0.1:11434/v1"},
    }
    file.write_text(named.text, encoding="utf-8")
    settings = load_settings({}, {}, file).settings
    assert {name: settings.of(name).timeout_s for name in settings.graphs} == {"people": 20.0, "films": 60.0}


@pytest.mark.parametrize("line", shell_lines())
def test_a_command_line_in_a_page_is_understood(line: str) -> None:
    words = kg_sextant_words(line)
    if words is None or line == INSTALLS:
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        made = re.fullmatch(r"make ([a-z-]+)( +#.*)?", line)
        assert line.startswith(NOT_OURS) or (made is not None and made[1] in targets)
        return
    group = commands()
    name = next(word for word in words if word in group.commands)
    place = words.index(name)
    group.make_context("kg-sextant", words[: place + 1])
    group.commands[name].make_context(name, words[place + 1 :])


async def test_every_tool_call_in_a_page_has_an_answer_with_content(sample: Client) -> None:
    schemas = {tool.name: tool.input_schema for tool in (await sample.list_tools()).tools}
    calls = list(tool_calls())
    refused = {}
    handle = ""
    for tool, written in calls:
        filled = [each.replace("HANDLE", handle) for each in written]
        # The first query prepares the store for SPARQL, which may take long on a busy machine.
        filled += ["timeout_s=60"] if tool == "Sparql" else []
        result = await sample.call_tool(tool, parse_arguments(split_arguments(filled), schemas[tool]))
        if not (reply := reply_of(result)).has_content:
            refused[tool, written] = reply.text
        elif tool == "memory-append":
            assert result.structured_content is not None
            handle = str(result.structured_content["memory"])
    assert refused == {}
    assert {tool for tool, _ in calls} == set(schemas)


async def test_the_readme_lists_exactly_the_tools_of_the_server(sample: Client) -> None:
    table = re.findall(r"^\| `(\w[\w-]*)` \| ", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    tools = [tool.name for tool in (await sample.list_tools()).tools]
    assert table == tools


async def test_no_page_names_a_tool_a_class_or_a_command_that_does_not_exist(sample: Client) -> None:
    public = {name for module in PUBLIC for name in dir(import_module(module))}
    tools = {tool.name for tool in (await sample.list_tools()).tools}
    for page in PAGES:
        named = set(re.findall(r"`([A-Z][a-z]+[A-Za-z]*)[`(]", prose(page)))
        assert named - public - tools == set(), page
        asked = set(re.findall(r"kg-sextant ([a-z]+)\b", prose(page)))
        assert asked - set(commands().commands) == set(), page


def test_the_page_of_dependencies_gives_a_reason_for_exactly_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name = re.compile(r"[\w.-]+")
    needed = {("", name.findall(each)[0]) for each in project["dependencies"]}
    extras = {(key, name.findall(each)[0]) for key, of in project["optional-dependencies"].items() for each in of}
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?:`([\w-]+)` \| )?`([\w.-]+)` \| \w.* \|$", page, re.MULTILINE)
    assert sorted(rows) == sorted(needed | extras)


def test_each_line_of_the_threat_model_names_tests_that_there_are() -> None:
    page = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ")][1:]
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    there = {name for source in sources for name in re.findall(r"def (test_\w+)\(", source)}
    named = [set(re.findall(r"`(test_\w+)`", row)) for row in rows]
    assert [row for row, tests in zip(rows, named, strict=True) if not tests or not tests <= there] == []


@pytest.mark.parametrize("command", ["serve", "call", "import"])
def test_the_page_of_settings_lists_the_flags_of_a_command(command: str) -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| `{command}` \| (.*) \|$", page, re.MULTILINE)
    assert row is not None
    assert set(re.findall(r"`(--[a-z-]+)`", row[1])) == flags(command)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", prose(page))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    modules = re.findall(r"`((?:\w+/)?kg_\w+(?:/[\w.]+)+)`", prose(page))
    missing += [module for module in modules if not any(ROOT.glob(module)) and not any(ROOT.glob(f"*/{module}"))]
    assert missing == []


RECORD: Final = ROOT / "docs" / "examples" / "goethe.jsonl"
AS_IN_A_NOTEBOOK: Final = (
    "import ast, asyncio, inspect, sys, types\n"
    "code = compile(sys.stdin.read(), 'block', 'exec', flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)\n"
    "asyncio.run(types.FunctionType(code, {})())"
)


def python(*arguments: str, folder: Path, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python in a home of its own, with `kg-sextant` on the path."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    # Clients give the servers that they start no other environment.
    settings = folder / ".config" / APP / "config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(f"timeout_s = {PATIENCE_S}\nwatchdog_s = 0\n", encoding="utf-8")
    environ = {**os.environ, "PATH": path, "HOME": str(folder), "PYTHONUTF8": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environ, input=given, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("block", [each for each in blocks("python") if each.asks_model], ids=str)
def test_lines_that_ask_a_model_get_the_answers_of_both_agents(block: Block, tmp_path: Path) -> None:
    oda = ("Keep: 1\nAction: Answer\nAnswer:\nFrankfurt [1]",)
    counselor = ("Action: Neighbor[Q5879, -influenced by]", "Action: Finish[Q7200]", "[yes]")
    with serving_model(*oda, *counselor) as service:
        asked = block.text.replace(LOCAL_MODEL, service.url)
        ended = python("-W", "error", "-c", AS_IN_A_NOTEBOOK, folder=tmp_path, given=asked)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("('Frankfurt',)\n('Alexander Pushkin',)\n", "", 0)
    assert [len([line for line in block.text.splitlines() if line]), len(service.asked)] == [5, 4]


async def test_the_record_of_the_page_runs_again() -> None:
    answer, same = await replay_question(RECORD)
    # It fails when the agents or their prompts have changed: `python tools/record_run.py` records it again.
    assert (answer.texts, same) == (("Frankfurt",), True)


def test_the_record_of_the_page_can_be_made_again(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    (tmp_path / "docs" / "examples").mkdir(parents=True)
    assert python("tools/record_run.py", folder=tmp_path).stdout == "goethe.jsonl: Frankfurt\n"
    made = read_trace(tmp_path / "docs" / "examples" / RECORD.name)
    assert [line.kind for line in made] == [line.kind for line in read_trace(RECORD)]


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.ipynb")), ids=lambda path: path.name)
def test_a_notebook_keeps_the_format_of_notebooks(path: Path) -> None:
    schema = json.loads((ROOT / "tests" / "data" / "schemas" / "notebook.schema.json").read_text(encoding="utf-8"))
    check: Callable[[object, object], None] = import_module("jsonschema").validate
    check(json.loads(path.read_text(encoding="utf-8")), schema)


def test_a_command_is_found_beside_this_python_without_an_active_environment(tmp_path: Path) -> None:
    program = """
import asyncio
from kg_agents import connect

async def main():
    async with connect("kg-sextant serve sample") as graph:
        print(type(graph).__name__)

asyncio.run(main())
"""
    environ = {"PATH": os.defpath, "HOME": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=False)
    assert (run.stdout, run.returncode) == ("KnowledgeGraph\n", 0), run.stderr
