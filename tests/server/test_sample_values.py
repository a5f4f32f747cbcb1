"""The bundled graph answers first questions: when somebody was born, how many people live somewhere."""

import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final

import pytest

from calls import call, rows
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.store import LocalStore
from pages import ROOT

FACT: Final = re.compile(
    r'wd:(Q\d+) wdt:(P\d+) "(.+)"\^\^(xsd:gYear|xsd:date|xsd:decimal|geo:wktLiteral) \. # '
    r"(wordnet \d{8}|calendar \d\d/\d\d \S.*|description|geonames \d+|country [A-Z]{2})"
)


@pytest.fixture
async def sample(sample_files: LocalStore) -> AsyncIterator[LocalAdapter]:
    async with aclosing(LocalAdapter(sample_files)) as graph:
        yield graph


@pytest.fixture(scope="session")
def facts() -> list[tuple[str, str, str, str]]:
    """The values that were added to the sample: entity, property, value, source."""
    lines = (ROOT / "tools" / "sample_values.ttl").read_text(encoding="utf-8").splitlines()
    matches = [FACT.fullmatch(line) for line in lines if line.startswith("wd:")]
    assert None not in matches
    return [(match[1], match[2], match[3], match[5].split()[0]) for match in matches if match]


@pytest.mark.parametrize(
    ("entity", "relation", "value"),
    [
        ("Goethe", "date of birth", "1749"),
        ("Albert Einstein", "date of birth", "1879-03-14"),
        ("Mozart", "date of death", "1791-12-05"),
        ("Tokyo", "population", "9,733,276"),
        ("Japan", "population", "126,529,100"),
        ("Paris", "coordinate location", "48.85341, 2.3488"),
        ("Germany", "area", "357,021"),
    ],
)
async def test_a_first_question_is_one_call(sample: LocalAdapter, entity: str, relation: str, value: str) -> None:
    reply = await call(sample, "GetNeighbor", entity=entity, relation=relation)
    assert [found for *_, found in rows(reply.data["values"])] == [value]


async def test_numbers_and_dates_of_the_sample_are_ranked_and_compared(sample: LocalAdapter) -> None:
    largest = await call(sample, "Compose", expression="Top[Type[country], area, 1]")
    younger = await call(sample, "Compose", expression="Where[Neighbor[Goethe, -influenced by], date of birth > 1850]")
    assert largest.plain.lines == ["Russia | area | 17,100,000"]
    assert younger.plain.lines[:2] == ["Thomas Mann", "Walter Benjamin"]


async def test_the_sample_holds_every_value_once(sample: LocalAdapter, facts: list[tuple[str, str, str, str]]) -> None:
    assert max(Counter((entity, prop) for entity, prop, *_ in facts).values()) == 1
    for prop, count in Counter(prop for _, prop, *_ in facts).items():
        reply = await call(sample, "Sparql", query=f"SELECT (COUNT(?v) AS ?n) {{ ?e wdt:{prop} ?v }}")
        assert reply.text.splitlines()[-1] == str(count)


def test_a_life_is_not_longer_than_a_life(facts: list[tuple[str, str, str, str]]) -> None:
    born, died = ({entity: int(value[:4]) for entity, prop, value, _ in facts if prop == p} for p in ("P569", "P570"))
    lives = [died[entity] - born[entity] for entity in died.keys() & born.keys()]
    assert (min(lives) > 20, max(lives) < 105, len(lives) > 300) == (True, True, True)
