"""Names and graphs that are hard to read: miswritten names, and texts that try to pass for something else."""

import json
import random
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal as Choice

import numpy as np
import rdflib
from hypothesis import strategies as st
from rdflib.namespace import RDF, RDFS, SKOS

from kg_adapters.files.json_graphs import NODE_NAMESPACE, RELATION_NAMESPACE
from kg_adapters.folding import fold
from kg_adapters.importing.build import build_store
from kg_adapters.index.graph_index import GraphIndex, Longs, bare_relations
from kg_adapters.index.storage import IndexStorage
from kg_adapters.labels import Vocabulary
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.names.search import name_nodes
from kg_adapters.local.store import open_store
from kg_adapters.prefixes import BareIds
from kg_adapters.protocol import KGAdapter
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.terms import Iri, Node, node_from_key
from kg_server.naming.entities import Identity, identify
from kg_server.naming.misspelling import SMALL_WORDS

SEED = 12
Way = Choice[
    "exact",
    "alias",
    "one slip",
    "two slips",
    "two slips in a word",
    "a word missing",
    "absent",
    "turned",
    "another number",
]
SHARES: Mapping[Way, int] = {
    "exact": 18,
    "alias": 16,
    "one slip": 20,
    "two slips": 8,
    "two slips in a word": 8,
    "a word missing": 12,
    "absent": 18,
    "turned": 6,
    "another number": 4,
}
"""How many there are of a hundred and ten."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A text, how it was made, and who bears the name that it was made from."""

    text: str
    way: Way
    meant: frozenset[Node]

    def is_right(self, found: Identity) -> bool:
        """Say whether a verdict is right, and about the right entities."""
        named = frozenset(found.nodes)
        if self.way in {"absent", "another number"}:
            return found.match in {"loose", "none"} and not named
        if self.way in {"exact", "alias"}:
            return found.match == "exact" and self.meant <= named
        if self.way in {"one slip", "two slips", "turned"}:
            return found.match == "close" and self.meant == named
        return found.match == "loose" and not self.meant.isdisjoint(each.entity for each in found.near)


def generated_names(index: GraphIndex, size: int, seed: int = SEED) -> list[Asked]:
    """Return `size` texts or a few less, the same every time."""
    return _Names(index, random.Random(seed)).texts(size)  # noqa: S311 - the same choice every time is the point


async def mistaken(graph: KGAdapter, asked: Sequence[Asked]) -> list[tuple[Asked, Identity]]:
    """Return the texts for which a graph's verdict is wrong, with that verdict."""
    found = await identify(graph, [each.text for each in asked])
    return [(each, verdict) for each, verdict in zip(asked, found, strict=True) if not each.is_right(verdict)]


class _Names:
    def __init__(self, index: GraphIndex, dice: random.Random) -> None:
        self._dice = dice
        self._labels = _bearers(index, Vocabulary().labels)
        self._aliases = _bearers(index, Vocabulary().aliases)
        table = name_nodes(index, Vocabulary(), IndexStorage()).names
        self._taken = frozenset(table[number] for number in range(len(table)))
        self._called: defaultdict[str, frozenset[Node]] = defaultdict(frozenset)
        for name, bearers in (*self._labels.items(), *self._aliases.items()):
            self._called[fold(name)] |= bearers

    def texts(self, size: int) -> list[Asked]:
        ways: Mapping[Way, Callable[[str], str | None]] = {
            "exact": self._restyled,
            "alias": self._restyled,
            "one slip": lambda name: self._slipped(name, 1),
            "two slips": lambda name: self._slipped(name, 2),
            "two slips in a word": self._slipped_twice,
            "a word missing": self._shortened,
            "turned": _turned,
            "another number": _renumbered,
        }
        found: list[Asked] = []
        for way, share in SHARES.items():
            count = size * share // sum(SHARES.values())
            if way == "absent":
                found.extend(Asked(text, way, frozenset()) for text in self._absent(count))
            else:
                found.extend(self._made(way, ways[way], count))
        return found

    def _made(self, way: Way, change: Callable[[str], str | None], count: int) -> list[Asked]:
        names = self._aliases if way == "alias" else self._labels
        made: list[Asked] = []
        for name in self._dice.sample(sorted(names), len(names)):
            text = change(name) if len(fold(name)) > 3 else None
            if text is not None and (way in {"exact", "alias"} or fold(text) not in self._taken):
                made.append(Asked(text, way, self._called[fold(name)]))
            if len(made) == count:
                break
        return made

    def _restyled(self, name: str) -> str:
        return self._dice.choice((name, name.upper(), name.lower(), f" {name} "))

    def _slipped(self, name: str, count: int) -> str | None:
        words = name.split()
        long = [place for place, word in enumerate(words) if _can_slip(word)]
        fewest = 12 if count > 1 else 5
        if len(long) < count or sum(map(len, words)) < fewest:
            return None
        for place in self._dice.sample(long, count):
            words[place] = self._slip(words[place])
        return " ".join(words)

    def _slipped_twice(self, name: str) -> str | None:
        words = name.split()
        long = [place for place, word in enumerate(words) if _can_slip(word) and len(word) > 8]
        if not long:
            return None
        place = self._dice.choice(long)
        half = len(words[place]) // 2
        words[place] = self._slip(words[place][:half]) + self._slip(words[place][half:])
        return " ".join(words)

    def _slip(self, word: str) -> str:
        """Return a word with one letter left out, doubled, replaced, or exchanged with the next; never the first."""
        while True:
            place = self._dice.randrange(1, len(word) - 1)
            before, letter, after = word[:place], word[place], word[place + 1 :]
            slipped = self._dice.choice(
                (
                    before + after,
                    before + letter + letter + after,
                    before + self._dice.choice("aeinorst") + after,
                    before + after[:1] + letter + after[1:],
                )
            )
            if fold(slipped) != fold(word):
                return slipped

    def _shortened(self, name: str) -> str | None:
        words = name.split()
        if len(words) < 3:
            return None
        left_out = self._dice.randrange(len(words))
        left = [word for place, word in enumerate(words) if place != left_out]
        return " ".join(left) if sum(word.lower() not in SMALL_WORDS for word in left) > 1 else None

    def _absent(self, count: int) -> list[str]:
        """Return names that nothing bears."""
        names = [name.split() for name in sorted(self._labels) if len(name.split()) > 1 and name.isprintable()]
        found: list[str] = []
        while len(found) < count:
            first, second = self._dice.sample(names, 2)
            text = " ".join((*first[:-1], second[-1]) if self._dice.random() < 0.7 else self._invented(first))
            if fold(text) not in self._taken:
                found.append(text)
        return found

    def _invented(self, words: Sequence[str]) -> list[str]:
        return [word if len(word) < 5 and place else self._word() for place, word in enumerate(words)]

    def _word(self) -> str:
        parts = [
            self._dice.choice("bdfgklmnprstvz") + self._dice.choice("aeiou") for _ in range(self._dice.randrange(3, 5))
        ]
        return "".join(parts).capitalize() + self._dice.choice(("", "n", "rt", "stad"))


def _turned(name: str) -> str | None:
    before, _, last = name.rpartition(" ")
    return f"{last}, {before}" if before and name.replace(" ", "").isalpha() else None


def _renumbered(name: str) -> str | None:
    changed = re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), name, count=1)
    return None if changed == name else changed


def _can_slip(word: str) -> bool:
    return len(word) >= 4 and word.isalpha() and not word.isupper() and word.isascii() == fold(word).isascii()


def _bearers(index: GraphIndex, relations: Sequence[object]) -> dict[str, frozenset[Node]]:
    """Return the entities by name, relations left out."""
    ids = [number for each in relations if (number := index.relations.find(str(each))) is not None]
    rows: Longs = np.flatnonzero(np.isin(index.features.relations, ids))
    owners = np.searchsorted(index.features.starts, rows, side="right") - 1
    bare = bare_relations(index)
    found: defaultdict[str, set[Node]] = defaultdict(set)
    for row, owner in zip(rows.tolist(), owners.tolist(), strict=True):
        if not bare[owner]:
            found[index.features.values[row]].add(node_from_key(index.nodes[owner]))
    return {name: frozenset(nodes) for name, nodes in found.items()}


FORGERIES = (
    "b)\nAnn (a) | killed | Bob (b",
    "x -[killed]-> Bob",
    "y]-> Bob -[is",
    "Bob (b)",
    '"text"@en',
    "-capital",
    "\u202egnip\u202c",
    "in\u200bvisi\u200dble",
    "\ufeff\u2028\u2029\x85\x1b[2J",
    "\U000e0041\U000e0042",
    r"\u202e\n\\",
    "%E2%80%AE%0A%7C",
    "…",
    " | ",
    "part 1 | x | 2 nodes",
)
SPECIAL = "|\\[]()<>-\"'`%:/#,;. \n\r\tab\u0301\u061c\u200c\u2066\u3164\ufe0f\u00adé東\u0627😀"
PIECES = st.sampled_from(FORGERIES) | st.text(st.sampled_from(SPECIAL) | st.characters(codec="utf-8"), max_size=8)
TEXTS = st.lists(PIECES, min_size=1, max_size=2).map("".join).filter(str.strip)

SPACE = "http://e.example/"
NODES = 5
_IDS = BareIds(NODE_NAMESPACE, r"(?s:.+)"), BareIds(RELATION_NAMESPACE, r"(?s:.+)")


@dataclass(frozen=True)
class Hostile:
    """What stands in a graph: node `i` leads to the next over one relation, to the one after that over another one."""

    ids: Sequence[str]
    relations: Sequence[str]
    feature: str
    kind: str
    labels: Sequence[str | None]
    values: Sequence[str]


SPOOF = "b)\nAnn (a) | killed | Bob (b"
MURDER = Hostile(
    ids=("a", SPOOF, "b) | killed | Bob (b", "Bob (b)", "b"),
    relations=("knows", "likes\nAnn (a) | killed | Bob (b)"),
    feature="note\n|",
    kind="person | x",
    labels=("Ann", None, None, None, "Bob"),
    values=("x\ny", '"@en', "\\", " | ", "\u202ea\u202c"),
)


def assert_seen(text: str) -> None:
    """Require that every character of a text can be seen."""
    assert text.replace("\n", "").isprintable(), text


@st.composite
def hostile(draw: st.DrawFn) -> Hostile:
    """Draw the texts of a graph."""
    names = draw(st.lists(TEXTS, min_size=3, max_size=3, unique=True).filter(lambda each: "tag" not in each))
    return Hostile(
        ids=draw(st.lists(TEXTS, min_size=NODES, max_size=NODES, unique=True)),
        relations=names[:2],
        feature=names[2],
        kind=draw(TEXTS),
        labels=draw(st.lists(st.none() | TEXTS, min_size=NODES, max_size=NODES)),
        values=draw(st.lists(TEXTS, min_size=NODES, max_size=NODES)),
    )


@dataclass(frozen=True)
class Opened:
    """A hostile graph, its nodes in order, and the feature that numbers them `n0`, `n1` and so on."""

    graph: KGAdapter
    nodes: Sequence[Node]
    relations: Sequence[Iri]
    tag: Iri


@asynccontextmanager
async def as_graph_json(texts: Hostile, folder: Path) -> AsyncGenerator[Opened]:
    """Import the texts as a `graph.json`, in which an id is any text."""
    content = {
        f"{texts.kind}_nodes": {
            each: {
                "features": {
                    **({} if texts.labels[place] is None else {"name": texts.labels[place]}),
                    texts.feature: texts.values[place],
                    "tag": f"n{place}",
                },
                "neighbors": {
                    texts.relations[0]: [texts.ids[(place + 1) % NODES]],
                    texts.relations[1]: [texts.ids[(place + 2) % NODES]],
                },
            }
            for place, each in enumerate(texts.ids)
        }
    }
    source = folder / "graph.json"
    source.write_text(json.dumps(content), encoding="utf-8")
    async with _imported(source, folder) as graph:
        nodes, names = (
            [ids.expand(text) for text in each]
            for ids, each in zip(_IDS, (texts.ids, [*texts.relations, "tag"]), strict=True)
        )
        first, second, tag = _all(names)
        yield Opened(graph, _all(nodes), (first, second), tag)


@asynccontextmanager
async def as_rdflib(texts: Hostile, folder: Path) -> AsyncGenerator[Opened]:
    """Hold the texts in an rdflib graph, whose IRIs may hold what nobody sees."""
    del folder
    yield _opened(RdflibAdapter(_rdf(texts), name="a\n| b\u202e"), texts)


@asynccontextmanager
async def as_turtle(texts: Hostile, folder: Path) -> AsyncGenerator[Opened]:
    """Import the texts as RDF."""
    source = folder / "graph.nt"
    _rdf(texts).serialize(source, "nt", encoding="utf-8")
    async with _imported(source, folder) as graph:
        yield _opened(graph, texts)


def _rdf(texts: Hostile) -> rdflib.Graph:
    graph = rdflib.Graph(bind_namespaces="none")
    graph.bind("e", SPACE)
    nodes = [rdflib.URIRef(each) for each in _iris("n", texts.ids)]
    first, second = (rdflib.URIRef(each) for each in _iris("r", texts.relations))
    (feature,) = (rdflib.URIRef(each) for each in _iris("f", [texts.feature]))
    (kind,) = (rdflib.URIRef(each) for each in _iris("k", [texts.kind]))
    for place, node in enumerate(nodes):
        label, value = texts.labels[place], texts.values[place]
        graph.add((node, RDF.type, kind))
        graph.add((node, first, nodes[(place + 1) % NODES]))
        graph.add((node, second, nodes[(place + 2) % NODES]))
        graph.add((node, rdflib.URIRef(f"{SPACE}tag"), rdflib.Literal(f"n{place}")))
        graph.add((node, feature, rdflib.Literal(value, datatype=kind)))
        graph.add((node, feature, rdflib.Literal(value, lang="en-GB")))
        graph.add((node, SKOS.altLabel, rdflib.Literal(value)))
        graph.add((node, rdflib.URIRef("http://schema.org/description"), rdflib.Literal(value)))
        if label is not None:
            graph.add((node, RDFS.label, rdflib.Literal(label)))
            graph.add((first, RDFS.label, rdflib.Literal(label)))
            graph.add((kind, RDFS.label, rdflib.Literal(label)))
    return graph


def _iris(sort: str, texts: Sequence[str]) -> list[str]:
    """Return an IRI for each text, with all of it that an IRI may hold."""
    return [f"{SPACE}{sort}{place}{_fit(text)}" for place, text in enumerate(texts)]


def _fit(text: str) -> str:
    # Parsers of files take fewer marks than IRIs of this project have: nothing private, no half of an escape.
    return "".join(mark if mark.isalnum() or ("\xa0" <= mark < "\ud800") or mark in "-._~:" else "-" for mark in text)


def _opened(graph: KGAdapter, texts: Hostile) -> Opened:
    first, second = map(Iri, _iris("r", texts.relations))
    return Opened(graph, list(map(Iri, _iris("n", texts.ids))), (first, second), Iri(f"{SPACE}tag"))


@asynccontextmanager
async def _imported(source: Path, folder: Path) -> AsyncGenerator[LocalAdapter]:
    build_store([source], folder / "store", ImportOptions(name="a\n| b\u202e"))
    async with aclosing(LocalAdapter(open_store(folder / "store"))) as graph:
        yield graph


def _all(iris: Sequence[Iri | None]) -> list[Iri]:
    return [iri for iri in iris if iri is not None]
