import json
import subprocess
import sys
from pathlib import Path


def run_demo(*options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "kg_server.demo", *options], capture_output=True, text=True, check=False
    )


def test_the_demo_answers_its_question_with_evidence(tmp_path: Path) -> None:
    done = run_demo("--cache-folder", str(tmp_path))
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert "Answer: Arthur Schopenhauer (Q38193)" in lines
    evidence = lines[lines.index("Evidence:") + 1 :]
    assert evidence[:2] == [
        "  Albert Einstein (Q937) | influenced by (P737) | Arthur Schopenhauer (Q38193)",
        "  Arthur Schopenhauer (Q38193) | influenced by (P737) | Johann Wolfgang von Goethe (Q5879)",
    ]
    tools = ["Retrieve", "Retrieve", "observe", "GetNeighbor", "GetPath", "Compose", "memory-append", "memory-read"]
    assert [line.split()[1] for line in lines if line.startswith("   ▸ ")] == tools
    assert any(" holds 2 facts in 1 path." in line for line in lines)
    start = next(number for number, line in enumerate(lines) if line.startswith("Now connect your assistant"))
    block = "\n".join(lines[lines.index("{", start) : lines.index("}", start) + 1])
    assert json.loads(block)["mcpServers"]["kg-sextant"]["args"][-2:] == ["serve", "sample"]


def test_the_demo_fails_when_its_server_does_not_start(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("", encoding="utf-8")
    done = run_demo("--cache-folder", str(in_the_way / "cache"))
    assert done.returncode == 1
    assert "The demo failed" in done.stdout
