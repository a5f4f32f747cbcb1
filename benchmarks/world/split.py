"""The world in two graphs: who and where in one, what is made and owned in the other, linked by `owl:sameAs`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pyoxigraph as ox

from benchmarks.world.graph import World
from benchmarks.world.questions import PREFIXES

NAMESPACES: Final = {"people": "http://people.example/", "companies": "http://companies.example/"}
"""The names of the two graphs, and where their ids begin."""
PLAYED: Final = (
    *("q01", "q02", "q05", "q17", "q39", "q45", "q51"),  # over facts of both graphs
    *("q06", "q10", "q14", "q18", "q21", "q23", "q25", "q29", "q30", "q35", "q41", "q56", "q58", "q59", "q67", "q78"),
    *("q03", "q04", "q08", "q11", "q12", "q16", "q19", "q22", "q28", "q31", "q36", "q40", "q54", "q62", "q76"),
    *("q33", "q71"),  # over facts of neither
)
"""The forty questions that are asked of the two graphs: by their ids in `questions.json`."""

_PREFIXES: Final = {"people": "p", "companies": "c"}
_OF_PEOPLE: Final = frozenset(
    [
        *("person", "career entry", "town", "region", "country", "river", "bridge", "stadium", "university", "law"),
        *("occupation", "role", "award", "gender", "language", "field of study"),
    ]
)
"""The classes whose entities the graph of people describes; those of all other classes are in the other graph."""
_WORLD: Final = PREFIXES["w"]
_SAME: Final = ox.NamedNode(f"{PREFIXES['owl']}sameAs")
_LABEL: Final = ox.NamedNode(f"{PREFIXES['rdfs']}label")
_KNOWN_OF_OTHERS: Final = {ox.NamedNode(f"{PREFIXES['rdf']}type"), _LABEL}


def split(world: World, folder: Path) -> Mapping[str, Path]:
    """Write the two graphs as Turtle, and return their files by name.

    Each has separate ids, and all facts of the entities that it describes. Of an entity of the other graph it states
    only the class, the label and what its id there is.
    """
    files = {name: folder / f"{name}.ttl" for name in NAMESPACES}
    common = {prefix: iri for prefix, iri in PREFIXES.items() if iri != _WORLD}
    for name, path in files.items():
        prefixes = {**common, _PREFIXES[name]: NAMESPACES[name]}
        half = ox.parse("\n".join(_half(world, name)), format=ox.RdfFormat.N_TRIPLES)
        ox.serialize((each.triple for each in half), path, format=ox.RdfFormat.TURTLE, prefixes=prefixes)
    return files


def id_in_world(short: str) -> str:
    """Return the id that an entity or a relation of one of the two graphs has in the whole world."""
    prefix, colon, local = short.partition(":")
    return f"w:{local}" if colon and prefix in _PREFIXES.values() else short


def _half(world: World, name: str) -> Iterator[str]:
    """Yield the triples of one of the two graphs as lines of N-Triples."""
    homes = _homes(world)
    triples = [quad.triple for quad in ox.parse(world.triples, format=ox.RdfFormat.N_TRIPLES)]
    described = [each for each in triples if homes.get(str(each.subject)) == name]
    elsewhere = {str(each.object) for each in described} & {node for node, home in homes.items() if home != name}
    described += [each for each in triples if str(each.subject) in elsewhere and each.predicate in _KNOWN_OF_OTHERS]
    used = {str(term) for each in described for term in (each.predicate, each.object)}
    vocabulary = [each for each in triples if str(each.subject) not in homes]
    while more := {str(each.object) for each in vocabulary if str(each.subject) in used} - used:
        used |= more
    for each in (*described, *(each for each in vocabulary if str(each.subject) in used)):
        yield f"{str(each).replace(f'<{_WORLD}', f'<{NAMESPACES[name]}')} ."
    other = next(each for each in NAMESPACES if each != name)
    for local in (each.removeprefix(f"<{_WORLD}") for each in sorted(elsewhere)):
        yield f"<{NAMESPACES[name]}{local} {_SAME} <{NAMESPACES[other]}{local} ."


def _homes(world: World) -> Mapping[str, str]:
    """Return the graph that describes each entity."""
    found = world.solutions(f"SELECT ?node ?class {{ ?node a/<{_LABEL.value}> ?class FILTER(LANG(?class) = 'en') }}")
    return {str(each["node"]): "people" if each["class"].value in _OF_PEOPLE else "companies" for each in found}
