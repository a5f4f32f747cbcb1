"""Build the sample graph that ships in the wheel, from the slice of Wikidata.

    python tools/build_sample.py PATH/TO/wikidata-15k.nt.gz

Entries are sorted and times are fixed; only the files of the full-text index get other names in every build.
"""

import argparse
import tempfile
import zipfile
from pathlib import Path
from typing import Final

import anyio

from kg_adapters.embedding import MiniLmEmbedder
from kg_adapters.local.build import ImportOptions, build_store
from kg_adapters.local.meaning import build_meaning_index
from kg_adapters.local.store import open_store
from kg_adapters.local.vectors import build_relation_vectors

TARGET: Final = Path(__file__).parents[1] / "kg_adapters" / "kg_adapters" / "local" / "sample.zip"
MAX_BYTES: Final = 10_000_000
FIXED_TIME: Final = (1980, 1, 1, 0, 0, 0)
NOTE: Final = """\
The sample graph of KG Sextant: 149,827 statements between 15,777 entities of Wikidata, with English labels,
descriptions and aliases.

Facts and labels come from Wikidata (https://www.wikidata.org), which gives them to the public domain (CC0 1.0). They
were collected from CoDEx (MIT), WD50K (CC BY 4.0), ILPC22 (MIT), SimpleQuestionsWikidata (CC BY) and the label mapping
of villmow/datasets_knowledge_embedding (MIT).
"""


def main() -> None:
    """Build the archive and say how large it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("--to", type=Path, default=TARGET)
    arguments = parser.parse_args()
    source: Path = arguments.source
    target: Path = arguments.to
    size = build_sample(source, target)
    print(f"{target}: {size:,} bytes")
    if size > MAX_BYTES:
        raise SystemExit(f"The sample must stay under {MAX_BYTES:,} bytes.")


def build_sample(source: Path, target: Path) -> int:
    """Write the archive of the store that `source` makes, and return its size in bytes."""
    with tempfile.TemporaryDirectory() as scratch:
        store = Path(scratch, "store")
        build_store([source], store, ImportOptions(sparql=False, name="sample"))
        anyio.run(_embed, store)
        (store / "SOURCE.txt").write_text(NOTE, encoding="utf-8")
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for path in sorted(path for path in store.rglob("*") if path.is_file()):
                entry = zipfile.ZipInfo(path.relative_to(store).as_posix(), FIXED_TIME)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, path.read_bytes(), compresslevel=9)
    return target.stat().st_size


async def _embed(folder: Path) -> None:
    """Compute the vectors that let entities be found by meaning; those of labels would be too large to ship."""
    store, embedder = open_store(folder), MiniLmEmbedder()
    await build_relation_vectors(folder, store.index, embedder)
    await build_meaning_index(folder, store.index, store.info.vocabulary, embedder)


if __name__ == "__main__":
    main()
