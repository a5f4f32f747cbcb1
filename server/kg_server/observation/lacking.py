"""What a question asks of an entity that others of its class have, and it has not."""

from dataclasses import dataclass
from typing import Final

from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Iri, Node
from kg_server.coverage import absence, told_by
from kg_server.meaning import Meaning
from kg_server.names import names_of
from kg_server.observation.wording import question_about, spoken
from kg_server.results import Knowledge

MOST_RELATIONS: Final = 500
_ASKED: Final = 0.4
"""How like a question the label of a relation has to be for the question to ask for it."""
_MORE: Final = 0.05
"""By how much more than those that the entity has."""


@dataclass(frozen=True, slots=True)
class Lacking:
    """What is not stated: what that means, and a full sentence with a blank before it."""

    knowledge: Knowledge
    said: str


async def lacking(graph: KGAdapter, meaning: Meaning, entity: Node, question: str) -> Lacking | None:
    """Return what a question asks for and an entity lacks; None where it has it, or nothing like it is known."""
    own = await _relations_of(graph, entity)
    profile, left_out = await graph.profile(), graph.vocabulary.texts | graph.vocabulary.unwalked
    properties = (each for owner in await told_by(graph, profile, [entity]) for each in owner.properties)
    relations = own | {each.relation for each in properties if each.direction == "out"}
    has = own | {relation for relation in relations if profile.inverse_of(relation) in own}
    names = await names_of(graph, [entity, *relations])
    labels: dict[Node, str] = {
        each: names.labels[each] for each in sorted(relations - left_out)[:MOST_RELATIONS] if each in names.labels
    }
    about = question_about(question, spoken(entity, names.labels.get(entity)))
    near = (await meaning.nearest(about, labels, limit=len(labels))).candidates
    most = next((each.score for each in near if each.entity in has), 0.0)
    best = next(iter(near), None)
    if best is None or not isinstance(best.entity, Iri) or best.score < max(_ASKED, most + _MORE):
        return None
    missing = await absence(graph, entity, best.entity)
    return Lacking(
        missing.knowledge, f" {names.entity(entity)} has no {names.relation(best.entity)} here; {missing.clause}."
    )


async def _relations_of(graph: KGAdapter, entity: Node) -> frozenset[Iri]:
    request = NeighborRequest((entity,), "both", limit=MOST_RELATIONS, limit_per_relation=1, values=True)
    page = (await graph.neighbors(request)).get(entity)
    return frozenset() if page is None else frozenset(fact.relation for fact in page.facts)
