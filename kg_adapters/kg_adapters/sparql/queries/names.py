"""Queries for the bearers of names; rows `?s` entity, `?a` relation, `?l` name."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Final

from kg_adapters.appellations import VOCABULARIES
from kg_adapters.errors import Unsupported
from kg_adapters.folding import fold
from kg_adapters.http.options import TextSearch
from kg_adapters.labels import Vocabulary
from kg_adapters.sparql.dialects import Dialect
from kg_adapters.sparql.queries import writing
from kg_adapters.terms import RDF_LANG_STRING, XSD, XSD_STRING, Iri, Literal, Node
from kg_boundary.shown import in_quotes

WILD_FROM: Final = 4
"""How many letters a wildcard needs before it."""
_MAX_WORDS: Final = 8
_MAX_WORD: Final = 60
_MAX_PIECES: Final = 16
_PIECE, _SHORT_PIECE, _SHORT_WORD, _SLIPPED_WORD = 3, 2, 7, 7
_FEW_WORDS: Final = 4
_MAX_ALIKE: Final = 120
_WORD: Final = re.compile(r"\w+")
_BLANK: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
# The letters of the Latin, Greek and Cyrillic scripts that may bear accents.
_ACCENTED: Final = (range(0xC0, 0x250), range(0x370, 0x530), range(0x1E00, 0x2000))
_SIGNS: Final = re.compile(r"[^\w\s]")


def cleaned(text: str) -> str:
    """Return a text with single blanks in place of blanks and control characters."""
    return _BLANK.sub(" ", text).strip()


def words(text: str) -> list[str]:
    """Return the longest words of a text, in lower case; only letters and digits, in which no index reads syntax."""
    found = dict.fromkeys(word for word in _WORD.findall(cleaned(text).lower()) if len(word) <= _MAX_WORD)
    return sorted(found, key=len, reverse=True)[:_MAX_WORDS]


def pieces(text: str) -> list[str]:
    """Return some short parts of the words of a text, spread evenly: most of them survive a slip of the pen.

    Words of up to seven letters also give both their ends, since a slip in the middle leaves no longer part of them.
    """
    found = list(dict.fromkeys(piece for word in words(text) for piece in _pieces(word)))
    step = max(1.0, len(found) / _MAX_PIECES)
    return [found[int(place * step)] for place in range(min(len(found), _MAX_PIECES))]


def intact(wanted: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield some of the words each, so that one choice is without any single word that may be misspelled.

    Of a few words all but one; of many the one half or the other.
    """
    if len(wanted) > _FEW_WORDS:
        yield from (wanted[::2], wanted[1::2])
    elif len(wanted) > 1:
        yield from combinations(wanted, len(wanted) - 1)


def beginning(word: str) -> str | None:
    """Return the first half of a word that is long enough to be looked for by it."""
    half = max(WILD_FROM, len(word) // 2)
    return word[:half] if len(word) > half else None


def spelled_alike(text: str) -> str:
    """Return the regular expression for texts in lower case that are this one but for accents and kinds of signs."""
    return f"^{''.join(map(_alike, fold(text)[:_MAX_ALIKE]))}$"


def one_slip(text: str) -> str | None:
    """Return the regular expression for texts in lower case that hold a short word with one slip of the pen.

    So few parts of it may be left that other names share more. None for what is no single word, or a long one.
    """
    found = words(text)
    if len(found) != 1 or not _SHORT_PIECE < len(found[0]) <= _SLIPPED_WORD:
        return None
    word = found[0]
    wrong = (f"{word[:place]}.{{0,2}}{word[place + 1 :]}" for place in range(1, len(word)))
    swapped = (word[:place] + word[place + 1] + word[place] + word[place + 2 :] for place in range(len(word) - 1))
    return f"(^|[^a-z])({'|'.join((*wrong, *swapped))})([^a-z]|$)"


def _pieces(word: str) -> Iterator[str]:
    if len(word) <= _SHORT_PIECE:
        yield word
    elif len(word) <= _SHORT_WORD:
        yield from (word[:_SHORT_PIECE], word[-_SHORT_PIECE:])
    for start in range(len(word) - _PIECE + 1):
        yield word[start : start + _PIECE]


def _alike(letter: str) -> str:
    if letter == " ":
        return " +"
    if _SIGNS.match(letter):
        # People type other quotes and dashes than those in print.
        return "."
    accented = _accented().get(letter, "")
    return f"[{letter}{accented}]" if accented else letter


@cache
def _accented() -> Mapping[str, str]:
    """Return the accented letters, in lower case, by the letter that they are without."""
    found: defaultdict[str, str] = defaultdict(str)
    for code in (code for letters in _ACCENTED for code in letters):
        letter = chr(code)
        bare = fold(letter)
        if letter == letter.lower() and len(bare) == 1 and bare != letter and unicodedata.category(letter) == "Ll":
            found[bare] += letter
    return found


def spellings_of(name: str) -> Sequence[str]:
    """Return a text as it may be written in capitals and small letters."""
    written = (name, name.lower(), name.capitalize(), name[0].upper() + name[1:], name.title(), name.upper())
    return list(dict.fromkeys(written))


MAX_NAME: Final = 300
"""The longest text, in characters, that is looked for as a whole name."""
_MATCHED: Final = 2_000
"""How many names that hold the same words are compared with a text."""
_JENA_TEXT: Final = Iri("http://jena.apache.org/text#query")
_GRAPHDB: Final = "http://www.ontotext.com/connectors/lucene#"
_BLAZEGRAPH: Final = "http://www.bigdata.com/rdf/search#"
_QLEVER: Final = "http://qlever.cs.uni-freiburg.de/builtin-functions/"
_SCORE: Final = "?w"
_PLAIN: Final = re.compile(r"[a-z0-9]+\*?")
_LANGUAGES: Final = ("de", "en", "es", "fr", "it", "la", "nl", "pt", "sv")
"""Languages in which values are looked up beside those of a graph's names."""
_TYPED: Final[Sequence[tuple[re.Pattern[str], Sequence[str]]]] = (
    (re.compile(r"[0-9]{4}", re.ASCII), ("integer", "int", "decimal", "gYear")),
    (re.compile(r"-?[0-9]{1,18}", re.ASCII), ("integer", "int", "long", "decimal")),
    (re.compile(r"-?[0-9]{1,18}[.][0-9]{1,18}", re.ASCII), ("decimal", "double", "float")),
    (re.compile(r"-?[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII), ("date",)),
    (re.compile(r"-?[0-9]{4}-[0-9]{2}-[0-9]{2}T\S{8,20}", re.ASCII), ("dateTime",)),
    (re.compile(r"[a-z]{2,10}:\S+"), ("anyURI",)),
)
"""The datatypes of XML Schema in which texts of some forms are looked up."""
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
        spellings = spellings_of(name)
        literals = [each for spelling in spellings for each in self._literals(spelling)]
        # Some engines still distinguish the two.
        typed = " ".join(f"{writing.text(spelling)}^^{writing.iri(XSD_STRING)}" for spelling in spellings)
        values = writing.values("l", literals, self.dialect).removesuffix("}") + f"{typed} }}"
        return self._entities(f"{values} {self._borne()} {self._instances(kind)}", limit)

    def of(self, bearers: Sequence[Node], limit: int) -> str:
        """Return the query for all names of some terms."""
        return (
            f"SELECT DISTINCT ?s ?a ?l {{ {writing.values('s', bearers, self.dialect)} {self._borne()} }} LIMIT {limit}"
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
            f"{{ SELECT ?s ?a ?l (LCASE(STR(?l)) AS ?t) {{ {self._matching(each, index, kind)} }} "
            f"{self._by_score(each, index)} LIMIT {_MATCHED} }}"
            for each in _ways(wanted, index)
        )
        return self._closest(found, text, pieces(text[: 4 * MAX_NAME]), limit)

    def valued(self, texts: Sequence[str], limit: int) -> str | None:
        """Return the query for the entities `?s` that have one of some texts as a value `?l` over a relation `?a`.

        The text of a node that is a name (`appellations`) counts as a value of what it names.
        It is looked up in some spellings, languages and datatypes; None where no value is like any of the texts.
        """
        names = [name for text in texts if (name := cleaned(text)) and len(name) <= MAX_NAME]
        if not names:
            return None
        languages = dict.fromkeys((*self.vocabulary.languages, *_LANGUAGES))
        values = dict.fromkeys(each for name in names for each in _values_of(name, languages))
        left_out = ", ".join(map(writing.iri, sorted(self.vocabulary.texts)))
        pairs = "".join(
            f"({writing.iri(Iri(relation))} {writing.iri(Iri(each.form))})"
            for each in VOCABULARIES
            for relation in each.relations
        )
        borne = f"{{ ?s ?a ?l . FILTER(?a NOT IN ({left_out})) }}"
        called = f"{{ VALUES (?a ?form) {{ {pairs} }} ?name ?form ?l . ?s ?a ?name . }}"
        found = f"{writing.values('l', values, self.dialect)} {borne} UNION {called}"
        return f"SELECT DISTINCT ?s ?a ?l {{ {found} }} LIMIT {limit}"

    def some(self, limit: int) -> str:
        """Return the query for some names, as they come."""
        return f"SELECT ?s ?a ?l {{ {self._names()} }} LIMIT {limit}"

    def holding(self, word: str, index: TextSearch) -> str:
        """Return the query for one name that a full-text index finds by a word of `words`.

        Raises:
            Unsupported: The engine is not known to have such an index.
        """
        found, order = self._matching([word], index, None), self._by_score([word], index)
        return f"SELECT ?s ?a ?l {{ {found} }} {order} LIMIT 1"

    def connectors(self) -> str:
        """Return the query for the Lucene connectors `?c` of GraphDB, each with its settings `?d`."""
        return f"SELECT ?c ?d {{ ?c <{_GRAPHDB}listConnectors> ?d }}"

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
        elif index == "lucene" and self.dialect.name == "fuseki":
            # Where the index stores values, it says which name of many it matched.
            parts.append("FILTER(!BOUND(?m) || STR(?l) = STR(?m))")
        return f"{' '.join(parts)} {self._instances(kind)}"

    def _entities(self, found: str, limit: int) -> str:
        return f"SELECT ?s ?a ?l {{ {{ SELECT DISTINCT ?s ?a ?l {{ {found} }} LIMIT {limit} }} {_IS_ENTITY} }}"

    def _names(self) -> str:
        """Return the pattern for all names."""
        return f"{self._relations()} ?s ?a ?l ."

    def _borne(self) -> str:
        """Return the pattern for names behind what binds them or their bearers, as in `TextChoice.pattern`."""
        return f"?s ?a ?l . {self._relations()}"

    def _relations(self) -> str:
        return writing.values("a", (*self.vocabulary.labels, *self.vocabulary.aliases), self.dialect)

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
            return f"?l <bif:contains> {writing.text(phrase)} OPTION (SCORE {_SCORE}) ."
        if index == "blazegraph":
            search = f'?l <{_BLAZEGRAPH}search> {writing.text(" ".join(wanted))} ; <{_BLAZEGRAPH}matchAllTerms> "true"'
            return f'{search} ; <{_BLAZEGRAPH}relevance> {_SCORE} ; <{_BLAZEGRAPH}maxRecords> "{_MATCHED}" .'
        if index == "qlever":
            phrase = writing.text(" ".join(wanted))
            return f"?m <{_QLEVER}contains-word> {phrase} . ?m <{_QLEVER}contains-entity> ?l ."
        if index == "lucene" and self.dialect.name == "fuseki":
            phrase = " AND ".join(wanted)
            return f"(?s {_SCORE} ?m) {writing.iri(_JENA_TEXT)} ({writing.text(phrase)} {_MATCHED}) ."
        if index == "lucene":
            phrase = writing.text(" AND ".join(wanted))
            found = f"?m a {writing.iri(self.dialect.connector)} ; <{_GRAPHDB}query> {phrase}"
            return f"{found} ; <{_GRAPHDB}entities> ?s . ?s <{_GRAPHDB}score> {_SCORE} ."
        raise Unsupported(f"There is no full-text index called {in_quotes(index)}.")

    def _by_score(self, wanted: Sequence[str], index: TextSearch) -> str:
        """Return the order in which the names that match best come first, before any are cut off."""
        if index != "qlever":
            return f"ORDER BY DESC({_SCORE})"
        # It names the scores itself, and escapes all letters but these.
        plain = (word for word in wanted if _PLAIN.fullmatch(word))
        scores = (
            f"?ql_score_prefix_m_{word[:-1]}" if word[-1] == "*" else f"?ql_score_word_m_{word}" for word in plain
        )
        total = " + ".join(scores)
        return f"ORDER BY DESC({total})" if total else ""


def _values_of(name: str, languages: Iterable[str]) -> Iterator[Literal]:
    """Yield the values that people may mean by a text."""
    yield from map(Literal, spellings_of(name))
    for language in languages:
        for spelling in dict.fromkeys((name, name[0].upper() + name[1:], name.title())):
            yield Literal(spelling, RDF_LANG_STRING, language)
    kinds = next((kinds for form, kinds in _TYPED if form.fullmatch(name) is not None), ())
    for kind in kinds:
        yield Literal(name, Iri(XSD + kind))


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
