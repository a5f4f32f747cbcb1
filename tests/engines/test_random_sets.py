"""Random questions about sets have the plain reference's answers on real engines, by as few requests as can be."""

from pathlib import Path

import pytest
from benchmarks.engines.weather import weathered

from kg_adapters.algebra import Hop, Instances, Intersect, Members, Reached, Step
from kg_adapters.algebra import Path as Walk
from kg_adapters.labels import Vocabulary
from kg_adapters.set_requests import Grouped, Listed, SetRequest
from kg_adapters.terms import Attribute, Fact, Iri, Literal, Triple
from kg_adapters.testing import iri, typed
from kg_adapters.testing.set_reference import SetReference
from remote_graphs import Engine
from set_answers import agree, written
from set_expressions import CLASSES, FEATURES, NODES, RELATIONS, drawn

pytestmark = pytest.mark.xdist_group("engines")

QUESTIONS = 40
MOST_HOPS = 24
"""The most requests of a question that is walked: each hop of it is one, or two where it leads both ways."""
TYPE, NARROWER = iri("type"), iri("subClassOf")
A, B, C, D, E = NODES
P, Q = RELATIONS
F = FEATURES[0]
FACTS: tuple[Fact, ...] = (
    *(Triple(head, P, tail) for head, tail in ((A, B), (B, C), (C, A), (C, C), (D, B), (E, D))),
    *(Triple(head, Q, tail) for head, tail in ((A, C), (B, A), (D, E), (E, E), (C, D))),
    *(Triple(head, TYPE, CLASSES[0]) for head in (A, B)),
    *(Triple(head, TYPE, CLASSES[1]) for head in (C, D)),
    Triple(CLASSES[0], NARROWER, CLASSES[1]),
    *(Attribute(head, F, typed(text, "integer")) for head, text in ((A, "1"), (A, "12"), (B, "2"), (C, "12"))),
    *(Attribute(head, F, typed(text, kind)) for head, text, kind in ((D, "1977-05-01", "date"), (E, "1977", "gYear"))),
    Attribute(E, F, typed("2.5", "decimal")),
    Attribute(D, F, Literal("ab", Iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"), "en")),
    *(Attribute(head, iri("label"), typed(text, "string")) for head, text in ((A, "Ab"), (B, "Cd"))),
)


async def test_random_questions_have_the_same_answers_by_few_requests(engine: Engine, tmp_path: Path) -> None:
    reference, loaded = SetReference(FACTS, Vocabulary()), engine.load_new(written(FACTS))
    asked: list[int] = []
    with weathered(engine.running.url) as proxy:
        async with engine.opened(loaded, tmp_path, url=proxy.url) as graph:
            for question in drawn(QUESTIONS, FACTS):
                request, before = SetRequest(question, limit=3, cell_limit=2, witnesses=0), proxy.happened["fair"]
                found = await graph.compute(request)
                assert agree(found, reference.compute(request)), question
                asked.append(proxy.happened["fair"] - before)
    if engine.name == "oxigraph":
        assert asked == [1] * len(asked)
    else:
        # What it would answer wrongly is walked, hop by hop.
        assert asked.count(1) > 0
        assert max(asked) <= MOST_HOPS


async def test_a_question_over_hundreds_of_nodes_is_one_request(engine: Engine, tmp_path: Path) -> None:
    crowd = tuple(Triple(iri(f"n{number:03}"), P, iri(f"m{number % 7}")) for number in range(300))
    typed_crowd = (*crowd, *(Triple(iri(f"m{number}"), TYPE, CLASSES[0]) for number in range(7)))
    path = Walk((Hop((Step(P, "in"),)),))
    loaded = engine.load_new(written(typed_crowd))
    with weathered(engine.running.url) as proxy:
        async with engine.opened(loaded, tmp_path, url=proxy.url) as graph:
            for question in (
                Listed(Intersect((Reached(Instances(CLASSES[0]), path), Reached(Members((iri("m1"),)), path)))),
                Grouped(Reached(Instances(CLASSES[0]), path), Walk((Hop((Step(P),)),))),
            ):
                request, before = SetRequest(question, witnesses=0), proxy.happened["fair"]
                found = await graph.compute(request)
                assert agree(found, SetReference(typed_crowd, Vocabulary()).compute(request))
                assert proxy.happened["fair"] - before == 1
