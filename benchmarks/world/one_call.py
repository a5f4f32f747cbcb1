"""The questions about the world, each answered by one recorded call, beside what plain SPARQL costs for the same."""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final, TypeAlias

from mcp import Client
from pydantic import BaseModel, ConfigDict, TypeAdapter

from benchmarks.figures import Figure, Line, Section, Target, Unit, beside
from benchmarks.graphs import Bench
from benchmarks.world.findings import WORLD, Reply, ask, read_facts
from benchmarks.world.graph import World
from benchmarks.world.questions import FOLDER, NO_SUCH_ENTITY, PREFIXES, YES_NO, Asked, read_questions
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_server.answers.results import token_count
from kg_server.app import build_server
from kg_server.settings import Settings

CALLS: Final = FOLDER / "calls.json"
PLAIN: Final = "plain SPARQL"
_ENOUGH: Final = 0.99
_NEAR: Final = 0.005
_NUMBER: Final = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?")
_DATE: Final = re.compile(r"\d{4}(?:-\d\d(?:-\d\d)?)?")
_LIMITS: Final[Mapping[Unit, float]] = {"calls": 0.5, "characters": 1 / 3}
_PROLOGUE: Final = " ".join(f"PREFIX {name}: <{base}>" for name, base in PREFIXES.items())
_LABEL: Final = "OPTIONAL {{ ?{0} rdfs:label ?label FILTER(LANG(?label) = 'en') }}"
_SCHEMA: Final = (
    f"""SELECT ?relation ?label (COUNT(*) AS ?facts) {{ ?s ?relation ?o {_LABEL.format("relation")} }}
GROUP BY ?relation ?label ORDER BY DESC(?facts)""",
    f"""SELECT ?class ?label (COUNT(*) AS ?instances) {{ ?s a ?class {_LABEL.format("class")} }}
GROUP BY ?class ?label ORDER BY DESC(?instances)""",
    """SELECT ?from ?relation ?to { ?relation a rdf:Property
OPTIONAL { ?relation rdfs:domain ?from } OPTIONAL { ?relation rdfs:range ?to } }""",
)
"""What somebody asks first about an unknown graph: its relations and classes, and what links which."""


class Calls(BaseModel):
    """How one question is put.

    Args:
        sparql: As a query with names, which are written as the question writes them.
        lookups: The names, or words of them, that somebody with plain SPARQL looks up before the query.
        compose: As an expression; None where no expression answers it.
        first: Whether the answer of the expression is the first of what it lists.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sparql: str
    lookups: tuple[str, ...]
    compose: str | None = None
    first: bool = False


@dataclass(frozen=True, slots=True)
class Given:
    """What an answer gives.

    Args:
        nodes: The short ids of entities and relations.
        values: Numbers, dates, `true` and `false`, as they are printed.
        unknown: The text of an answer that gives nothing.
    """

    nodes: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Spent:
    """The cost of an answer or of several: calls, the characters of their answers, and the tokens of these."""

    calls: int
    characters: int
    tokens: int

    @classmethod
    def on(cls, texts: Sequence[str]) -> "Spent":
        """Return what answers cost, one call each."""
        return cls(len(texts), sum(map(len, texts)), sum(map(token_count, texts)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one question came to: whether the answer is right, and what it cost."""

    asked: Asked
    right: bool
    spent: Spent


Way: TypeAlias = Callable[[Client, Calls], Awaitable[tuple[Reply, Given] | None]]


def read_calls(path: Path = CALLS) -> Mapping[str, Calls]:
    """Read the calls by the ids of the questions."""
    return TypeAdapter(dict[str, Calls]).validate_json(path.read_bytes())


async def outcomes(client: Client, questions: Sequence[Asked], way: str) -> list[Outcome]:
    """Make the one call for each question that can be answered this way."""
    calls, found = read_calls(), list[Outcome]()
    wanted = {each.id: each.wanted for each in read_facts()}
    for asked in questions:
        made = await WAYS[way](client, calls[asked.id])
        if made is not None:
            reply, given = made
            if asked.kind == YES_NO and not given.values:
                # A call that asks for what is so is answered by whether there is any.
                given = Given(values=(str(bool(given.nodes)).lower(),)) if reply.data else given
            found.append(Outcome(asked, is_right(asked, given, wanted.get(asked.id, "")), Spent.on([reply.text])))
    return found


def plain_answer(world: World, asked: Asked, lookups: Sequence[str]) -> Spent:
    """Return the cost of looking up the names of a question, and of its query where there is something to ask."""
    texts = [world.csv(_lookup(text)) for text in lookups]
    if asked.kind != NO_SUCH_ENTITY:
        texts.append(world.csv(_with_labels(asked.sparql)))
    return Spent.on(texts)


def is_right(asked: Asked, given: Given, wanted: str = "") -> bool:
    """Return whether an answer is the right one, by the rules of the world's README.

    Args:
        asked: The question.
        given: The answer.
        wanted: What the graph does not hold, where it cannot answer: then only an answer that names it is right.
    """
    if wanted:
        return not given.nodes and not given.values and wanted.casefold() in given.unknown.casefold()
    if asked.answer_ids:
        found, right = set(given.nodes), set(asked.answer_ids)
        return _agreement(len(found & right), len(found), len(right)) >= _ENOUGH
    matched = sum(any(_same(value, str(answer)) for value in given.values) for answer in asked.answers)
    return _agreement(matched, len(set(given.values)), len(asked.answers)) >= _ENOUGH


async def measure_calls_for_answers(bench: Bench) -> Section:
    """Answer the questions that came with the world, each way by itself, and count what that took."""
    world, questions, calls = World(), read_questions(), read_calls()
    settings = Settings(cache_folder=bench.cache, data_folder=bench.cache / "data")
    async with (
        aclosing(LocalAdapter(open_sample(bench.cache, WORLD))) as graph,
        Client(build_server(graph, settings)) as client,
    ):
        ways = {way: await outcomes(client, questions, way) for way in WAYS}
        schema = Spent.on([(await ask(client, "Schema")).text])
    plain = [Outcome(asked, True, plain_answer(world, asked, calls[asked.id].lookups)) for asked in questions]
    plain_schema = Spent.on([world.csv(f"{_PROLOGUE} {query}") for query in _SCHEMA])
    lines = [line for way, found in ways.items() for line in _totals(way, found, plain, schema, plain_schema)]
    notes = [
        f"Wrong by {way}: {', '.join(wrong)}."
        for way, found in ways.items()
        if (wrong := [outcome.asked.id for outcome in found if not outcome.right])
    ]
    title = f"{len(questions)} questions about {WORLD}, each by one call, beside plain SPARQL with ids looked up"
    return Section("one-call", title, [*lines, *_kinds(questions, ways, plain)], notes)


async def _by_sparql(client: Client, calls: Calls) -> tuple[Reply, Given]:
    reply = await ask(client, "Sparql", query=calls.sparql)
    truth, rows = reply.data.get("truth"), reply.data.get("rows")
    if isinstance(truth, bool):
        return reply, Given(values=(str(truth).lower(),))
    firsts = [row[0] for row in TypeAdapter(list[list[str]]).validate_python(rows or [])]
    return reply, _given(firsts, reply)


async def _by_compose(client: Client, calls: Calls) -> tuple[Reply, Given] | None:
    if calls.compose is None:
        return None
    reply = await ask(client, "Compose", expression=calls.compose)
    results = TypeAdapter(list[list[str]]).validate_python(reply.data.get("results") or [])
    found = (((result,) if kind == "node" else (node, result)) for _, node, _, result, kind in results)
    # A node without a name is an entry that holds facts, and no answer to anybody.
    cells = [cell for row in found for cell in row if cell and not cell.startswith("_:")]
    return reply, _given(cells[:1] if calls.first else cells, reply)


WAYS: Final[Mapping[str, Way]] = {"Sparql with names": _by_sparql, "Compose": _by_compose}


def _given(cells: Sequence[str], reply: Reply) -> Given:
    nodes = tuple(cell for cell in cells if cell.startswith("w:"))
    values = tuple(cell for cell in cells if not cell.startswith("w:"))
    return Given(nodes, values, "" if cells else reply.text)


def _totals(
    way: str, found: Sequence[Outcome], plain: Sequence[Outcome], schema: Spent, plain_schema: Spent
) -> Iterator[Line]:
    """Yield what all questions cost that can be answered this way; the schema counts on both sides."""
    right = sum(outcome.right for outcome in found) / len(found)
    yield Line(f"{way}: right, of {len(found)}", Figure(right, "share"), Target(0.95, least=True))
    yield Line(f"{way}: median answer", Figure(_median(found), "tokens"), Target(150))
    answered = {outcome.asked.id for outcome in found}
    theirs = [outcome.spent for outcome in plain if outcome.asked.id in answered]
    ours = [outcome.spent for outcome in found]
    for unit, limit in _LIMITS.items():
        spent, against = (
            Figure(sum(each.calls if unit == "calls" else each.characters for each in total), unit)
            for total in ([*ours, schema], [*theirs, plain_schema])
        )
        yield Line(f"{way}: {unit}, with the schema", spent, Target(limit, PLAIN), beside(spent, {PLAIN: against}))


def _kinds(
    questions: Sequence[Asked], ways: Mapping[str, Sequence[Outcome]], plain: Sequence[Outcome]
) -> Iterator[Line]:
    for kind in dict.fromkeys(asked.kind for asked in questions):
        theirs = Figure(_median([outcome for outcome in plain if outcome.asked.kind == kind]), "tokens")
        for way, found in ways.items():
            if ours := [outcome for outcome in found if outcome.asked.kind == kind]:
                own = Figure(_median(ours), "tokens")
                what = f"{kind}, {way}: {sum(each.right for each in ours)} of {len(ours)} right"
                yield Line(what, own, None, beside(own, {PLAIN: theirs}))


def _median(found: Sequence[Outcome]) -> float:
    return median(outcome.spent.tokens for outcome in found)


def _agreement(both: int, found: int, wanted: int) -> float:
    """Return F1."""
    return 2 * both / (found + wanted) if found + wanted else 1.0


def _same(given: str, wanted: str) -> bool:
    if _DATE.fullmatch(wanted) and not wanted.isdigit():
        return given.startswith(wanted)
    numbers = [float(each[0].replace(",", "")) for text in (given, wanted) if (each := _NUMBER.match(text))]
    if len(numbers) == 2:
        return abs(numbers[0] - numbers[1]) <= _NEAR * abs(numbers[1])
    return given.casefold() == wanted.casefold()


def _lookup(text: str) -> str:
    pattern = re.sub(r"([^\w\s])", r"\\\\\1", text)
    return (
        f"{_PROLOGUE} SELECT DISTINCT ?entity ?name ?class {{ ?entity rdfs:label|skos:altLabel ?name "
        f'FILTER(REGEX(STR(?name), "{pattern}", "i")) OPTIONAL {{ ?entity a/rdfs:label ?class '
        f'FILTER(LANG(?class) = "en") }} }} LIMIT 20'
    )


def _with_labels(query: str) -> str:
    """Return a query that also shows the label of what it finds, as an answer in words needs it."""
    if "?x" not in query:
        return query
    asked = "\n".join(line for line in query.splitlines() if not line.startswith("PREFIX"))
    return f"{_PROLOGUE} SELECT * {{ {{ {asked} }} {_LABEL.format('x')} }}"
