"""What a worker process of a `QueryChecker` runs: hostile text may keep it busy until it is killed."""

import sys
from collections.abc import Iterator, Mapping, Sequence

from kg_adapters.errors import InvalidRequest
from kg_adapters.sparql.checking import ReadOnlyQuery
from kg_adapters.sparql_guard import Branch, IriLeaf, Tree, check_query, read_query, walk
from kg_adapters.worker_process import RECURSION_LIMIT, Send

# Functions of Virtuoso's own, some of which read files or other hosts.
_OWN_SCHEMES = ("bif:", "sql:")


def check(query: str, max_rows: int, *, namespaces: Mapping[str, str], graphs: Sequence[str] = ()) -> ReadOnlyQuery:
    """Return a query as it may be sent: with its prefixes declared, and with a LIMIT where it could be given one.

    Raises:
        InvalidRequest: It is not SPARQL, or does more than read this graph.
    """
    checked = check_query(query, namespaces=namespaces, allowed_graphs=tuple(graphs))
    text = checked.self_contained_text
    prologue, tree = read_query(text)
    _refuse_own_functions(prologue, tree)
    if checked.form == "SELECT" and not tree.part("limitoffset") and not tree.part("valuesClause"):
        # One more row than wanted shows that there are more.
        text = f"{text}\nLIMIT {max_rows + 1}"
    return ReadOnlyQuery(checked.form, text, checked.named)


def answer_checks(
    requests: Iterator[tuple[str, int]], send: Send, namespaces: Mapping[str, str], graphs: Sequence[str]
) -> None:
    """Check queries, each with the most rows that are wanted."""
    sys.setrecursionlimit(RECURSION_LIMIT)
    for query, max_rows in requests:
        try:
            send(check(query, max_rows, namespaces=namespaces, graphs=graphs))
        except InvalidRequest as error:
            send(error)


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
