"""Where the shipped model cannot run, letters are compared instead, and the reason is told."""

import json
import subprocess
import sys
from pathlib import Path

from kg_adapters.embedding import LexicalEmbedder, MiniLmEmbedder, best_available

INSTEAD = "Texts are compared by their letters instead."
REPORT = """
import anyio, json
from kg_adapters.embedding import best_available
found = best_available()
vectors = anyio.run(found.embedder.embed, ["capital", "capitol"])
print(json.dumps([found.embedder.fingerprint, found.fallback_reason, float(vectors[0] @ vectors[1]) > 0]))
"""
# A library that can be imported, and refuses the model with an exception of its own.
REFUSING = """
import sys, types
state = types.ModuleType("onnxruntime.capi.onnxruntime_pybind11_state")
state.InvalidGraph = type("InvalidGraph", (Exception,), {})
def refuse(*arguments, **options):
    raise state.InvalidGraph("no such operator")
library = types.ModuleType("onnxruntime")
library.SessionOptions = lambda: types.SimpleNamespace(add_session_config_entry=lambda key, value: None)
library.InferenceSession = refuse
sys.modules |= {"onnxruntime": library, "onnxruntime.capi": types.ModuleType("capi"), state.__name__: state}
"""


def run(program: str) -> list[object]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    report: list[object] = json.loads(done.stdout)
    return report


def test_the_shipped_model_is_chosen_where_it_runs() -> None:
    found = best_available(threads=1)
    assert (type(found.embedder), found.fallback_reason) == (MiniLmEmbedder, None)


def test_without_a_library_letters_are_compared_and_the_reason_names_it() -> None:
    library = "onnxruntime"
    fingerprint, reason, similar = run(f"import sys; sys.modules['{library}'] = None\n{REPORT}")
    assert (fingerprint, similar) == (LexicalEmbedder().fingerprint, True)
    start = f"The embedding model needs {library}, which does not work here: "
    assert str(reason).startswith(start)
    assert str(reason).endswith(INSTEAD)


def test_a_library_that_refuses_the_model_is_no_reason_to_stop() -> None:
    fingerprint, reason, _ = run(REFUSING + REPORT)
    assert fingerprint == LexicalEmbedder().fingerprint
    assert reason == f"The embedding model needs onnxruntime, which does not work here: no such operator. {INSTEAD}"


def test_without_the_files_letters_are_compared(tmp_path: Path) -> None:
    found = best_available(folder=tmp_path)
    assert isinstance(found.embedder, LexicalEmbedder)
    assert f"{tmp_path / 'tokenizer.json'} cannot be read" in str(found.fallback_reason)


def test_importing_the_package_loads_no_library_that_runs_a_model() -> None:
    heavy = ("onnxruntime", "openai", "usearch", "pyoxigraph", "rdflib")
    program = f"import json, sys, kg_adapters.embedding; print(json.dumps([n for n in {heavy!r} if n in sys.modules]))"
    assert run(program) == []
