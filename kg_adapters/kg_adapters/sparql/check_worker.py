"""The process that checks queries for a `QueryChecker`, so that it can be killed: hostile text keeps it busy."""

import json
import sys
from typing import TypedDict, final

from kg_adapters.errors import InvalidRequest
from kg_adapters.sparql.solutions import Form
from kg_adapters.sparql_guard import Branch, IriLeaf, Tree, check_query, read_query, walk
from kg_adapters.worker_process import RECURSION_LIMIT, answer_lines

# Functions of Virtuoso's own, some of which read files or other hosts.
_OWN_SCHEMES = ("bif:", "sql:")


@final
class Question(TypedDict):
    """A query, the prefixes and graphs it may name, and how many rows are wanted."""

    query: str
    namespaces: dict[str, str]
    graphs: list[str]
    max_rows: int


@final
class Refusal(TypedDict):
    """Why a query is not sent."""

    refused: str


@final
class Passed(TypedDict):
    """A query as it may be sent."""

    form: Form
    text: str
    named: list[str]


def check(question: Question) -> Passed:
    """Return a query as it may be sent: with its prefixes declared, and with a LIMIT where it could be given one.

    Raises:
        InvalidRequest: It is not SPARQL, or does more than read this graph.
    """
    checked = check_query(
        question["query"], namespaces=question["namespaces"], allowed_graphs=tuple(question["graphs"])
    )
    text = checked.self_contained_text
    prologue, tree = read_query(text)
    _refuse_own_functions(prologue, tree)
    if checked.form == "SELECT" and not tree.part("limitoffset") and not tree.part("valuesClause"):
        # One row more than wanted tells that there are more.
        text = f"{text}\nLIMIT {question['max_rows'] + 1}"
    return Passed(form=checked.form, text=text, named=[iri.value for iri in checked.named])


def reply(line: bytes) -> bytes:
    """Return the answer to a question, both as lines of JSON."""
    question: Question = json.loads(line)
    answer: Passed | Refusal
    try:
        answer = check(question)
    except InvalidRequest as error:
        answer = Refusal(refused=str(error))
    return json.dumps(answer).encode() + b"\n"


def _refuse_own_functions(prologue: Tree, tree: Tree) -> None:
    prefixes: set[str] = set()
    for node in walk(prologue):
        iri = node.part("iri") if isinstance(node, Branch) else ""
        if isinstance(node, Branch) and isinstance(iri, IriLeaf) and _is_own(iri.text):
            if node.name == "Base":
                raise InvalidRequest(f"BASE <{iri.text[:80]}> is refused. Write full IRIs.")
            prefixes.add(str(node.part("prefix")))
    for node in walk(tree):
        name = node.part("iri") if isinstance(node, Branch) and node.name == "Function" else ""
        own = isinstance(name, IriLeaf) and _is_own(name.text)
        if own or (isinstance(name, Branch) and name.part("prefix") in prefixes):
            raise InvalidRequest("Functions of the engine's own are refused: they can reach beyond this graph.")


def _is_own(iri: str) -> bool:
    return iri.lower().startswith(_OWN_SCHEMES)


if __name__ == "__main__":
    sys.setrecursionlimit(RECURSION_LIMIT)
    answer_lines(reply)
