"""The answers of an endpoint as terms, and the form of answer that a query asks for; nothing sent is trusted."""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Annotated, Final, TypeAlias, TypeVar
from typing import Literal as Choice

import anyio
import anyio.lowlevel
import pyoxigraph
from pydantic import Field, StrictBool, TypeAdapter, ValidationError

from kg_adapters.errors import InvalidRequest
from kg_adapters.terms import RDF_LANG_STRING, XSD_STRING, BlankNode, Iri, Literal, Node, Term
from kg_boundary.shown import in_quotes

Form: TypeAlias = Choice["SELECT", "ASK", "CONSTRUCT", "DESCRIBE"]

_FORMS: Final[dict[str, Form]] = {
    "SELECT": "SELECT",
    "ASK": "ASK",
    "CONSTRUCT": "CONSTRUCT",
    "DESCRIBE": "DESCRIBE",
}

_TOKEN: Final = re.compile(r"[\s\ufeff]+|#[^\r\n]*|(?P<iri><[^<>\s]*>)|(?P<prefix>[^\s:<>#{}]*:)|(?P<word>[A-Za-z]+)")


def query_form(text: str) -> Form:
    """Return the form of a query: the first keyword behind its prologue, which comments do not mislead.

    Raises:
        InvalidRequest: The text starts otherwise, as an update does, or cannot be sent as UTF-8.
    """
    at = 0
    while (token := _TOKEN.match(text, at)) is not None:
        at = token.end()
        word = (token["word"] or "").upper()
        if word in _FORMS:
            _check_encodable(text)
            return _FORMS[word]
        if word and word not in {"BASE", "PREFIX"}:
            break
    raise InvalidRequest("The text is not a query that reads. Ask with SELECT, ASK, CONSTRUCT or DESCRIBE.")


def _check_encodable(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"The query holds half of a character (a lone surrogate) at position {error.start}. Remove it."
        ) from error


Solution: TypeAlias = tuple[Term | None, ...]
"""One solution: a term for each variable, None where it is unbound."""

MOST_CELLS: Final = 1_000_000
"""A small answer with more cells, bound or not, is refused: rows that bind nothing have two bytes each."""

# An answer of 32 MB may have a million rows, and four million cells more than a small one.
_BYTES_OF_A_ROW: Final = 32
_BYTES_OF_A_CELL: Final = 8

ROWS_AT_ONCE: Final = 1_000
"""Reading so many rows takes a few milliseconds."""

Item = TypeVar("Item")
Decoded = TypeVar("Decoded")

_BINDINGS_START: Final = re.compile(r'"bindings"\s*:\s*\[')
_BLANKS: Final = re.compile(r"[ \t\n\r]*")
_LOADS: Final[Callable[[str], object]] = json.loads
_DECODE: Final = json.JSONDecoder().raw_decode

_BLANK_LABEL: Final = re.compile(r"\w(?:[\w.·-]*[\w·-])?")

VIRTUOSO_BLANK: Final = "nodeID://"
"""How Virtuoso begins the names of its blank nodes."""

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
    """An answer is not what its format demands; the message describes the problem, as part of a sentence."""


def read_answer(
    body: bytes, media_type: str, form: Form, *, max_rows: int | None = None, cut: bool = False
) -> Solutions:
    """Return the solutions in the body of an answer: SPARQL 1.1 JSON results, N-Triples or Turtle.

    Large answers take seconds, so this is for threads.

    Args:
        body: The body.
        media_type: How it is written.
        form: The form of the query that it answers.
        max_rows: Rows behind so many are dropped, and `truncated` is set; None keeps all.
        cut: Whether the body ends early; enough rows must come before its end.

    Raises:
        UnreadableAnswer: It is not what its format demands, or has a term of a kind that SPARQL does not know.
    """
    if form in {"SELECT", "ASK"}:
        return read_json(body, form, max_rows=max_rows, cut=cut)
    return read_graph(body, "turtle" if media_type == "text/turtle" else "n-triples", max_rows=max_rows)


def read_json(body: bytes, form: Form, *, max_rows: int | None = None, cut: bool = False) -> Solutions:
    """Return the solutions in a document of SPARQL 1.1 JSON results; see `read_answer`.

    Its rows are decoded one by one, since decoding them at once would hold up all other threads.
    """
    try:
        text = body.decode(errors="ignore" if cut else "strict")
    except UnicodeDecodeError as error:
        raise UnreadableAnswer("it is not a JSON object: it is not written in UTF-8") from error
    bindings: list[object] = []
    if (found := _BINDINGS_START.search(text)) is not None:
        head = text[: found.end()]
        # One row more than wanted shows that there are more; Virtuoso answers ASK with a row for yes.
        most = 1 if form == "ASK" else None if max_rows is None else max_rows + 1
        bindings, end = _json_rows(text, found.end(), most if '"head"' in head else None)
        text = head + ("]}}" if end is None else text[end:])
    document = _decoded(_LOADS, text)
    if not isinstance(document, dict):
        raise UnreadableAnswer("it is not a JSON object")
    try:
        results = _RESULTS.validate_python(document)
    except ValidationError as error:
        raise UnreadableAnswer(f"it is not a SPARQL JSON result: {_first_problem(error)}") from error
    if form == "ASK":
        return Solutions((), (), truth=_truth(results, bindings))
    if results.results is None or results.head.vars is None:
        raise UnreadableAnswer("it is not a SPARQL JSON result: it holds no rows")
    variables = results.head.vars
    if len(variables) * len(bindings) > MOST_CELLS + len(body) // _BYTES_OF_A_CELL:
        raise _too_many_cells()
    return solutions_of(variables, _rows(variables, _checked(bindings), _Terms()), max_rows)


def _json_rows(text: str, at: int, most: int | None) -> tuple[list[object], int | None]:
    """Return the elements of the array that begins before a place, and where it ends; None behind `most` of them."""
    rows: list[object] = []
    most_held = MOST_CELLS // 10 + len(text) // _BYTES_OF_A_ROW
    at = _behind_blanks(text, at)
    while text[at : at + 1] != "]":
        if rows and text[at] != ",":
            raise UnreadableAnswer("it is not a JSON object: a comma is missing between two rows")
        start = _behind_blanks(text, at + 1) if rows else at
        row, at = _decoded(partial(_DECODE, idx=start), text)
        rows.append(row)
        if len(rows) == most:
            return rows, None
        if len(rows) > most_held:
            raise _too_many_cells()
        at = _behind_blanks(text, at)
    return rows, at


def _behind_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return at if found is None else found.end()


def _decoded(decode: Callable[[str], Decoded], text: str) -> Decoded:
    try:
        return decode(text)
    except RecursionError as error:
        raise UnreadableAnswer("its JSON is nested too deeply") from error
    except ValueError as error:
        raise UnreadableAnswer(f"it is not a JSON object, or ends in the middle of one: {error}") from error


def _checked(bindings: Sequence[object]) -> Iterator[dict[str, "_Binding"]]:
    for first in range(0, len(bindings), ROWS_AT_ONCE):
        try:
            yield from _BINDINGS.validate_python(bindings[first : first + ROWS_AT_ONCE])
        except ValidationError as error:
            problem = _first_problem(error, ("results", "bindings"), first)
            raise UnreadableAnswer(f"it is not a SPARQL JSON result: {problem}") from error


def solutions_of(variables: tuple[str, ...], rows: Iterator[Solution | None], max_rows: int | None) -> Solutions:
    """Return an answer of rows, of which None stands for one that could not be read; no more are taken than needed."""
    read = list(rows if max_rows is None else islice(rows, max_rows + 1))
    kept = read if max_rows is None else read[:max_rows]
    readable = tuple(row for row in kept if row is not None)
    unreadable = len(kept) - len(readable)
    return Solutions(variables, readable, truncated=unreadable > 0 or len(read) > len(kept), unreadable=unreadable)


def _too_many_cells() -> UnreadableAnswer:
    return UnreadableAnswer("it has more rows or variables than so few bytes can mean")


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
    bindings: list[object]


@dataclass(frozen=True, slots=True)
class _Results:
    head: _Head
    results: _Rows | None = None
    boolean: StrictBool | None = None


def _truth(results: _Results, bindings: Sequence[object]) -> bool:
    if results.boolean is not None:
        return results.boolean
    # Virtuoso 7 answers with a row for yes, and none for no.
    if results.results is not None and results.head.vars == (_VIRTUOSO_TRUTH,):
        return bool(bindings)
    raise UnreadableAnswer("it is not a SPARQL JSON result: it holds no truth value")


_RESULTS: Final = TypeAdapter(_Results)

_BINDINGS: Final = TypeAdapter(list[dict[str, _Binding]])


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
            raise InvalidRequest("A quoted triple cannot be an entity or a value here.")
        if not isinstance(value, str):
            raise UnreadableAnswer(f"the value of a term of type {in_quotes(kind, 40)} is not a text")
        match kind:
            case "uri":
                return self._node(value)
            # Older engines mark what has a datatype.
            case "literal" | "typed-literal":
                return self._literal(value, binding.datatype, binding.language)
            case "bnode":
                return BlankNode(blank_label(value))
            case _:
                raise UnreadableAnswer(f"it holds a term of the unknown type {in_quotes(kind, 40)}")

    def _node(self, value: str) -> Node:
        # Virtuoso marks some blank nodes as IRIs.
        return BlankNode(blank_label(value)) if value.startswith(VIRTUOSO_BLANK) else self._iri(value)

    def _literal(self, value: str, datatype: str | None, language: str | None) -> Literal:
        if _HALF_A_CHARACTER.search(value) is not None:
            raise InvalidRequest("Half of a surrogate pair is not a character.")
        if language:
            if _LANGUAGE.fullmatch(language) is None:
                raise InvalidRequest(f"{in_quotes(language)} is not a language tag.")
            return Literal(value, RDF_LANG_STRING, language)
        return Literal(value, self._iri(datatype) if datatype else XSD_STRING)

    def _iri(self, value: str) -> Iri:
        found = self._iris.get(value)
        if found is None:
            found = self._iris[value] = Iri(value)
        return found


def _rows(
    variables: Sequence[str], bindings: Iterable[Mapping[str, _Binding]], terms: _Terms
) -> Iterator[Solution | None]:
    """Yield the rows, None for one that holds what is no RDF term."""
    known = set(variables)
    for bound in bindings:
        if not bound.keys() <= known:
            raise UnreadableAnswer("a row binds a variable that its head does not name")
        try:
            yield tuple([terms.of(bound[name]) if name in bound else None for name in variables])
        except InvalidRequest:
            yield None


def blank_label(value: str) -> str:
    """Return the label of a blank node, whatever an engine calls it."""
    label = value.removeprefix(VIRTUOSO_BLANK).removeprefix("_:")
    if _BLANK_LABEL.fullmatch(label) is not None:
        return label
    # The same name stays the same node, and another name another.
    return "x" + value.encode("utf-8", "surrogatepass").hex()


def _first_problem(error: ValidationError, within: tuple[str, ...] = (), first: int = 0) -> str:
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    inside = tuple(first + part if isinstance(part, int) else part for part in problem["loc"])
    place = ".".join(str(part) for part in (*within, *inside)[:6])
    return f"{problem['msg'].lower()} at {place}" if place else problem["msg"].lower()


RdfSyntax: TypeAlias = Choice["n-triples", "turtle"]
"""How such an answer is written."""

GRAPH_VARIABLES: Final = ("subject", "predicate", "object")

_FORMATS: Final[Mapping[RdfSyntax, pyoxigraph.RdfFormat]] = {
    "n-triples": pyoxigraph.RdfFormat.N_TRIPLES,
    "turtle": pyoxigraph.RdfFormat.TURTLE,
}

# A prefix stands for an IRI of any length, as often as it is used.
_MOST_CHARACTERS: Final = 200_000_000


def read_graph(body: bytes, syntax: RdfSyntax, *, max_rows: int | None = None) -> Solutions:
    """Return the triples of an RDF document, as rows subject, predicate, object.

    Args:
        body: The document.
        syntax: How it is written.
        max_rows: Rows behind so many are dropped, and `truncated` is set; None keeps all.

    Raises:
        UnreadableAnswer: The document does not have this syntax.
    """
    return solutions_of(GRAPH_VARIABLES, _triples(body, syntax), max_rows)


def _triples(body: bytes, syntax: RdfSyntax) -> Iterator[Solution | None]:
    """Yield the triples of an RDF document, None for one that holds what is no RDF term."""
    room = _MOST_CHARACTERS
    try:
        # Lenient, so that one IRI with a blank costs its own row and not the answer.
        for triple in pyoxigraph.parse(body, _FORMATS[syntax], lenient=True):
            row = _triple(triple)
            room -= 0 if row is None else sum(len(str(term)) for term in row)
            if room < 0:
                raise UnreadableAnswer(f"written out it has more than {_MOST_CHARACTERS:,} characters")
            yield row
    except SyntaxError as error:
        raise UnreadableAnswer(f"it is not {syntax}: {error.msg}") from error


def _triple(triple: pyoxigraph.Quad) -> Solution | None:
    try:
        return _from_engine(triple.subject), _from_engine(triple.predicate), _from_engine(triple.object)
    except InvalidRequest:
        return None


def _from_engine(term: pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal | pyoxigraph.Triple) -> Term:
    match term:
        case pyoxigraph.NamedNode():
            is_blank = term.value.startswith(VIRTUOSO_BLANK)
            return BlankNode(blank_label(term.value)) if is_blank else Iri(term.value)
        case pyoxigraph.BlankNode():
            return BlankNode(blank_label(term.value))
        case pyoxigraph.Literal():
            return Literal(term.value, Iri(term.datatype.value), term.language)
        case pyoxigraph.Triple():
            raise InvalidRequest("A quoted triple cannot be an entity or a value here.")


async def in_slices(items: Iterable[Item], at_once: int = ROWS_AT_ONCE) -> AsyncIterator[list[Item]]:
    """Yield items in slices; after each but the last, other tasks run and deadlines are checked."""
    rest = iter(items)
    while batch := list(islice(rest, at_once)):
        yield batch
        if len(batch) == at_once:
            await anyio.lowlevel.checkpoint()
