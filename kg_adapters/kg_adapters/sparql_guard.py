"""What a SPARQL query is allowed to do: read this graph, and nothing else.

The query is parsed and its parse tree walked. A second, independent look closes the gap between this parser and the
engine's: with the word SERVICE replaced everywhere the query must still make sense to the engine, which it cannot where
the word was the keyword.

Importing this module takes a fifth of a second (rdflib): do it where queries are checked, not where a server starts.
"""

import re

# rdflib's parse results and pyparsing's keyword arguments are untyped; nothing untyped leaves this file.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from types import MappingProxyType
from typing import Final, TypeAlias
from typing import Literal as Choice
from urllib.parse import urljoin

import pyoxigraph
from pyparsing import ParseBaseException, ParseResults, one_of, rest_of_line
from rdflib import URIRef
from rdflib.plugins.sparql.parser import Prologue, parseQuery
from rdflib.plugins.sparql.parserutils import CompValue

from kg_adapters.errors import InvalidRequest
from kg_adapters.prefixes import is_prefix
from kg_adapters.terms import Iri
from kg_boundary.shown import in_quotes, visible_line

_PLACE: Final = re.compile(r"error at (\d+):(\d+): expected (?:one of )?")
_TOKEN: Final = re.compile(r'"((?:[^"\\]|\\.)+)"|\b([A-Z]{2,})\b')
_CHARACTERS: Final = re.compile(r"\[[^\]]*\]")
_NOTES: Final[Mapping[str, str]] = {
    "Prefix not found": "a prefix is not declared: add PREFIX name: <http://…>",
    "IRI parsing failed": "an IRI is not absolute or holds a character that IRIs cannot: write <http://…>",
}
_GROUPED: Final = "with GROUP BY or an aggregate, SELECT may name only grouped variables and aggregates, as in SELECT"
_UNBOUND: Final[Mapping[str, str]] = {
    "contains a variable that is unbound": f"{_GROUPED} ?x (COUNT(?y) AS ?n) … GROUP BY ?x",
    "contains an expression with a variable that": f"{_GROUPED} ?m (COUNT(?y) AS ?n) … GROUP BY (MONTH(?date) AS ?m)",
}
_MAX_EXPECTED: Final = 8
_MAX_SHOWN: Final = 120


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """What is wrong with a text, and where, counted from 0; None where it is the text as a whole."""

    at: int | None
    what: str

    def describe(self, text: str) -> str:
        """Return what is wrong, with line and column and the line with a caret under the place."""
        if self.at is None:
            return f": {self.what}."
        start = text.rfind("\n", 0, self.at) + 1
        end = text.find("\n", self.at)
        line = text[start : len(text) if end < 0 else end].replace("\t", " ")
        column = self.at - start
        cut = max(0, column - _MAX_SHOWN // 2)
        number = text.count("\n", 0, start) + 1
        before, behind = visible_line(line[cut:column]), visible_line(line[column : cut + _MAX_SHOWN])
        return f" at line {number}, column {column + 1}: {self.what}\n{before}{behind}\n{' ' * len(before)}^"


def engine_problem(text: str, namespaces: Mapping[str, str]) -> SyntaxProblem | None:
    """Return why Oxigraph cannot read a query, or None where it can.

    The query is run on an empty graph to learn that, so the text must hold no SERVICE keyword, and the caller must be
    a process that may be killed.
    """
    try:
        pyoxigraph.Store().query(text, prefixes=dict(namespaces))
    except SyntaxError as error:
        return read_engine_error(text, str(error))
    return None


def read_engine_error(text: str, message: str) -> SyntaxProblem:
    """Translate Oxigraph's message about a query that it cannot read."""
    place = _PLACE.match(message)
    if place is None:
        return SyntaxProblem(None, message.partition("\n")[0][:_MAX_SHOWN])
    expected = message[place.end() :]
    at = _offset(text, int(place[1]), int(place[2]))
    ungrouped = next((note for sign, note in _UNBOUND.items() if sign in expected), None)
    if ungrouped is not None:
        return SyntaxProblem(None, ungrouped)
    note = next((note for sign, note in _NOTES.items() if sign in expected), None)
    if note is not None:
        return SyntaxProblem(at, note)
    symbols, keywords = _tokens(expected)
    if keywords and not symbols:
        # Oxigraph reports the end of the longest keyword that it tried; people look for the start.
        at = max(0, at - max(map(len, keywords)))
    return SyntaxProblem(at, _expected(text, at, symbols, keywords))


def _offset(text: str, line: int, column: int) -> int:
    lines = text.split("\n")
    return min(len(text), sum(len(earlier) + 1 for earlier in lines[: line - 1]) + column - 1)


def _tokens(expected: str) -> tuple[list[str], list[str]]:
    symbols: list[str] = []
    keywords: list[str] = []
    for symbol, keyword in _TOKEN.findall(_CHARACTERS.sub("", expected)):
        if symbol:
            symbols.append(symbol.replace('\\"', '"'))
        else:
            keywords.append(keyword)
    return symbols, keywords


def _expected(text: str, at: int, symbols: list[str], keywords: list[str]) -> str:
    found = unexpected(text, at).what
    if not symbols:
        return found
    wanted = [*symbols, *keywords]
    more = " …" if len(wanted) > _MAX_EXPECTED else ""
    return f"{found}; expected one of {' '.join(wanted[:_MAX_EXPECTED])}{more}"


def unexpected(text: str, at: int) -> SyntaxProblem:
    """Return the problem that what stands in a place does not belong there."""
    word = re.match(r"\s*([?$]?\w+|\S)", text[at : at + _MAX_SHOWN])
    return SyntaxProblem(at, f"unexpected {'end of the query' if word is None else in_quotes(word[1], 40)}")


_UPDATES: Final = "INSERT DELETE LOAD CLEAR DROP CREATE ADD MOVE COPY WITH"


@dataclass(frozen=True, slots=True)
class IriLeaf:
    """An IRI as it is written, absolute or not."""

    text: str


@dataclass(frozen=True, slots=True)
class Branch:
    """A piece of a query, named by rdflib's grammar (`SelectQuery`, `Filter`, `pname`), and its parts by name."""

    name: str
    parts: tuple[tuple[str, "Tree"], ...]

    def part(self, key: str) -> "Tree":
        """Return one part, an empty text where there is none."""
        return next((part for name, part in self.parts if name == key), "")


Tree: TypeAlias = Branch | IriLeaf | str | tuple["Tree", ...]


class UnreadableQuery(Exception):
    """The text is no SPARQL query; `at` is about where, counted from 0."""

    def __init__(self, at: int) -> None:
        self.at = at
        super().__init__(at)


_TRIPLE: Final = "urn:t:"
# It holds neither quotes, braces, line ends nor words outside of IRIs, so it hides nothing wherever it stands.
_TERM: Final = r"(?:<[^<>\"'{}|^`\\\s]+>|\?\w+)"
_TRIPLE_TERM: Final = re.compile(rf"<<\( *{_TERM} +{_TERM} +{_TERM} *\)>>")


def read_query(text: str) -> tuple[Tree, Branch]:
    """Return the prologue and the query of a SPARQL 1.1 text, with IRIs in place of triple terms of RDF 1.2.

    Raises:
        UnreadableQuery: The text is not a query.
        InvalidRequest: It is too deep or long for the parser.
    """
    try:
        # pyparsing would expand tabs, and its columns with them.
        prologue, query = (_tree(part) for part in parseQuery(_TRIPLE_TERM.sub(_as_iri, text.replace("\t", " "))))
    except ParseBaseException as error:
        raise UnreadableQuery(error.loc) from None
    except RecursionError:
        raise InvalidRequest(
            "The query is nested too deeply or too long to be checked. Split it, or list values with VALUES."
        ) from None
    if not isinstance(query, Branch):
        raise UnreadableQuery(0)
    return prologue, query


def _as_iri(term: re.Match[str]) -> str:
    """Return an IRI as long as a triple term of RDF 1.2, for a parser that does not know them."""
    return f"<{_TRIPLE}{'x' * (len(term[0]) - len(_TRIPLE) - 2)}>"


def starts_an_update(text: str) -> bool:
    """Say whether what follows the prologue is the first word of a SPARQL update."""
    keyword = one_of(_UPDATES, caseless=True, as_keyword=True).ignore("#" + rest_of_line)
    try:
        (Prologue + keyword).parse_string(text)
    except ParseBaseException:
        return False
    return True


def walk(tree: Tree, *, without: frozenset[tuple[str, str]] = frozenset()) -> Iterator[Branch | IriLeaf]:
    """Yield every branch and IRI in the order of the text, leaving out some parts of some branches."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting.extend(reversed(node))
        elif not isinstance(node, str):
            yield node
        if isinstance(node, Branch):
            waiting.extend(part for key, part in reversed(node.parts) if (node.name, key) not in without)


def _tree(value: object) -> Tree:
    if isinstance(value, CompValue):
        return Branch(value.name, tuple((str(key), _tree(part)) for key, part in value.items()))
    if isinstance(value, URIRef):
        return IriLeaf(str(value))
    if value is None or isinstance(value, (str, bool)):
        return str(value or "")
    if isinstance(value, (ParseResults, list)):
        return tuple(_tree(part) for part in value)
    raise InvalidRequest(f"The query holds a {type(value).__name__}, which cannot be checked. Simplify it.")


Form: TypeAlias = Choice["SELECT", "ASK", "CONSTRUCT", "DESCRIBE"]
MAX_QUERY_LENGTH: Final = 20_000
MAX_DEPTH: Final = 40
_FORMS: Final[Mapping[str, Form]] = {
    "SelectQuery": "SELECT",
    "AskQuery": "ASK",
    "ConstructQuery": "CONSTRUCT",
    "DescribeQuery": "DESCRIBE",
}
_READ_ONLY: Final = "This graph is read-only; updates are refused. Ask with SELECT, ASK, CONSTRUCT or DESCRIBE."
_SERVICE: Final = "SERVICE is refused: a query may read this graph only. Remove the SERVICE block."
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_CODE_POINT: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))|\\[uU]")
_NEGATIONS: Final = re.compile(rf"(?:!\s*){{{MAX_DEPTH},}}")
_SERVICE_WORD: Final = re.compile("service", re.IGNORECASE)
_ESCAPED: Final = re.compile(r"\\(.)")
_NOT_IN_PATTERNS: Final = frozenset(
    {("ConstructQuery", "template"), ("DatasetClause", "default"), ("DatasetClause", "named")}
    | {("GraphGraphPattern", "term")}
    | {("Function", "iri"), ("literal", "datatype")}
)
_COLLECTIONS: Final = frozenset(
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#" + name for name in ("first", "rest", "nil")
)
_NO_NAMESPACES: Final[Mapping[str, str]] = MappingProxyType({})
_SHOWN_PREFIXES: Final = 12


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    r"""A query that only reads.

    Args:
        form: What kind of answer it has.
        text: What to run: as it was written, with `\u` escapes replaced and lines ending in a line feed.
        prefixes: The prefixes that the text uses or may use without declaring them.
        named: The IRIs that its patterns name, in order of appearance, without those of graphs.
        uses_graph: Whether it has a GRAPH pattern.
        any_relation: Whether it may read facts over relations that it does not name.
    """

    form: Form
    text: str
    prefixes: tuple[tuple[str, str], ...]
    named: tuple[Iri, ...]
    uses_graph: bool = False
    any_relation: bool = False

    @property
    def self_contained_text(self) -> str:
        """The text with its undeclared prefixes declared, on the first line so that line numbers stay."""
        return "".join(f"PREFIX {prefix}: <{namespace}> " for prefix, namespace in self.prefixes) + self.text


def check_query(
    query: str, *, namespaces: Mapping[str, str] = _NO_NAMESPACES, allowed_graphs: Collection[str] = ()
) -> CheckedQuery:
    """Return a query that is safe to run on this graph.

    Hostile text can take long to parse or exhaust the stack: call this in a process that may be killed.

    Args:
        query: SPARQL 1.1, at most 20,000 characters.
        namespaces: By prefix; usable in the query without declaring them.
        allowed_graphs: The IRIs that FROM and FROM NAMED may name.

    Raises:
        InvalidRequest: The query is not SPARQL, updates something, asks another service, or names a graph that is not
            allowed.
    """
    text = _readable(query)
    usable = {prefix: name for prefix, name in namespaces.items() if is_prefix(prefix) and _iri(name) is not None}
    masked = _without_service(text, usable)
    hidden = None if masked.text == text else engine_problem(masked.text, masked.namespaces)
    if hidden is not None and masked.was_service(hidden.at):
        raise InvalidRequest(_SERVICE)
    prologue, tree = _parse(text, masked)
    scope = _scope(prologue, usable)
    uses_graph = False
    for node in walk(tree):
        _refuse(node, text, scope, allowed_graphs)
        uses_graph |= isinstance(node, Branch) and node.name == "GraphGraphPattern"
    if hidden is not None:
        raise InvalidRequest(f"The query is not SPARQL as this graph reads it{hidden.describe(text)}")
    return CheckedQuery(
        form := _FORMS[tree.name],
        text,
        tuple(scope.undeclared.items()),
        _named(tree, scope),
        uses_graph,
        form == "DESCRIBE" or _walks_any(tree),
    )


def _readable(query: str) -> str:
    if len(query) > MAX_QUERY_LENGTH:
        raise InvalidRequest(f"A query has at most {MAX_QUERY_LENGTH:,} characters; this one has {len(query):,}.")
    if not query.strip():
        raise InvalidRequest("The query is empty. Write one such as SELECT ?s WHERE { ?s ?p ?o } LIMIT 10.")
    text = _CODE_POINT.sub(_character, query.replace("\r\n", "\n").replace("\r", "\n"))
    control = _CONTROL.search(text)
    if control is not None:
        raise InvalidRequest(f"The query holds the control character U+{ord(control[0]):04X}. Remove it.")
    if _depth(text) > MAX_DEPTH or _NEGATIONS.search(text) is not None:
        raise InvalidRequest(f"The query nests brackets or negations more than {MAX_DEPTH} deep. Simplify it.")
    return text


def _character(escape: re.Match[str]) -> str:
    code = int(escape[1] or escape[2] or "0", 16)
    # An escaped quote or bracket would be syntax to one parser and text to another.
    if not 0xA0 <= code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise InvalidRequest(f"The escape {escape[0]} is refused: write the character itself.")
    return chr(code)


def _depth(text: str) -> int:
    depth = deepest = 0
    for character in text:
        if character in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in ")]}":
            depth = max(0, depth - 1)
    return deepest


@dataclass(frozen=True, slots=True)
class _Masked:
    """A text, and the prefixes it may use, with another word of the same length for every SERVICE."""

    text: str
    namespaces: Mapping[str, str]
    word: str

    def was_service(self, at: int | None) -> bool:
        return at is not None and self.text.startswith(self.word, at)


def _without_service(text: str, namespaces: Mapping[str, str]) -> _Masked:
    word = next(word for number in count() if (word := f"q{number:06}") not in text)
    renamed = {_SERVICE_WORD.sub(word, prefix): name for prefix, name in namespaces.items()}
    return _Masked(_SERVICE_WORD.sub(word, text), renamed, word)


def _parse(text: str, masked: _Masked) -> tuple[Tree, Branch]:
    try:
        return read_query(text)
    except UnreadableQuery as error:
        if starts_an_update(text):
            raise InvalidRequest(_READ_ONLY) from None
        raise InvalidRequest(_misread(text, masked, error.at)) from None


def _misread(text: str, masked: _Masked, at: int) -> str:
    problem = engine_problem(masked.text, masked.namespaces)
    if problem is None:
        beyond = SyntaxProblem(at, "not understood; keep to plain SPARQL 1.1, and write \\' only inside '…'")
        return f"This query may be valid, but the safety check cannot read it{beyond.describe(text)}"
    if problem.at is not None and at > problem.at:
        problem = unexpected(text, at)
    return f"The query is not SPARQL{problem.describe(text)}"


@dataclass(frozen=True, slots=True)
class _Scope:
    """What prefixed names and relative IRIs of one query mean."""

    base: str
    declared: Mapping[str, str]
    undeclared: Mapping[str, str]

    def iri(self, node: Tree) -> str | None:
        """Return the IRI that a node of the tree stands for; None for other nodes and unknown prefixes."""
        if isinstance(node, IriLeaf):
            return _absolute(self.base, node.text)
        if not isinstance(node, Branch) or node.name != "pname":
            return None
        namespace = self.namespace(_text(node, "prefix"))
        return None if namespace is None else namespace + _ESCAPED.sub(r"\1", _text(node, "localname"))

    def namespace(self, prefix: str) -> str | None:
        """Return what a prefix stands for, or None."""
        return self.declared.get(prefix, self.undeclared.get(prefix))


def _scope(prologue: Tree, usable: Mapping[str, str]) -> _Scope:
    base = ""
    declared: dict[str, str] = {}
    for node in walk(prologue):
        if isinstance(node, Branch):
            iri = _absolute(base, _text(node, "iri"))
            if node.name == "Base":
                base = iri
            else:
                declared[_text(node, "prefix")] = iri
    return _Scope(base, declared, {prefix: name for prefix, name in usable.items() if prefix not in declared})


def _refuse(node: Branch | IriLeaf, text: str, scope: _Scope, allowed_graphs: Collection[str]) -> None:
    if isinstance(node, IriLeaf):
        return
    if node.name == "ServiceGraphPattern":
        raise InvalidRequest(_SERVICE)
    if node.name == "DatasetClause":
        graph = scope.iri(node.part("named") or node.part("default"))
        if graph not in allowed_graphs:
            raise InvalidRequest(f"FROM {graph or 'this'} is refused: a query is about this graph alone. Remove FROM.")
    if node.name == "pname" and scope.namespace(_text(node, "prefix")) is None:
        raise InvalidRequest(_undeclared(_text(node, "prefix"), text, scope))


def _undeclared(prefix: str, text: str, scope: _Scope) -> str:
    known = ", ".join(f"{name}:" for name in list(scope.undeclared)[:_SHOWN_PREFIXES])
    hint = f" (known without: {known})" if known else ""
    problem = SyntaxProblem(
        text.find(f"{prefix}:"), f"{prefix}: is not declared; add PREFIX {prefix}: <http://…>{hint}"
    )
    return f"The query uses a prefix without declaring it{problem.describe(text)}"


def _named(tree: Tree, scope: _Scope) -> tuple[Iri, ...]:
    texts = dict.fromkeys(scope.iri(node) for node in walk(tree, without=_NOT_IN_PATTERNS))
    iris = (_iri(text) for text in texts if text is not None and not _is_written_with(text))
    return tuple(iri for iri in iris if iri is not None)


def _walks_any(tree: Tree) -> bool:
    branches = (node for node in walk(tree, without=_NOT_IN_PATTERNS) if isinstance(node, Branch))
    return any(each.name == "PathNegatedPropertySet" or any(map(_has_variable, _blocks(each))) for each in branches)


def _blocks(branch: Branch) -> Iterator[Tree]:
    triples = branch.part("triples")
    return iter(triples if isinstance(triples, tuple) else ())


def _has_variable(block: Tree) -> bool:
    """Return whether subjects, relations and objects in turn have a variable, which is a text here, for a relation."""
    return isinstance(block, tuple) and any(isinstance(relation, str) for relation in block[1::3])


def _is_written_with(text: str) -> bool:
    """Return whether an IRI only encodes the form of a list or a triple term."""
    return text in _COLLECTIONS or text.startswith(_TRIPLE)


def _absolute(base: str, reference: str) -> str:
    # urljoin may drop an empty fragment, which a namespace needs.
    return urljoin(base, reference).removesuffix("#") + ("#" if reference.endswith("#") else "")


def _iri(text: str) -> Iri | None:
    try:
        return Iri(text)
    except InvalidRequest:
        return None


def _text(node: Branch, key: str) -> str:
    part = node.part(key)
    return part.text if isinstance(part, IriLeaf) else str(part)
