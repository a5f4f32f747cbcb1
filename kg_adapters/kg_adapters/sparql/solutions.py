"""What an endpoint answers, as terms; nothing that it sends is trusted."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Final, TypeAlias
from typing import Literal as Choice

import pyoxigraph
from pydantic import Field, StrictBool, TypeAdapter, ValidationError

from kg_adapters.errors import InvalidRequest
from kg_adapters.sparql.forms import Form
from kg_adapters.terms import RDF_LANG_STRING, XSD_STRING, BlankNode, Iri, Literal, Node, Term

RdfSyntax: TypeAlias = Choice["n-triples", "turtle"]
"""How the answer to CONSTRUCT or DESCRIBE is written."""

GRAPH_VARIABLES: Final = ("subject", "predicate", "object")
_FORMATS: Final[Mapping[RdfSyntax, pyoxigraph.RdfFormat]] = {
    "n-triples": pyoxigraph.RdfFormat.N_TRIPLES,
    "turtle": pyoxigraph.RdfFormat.TURTLE,
}
_BLANK_LABEL: Final = re.compile(r"\w(?:[\w.·-]*[\w·-])?")
_VIRTUOSO_BLANK: Final = "nodeID://"
_HALF_A_CHARACTER: Final = re.compile(r"[\ud800-\udfff]")
_VIRTUOSO_TRUTH: Final = "__ASK_RETVAL"
_LANGUAGE: Final = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")


@dataclass(frozen=True, slots=True)
class Solutions:
    """The answer to one query.

    SELECT gives `variables`, and rows of as many terms with None where a variable is unbound. ASK gives `truth` alone.
    CONSTRUCT and DESCRIBE give the rows subject, predicate, object under those three names.

    Args:
        variables: The names of the columns, without `?`.
        rows: One tuple per solution, in the endpoint's order.
        truth: The answer to ASK; None for every other form.
        truncated: Whether rows are missing: more than were asked for, cut by the endpoint, or `unreadable`.
        unreadable: How many rows were left out because they hold what is no RDF term, such as an IRI with a blank.
    """

    variables: tuple[str, ...]
    rows: tuple[tuple[Term | None, ...], ...]
    truth: bool | None = None
    truncated: bool = False
    unreadable: int = 0

    @property
    def cut(self) -> bool:
        """Whether rows are missing that the endpoint would have sent with more time."""
        return self.truncated and not self.unreadable


class UnreadableAnswer(ValueError):
    """An answer is not what its format demands; the message says what is wrong, as part of a sentence."""


def read_results(document: object, form: Form, *, max_rows: int | None = None) -> Solutions:
    """Return what a document of SPARQL 1.1 JSON results says.

    Args:
        document: The parsed JSON.
        form: The form of the query that it answers: ASK has a truth value, every other rows.
        max_rows: Rows behind so many are dropped, and `truncated` is set; None keeps all.

    Raises:
        UnreadableAnswer: The document has another shape, or a term of a kind that SPARQL does not know.
    """
    try:
        results = _RESULTS.validate_python(document)
    except ValidationError as error:
        raise UnreadableAnswer(f"it is no SPARQL JSON result: {_first_problem(error)}") from error
    if form == "ASK":
        return Solutions((), (), truth=_truth(results))
    if results.results is None or results.head.vars is None:
        raise UnreadableAnswer("it is no SPARQL JSON result: it holds no rows")
    variables, bindings = results.head.vars, results.results.bindings
    return _solutions(variables, _rows(variables, bindings, _Terms()), max_rows)


def read_graph(body: bytes, syntax: RdfSyntax, *, max_rows: int | None = None) -> Solutions:
    """Return the triples of an RDF document, as rows subject, predicate, object.

    Args:
        body: The document.
        syntax: How it is written.
        max_rows: Rows behind so many are dropped, and `truncated` is set; None keeps all.

    Raises:
        UnreadableAnswer: The document does not have this syntax.
    """
    try:
        return _solutions(GRAPH_VARIABLES, _triples(body, syntax), max_rows)
    except SyntaxError as error:
        raise UnreadableAnswer(f"it is not {syntax}: {error.msg}") from error


@dataclass(frozen=True, slots=True)
class _Binding:
    type: str
    value: str | dict[str, object]
    datatype: str | None = None
    language: Annotated[str | None, Field(alias="xml:lang")] = None


@dataclass(frozen=True, slots=True)
class _Head:
    vars: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Rows:
    bindings: list[dict[str, _Binding]]


@dataclass(frozen=True, slots=True)
class _Results:
    head: _Head
    results: _Rows | None = None
    boolean: StrictBool | None = None


def _truth(results: _Results) -> bool:
    if results.boolean is not None:
        return results.boolean
    # Virtuoso 7 answers with a row for yes, and none for no.
    if results.results is not None and results.head.vars == (_VIRTUOSO_TRUTH,):
        return bool(results.results.bindings)
    raise UnreadableAnswer("it is no SPARQL JSON result: it holds no truth value")


_RESULTS: Final = TypeAdapter(_Results)
_Row: TypeAlias = tuple[Term | None, ...]


class _Terms:
    """Makes terms, each IRI once: in an answer the same few relations and datatypes come again and again."""

    def __init__(self) -> None:
        self._iris: dict[str, Iri] = {}

    def of(self, binding: _Binding) -> Term:
        """Return the term of a binding.

        Raises:
            InvalidRequest: RDF has no such term.
            UnreadableAnswer: SPARQL knows no such kind of term.
        """
        kind, value = binding.type, binding.value
        if kind == "triple":
            raise InvalidRequest("A quoted triple is no term here.")
        if not isinstance(value, str):
            raise UnreadableAnswer(f"the value of a term of type {kind[:40]!r} is no text")
        match kind:
            case "uri":
                return self._node(value)
            # Older engines mark what has a datatype.
            case "literal" | "typed-literal":
                return self._literal(value, binding.datatype, binding.language)
            case "bnode":
                return BlankNode(_blank_label(value))
            case _:
                raise UnreadableAnswer(f"it holds a term of the unknown type {kind[:40]!r}")

    def _node(self, value: str) -> Node:
        # Virtuoso says of some blank nodes that they are IRIs.
        return BlankNode(_blank_label(value)) if value.startswith(_VIRTUOSO_BLANK) else self._iri(value)

    def _literal(self, value: str, datatype: str | None, language: str | None) -> Literal:
        if _HALF_A_CHARACTER.search(value) is not None:
            raise InvalidRequest("A lone surrogate is no character.")
        if language:
            if _LANGUAGE.fullmatch(language) is None:
                raise InvalidRequest(f"{language[:80]!r} is no language tag.")
            return Literal(value, RDF_LANG_STRING, language)
        return Literal(value, self._iri(datatype) if datatype else XSD_STRING)

    def _iri(self, value: str) -> Iri:
        found = self._iris.get(value)
        if found is None:
            found = self._iris[value] = Iri(value)
        return found


def _rows(variables: Sequence[str], bindings: Sequence[Mapping[str, _Binding]], terms: _Terms) -> Iterator[_Row | None]:
    """Yield the rows, None for one that holds what is no RDF term."""
    known = set(variables)
    for bound in bindings:
        if not bound.keys() <= known:
            raise UnreadableAnswer("a row binds a variable that its head does not name")
        try:
            yield tuple([terms.of(bound[name]) if name in bound else None for name in variables])
        except InvalidRequest:
            yield None


def _triples(body: bytes, syntax: RdfSyntax) -> Iterator[_Row | None]:
    # Lenient, so that one IRI with a blank costs its own row and not the answer.
    for triple in pyoxigraph.parse(body, _FORMATS[syntax], lenient=True):
        try:
            yield _from_engine(triple.subject), _from_engine(triple.predicate), _from_engine(triple.object)
        except InvalidRequest:
            yield None


def _from_engine(term: pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal | pyoxigraph.Triple) -> Term:
    match term:
        case pyoxigraph.NamedNode():
            is_blank = term.value.startswith(_VIRTUOSO_BLANK)
            return BlankNode(_blank_label(term.value)) if is_blank else Iri(term.value)
        case pyoxigraph.BlankNode():
            return BlankNode(_blank_label(term.value))
        case pyoxigraph.Literal():
            return Literal(term.value, Iri(term.datatype.value), term.language)
        case pyoxigraph.Triple():
            raise InvalidRequest("A quoted triple is no term here.")


def _solutions(variables: tuple[str, ...], rows: Iterator[_Row | None], max_rows: int | None) -> Solutions:
    read = list(rows if max_rows is None else islice(rows, max_rows + 1))
    kept = read if max_rows is None else read[:max_rows]
    readable = tuple(row for row in kept if row is not None)
    unreadable = len(kept) - len(readable)
    return Solutions(variables, readable, truncated=unreadable > 0 or len(read) > len(kept), unreadable=unreadable)


def _blank_label(value: str) -> str:
    label = value.removeprefix(_VIRTUOSO_BLANK).removeprefix("_:")
    if _BLANK_LABEL.fullmatch(label) is not None:
        return label
    # Whatever an engine calls its node, the same name stays the same node, and another name another.
    return "x" + value.encode("utf-8", "surrogatepass").hex()


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part) for part in problem["loc"][:6])
    return f"{problem['msg'].lower()} at {place}" if place else problem["msg"].lower()
