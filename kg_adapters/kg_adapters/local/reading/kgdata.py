"""The subgraphs of KGdata: `{topic: [[head, relation, tail], …]}`, all topics as one graph.

A file is one such object, or several one after the other, as one on each line.
"""

from collections.abc import Callable, Iterator
from typing import IO

import pyoxigraph as ox

from kg_adapters.errors import InvalidSource
from kg_adapters.local.reading.edge_list import Edge, EdgeList
from kg_adapters.local.reading.rdf_lines import Problem
from kg_boundary.json_stream import BrokenJson, Json, JsonStream
from kg_boundary.shown import counted, in_quotes


def read_subgraphs(stream: IO[bytes], name: str, problem: Problem, note: Callable[[str], None]) -> Iterator[ox.Quad]:
    """Yield the statements of a file; what stands below several topics is stated once.

    Args:
        stream: The file's bytes.
        name: What messages call the file.
        problem: Called for every triple that cannot be read; it raises, or lets the rest be read.
        note: Called with what was guessed.

    Raises:
        InvalidSource: The file is no JSON, or another kind of JSON.
    """
    try:
        edges = tuple(dict.fromkeys(_edges(JsonStream(stream), name, problem)))
    except BrokenJson as error:
        raise InvalidSource(f"{error.told(name)}. Expected topics, each with a list of triples.") from error
    if not edges:
        problem(f"{name} holds no triple.", ValueError())
        return
    read = EdgeList(edges)
    yield from read.statements()
    note(f"{name}: {counted(len(edges), 'edge')}, each once. {read.told}")


def _edges(text: JsonStream, name: str, problem: Problem) -> Iterator[Edge]:
    while text.peek():
        for topic in text.members():
            place = f"{name}, the topic {in_quotes(topic)}"
            if text.peek() != "[":
                problem(f"{place} has no list of triples, but {text.shown()}.", ValueError())
                text.value()
                continue
            for number in text.items():
                edge = _edge(text.value())
                if edge is None:
                    problem(f"{place}, triple {number:,}: a triple is three texts or numbers.", ValueError())
                else:
                    yield edge


def _edge(value: Json) -> Edge | None:
    match value:
        case [str() | int() | float() as head, str() as relation, str() | int() | float() as tail]:
            # A name is in one line.
            head, relation, tail = (" ".join(str(part).split()) for part in (head, relation, tail))
            return (head, relation, tail) if head and relation and tail else None
        case _:
            return None
