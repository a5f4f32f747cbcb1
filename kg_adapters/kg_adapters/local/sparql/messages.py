"""What a pool and its SPARQL workers say to each other: a line of JSON for a request, a line for its reply."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final, Self, TypeAlias, TypedDict, final
from typing import Literal as Choice

from kg_adapters.errors import BackendError, InvalidRequest, KGError
from kg_adapters.models import SparqlAnswer
from kg_adapters.terms import BlankNode, Iri, Literal, Term

WireTerm: TypeAlias = str | list[str | None] | None
"""An IRI; or a blank node's label alone in a list; or a literal's value, datatype and language; or nothing."""
Blame: TypeAlias = Choice["query", "engine"]
_ERRORS: Final[Mapping[Blame, type[KGError]]] = {"query": InvalidRequest, "engine": BackendError}


@final
class AnswerLine(TypedDict):
    """A `SparqlAnswer`, with its terms as JSON has them."""

    form: Choice["SELECT", "ASK", "CONSTRUCT", "DESCRIBE"]
    variables: list[str]
    rows: list[list[WireTerm]]
    truncated: bool
    truth: bool | None
    named: list[str]


@final
class ProblemLine(TypedDict):
    """Why there is no answer: whether the query is to blame, and what to tell."""

    blame: Blame
    problem: str


ReplyLine: TypeAlias = AnswerLine | ProblemLine


@dataclass(frozen=True, slots=True)
class Request:
    """A query, the prefixes it may use, and how large its answer may be: in rows, and in bytes of text."""

    query: str
    namespaces: dict[str, str]
    max_rows: int
    max_bytes: int

    def line(self) -> bytes:
        """Return the request as one line."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes) -> Self:
        """Return the request that a line says."""
        return cls(**json.loads(line))


def reply_line(reply: ReplyLine) -> bytes:
    """Return a reply as one line."""
    return json.dumps(reply).encode() + b"\n"


def read_answer(line: bytes) -> SparqlAnswer:
    """Return the answer that a worker's line says.

    Raises:
        InvalidRequest: The query was refused.
        BackendError: The engine failed.
    """
    reply: ReplyLine = json.loads(line)
    if "blame" in reply:
        raise _ERRORS[reply["blame"]](reply["problem"])
    return SparqlAnswer(
        form=reply["form"],
        variables=tuple(reply["variables"]),
        rows=tuple(tuple(_term(term) for term in row) for row in reply["rows"]),
        truncated=reply["truncated"],
        truth=reply["truth"],
        named=tuple(Iri(iri) for iri in reply["named"]),
    )


def _term(term: WireTerm) -> Term | None:
    match term:
        case None:
            return None
        case str():
            return Iri(term)
        case [str(label)]:
            return BlankNode(label)
        case [str(value), str(datatype), language]:
            return Literal(value, Iri(datatype), language)
        case _:
            raise BackendError(f"A SPARQL worker answered {term!r}, which is not an RDF term. Report this as a bug.")
