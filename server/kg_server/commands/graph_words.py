"""Read the graphs that a command names: a graph, `NAME=GRAPH`, or the name of a graph of the settings."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final
from urllib.parse import urlsplit

from kg_adapters.errors import InvalidRequest
from kg_adapters.registry import SAMPLES, URLS, path_of, require_graph
from kg_boundary.addresses import masked
from kg_boundary.shown import in_quotes
from kg_server.settings import Settings

LONGEST_NAME: Final = 16
FORM: Final = f"letters, digits and hyphens, at most {LONGEST_NAME}"
_NAME: Final = re.compile(rf"[a-z0-9][a-z0-9-]{{0,{LONGEST_NAME - 1}}}")
_OTHERS: Final = re.compile(r"[^a-z0-9]+")
_LOOKS_LIKE_A_NAME: Final = re.compile(r"[^/\\:?#=]*")


@dataclass(frozen=True, slots=True)
class NamedGraph:
    """A graph that a command names.

    Args:
        name: Its name; None where it is the only graph and got none.
        graph: The graph, as in the setting `graph`; None where the settings hold it under its name.
    """

    name: str | None
    graph: str | None


def graph_name(written: str) -> str:
    """Return the name of a graph in small letters, as it is compared.

    Raises:
        InvalidRequest: It has another form, or is too long.
    """
    if _NAME.fullmatch(name := written.lower()) is None:
        raise InvalidRequest(f"{in_quotes(written)} cannot be the name of a graph: names have {FORM}, as in people.")
    return name


def named_graphs(words: Sequence[str], known: Collection[str]) -> list[NamedGraph]:
    """Return the graphs that words name; of several, each with a name.

    Args:
        words: Graphs, each perhaps behind `NAME=`, or names of graphs of the settings.
        known: The names of graphs of the settings.

    Raises:
        InvalidRequest: A word is no graph and no such name, a name has a wrong form or cannot be derived, or two
            graphs would have the same.
    """
    found = [_named(word, known) for word in words]
    if len(found) < 2:
        return found
    found = [NamedGraph(each.name or _derived(each.graph or ""), each.graph) for each in found]
    names = [each.name for each in found]
    for name in names:
        if names.count(name) > 1:
            raise InvalidRequest(f"Two graphs are called {name}. Give each a name of its own, as in films=GRAPH.")
    return found


def graph_words(settings: Settings) -> Sequence[str]:
    """Return the words that name the graphs of the settings, as `named_graphs` reads them."""
    return [f"{name}={each.graph}" for name, each in settings.graphs.items()] or [settings.graph]


def _named(word: str, known: Collection[str]) -> NamedGraph:
    if word.lower() in known:
        return NamedGraph(word.lower(), None)
    if known and _NAME.fullmatch(word.lower()):
        try:
            require_graph(word)
        except InvalidRequest as error:
            from kg_server.naming.refusals import unknown_name

            raise InvalidRequest(unknown_name("Your configuration", "graph", word, known)) from error
    written, equals, graph = word.partition("=")
    # A file may be called like that, and a URL may have a query.
    if not equals or _LOOKS_LIKE_A_NAME.fullmatch(written) is None or path_of(word) is not None:
        return NamedGraph(None, word)
    name = graph_name(written)
    if not graph:
        raise InvalidRequest(f"There is no graph behind {name}=. Write it as in {name}=./{name}.ttl.")
    return NamedGraph(name, graph)


def _derived(graph: str) -> str:
    """Return a name for a graph by its file or address: `people` for `./people.nt.gz`, `dbpedia` for its endpoint."""
    text = graph
    if graph.startswith(URLS):
        # Only the host: the rest may hold what is secret.
        host = _host(graph)
        labels = host.split(".")
        is_address = labels[-1].isdigit() or ":" in host or len(labels) == 1
        text = host if is_address else max(labels[:-1], key=len)
    elif graph not in SAMPLES:
        scheme, colon, _ = graph.partition(":")
        text = scheme if colon and path_of(graph) is None else PurePath(graph).name.lstrip(".").partition(".")[0]
    name = _OTHERS.sub("-", text.lower()).strip("-")[:LONGEST_NAME].rstrip("-")
    if not name:
        raise InvalidRequest(f"{in_quotes(masked(graph))} has no name. Give it one, as in people={masked(graph)}.")
    return name


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:  # no address of version 6 in its brackets
        return ""
