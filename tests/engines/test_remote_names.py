"""Behind a real engine a name is found however it is written."""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping

import pytest

from kg_adapters.sparql.adapter import SparqlAdapter
from kg_adapters.terms import Iri, Node

pytestmark = pytest.mark.xdist_group("engines")

WIKIDATA = "http://www.wikidata.org/entity/"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
NAMES, SEED = 10, 12


@pytest.fixture(scope="module")
def bearers(sample_triples: bytes) -> Mapping[str, set[Node]]:
    """By name in small letters, the entities with this label in English."""
    found: defaultdict[str, set[Node]] = defaultdict(set)
    for line in sample_triples.decode().splitlines():
        head, relation, name = line.split(" ", 2)
        if (
            relation == f"<{LABEL}>"
            and name.endswith('"@en .')
            and "\\" not in name
            and head.startswith(f"<{WIKIDATA}")
        ):
            found[name[1 : -len('"@en .')].casefold()].add(Iri(head.strip("<>")))
    return found


def slipped(name: str, chance: random.Random) -> str:
    """Return a name with one letter too few, too many, wrong, or in the wrong place."""
    place = chance.randrange(len(name) - 1)
    before, letter, after = name[:place], name[place], name[place + 1 :]
    changed = (
        before + after,
        f"{before}x{letter}{after}",
        f"{before}q{after}",
        before + after[:1] + letter + after[1:],
    )
    return chance.choice(changed)


async def test_exact_names_and_misspelled_ones_are_found_first(
    remote_sample: SparqlAdapter, bearers: Mapping[str, set[Node]]
) -> None:
    chance = random.Random(SEED)  # noqa: S311 - no secret
    wanted = chance.sample(sorted(name for name in bearers if len(name) > 4), NAMES)
    first: Counter[str] = Counter()
    for name in wanted:
        exact = await remote_sample.search(name.title(), limit=10)
        first["exact"] += bearers[name] <= {each.entity for each in exact[: len(bearers[name])]}
        misspelled = slipped(name, chance)
        alike = await remote_sample.search(misspelled, limit=10)
        first["misspelled"] += misspelled in bearers or bool(alike and alike[0].entity in bearers[name])
    assert first["exact"] == NAMES
    assert first["misspelled"] >= NAMES * 0.9
