"""Opens files of lines `head TAB relation TAB tail` as graphs; a tail in quotes is a text."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from edge_list import EdgeListAdapter, Statement

import kg_adapters as kg
from kg_adapters.prefixes import WELL_KNOWN

IDS: Final = kg.BareIds("http://example.org/", r"\w[\w-]*")
PREFIXES: Final = kg.Prefixes({prefix: WELL_KNOWN[prefix] for prefix in ("rdf", "rdfs")}, entities=IDS, relations=IDS)
WORDS: Final[Mapping[str, kg.Iri]] = {
    "type": kg.Iri(WELL_KNOWN["rdf"] + "type"),
    "label": kg.Iri(WELL_KNOWN["rdfs"] + "label"),
}


async def open_edge_file(rest: str, options: kg.OpenOptions) -> kg.KGAdapter:
    """Open the file at the path `rest`.

    Raises:
        InvalidSource: It cannot be read, or a line is not three columns.
    """
    vocabulary = kg.Vocabulary() if options.languages is None else kg.Vocabulary(languages=options.languages)
    return EdgeListAdapter(read_edges(Path(rest)), Path(rest).stem, PREFIXES, vocabulary)


def read_edges(path: Path) -> Iterator[Statement]:
    """Yield the statements of a file.

    Raises:
        InvalidSource: It cannot be read, or a line is not three columns.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise kg.InvalidSource(f"This file of edges cannot be read: {error}.") from error
    for number, line in enumerate(lines, start=1):
        columns = line.split("\t")
        if len(columns) != 3:
            raise kg.InvalidSource(
                f"{path}, line {number}: expected head, relation and tail between tabs; got {line!r}."
            )
        head, relation, tail = columns
        try:
            last = kg.Literal(tail.strip('"')) if tail.startswith('"') else _named(tail)
            yield _named(head), _named(relation), last
        except kg.InvalidRequest as error:
            raise kg.InvalidSource(f"{path}, line {number}: {error}") from error


def _named(word: str) -> kg.Iri:
    return WORDS.get(word) or kg.Iri(IDS.namespace + word)
