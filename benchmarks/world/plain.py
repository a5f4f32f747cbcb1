"""What the questions cost somebody who has nothing but SPARQL: the schema, a query for each name, and the query."""

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Final

from benchmarks.world.graph import World, prologue
from benchmarks.world.questions import NO_SUCH_ENTITY, NO_SUCH_FACT, Asked, full_iri
from kg_server.budget import token_count

_MOST_NAMED: Final = 20
_MOST_WORDS: Final = 2
_NAME: Final = re.compile(r'@"([^"]+)"')
_WORD: Final = re.compile(r"\w{3,}")
_ENTITY: Final = re.compile(r"w:E\d+")
_LABEL: Final = "OPTIONAL {{ ?{0} rdfs:label ?label FILTER(LANG(?label) = 'en') }}"
_RELATIONS: Final = f"""SELECT ?relation ?label (COUNT(*) AS ?facts) {{ ?s ?relation ?o {_LABEL.format("relation")} }}
GROUP BY ?relation ?label ORDER BY DESC(?facts)"""
_CLASSES: Final = f"""SELECT ?class ?label (COUNT(*) AS ?instances) {{ ?s a ?class {_LABEL.format("class")} }}
GROUP BY ?class ?label ORDER BY DESC(?instances)"""
_LINKS: Final = """SELECT ?from ?relation ?to { ?relation a rdf:Property
OPTIONAL { ?relation rdfs:domain ?from } OPTIONAL { ?relation rdfs:range ?to } }"""
_SCHEMA: Final = (_RELATIONS, _CLASSES, _LINKS)
"""What somebody asks first of a graph that he does not know: its relations and classes, and what links which."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent on an answer, or on several.

    Args:
        calls: How often something was asked.
        characters: How long the answers were together.
        tokens: The same for a model's context.
    """

    calls: int = 0
    characters: int = 0
    tokens: int = 0

    @classmethod
    def on(cls, texts: Sequence[str]) -> "Spent":
        """Return what answers cost, one call each."""
        return cls(len(texts), sum(map(len, texts)), sum(map(token_count, texts)))


def plain_schema(world: World) -> Spent:
    """Return what it takes to learn the relations and classes."""
    return Spent.on([world.csv(f"{prologue()} {query}") for query in _SCHEMA])


def plain_answer(world: World, asked: Asked, named: str) -> Spent:
    """Return what it takes to look up the names of a question and to ask its query.

    Args:
        world: The graph.
        asked: The question, completed where the graph cannot answer it.
        named: The query that answers it, with names in place of ids.
    """
    names = [name for name in _entities(world, named) if (asked.kind, name) != (NO_SUCH_FACT, asked.wanted)]
    meant = {*_ENTITY.findall(asked.sparql), *filter(None, [asked.topic])}
    texts = [text for name in names for text in _lookups(world, name, set(map(full_iri, meant)))]
    return Spent.on(texts if asked.kind == NO_SUCH_ENTITY else [*texts, world.csv(_with_labels(asked.sparql))])


def _entities(world: World, named: str) -> Iterator[str]:
    """Yield the names of a query that the schema does not tell."""
    for name in dict.fromkeys(_NAME.findall(named)):
        if not any(bearer.startswith(("w:R", "w:K")) for bearer in world.bearers.get(name, ())):
            yield name


def _lookups(world: World, name: str, meant: Set[str]) -> Iterator[str]:
    """Yield answers until one holds what is meant: of the whole name, then of its longest words."""
    words = sorted(dict.fromkeys(_WORD.findall(name)), key=len, reverse=True)
    for text in (name, *words[:_MOST_WORDS]):
        answer = world.csv(_lookup(text))
        yield answer
        if name in world.bearers or any(f"{iri}," in answer for iri in meant):
            return


def _lookup(text: str) -> str:
    pattern = re.sub(r"([^\w\s])", r"\\\\\1", text)
    return (
        f"{prologue()} SELECT DISTINCT ?entity ?name ?class {{ ?entity rdfs:label|skos:altLabel ?name "
        f'FILTER(REGEX(STR(?name), "{pattern}", "i")) OPTIONAL {{ ?entity a/rdfs:label ?class '
        f'FILTER(LANG(?class) = "en") }} }} LIMIT {_MOST_NAMED}'
    )


def _with_labels(query: str) -> str:
    """Return a query that also shows the label of what it finds, as an answer in words needs it."""
    if "?x" not in query:
        return query
    asked = "\n".join(line for line in query.splitlines() if not line.startswith("PREFIX"))
    return f"{prologue()} SELECT * {{ {{ {asked} }} {_LABEL.format('x')} }}"
