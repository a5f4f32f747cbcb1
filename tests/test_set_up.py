import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "tools" / "set_up.py"


def test_a_python_that_is_too_old_can_still_read_the_script_that_tells_it_so() -> None:
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"), feature_version=(3, 6))
    futures = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    evaluated = [
        node.returns
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Subscript)
    ]
    assert (futures, evaluated) == ([], [])


def test_an_environment_whose_creation_was_interrupted_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    script = Path(shutil.copy(SCRIPT, tmp_path / "tools"))
    (tmp_path / "constraints.txt").touch()
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (tmp_path / ".venv" / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).parent}\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "pip install --upgrade pip hatchling failed; its message stands above." in done.stderr
    assert "No module named pip" not in done.stderr
    subprocess.run([str(python), "-m", "pip", "--version"], stdout=subprocess.DEVNULL, check=True)
