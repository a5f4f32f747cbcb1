"""An import that is killed, whenever it touches a file, leaves the old store or the new one, and nothing that stays."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

MOMENTS = 20

# The processes that are killed are copies of one that has loaded everything, which takes most of the time of an import,
# but has opened no Oxigraph, whose threads no copy would have.
KILLED_IMPORTS = """
import json, os, random, shutil, signal, sys
from pathlib import Path
from kg_adapters.index.build.build import build_store
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.sparql.store import statements
from kg_adapters.local.store import open_store
from kg_adapters.local.verifying import verify_store

TOUCHING = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree", "shutil.copyfile"}
folder, update, moments = Path(sys.argv[1]), sys.argv[2] == "update", int(sys.argv[3])
old, new, kept, store = (folder / name for name in ("old.ttl", "new.ttl", "kept", "work/store"))

def build(source, target, update=False, moment=0):
    touched = 0
    def look(event, arguments):
        nonlocal touched
        if event in TOUCHING and str(folder / "work") in str(arguments):
            touched += 1
            if touched == moment:
                os.kill(os.getpid(), signal.SIGKILL)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        sys.addaudithook(look)
        build_store([source], target, ImportOptions(), update=update)
        os.write(writing, str(touched).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    return int(said or 0), os.waitpid(child, 0)[1]

def start_again():
    shutil.rmtree(store.parent, ignore_errors=True)
    store.parent.mkdir()
    shutil.copytree(kept, store)

def content():
    verify_store(store)
    return sorted(statements(open_store(store).index))

build(old, kept)
start_again()
before = content()
touched, _ = build(new, store, update)
after = content()
found = []
for moment in sorted(random.Random(7).sample(range(1, touched + 1), moments)):
    start_again()
    _, status = build(new, store, update, moment)
    left = content()
    build(new, store, update)
    rubbish = [path.name for path in store.parent.iterdir() if path != store and path.suffix != ".lock"]
    found.append({"killed": status == signal.SIGKILL, "whole": left in (before, after),
                  "then": content() == after, "rubbish": rubbish})
print(json.dumps(found))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("way", ["import", "update"])
def test_a_store_survives_a_kill_at_any_moment(tmp_path: Path, way: str) -> None:
    head = "@prefix ex: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
    (tmp_path / "old.ttl").write_text(head + 'ex:a rdfs:label "A" ; ex:p (ex:b ex:c) .', encoding="utf-8")
    (tmp_path / "new.ttl").write_text(head + 'ex:d rdfs:label "D" ; ex:p ex:a .', encoding="utf-8")
    words = [sys.executable, "-c", KILLED_IMPORTS, str(tmp_path), way, str(MOMENTS // 2)]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout)
    assert found == [{"killed": True, "whole": True, "then": True, "rubbish": []}] * (MOMENTS // 2)
