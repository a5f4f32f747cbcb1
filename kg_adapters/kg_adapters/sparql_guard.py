"""What a SPARQL query is allowed to do: read this graph, and nothing else.

The query is parsed and its parse tree walked. A second, independent look closes the gap between this parser and the
engine's: with the word SERVICE replaced everywhere the query must still make sense to the engine, which it cannot where
the word was the keyword.

Importing this module takes a fifth of a second (rdflib): do it where queries are checked, not where a server starts.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import count
from types import MappingProxyType
from typing import Final, TypeAlias
from typing import Literal as Choice
from urllib.parse import urljoin

from kg_adapters.errors import InvalidRequest
from kg_adapters.prefixes import is_prefix
from kg_adapters.sparql_syntax import SyntaxProblem, engine_problem, unexpected
from kg_adapters.sparql_tree import Branch, IriLeaf, Tree, UnreadableQuery, read_query, starts_an_update, walk
from kg_adapters.terms import Iri

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
        named: The IRIs that its patterns name, in order of appearance.
    """

    form: Form
    text: str
    prefixes: tuple[tuple[str, str], ...]
    named: tuple[Iri, ...]

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
    for node in walk(tree):
        _refuse(node, text, scope, allowed_graphs)
    if hidden is not None:
        raise InvalidRequest(f"The query is not SPARQL as this graph reads it{hidden.describe(text)}")
    return CheckedQuery(_FORMS[tree.name], text, tuple(scope.undeclared.items()), _named(tree, scope))


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
    iris = (_iri(text) for text in texts if text is not None and text not in _COLLECTIONS)
    return tuple(iri for iri in iris if iri is not None)


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
