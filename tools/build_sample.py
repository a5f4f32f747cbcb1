"""Build the sample graphs that ship in the wheel: a slice of Wikidata with dates and numbers, and a fictional world.

    python tools/build_sample.py [--data PATH/TO/shared/data] [NAME …]

Entries are sorted, times are fixed, and files are named by what they hold: the same source makes the same bytes.
"""

import argparse
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio

from kg_adapters.embedding import MiniLmEmbedder
from kg_adapters.importing.build import build_store
from kg_adapters.local.cache import sample_file
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_adapters.local.vectors.entities import build_meaning_index
from kg_adapters.local.vectors.labels import build_relation_vectors

ROOT: Final = Path(__file__).parents[1]
TARGET: Final = ROOT / "kg_adapters" / "kg_adapters" / "local"
DATA: Final = ROOT.parent / "shared" / "data"
VALUES: Final = Path(__file__).with_name("sample_values.ttl")
FIXED_TIME: Final = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Sample:
    """A graph to ship.

    Args:
        sources: Its RDF files, as absolute paths or below the folder of shared data.
        note: What `SOURCE.txt` says in its store: what it is, where it comes from, under which licence.
        max_bytes: What its archive may weigh.
    """

    sources: tuple[Path, ...]
    note: str
    max_bytes: int


SAMPLES: Final = {
    "sample": Sample(
        (Path("wikidata-15k.nt.gz"), VALUES),
        """\
The sample graph of KG Sextant: 149,827 statements between 15,777 entities of Wikidata, with English labels,
descriptions and aliases.

Facts and labels come from Wikidata (https://www.wikidata.org), which gives them to the public domain (CC0 1.0). They
were collected from CoDEx (MIT), WD50K (CC BY 4.0), ILPC22 (MIT), SimpleQuestionsWikidata (CC BY) and the label mapping
of villmow/datasets_knowledge_embedding (MIT).

3,504 values were added. Populations, coordinates and areas come from GeoNames (https://www.geonames.org, CC BY 4.0);
years of birth and death from WordNet 3.1 (Princeton University) and descriptions in Wikidata; days of birth and death
from the calendar files of 4.4BSD-Lite (The Regents of the University of California).
""",
        10_200_000,
    ),
    "sample:world": Sample(
        (ROOT / "benchmarks" / "world" / "graph.ttl.gz",),
        """\
The second sample graph of KG Sextant: a generated, fictional world of people, companies, towns, bridges, ships, books,
films and matches, with dates, numbers and career entries. No model can know its facts.

It is in the public domain (CC0 1.0).
""",
        4_000_000,
    ),
}


def main() -> None:
    """Build the archives and say how large they are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{' or '.join(SAMPLES)}; all when none is given")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of shared data")
    parser.add_argument("--to", type=Path, default=TARGET, help="the folder of the archives")
    arguments = parser.parse_args()
    names: list[str] = arguments.names or list(SAMPLES)
    data: Path = arguments.data
    folder: Path = arguments.to
    for name in names:
        sample = SAMPLES[name]
        target = folder / sample_file(name)
        size = build_sample(name, [data / source for source in sample.sources], target, sample.note)
        print(f"{target}: {size:,} bytes")
        if size > sample.max_bytes:
            raise SystemExit(f"{name} must stay under {sample.max_bytes:,} bytes.")


def build_sample(name: str, sources: Sequence[Path], target: Path, note: str) -> int:
    """Write the archive of the store that the sources make, and return its size in bytes."""
    with tempfile.TemporaryDirectory() as scratch:
        store = Path(scratch, "store")
        build_store(sources, store, ImportOptions(sparql=False, name=name))
        anyio.run(_embed, store)
        (store / "SOURCE.txt").write_text(note, encoding="utf-8")
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
