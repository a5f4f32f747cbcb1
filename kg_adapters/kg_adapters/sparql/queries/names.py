"""Queries for the bearers of names; rows `?s` entity, `?a` relation, `?l` name."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kg_adapters.errors import Unsupported
from kg_adapters.labels import Vocabulary
from kg_adapters.sparql.dialects import Dialect
from kg_adapters.sparql.options import TextSearch
from kg_adapters.sparql.queries import writing
from kg_adapters.terms import RDF_LANG_STRING, XSD_STRING, Iri, Literal, Node
from kg_boundary.shown import in_quotes

MAX_NAME: Final = 300
"""The longest text, in characters, that is looked for as a whole name."""
_MAX_WORDS: Final = 8
_MAX_WORD: Final = 60
_LONG, _SHORT = 6, 4
_WORD: Final = re.compile(r"\w+")
_BLANK: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
# Wildcards need a few letters before them.
_WILD_FROM: Final = 4
_JENA_TEXT: Final = Iri("http://jena.apache.org/text#query")
_GRAPHDB: Final = "http://www.ontotext.com/connectors/lucene#"
GRAPHDB_INDEX: Final = Iri("http://www.ontotext.com/connectors/lucene/instance#labels")
_BLAZEGRAPH: Final = "http://www.bigdata.com/rdf/search#"
_QLEVER: Final = "http://qlever.cs.uni-freiburg.de/builtin-functions/"
# What serves as a relation and takes part in no edge is no entity.
_IS_ENTITY: Final = (
    "FILTER(!EXISTS { ?s1 ?s ?o1 } || EXISTS { ?s ?p2 ?o2 FILTER(!isLiteral(?o2)) } || EXISTS { ?s3 ?p3 ?s })"
)


def cleaned(text: str) -> str:
    """Return a text with single blanks in place of blanks and control characters."""
    return _BLANK.sub(" ", text).strip()


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

        One slip of the pen leaves one half of a word as it was, so halves of words are what names must share. The names
        that share most come first, then those of about the same length.
        """
        pieces = list(dict.fromkeys(piece for word in _words(text) for piece in _halves(word)))
        if not pieces:
            return None
        named = f"SELECT ?s ?a ?l {{ {self._names()} {self._instances(kind)} }} LIMIT {scanned}"
        shares = [f"CONTAINS(LCASE(STR(?l)), {writing.text(piece)})" for piece in pieces]
        shared = " + ".join(f"IF({share}, 1, 0)" for share in shares)
        order = f"ORDER BY DESC({shared}) ABS(STRLEN(STR(?l)) - {len(cleaned(text))}) STR(?s)"
        found = f"SELECT ?s ?a ?l {{ {{ {named} }} FILTER({' || '.join(shares)}) }} {order} LIMIT {limit}"
        return f"SELECT ?s ?a ?l {{ {{ {found} }} {_IS_ENTITY} }}"

    def indexed(self, text: str, kind: Node | None, index: TextSearch, limit: int) -> str | None:
        """Return the query for names that a full-text index finds; None where there is no word to look for.

        Raises:
            Unsupported: The engine is not known to have such an index.
        """
        words = _words(text)
        if not words:
            return None
        parts = [self._match(words, index, limit), self._names()]
        if index == "virtuoso":
            # Its compiler wants what is matched to be bound in front of the match.
            parts.reverse()
        return self._entities(f"{' '.join(parts)} {self._instances(kind)}", limit)

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

    def _match(self, words: Sequence[str], index: TextSearch, limit: int) -> str:
        if index == "virtuoso":
            wanted = " AND ".join(f"'{_wild(word)}'" for word in words)
            return f"?l <bif:contains> {writing.text(wanted)} ."
        if index == "blazegraph":
            search = f"?l <{_BLAZEGRAPH}search> {writing.text(' '.join(map(_wild, words)))} ."
            return f'{search} ?l <{_BLAZEGRAPH}matchAllTerms> "true" . ?l <{_BLAZEGRAPH}maxRecords> "{limit}" .'
        if index == "qlever":
            wanted = writing.text(" ".join(map(_wild, words)))
            return f"?m <{_QLEVER}contains-word> {wanted} . ?m <{_QLEVER}contains-entity> ?l ."
        if index == "lucene" and self.dialect.name == "fuseki":
            wanted = " AND ".join(map(_wild, words))
            return f"?s {writing.iri(_JENA_TEXT)} ({writing.text(wanted)} {limit}) ."
        if index == "lucene":
            wanted = writing.text(" AND ".join(map(_wild, words)))
            return f"?m a {writing.iri(GRAPHDB_INDEX)} ; <{_GRAPHDB}query> {wanted} ; <{_GRAPHDB}entities> ?s ."
        raise Unsupported(f"There is no full-text index called {in_quotes(index)}.")


def _words(text: str) -> list[str]:
    """Return the longest words of a text, in lower case; only letters and digits, in which no index reads syntax."""
    found = dict.fromkeys(
        word for word in _WORD.findall(cleaned(text[: 4 * MAX_NAME]).lower()) if len(word) <= _MAX_WORD
    )
    return sorted(found, key=len, reverse=True)[:_MAX_WORDS]


def _halves(word: str) -> tuple[str, ...]:
    if len(word) >= _LONG:
        return word[: len(word) // 2], word[len(word) // 2 :]
    return (word[:3], word[-3:]) if len(word) >= _SHORT else (word,)


def _wild(word: str) -> str:
    return f"{word}*" if len(word) >= _WILD_FROM else word
