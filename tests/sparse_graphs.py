"""Graphs that know little of much, what expressions about them name, and whether answers are those of SPARQL."""

import json
import math
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import pyoxigraph as ox
from benchmarks.world.graph import World
from mcp import Client

from calls import Reply, reply_of, rows, unhurried
from kg_adapters.importing.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.sparql.store import statements
from kg_adapters.local.store import open_store
from kg_adapters.profile import compared_kind, kind_of
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri
from kg_adapters.values import compared_as
from kg_server.answers.results import MOST_TOKENS
from kg_server.app import build_server
from remote_graphs import behind_endpoint
from set_expressions import GraphWords, SomeValues, drawn_from, expressions
from small_graphs import shared_store
from tables_as_sql import filled

SPARSE: Final = """
@prefix e: <http://ex.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
e:named rdfs:label "Named"@en ; rdfs:comment "Nothing else is known of it."@en .
e:valued e:height 7 .
e:both rdfs:label "Both" ; e:height 7, 7.0, 9 ; e:maker e:self, "somebody", _:maker .
e:typed a e:Only .
e:self e:next e:self ; e:height "tall" ; e:maker "itself" .
e:one e:next e:two ; e:part e:two ; e:made "1988"^^xsd:gYear .
e:two e:next e:three, _:maker ; a e:Tool, e:Saw ; e:made "1988-06-01"^^xsd:date, "1990"^^xsd:gYear ; e:weight 2.5 .
e:three e:next e:one ; a e:Saw ; rdfs:label "" , "Three"@de ; e:weight "-3"^^xsd:integer, 1e3 .
_:maker e:next _:other ; a e:Tool ; e:height 2 .
_:other e:next _:maker ; rdfs:label "the other" .
e:Saw rdfs:subClassOf e:Tool ; rdfs:label "saw" .
e:Tool rdfs:subClassOf e:Thing .
e:Thing rdfs:subClassOf e:Saw, e:Thing .
e:Empty rdfs:subClassOf e:Tool ; rdfs:label "empty" .
e:next rdfs:label "next"@en .
"""
"""Nothing but names, one value, cycles of links and of classes, blank nodes, values of several kinds, no instances."""

GRAPHS: Final = {"sample": 10, "sample:world": 10, "bookshop": 25, "sparse": 30, "tables": 20, "endpoint": 5}
"""How many of 100 expressions each graph is asked: fewer of the large ones, and of the endpoint, which is slow."""
_BOOKSHOP: Final = Path(__file__).parents[1] / "docs" / "examples" / "bookshop"
_SEED: Final = 45
_ROUNDED: Final = 1e-4
COUNTED: Final = ("Count[", "Sum[", "Mean[", "Min[", "Max[")
"""How expressions begin that are one number."""


@asynccontextmanager
async def served(name: str, folder: Path) -> AsyncGenerator[tuple[Client, ox.Store, GraphWords]]:
    """Serve one of `GRAPHS`, beside its statements in a store of their own and what expressions about it name."""
    async with _opened(name, folder) as (graph, store):
        settings = unhurried(cache_folder=folder, data_folder=folder, embedding={"embedder": "lexical"})
        words = words_of(store, graph)
        truth = _loaded(World().triples) if name == "sample:world" else store
        async with Client(build_server(graph, settings)) as client:
            yield client, truth, words


@asynccontextmanager
async def _opened(name: str, folder: Path) -> AsyncGenerator[tuple[KGAdapter, ox.Store]]:
    """Open a graph, and return its statements, with the names that it gives to blank nodes."""
    if name == "endpoint":
        store = _loaded(SPARSE, ox.RdfFormat.TURTLE)
        async with behind_endpoint(store, folder) as remote:
            yield remote, store
        return
    async with aclosing(_local(name, folder)) as graph:
        yield graph, _loaded("\n".join(statements(graph.store.index)))


def _loaded(text: str | bytes, form: ox.RdfFormat = ox.RdfFormat.N_TRIPLES) -> ox.Store:
    """Return a store of statements, in which blank nodes keep their names."""
    store = ox.Store()
    store.bulk_extend(ox.parse(text, form))
    return store


def _local(name: str, folder: Path) -> LocalAdapter:
    match name:
        case "sparse":
            return LocalAdapter(shared_store(SPARSE))
        case "bookshop" | "tables":
            files = sorted(_BOOKSHOP.glob("*.csv"))
            if name == "tables":
                files = [folder / "vet.sqlite"]
                with closing(filled(_SEED)) as made:
                    files[0].write_bytes(made.serialize())
            build_store(files, folder / "store", ImportOptions())
            return LocalAdapter(open_store(folder / "store"))
        case _:
            return LocalAdapter(open_sample(folder, name))


_OF_EACH: Final = 2
_BUSY: Final = 100
_SPARSE: Final = 50
"""The most that is stated of an entity or class that expressions name: what is about more is slow in SPARQL."""
_Signature: TypeAlias = tuple[object, ...]


def words_of(store: ox.Store, graph: KGAdapter) -> GraphWords:
    """Return what expressions about a graph name: of each kind of entity, class, relation and feature a few.

    Of one kind are those that have none, one or several of the same.
    """
    known = graph.vocabulary
    texts, types, wider = map(_named, (known.texts, known.types, known.subclasses))
    nodes, classes = defaultdict[str, Counter[str]](Counter), defaultdict[str, Counter[str]](Counter)
    relations, values = defaultdict[str, Counter[str]](Counter), defaultdict[str, dict[ox.Literal, None]](dict)
    for quad in store:
        head, relation, tail = str(quad.subject), str(quad.predicate), quad.object
        if isinstance(tail, ox.Literal):
            nodes[head]["name" if relation in texts else "value"] += 1
            if relation not in texts:
                relations[relation]["value"] += 1
                values[relation][tail] = None
            continue
        end = str(tail)
        nodes[head]["loop" if head == end else "out"] += 1
        nodes[end]["in"] += 1
        relations[relation]["node"] += 1
        if relation in types:
            classes[end]["instance"] += 1
        if relation in wider:
            classes[head]["wider"] += 1
            classes[end]["narrower"] += 1
    leading = {name: counted for name, counted in relations.items() if counted["node"]}
    busy = frozenset(name for name, counted in leading.items() if counted["node"] > _BUSY)
    # Blank nodes have no names in what endpoints are asked.
    named = {name: counted for name, counted in nodes.items() if not (graph.remote and name.startswith("_:"))}
    features = {name: _some(found) for name, found in values.items()}
    return GraphWords(
        tuple(_few(_sparse(named), lambda name: name.startswith("_:"))),
        tuple(_few(leading, busy.__contains__)),
        frozenset(leading) & features.keys(),
        busy,
        tuple(_few(_sparse(classes))),
        {
            name: features[name]
            for name in _few({each: relations[each] for each in features}, lambda name: features[name].kind)
        },
    )


def _named(relations: Iterable[Iri]) -> frozenset[str]:
    return frozenset(f"<{each.value}>" for each in relations)


def _sparse(counted: Mapping[str, Counter[str]]) -> Mapping[str, Counter[str]]:
    return {name: known for name, known in counted.items() if known.total() <= _SPARSE}


def _few(counted: Mapping[str, Counter[str]], kind: Callable[[str], object] = lambda _: None) -> list[str]:
    """Return the first of those that have none, one or several of the same."""
    found = defaultdict[_Signature, list[str]](list)
    for name in sorted(counted):
        known = counted[name]
        signature = kind(name), *((each, min(number, 2)) for each, number in sorted(known.items()))
        if len(found[signature]) < _OF_EACH:
            found[signature].append(name)
    return [name for names in found.values() for name in names]


def _some(values: Iterable[ox.Literal]) -> SomeValues:
    """Return the first, the middle and the last of some values, and as what they compare."""
    kinds = {each: kind_of(Iri(each.datatype.value)) for each in values}
    kind = compared_kind([Iri(each.datatype.value) for each in kinds])
    found = sorted(each.value for each, own in kinds.items() if kind is None or own == kind)
    some = dict.fromkeys((found[0], found[len(found) // 2], found[-1]))
    as_kind = None if kind is None else compared_as(kind)
    quoted = tuple(json.dumps(each, ensure_ascii=False) for each in some)
    return SomeValues(tuple(some) if as_kind else quoted, as_kind)


INTERNAL: Final = "internal error"


@dataclass
class Compared:
    """What became of expressions.

    Attributes:
        answered: Those that were answered.
        refused: Those that were not, each with the reason.
        equal: Those whose number is that of their SPARQL.
        wrong: Those that failed within, or have another number, each with what went wrong.
    """

    answered: list[str] = field(default_factory=list[str])
    refused: dict[str, str] = field(default_factory=dict[str, str])
    equal: list[str] = field(default_factory=list[str])
    wrong: dict[str, str] = field(default_factory=dict[str, str])


async def compared(name: str, number: int, folder: Path) -> Compared:
    """Ask random expressions about one of `GRAPHS`, and return which have the number that their SPARQL has.

    Args:
        name: The graph.
        number: How many are asked of all graphs.
        folder: Where the graph is kept.
    """
    async with served(name, folder) as (client, store, words):
        return await _compared(client, store, drawn_from(expressions(words), number * GRAPHS[name] // 100))


async def _compared(client: Client, store: ox.Store, asked: Collection[str]) -> Compared:
    found = Compared()
    for number, expression in enumerate(asked):
        evidence = "some" if number % 2 else "none"
        arguments = {"expression": expression, "explain": True, "evidence": evidence, "max_tokens": MOST_TOKENS}
        reply = reply_of(await client.call_tool("Compose", arguments))
        if INTERNAL in reply.text:
            found.wrong[expression] = reply.text
        elif reply.is_error:
            found.refused[expression] = reply.text
        else:
            found.answered.append(expression)
            # SPARQL has no names for blank nodes.
            if expression.startswith(COUNTED) and "_:" not in expression:
                mine, theirs = _given(reply), _by_sparql(store, reply)
                if _is_same(mine, theirs):
                    found.equal.append(expression)
                else:
                    found.wrong[expression] = f"{mine}, and {theirs} by {rows(reply.data['sparql'])}"
    return found


def _given(reply: Reply) -> str | None:
    """Return the number or date that an answer is; None for none."""
    results = rows(reply.data["results"])
    return results[0][3].replace(",", "") if results else None


def _by_sparql(store: ox.Store, reply: Reply) -> str | None:
    queries = rows(reply.data["sparql"])
    if not queries:
        return "no SPARQL"
    solutions = store.query(queries[0][1])
    assert isinstance(solutions, ox.QuerySolutions)
    first = next(solutions, None)
    return None if first is None else first[0].value


def _is_same(mine: str | None, theirs: str | None) -> bool:
    """Return whether two answers are the same, but for the digits that answers do not show."""
    try:
        return math.isclose(float(mine or ""), float(theirs or ""), rel_tol=_ROUNDED, abs_tol=_ROUNDED)
    except ValueError:
        return mine == theirs
