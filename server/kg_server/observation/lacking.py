"""What a question asks of entities that others of their class have, and none of them has."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kg_adapters.labels import Vocabulary
from kg_adapters.models import Description
from kg_adapters.profile import ClassProfile, GraphProfile
from kg_adapters.terms import Iri, Node
from kg_server.coverage import Absence, absence_among, telling_classes
from kg_server.meaning import Meaning
from kg_server.names import Names
from kg_server.observation.wording import question_about, spoken
from kg_server.results import Knowledge

MOST_RELATIONS: Final = 500
SHOWN: Final = 3
"""Of how many entities it is said at most."""
_ASKED: Final = 0.4
"""How like a question the label of a relation has to be for the question to ask for it."""
_MORE: Final = 0.05
"""By how much more than those that the entities have."""


@dataclass(frozen=True, slots=True)
class Lacking:
    """What is not stated: what that means, and full sentences with a blank before them."""

    knowledge: Knowledge
    said: str


@dataclass(frozen=True, slots=True)
class Known:
    """What is known without asking for more.

    Args:
        profile: What the classes of the graph have.
        vocabulary: Which relations are names or types, which no question asks for.
        seeds: The entities that a question is about, with their types.
        stated: The relations of what is stated around them, in either direction.
        names: What they are called.
    """

    profile: GraphProfile
    vocabulary: Vocabulary
    seeds: Mapping[Node, Description]
    stated: Collection[Iri]
    names: Names

    def classes(self) -> dict[Node, list[ClassProfile]]:
        """Return the classes that say something of each entity."""
        return {node: telling_classes(self.profile, described.types) for node, described in self.seeds.items()}

    def labels(self, classes: Sequence[ClassProfile]) -> dict[Node, str]:
        """Return the relations that a question may ask for, with their labels."""
        told = {each.relation: each.label for known in classes for each in known.properties if each.direction == "out"}
        labels = {relation: self.names.labels.get(relation) or told.get(relation) for relation in {*self.stated, *told}}
        left_out = self.vocabulary.texts | self.vocabulary.unwalked
        asked = sorted(relation for relation in labels if relation not in left_out)[:MOST_RELATIONS]
        return {relation: label for relation in asked if (label := labels[relation]) is not None}


async def lacking(meaning: Meaning, known: Known, question: str) -> Lacking | None:
    """Return what a question asks for and entities lack; None where one has it, or nothing like it is known.

    The graph is asked for nothing.
    """
    classes = known.classes()
    labels = known.labels([each for telling in classes.values() for each in telling])
    about = question
    for node, described in known.seeds.items():
        about = question_about(about, spoken(node, described.label))
    near = (await meaning.nearest(about, labels, limit=len(labels))).candidates
    most = next((each.score for each in near if _is_stated(known, each.entity)), 0.0)
    best = next(iter(near), None)
    if best is None or not isinstance(best.entity, Iri) or best.score < max(_ASKED, most + _MORE):
        return None
    missing = {
        node: absence_among(known.profile, telling, best.entity)
        for node, telling in classes.items()
        if any(each.property(best.entity) for each in telling)
    }
    return _told(known, best.entity, labels[best.entity], missing)


def _is_stated(known: Known, relation: Node) -> bool:
    inverse = known.profile.inverse_of(relation) if isinstance(relation, Iri) else None
    return relation in known.stated or inverse in known.stated


def _told(known: Known, relation: Iri, label: str, missing: Mapping[Node, Absence]) -> Lacking:
    names = replace(known.names, labels={**known.names.labels, relation: label})
    denied = all(each.knowledge == "denied" for each in missing.values())
    sentences = [
        f" {names.entity(node)} has no {names.relation(relation)} here; {absence.clause}."
        for node, absence in list(missing.items())[:SHOWN]
    ]
    if len(missing) > SHOWN:
        sentences.append(f" Nor have {len(missing) - SHOWN} others.")
    return Lacking("denied" if denied else "unknown", "".join(sentences))
