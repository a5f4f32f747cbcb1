"""What is shown as examples for the questions about the world: how often it names a relation that the answer needs."""

import re
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Final

from mcp import Client
from pydantic import TypeAdapter

from benchmarks.figures import Figure, Line, Section, Target
from benchmarks.graphs import Bench
from benchmarks.world.findings import WORLD, Reply, ask
from benchmarks.world.one_call import read_calls
from benchmarks.world.questions import Asked, read_questions
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_server.answers.results import token_count
from kg_server.app import EXPERIENCE_FILE, build_server
from kg_server.memory.experience import ExperienceStore, Solved
from kg_server.settings import Settings

FEWEST_NAMED: Final = 60
MOST_TOKENS: Final = 362
"""The tokens of the three questions that are most like each by words, each with its call, answers and evidence."""
_RELATION: Final = re.compile(r"w:R\d+")
_EMBEDDERS: Final = ("minilm", "lexical")


@dataclass(frozen=True, slots=True)
class Shown:
    """Whether what was shown for a question names a relation that its answer needs, and its tokens."""

    asked: Asked
    named: bool
    tokens: int


async def examples_in_order(cache: Path, settings: Mapping[str, object]) -> Sequence[Shown]:
    """Ask for examples for each question that an expression answers, and keep it as solved before the next one.

    Args:
        cache: Where the world is imported.
        settings: What differs from the usual settings.
    """
    calls = read_calls()
    questions = [each for each in read_questions() if calls[each.id].compose is not None]
    needed = {each.question: frozenset(_RELATION.findall(each.sparql)) for each in questions}
    found: list[Shown] = []
    with TemporaryDirectory() as folder:
        usual = {"cache_folder": cache, "data_folder": folder, "learn": True, "timeout_s": 120}
        served = Settings.model_validate({**usual, **settings})
        store = ExperienceStore(Path(folder) / EXPERIENCE_FILE)
        async with (
            aclosing(LocalAdapter(open_sample(cache, WORLD))) as graph,
            Client(build_server(graph, served)) as client,
        ):
            for asked in questions:
                reply = await ask(client, "Recall", question=asked.question)
                rows = TypeAdapter(list[list[str]]).validate_python(reply.data["solved"])
                named = {each for _, kind, text in rows if kind == "relation" for each in _RELATION.findall(text)}
                named.update(*(needed[text] for _, kind, text in rows if kind == "question"))
                found.append(Shown(asked, bool(named & needed[asked.question]), token_count(reply.text)))
                await store.keep(graph.name, await _solved(client, asked, f"{calls[asked.id].compose}"))
    return found


async def _solved(client: Client, asked: Asked, call: str) -> Solved:
    """Return a question as a run keeps it that made one call."""
    reply = await ask(client, "Compose", expression=call)
    names = TypeAdapter(dict[str, str]).validate_python({**_mapping(reply, "labels"), **_mapping(reply, "relations")})
    facts = TypeAdapter(list[list[str]]).validate_python(reply.data.get("evidence") or [])
    evidence = tuple(" | ".join(names.get(term, term) for term in fact) for fact in facts)
    return Solved(question=asked.question, calls=(call,), answers=tuple(map(str, asked.answers)), evidence=evidence)


def _mapping(reply: Reply, field: str) -> Mapping[str, str]:
    return TypeAdapter(dict[str, str]).validate_python(reply.data.get(field) or {})


async def measure_examples(bench: Bench) -> Section:
    """Count for how many questions the examples name a needed relation, by meaning and by letters."""
    lines: list[Line] = []
    for embedder in _EMBEDDERS:
        found = await examples_in_order(bench.cache, {"embedding": {"embedder": embedder}})
        named = sum(each.named for each in found)
        fewest = Target(FEWEST_NAMED / len(found), least=True) if embedder == "minilm" else None
        lines.append(
            Line(
                f"{embedder}: a needed relation is named, {named} of {len(found)}",
                Figure(named / len(found), "share"),
                fewest,
            )
        )
        lines.append(
            Line(
                f"{embedder}: the examples", Figure(mean(each.tokens for each in found), "tokens"), Target(MOST_TOKENS)
            )
        )
    return Section("examples", f"the questions about {WORLD}, each kept as solved for the next ones", lines)
