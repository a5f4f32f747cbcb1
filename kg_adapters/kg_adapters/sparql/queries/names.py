"""Queries for the bearers of names; rows `?s` entity, `?a` relation, `?l` name."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kg_adapters.errors import Unsupported
from kg_adapters.labels import Vocabulary
from kg_adapters.sparql.dialects import Dialect
from kg_adapters.sparql.options import TextSearch
from kg_adapters.sparql.queries import writing
from kg_adapters.sparql.queries.spelling import (
    WILD_FROM,
    beginning,
    cleaned,
    intact,
    one_slip,
    pieces,
    spelled_alike,
    words,
)
from kg_adapters.terms import RDF_LANG_STRING, XSD_STRING, Iri, Literal, Node
from kg_boundary.shown import in_quotes

MAX_NAME: Final = 300
"""The longest text, in characters, that is looked for as a whole name."""
_MATCHED: Final = 2_000
"""How many names that hold the same words are compared with a text."""
_JENA_TEXT: Final = Iri("http://jena.apache.org/text#query")
_GRAPHDB: Final = "http://www.ontotext.com/connectors/lucene#"
GRAPHDB_INDEX: Final = Iri("http://www.ontotext.com/connectors/lucene/instance#labels")
_BLAZEGRAPH: Final = "http://www.bigdata.com/rdf/search#"
_QLEVER: Final = "http://qlever.cs.uni-freiburg.de/builtin-functions/"
# What serves as a relation and takes part in no edge is no entity.
_IS_ENTITY: Final = (
    "FILTER(!EXISTS { ?s1 ?s ?o1 } || EXISTS { ?s ?p2 ?o2 FILTER(!isLiteral(?o2)) } || EXISTS { ?s3 ?p3 ?s })"
)


@dataclass(frozen=True, slots=True)
class NameQueries:
    """Writes queries for names.

    Args:
        dialect: The engine.
        vocabulary: The relations to names, and the languages they are in.
    """

    dialect: Dialect
    vocabulary: Vocabulary

    def exact(self, text: str, kind: Node | None, limit: int) -> str | None:
        """Return the query for those who bear exactly this name, in some spellings; None where no name is like it."""
        name = cleaned(text)
        if not name or len(name) > MAX_NAME:
            return None
        spellings = dict.fromkeys(
            (name, name.lower(), name.capitalize(), name[0].upper() + name[1:], name.title(), name.upper())
        )
        literals = [each for spelling in spellings for each in self._literals(spelling)]
        # Engines that tell the two apart still exist.
        typed = " ".join(f"{writing.text(spelling)}^^{writing.iri(XSD_STRING)}" for spelling in spellings)
        values = writing.values("l", literals, self.dialect).removesuffix("}") + f"{typed} }}"
        return self._entities(f"{values} {self._names()} {self._instances(kind)}", limit)

    def of(self, bearers: Sequence[Node], limit: int) -> str:
        """Return the query for all names of some terms."""
        return (
            f"SELECT DISTINCT ?s ?a ?l {{ {writing.values('s', bearers, self.dialect)} {self._names()} }} LIMIT {limit}"
        )

    def scan(self, text: str, kind: Node | None, *, scanned: int, limit: int) -> str | None:
        """Return the query for names that share letters with a text, among the first `scanned` names.

        The same name but for accents comes first, then those that share most of its parts, then those of about its
        length: one slip of the pen leaves most parts of a name as they were.
        """
        shared = pieces(text[: 4 * MAX_NAME])
        if not shared:
            return None
        named = f"SELECT ?s ?a ?l (LCASE(STR(?l)) AS ?t) {{ {self._names()} {self._instances(kind)} }} LIMIT {scanned}"
        return self._closest(f"{{ {named} }}", text, shared, limit)

    def indexed(self, text: str, kind: Node | None, index: TextSearch, limit: int) -> str | None:
        """Return the query for names that a full-text index finds; None where there is no word to look for.

        Names with all words are looked for, and those with all but one, which may be misspelled. They come in the order
        of `scan`.

        Raises:
            Unsupported: The engine is not known to have such an index.
        """
        wanted = words(text[: 4 * MAX_NAME])
        if not wanted:
            return None
        found = writing.union(
            f"{{ SELECT ?s ?a ?l (LCASE(STR(?l)) AS ?t) {{ {self._matching(each, index, kind)} }} LIMIT {_MATCHED} }}"
            for each in _ways(wanted, index)
        )
        return self._closest(found, text, pieces(text[: 4 * MAX_NAME]), limit)

    def _closest(self, found: str, text: str, shared: Sequence[str], limit: int) -> str:
        """Return the query for the names `?t` that are most like a text among those found."""
        number = " + ".join(f"IF(CONTAINS(?t, {writing.text(piece)}), 1, 0)" for piece in shared)
        same = f"REGEX(?t, {writing.text(spelled_alike(text))})"
        slip = one_slip(text)
        alike = f"DESC({same})" if slip is None else f"DESC({same}) DESC(REGEX(?t, {writing.text(slip)}))"
        order = f"ORDER BY {alike} DESC(?n) ABS(STRLEN(?t) - {len(cleaned(text))}) STR(?s)"
        chosen = f"SELECT DISTINCT ?s ?a ?l ?t ?n {{ {found} BIND({number} AS ?n) FILTER(?n > 0) }}"
        return f"SELECT ?s ?a ?l {{ {{ SELECT ?s ?a ?l {{ {{ {chosen} }} }} {order} LIMIT {limit} }} {_IS_ENTITY} }}"

    def _matching(self, wanted: Sequence[str], index: TextSearch, kind: Node | None) -> str:
        parts = [self._match(wanted, index), self._names()]
        if index == "virtuoso":
            # Its compiler wants what is matched to be bound in front of the match.
            parts.reverse()
        return f"{' '.join(parts)} {self._instances(kind)}"

    def _entities(self, found: str, limit: int) -> str:
        return f"SELECT ?s ?a ?l {{ {{ SELECT DISTINCT ?s ?a ?l {{ {found} }} LIMIT {limit} }} {_IS_ENTITY} }}"

    def _names(self) -> str:
        relations = (*self.vocabulary.labels, *self.vocabulary.aliases)
        return f"{writing.values('a', relations, self.dialect)} ?s ?a ?l ."

    def _instances(self, kind: Node | None) -> str:
        if kind is None:
            return ""
        return f"{writing.values('k', self.vocabulary.types, self.dialect)} ?s ?k {writing.node(kind, self.dialect)} ."

    def _literals(self, spelling: str) -> Iterator[Literal]:
        yield Literal(spelling)
        for language in self.vocabulary.languages:
            yield Literal(spelling, RDF_LANG_STRING, language)

    def _match(self, wanted: Sequence[str], index: TextSearch) -> str:
        if index == "virtuoso":
            phrase = " AND ".join(f"'{word}'" for word in wanted)
            return f"?l <bif:contains> {writing.text(phrase)} ."
        if index == "blazegraph":
            search = f"?l <{_BLAZEGRAPH}search> {writing.text(' '.join(wanted))} ."
            return f'{search} ?l <{_BLAZEGRAPH}matchAllTerms> "true" . ?l <{_BLAZEGRAPH}maxRecords> "{_MATCHED}" .'
        if index == "qlever":
            phrase = writing.text(" ".join(wanted))
            return f"?m <{_QLEVER}contains-word> {phrase} . ?m <{_QLEVER}contains-entity> ?l ."
        if index == "lucene" and self.dialect.name == "fuseki":
            phrase = " AND ".join(wanted)
            return f"?s {writing.iri(_JENA_TEXT)} ({writing.text(phrase)} {_MATCHED}) ."
        if index == "lucene":
            phrase = writing.text(" AND ".join(wanted))
            return f"?m a {writing.iri(GRAPHDB_INDEX)} ; <{_GRAPHDB}query> {phrase} ; <{_GRAPHDB}entities> ?s ."
        raise Unsupported(f"There is no full-text index called {in_quotes(index)}.")


def _ways(wanted: Sequence[str], index: TextSearch) -> Iterator[Sequence[str]]:
    """Yield the words, as an index reads them, that a name must hold for each way in which it may be meant."""
    if index == "lucene":
        # It knows slips of the pen by itself.
        yield [f"({word}* OR {word}~1)" if len(word) >= WILD_FROM else word for word in wanted]
        return
    yield [_wild(word) for word in wanted]
    for kept in intact(wanted):
        yield [_wild(word) for word in kept]
    if len(wanted) == 1 and (begun := beginning(wanted[0])) is not None:
        yield [f"{begun}*"]


def _wild(word: str) -> str:
    return f"{word}*" if len(word) >= WILD_FROM else word
