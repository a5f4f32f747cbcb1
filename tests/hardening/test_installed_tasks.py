"""The benchmarks as tasks of inspect_ai, which is installed with the package in an environment of its own."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from benchmark_players import QUESTION, write_rows
from pages import ROOT
from story_graphs import TOKYO, write_story

PLAYED = """
import json, sys
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model

def reply(messages, tools, choice, config):
    if not tools:
        output = ModelOutput.from_content("m", "The answer is {Shinjuku}.")
    elif messages[-1].role == "tool":
        output = ModelOutput.for_tool_call("m", "answer", {"answers": [{"text": "Shinjuku", "results": [1]}]})
    else:
        output = ModelOutput.for_tool_call("m", "Compose", {"expression": "Neighbor[Tokyo, capital]"})
    output.usage = ModelUsage(input_tokens=100, output_tokens=10, total_tokens=110)
    return output

arguments = json.loads(sys.argv[1])
model = get_model("mockllm/model", custom_outputs=reply)
(log,) = eval("kg_eval/jsonl", model=model, task_args=arguments, epochs=2, display="none", log_dir="logs")
means = {each.name: each.metrics["mean"].value for each in log.results.scores}
print(json.dumps([log.status, means["set"], [sample.metadata["outcome"]["answers"] for sample in log.samples]]))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks") / "environment"
    venv.create(folder, with_pip=True)
    made = folder / "bin" / "python"
    install = [str(made), "-m", "pip", "install", "--quiet", "--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([*install, f"{ROOT}[eval]"], check=True, timeout=560)
    return made


@pytest.mark.parametrize(("method", "source"), [("direct", "model"), ("graph-rag-1", "graph"), ("tools", "graph")])
def test_a_benchmark_runs_as_a_task_of_inspect(python: Path, tmp_path: Path, method: str, source: str) -> None:
    rows = [{"question": f"{QUESTION} ({n})", "answers": ["Shinjuku"], "entities": ["Q1490"]} for n in range(2)]
    arguments = {
        "data": str(write_rows(tmp_path, "jsonl", rows)),
        "graph": str(write_story(tmp_path, TOKYO)),
        "method": method,
    }
    path = os.pathsep.join((str(python.parent), os.environ["PATH"]))
    ended = subprocess.run(
        [str(python), "-c", PLAYED, json.dumps(arguments)],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "HOME": str(tmp_path), "PYTHONPATH": ""},
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        text=True,
        check=False,
        timeout=300,
    )
    status, right, answers = json.loads(ended.stdout.splitlines()[-1])
    assert (status, right, [[(each["text"], each["source"]) for each in of] for of in answers]) == (
        *("success", 1.0),
        [[("Shinjuku", source)]] * 4,
    )
