"""Random questions about sets have an index's answers on Wikidata, by one request each."""

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import pyoxigraph

from kg_adapters.http.pacing import Rates
from kg_adapters.index.sets.answers import sets_of
from kg_adapters.labels import WIKIDATA_TYPES
from kg_adapters.registry import OpenOptions
from kg_adapters.set_requests import SetRequest
from kg_adapters.terms import Attribute, Fact, Iri, Triple
from kg_adapters.testing import iri, typed
from kg_adapters.wikidata.opening import open_wikidata
from kg_adapters.wikidata.queries import VOCABULARY
from set_answers import agree, written
from set_expressions import CLASSES, FEATURES, NODES, RELATIONS, drawn
from wikidata_stand_in import QUERY, WikidataStandIn, running

T = TypeVar("T")

QUESTIONS: Final = 40
_WD, _WDT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
_ITEMS = (*NODES, *CLASSES, iri("nowhere"))
_PLACES: Final[Mapping[Iri, Iri]] = {
    **{node: Iri(f"{_WD}Q{number}") for number, node in enumerate(_ITEMS, start=1)},
    **{relation: Iri(f"{_WDT}P{number}") for number, relation in enumerate((*RELATIONS, FEATURES[0]), start=1)},
    iri("type"): WIKIDATA_TYPES[0],
    iri("subClassOf"): WIKIDATA_TYPES[1],
}
A, B, C, D, E = NODES
P, Q = RELATIONS
F = FEATURES[0]
FACTS: tuple[Fact, ...] = (
    *(Triple(head, P, tail) for head, tail in ((A, B), (B, C), (C, A), (C, C), (D, B), (E, D))),
    *(Triple(head, Q, tail) for head, tail in ((A, C), (B, A), (D, E), (E, E), (C, D))),
    *(Triple(head, iri("type"), CLASSES[0]) for head in (A, B)),
    *(Triple(head, iri("type"), CLASSES[1]) for head in (C, D)),
    Triple(CLASSES[0], iri("subClassOf"), CLASSES[1]),
    *(
        Attribute(head, F, typed(text, "decimal"))
        for head, text in ((A, "1"), (A, "12"), (B, "2"), (C, "12"), (E, "2.5"))
    ),
    Attribute(D, F, typed("ab", "string")),
)


def as_wikidata(part: T) -> T:
    """Return a fact or a question in which items and properties stand for the nodes and relations."""
    if isinstance(part, Iri):
        return cast("T", _PLACES.get(part, part))
    if isinstance(part, tuple):
        return cast("T", tuple(as_wikidata(each) for each in cast("tuple[object, ...]", part)))
    if is_dataclass(part) and not isinstance(part, type):
        changed: dict[str, Any] = {each.name: as_wikidata(getattr(part, each.name)) for each in fields(part)}
        return cast("T", replace(part, **changed))
    return part


async def test_random_questions_have_the_same_answers_by_one_request_each(tmp_path: Path) -> None:
    facts = as_wikidata(FACTS)
    reference = sets_of(facts, VOCABULARY)
    store = pyoxigraph.Store()
    store.bulk_load(written(facts), pyoxigraph.RdfFormat.N_TRIPLES)
    asked: list[int] = []
    async with running(WikidataStandIn(store)) as stand_in:
        options = OpenOptions(tmp_path, wikidata=stand_in.options(scholarly_url=None))
        async with aclosing(await open_wikidata("", options, rates=Rates())) as graph:
            for question in map(as_wikidata, drawn(QUESTIONS, FACTS)):
                request, before = SetRequest(question, limit=3, cell_limit=2, witnesses=0), len(stand_in.asked(QUERY))
                assert agree(await graph.compute(request), reference.compute(request)), question
                asked.append(len(stand_in.asked(QUERY)) - before)
    assert set(asked) <= {0, 1}
    assert asked.count(1) > QUESTIONS // 2
