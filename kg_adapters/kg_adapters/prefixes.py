r"""Short forms of IRIs: prefixed names, and the bare ids of graphs such as Wikidata.

A short form stands in lines beside labels, so one that is not shown as it stands (`kg_boundary.shown`), or that could
pass for a label with its id, for a literal or for a walk backwards, gives way to the IRI in `<…>`. Of an id such as
those of `graph.json` that is the percent-encoded IRI that the graph has. An IRI that itself holds marks which nobody
sees has them as escapes of Turtle and SPARQL, `<http://e.org/a\u202eb>`: percent signs could not tell it from the IRI
that is written with them, which is another one.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Final, TypeAlias
from typing import Literal as Choice
from urllib.parse import quote, unquote

from kg_adapters.errors import InvalidRequest
from kg_adapters.terms import BlankNode, Iri, Node
from kg_boundary.shown import in_quotes, is_plain, read_back, shown

Position: TypeAlias = Choice["entity", "relation"]
MAX_ID_LENGTH: Final = 2_000
SCHEMES: Final = frozenset({"http", "https", "urn", "file", "mailto", "tag"})
"""What cannot be a prefix, since full IRIs would be taken for prefixed names."""
_PREFIX: Final = re.compile(r"[A-Za-z](?:[\w.-]*[\w-])?|")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_LOCAL: Final = "/:@!$&'()*+,;=-._~"
_SURROGATES: Final = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class BareIds:
    """Ids that need no prefix: a text that matches `pattern` is the local part of an IRI in `namespace`.

    What an IRI may not hold is percent-encoded in the IRI and plain in the id.
    """

    namespace: str
    pattern: str

    def expand(self, text: str) -> Iri | None:
        """Return the IRI of a bare id, or None where `text` is none."""
        if re.fullmatch(self.pattern, text) is None or _SURROGATES.search(text) is not None:
            return None
        return Iri(self.namespace + quote(text, safe=_LOCAL))

    def shorten(self, iri: Iri) -> str | None:
        """Return the bare id of an IRI, or None where it has none."""
        if not iri.value.startswith(self.namespace):
            return None
        local = iri.value[len(self.namespace) :]
        if local.isalnum() and local.isascii():
            return local if re.fullmatch(self.pattern, local) else None
        text = unquote(local)
        return text if self.expand(text) == iri else None


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The prefixes of one graph, in both directions.

    Args:
        namespaces: From prefix to namespace, as in `{"dbr": "http://dbpedia.org/resource/"}`.
        entities: Bare ids in entity position.
        relations: Bare ids in relation position.
        blank_nodes: Whether the label of a blank node stands for the same node in every answer of the graph; without
            that `expand` refuses it, and the graph tells of one without a request, or nothing at all.
    """

    namespaces: Mapping[str, str] = field(default_factory=dict[str, str])
    entities: BareIds | None = None
    relations: BareIds | None = None
    blank_nodes: bool = True

    def shorten(self, node: Node, position: Position = "entity") -> str:
        """Return the shortest id that `expand` reads back in the same position."""
        if isinstance(node, BlankNode):
            return shown(str(node))
        bare = self.entities if position == "entity" else self.relations
        # A bare id may hold any character, so it may read as something else: a prefixed name, a blank node.
        if bare is not None and (text := bare.shorten(node)) is not None:
            if not _is_clear(text):
                return f"<{shown(node.value)}>"
            if text.isalnum() or self._read(text, position) == node:
                return text
        return self._prefixed(node, position) or f"<{shown(node.value)}>"

    def expand(self, text: str, position: Position = "entity") -> Node:
        """Return the node that an id stands for.

        Raises:
            InvalidRequest: The text is no bare id, prefixed name or IRI; nothing is guessed from its look.
        """
        if len(text) > MAX_ID_LENGTH:
            raise InvalidRequest(f"An id has at most {MAX_ID_LENGTH:,} characters; this one has {len(text):,}.")
        node = self._read(text, position)
        if node is None:
            raise InvalidRequest(self._expected(text, position))
        return node

    def local_names(self, text: str) -> tuple[Iri, ...]:
        """Return the entities that a text may be the local part of, one in each namespace that has a short form.

        Where the prefix of a CURIE is no prefix here, its colon is read as an underscore, and the reverse:
        `CARO:0000066` is `CARO_0000066`.
        """
        text = text.strip()
        if not text or len(text) > MAX_ID_LENGTH or any(map(str.isspace, text)) or _SURROGATES.search(text):
            return ()
        spaces = dict.fromkeys(self.namespaces.values())
        if self.entities is not None:
            spaces[self.entities.namespace] = None
        prefix, mark, rest = text.partition(":") if ":" in text else text.partition("_")
        written = [text, f"{prefix}_{rest}"] if mark == ":" else [text]
        values = [f"{space}{quote(local, safe=_LOCAL)}" for local in written for space in spaces]
        if mark and rest and prefix in self.namespaces:
            values.append(f"{self.namespaces[prefix]}{quote(rest, safe=_LOCAL)}")
        return tuple(map(Iri, dict.fromkeys(values)))

    def _read(self, text: str, position: Position) -> Node | None:
        text = text.strip()
        bare = self._bare(position)
        try:
            if text.startswith("<") and text.endswith(">"):
                return Iri(read_back(text[1:-1]))
            if text.startswith("_:"):
                return BlankNode(read_back(text[2:])) if position == "entity" and self.blank_nodes else None
            prefix, colon, local = text.partition(":")
            if colon and prefix in self.namespaces:
                return Iri(self.namespaces[prefix] + local)
            if bare is not None and (iri := bare.expand(text)) is not None:
                return iri
            return Iri(read_back(text)) if _SCHEME.fullmatch(text) else None
        except InvalidRequest:
            return None

    def _bare(self, position: Position) -> BareIds | None:
        return self.entities if position == "entity" else self.relations

    def _prefixed(self, iri: Iri, position: Position) -> str | None:
        fitting = [
            (len(namespace), prefix)
            for prefix, namespace in self.namespaces.items()
            if iri.value.startswith(namespace) and len(iri.value) > len(namespace)
        ]
        for length, prefix in sorted(fitting, reverse=True):
            text = f"{prefix}:{iri.value[length:]}"
            if is_plain(text) and self._read(text, position) == iri:
                return text
        return None

    def _expected(self, text: str, position: Position) -> str:
        given = in_quotes(text)
        if text.strip().startswith("_:") and position == "entity" and not self.blank_nodes:
            return (
                f"{given} is a blank node, which this graph renames in every answer: it cannot be asked about. "
                "Ask about the entity beside it, or write a Sparql query that goes through it."
            )
        forms = ["a bare id as results show it"] if self._bare(position) is not None else []
        if self.namespaces:
            forms.append(f"a prefixed name ({', '.join(f'{prefix}:…' for prefix in list(self.namespaces)[:4])})")
        expected = ", ".join([*forms, "or a full IRI (<http://…>)" if forms else "a full IRI (<http://…>)"])
        step = "Schema lists the relations" if position == "relation" else "Retrieve finds the id of a name"
        return f"{given} is not an id. Expected {expected}. {step}."


@dataclass(frozen=True)
class JoinedPrefixes(Prefixes):
    """The short forms of several graphs: a term has that of the first graph that has the term.

    Args:
        parts: The short forms of each graph, in the order of the graphs.
        owner: The place of the first graph that is known to have a term in a position, or None.
        unclear: Short forms that are known to be those of different terms in several graphs.
    """

    parts: tuple[Prefixes, ...] = ()
    owner: Callable[[Node, Position], int | None] = field(default=lambda _node, _position: None, compare=False)
    unclear: Collection[str] = field(default=(), compare=False)

    def shorten(self, node: Node, position: Position = "entity") -> str:
        """Return the short form in the first graph that has the node, or the IRI where that may mean another node."""
        if isinstance(node, BlankNode):
            return shown(str(node))
        place = self.owner(node, position)
        for part in self.parts if place is None else (self.parts[place], *self.parts):
            short = part.shorten(node, position)
            if short in self.unclear:
                break
            if not short.startswith("<") and self._in_order(short, position)[0] == node:
                return short
        return in_full(node)

    def expand(self, text: str, position: Position = "entity") -> Node:
        """Return the node that an id stands for.

        Raises:
            InvalidRequest: The text is no id, or the graphs read it as different nodes.
        """
        found = self.readings(text, position)
        if len(found) > 1:
            raise read_differently(text, found)
        return super().expand(text, position)

    def readings(self, text: str, position: Position = "entity") -> list[Node]:
        """Return what an id may stand for: terms that are known first, then in the order of the graphs."""
        return sorted(self._in_order(text, position), key=lambda node: self.owner(node, position) is None)

    def _in_order(self, text: str, position: Position) -> list[Node]:
        found: dict[Node, None] = {}
        if text.strip().startswith(("<", "_:")):
            node = super()._read(text, position)
            return [] if node is None else [node]
        for part in self.parts:
            try:
                found[part.expand(text, position)] = None
            except InvalidRequest:
                continue
        if len(found) > 1:
            # What is a short form in one graph has the look of an IRI where its prefix is not known.
            found.pop(Iri(text.strip()), None)
        return list(found)

    def _read(self, text: str, position: Position) -> Node | None:
        return next(iter(self.readings(text, position)), None)


def in_full(node: Node) -> str:
    """Return the id of a node that is the same in every graph: an IRI, or the label of a blank node."""
    return shown(str(node)) if isinstance(node, BlankNode) else f"<{shown(node.value)}>"


def read_differently(text: str, nodes: Sequence[Node]) -> InvalidRequest:
    """Return the error for an id that graphs read as different nodes."""
    meant = " or ".join(map(in_full, nodes))
    return InvalidRequest(f"The graphs read {in_quotes(text)} differently. Give the full IRI that is meant: {meant}.")


def _is_clear(text: str) -> bool:
    """Say whether a bare id cannot pass for a label with its id, a literal, or a relation that is walked backwards."""
    return is_plain(text) and (text.isalnum() or (" (" not in text and text[0] not in '"-'))


def is_prefix(text: str) -> bool:
    """Say whether `text` can serve as a prefix in Turtle and SPARQL."""
    return _PREFIX.fullmatch(text) is not None


WELL_KNOWN: Final[Mapping[str, str]] = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "skosxl": "http://www.w3.org/2008/05/skos-xl#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "schema": "http://schema.org/",
    "dbr": "http://dbpedia.org/resource/",
    "dbo": "http://dbpedia.org/ontology/",
    "dbp": "http://dbpedia.org/property/",
    "geo": "http://www.opengis.net/ont/geosparql#",
    "fb": "http://rdf.freebase.com/ns/",
}
USUAL: Final = frozenset({"owl", "rdf", "rdfs", "skos", "xsd"})
"""Prefixes that readers know without being told, so that a graph cannot give them another meaning."""
WIKIDATA: Final = Prefixes(
    namespaces={
        "wd": "http://www.wikidata.org/entity/",
        "wdt": "http://www.wikidata.org/prop/direct/",
        "p": "http://www.wikidata.org/prop/",
        "ps": "http://www.wikidata.org/prop/statement/",
        "pq": "http://www.wikidata.org/prop/qualifier/",
        "rdfs": WELL_KNOWN["rdfs"],
        "skos": WELL_KNOWN["skos"],
        "schema": WELL_KNOWN["schema"],
        "wikibase": "http://wikiba.se/ontology#",
    },
    entities=BareIds("http://www.wikidata.org/entity/", r"[QL][1-9][0-9]*"),
    relations=BareIds("http://www.wikidata.org/prop/direct/", r"P[1-9][0-9]*"),
)
_MOST_MADE: Final = 20
_FEWEST_IRIS: Final = 2
_NAMELESS: Final = "ns"
_STRANGE: Final = re.compile(r"[^a-z0-9_-]+")
_WORD: Final = re.compile(r"[a-z][a-z0-9_-]{0,23}")
# Parts of many namespaces, which tell none of them from the others.
_TELLS_NOTHING: Final = SCHEMES | {"www", "ns", "id", "resource", "co", "com", "org", "index"}


def prefixes_in_use(iris: Sequence[str], declared: Mapping[str, str]) -> Prefixes:
    """Return the short forms of a graph's IRIs: only namespaces that occur, and Wikidata's bare ids where its do.

    Args:
        iris: The IRIs of the graph, sorted by code point.
        declared: From prefix to namespace, as the graph came with them.
    """
    bare_ids = [ids for ids in (WIKIDATA.entities, WIKIDATA.relations) if ids is not None]
    wikidata = any(_occurs(iris, ids.namespace) for ids in bare_ids)
    offers = [WIKIDATA.namespaces, declared, WELL_KNOWN] if wikidata else [declared, WELL_KNOWN]
    namespaces: dict[str, str] = {}
    for prefix, namespace in chain.from_iterable(offer.items() for offer in offers):
        taken = prefix in namespaces or namespace in namespaces.values()
        usable = is_prefix(prefix) and prefix not in SCHEMES and namespace != ""
        lies = prefix in USUAL and namespace != WELL_KNOWN[prefix]
        if usable and not lies and not taken and _occurs(iris, namespace):
            namespaces[prefix] = namespace
    namespaces |= _made(iris, namespaces)
    return Prefixes(namespaces, WIKIDATA.entities, WIKIDATA.relations) if wikidata else Prefixes(namespaces)


def _occurs(iris: Sequence[str], namespace: str) -> bool:
    place = bisect_left(iris, namespace)
    return place < len(iris) and iris[place].startswith(namespace)


def _made(iris: Sequence[str], known: Mapping[str, str]) -> Mapping[str, str]:
    """Return prefixes for the namespaces with the most IRIs that no known one covers, each called by its own parts.

    Those of one name are numbered in the order of their IRIs.
    """
    counts = Counter(namespace for iri in iris if (namespace := _namespace(iri)))
    covered = tuple(known.values())
    free = [
        namespace
        for namespace, number in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if number >= _FEWEST_IRIS and not namespace.startswith(covered)
    ]
    made: dict[str, str] = {}
    for namespace in sorted(free[:_MOST_MADE]):
        name = _name(namespace)
        # A well-known prefix stays what it is known for, over http or https.
        plain = name != _NAMELESS and WELL_KNOWN.get(name, namespace).split(":")[1] == namespace.split(":")[1]
        spellings = (name if number == 1 and plain else f"{name}{number}" for number in count(1))
        made[next(each for each in spellings if each not in known and each not in made)] = namespace
    return made


def _name(namespace: str) -> str:
    """Return the last part of a namespace that is a word, or the name of its host; `ns` where there is neither."""
    scheme, _, rest = namespace.rstrip("#/:").partition(":")
    host, *path = rest.removeprefix("//").split("/") if rest.startswith("//") else ("", *re.split("[:/]", rest))
    domains = host.partition(":")[0].split(".")
    named = domains[:-1] or domains
    for part in (*reversed(path), *reversed(named), scheme):
        word = _STRANGE.sub("_", unquote(part).lower()).strip("_-")
        if _WORD.fullmatch(word) is not None and word not in _TELLS_NOTHING:
            return word
    return _NAMELESS


def _namespace(iri: str) -> str | None:
    end = max(iri.rfind("#"), iri.rfind("/")) + 1 or iri.rfind(":") + 1
    return iri[:end] if end < len(iri) and not iri[:end].endswith("//") else None
