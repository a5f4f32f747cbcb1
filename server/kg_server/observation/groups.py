"""Groups of alike edges, and the lines that show them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from kg_adapters.labels import Vocabulary
from kg_adapters.models import Description
from kg_adapters.profile import ClassProfile, GraphProfile
from kg_adapters.surroundings import Longs, Surroundings
from kg_adapters.terms import Attribute, Fact, Iri, Literal, Node, Term, Triple
from kg_server.answers.coverage import Absence, absence_among, informative_classes
from kg_server.answers.results import Knowledge
from kg_server.names import Names
from kg_server.naming.meaning import Meaning
from kg_server.observation.scoring import question_about, spoken

Doubles: TypeAlias = npt.NDArray[np.float64]

Key: TypeAlias = tuple[Node, Iri, bool]

MOST_FAR: Final = 10
"""How many far ends of a group are named at most; `count` says how many there are."""


@dataclass(frozen=True, slots=True)
class RelationGroup:
    """The facts of one entity over one relation in one direction.

    Args:
        near: The entity.
        relation: The relation.
        inverse: Whether the far ends are the heads.
        far: The far ends most like the question, best first.
        count: How many far ends were seen.
        whole: Whether these are all there are.
        score: How like the question the best of them and what led there are.
        hop: At which hop from a seed the far ends are.
    """

    near: Node
    relation: Iri
    inverse: bool
    far: tuple[Term, ...]
    count: int
    whole: bool
    score: float
    hop: int

    @property
    def key(self) -> Key:
        """What no other group shares."""
        return self.near, self.relation, self.inverse

    def facts(self) -> Iterator[Fact]:
        """Yield the facts that are named, in their real direction."""
        for far in self.far:
            if isinstance(far, Literal):
                yield Attribute(self.near, self.relation, far)
            else:
                yield Triple(far, self.relation, self.near) if self.inverse else Triple(self.near, self.relation, far)


@dataclass(frozen=True, slots=True)
class Grouping:
    """Some edges, sorted into groups; k of them, m groups.

    Args:
        edges: Places in the surroundings, group after group, within one the best first; shape [k].
        starts: Where each group begins in `edges`, and the end of the last one; shape [m + 1].
        of: The group of each edge in the order in which they were given; shape [k].
        scores: The best score of each group; shape [m].
    """

    edges: Longs
    starts: Longs
    of: Longs
    scores: Doubles

    def __len__(self) -> int:
        return len(self.scores)

    def shown(self, number: int, most: int = MOST_FAR) -> list[int]:
        """Return the best edges of a group, at most so many."""
        first, end = int(self.starts[number]), int(self.starts[number + 1])
        best: list[int] = self.edges[first : min(end, first + most)].tolist()
        return best

    def group(self, around: Surroundings, number: int, hop: int, most: int = MOST_FAR) -> RelationGroup:
        """Return a group by its number, found at a hop, with so many far ends at most."""
        shown = self.shown(number, most)
        near = around.entities[int(around.near[shown[0]])]
        count = int(self.starts[number + 1] - self.starts[number])
        return RelationGroup(
            near=near,
            relation=around.relations[int(around.relation[shown[0]])],
            inverse=bool(around.inverse[shown[0]]),
            far=tuple(around.far_term(edge) for edge in shown),
            count=count,
            whole=near not in around.sampled,
            score=float(self.scores[number]),
            hop=hop,
        )


def grouping(around: Surroundings, edges: Longs, scores: Doubles) -> Grouping:
    """Sort edges into groups, in the order of the edges.

    Args:
        around: Where the edges are.
        edges: Places in `around`; shape [k].
        scores: Theirs; shape [k].
    """
    width = max(1, len(around.relations))
    kind = 2 * around.near[edges].astype(np.int64) + around.inverse[edges]
    codes, of = np.unique(kind * width + around.relation[edges], return_inverse=True)
    order = np.lexsort((-scores, of))
    starts = np.searchsorted(of[order], np.arange(len(codes) + 1))
    best = scores[order][starts[:-1]]
    return Grouping(edges[order], starts.astype(np.int64), of.astype(np.int64), best)


def merged(groups: Iterable[RelationGroup]) -> tuple[RelationGroup, ...]:
    """Return each group once, with its best score and its first hop, the best first; equal ones by their ids."""
    best: dict[Key, RelationGroup] = {}
    for group in groups:
        other = best.setdefault(group.key, group)
        if other is not group:
            better, hop = max(other, group, key=lambda each: each.score), min(other.hop, group.hop)
            far = tuple(dict.fromkeys((*better.far, *other.far, *group.far)))
            best[group.key] = replace(better, hop=hop, far=far)
    return tuple(sorted(best.values(), key=_rank))


def _rank(group: RelationGroup) -> tuple[float, int, str, str, bool]:
    return -group.score, group.hop, str(group.near), group.relation.value, group.inverse


MOST_RELATIONS: Final = 500

SHOWN: Final = 3
"""How many entities a sentence names at most."""

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
        return {node: informative_classes(self.profile, described.types) for node, described in self.seeds.items()}

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
        node: absence_among(known.profile, telling, [best.entity])
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


_MOST_TEXT: Final = 80


class _Said:
    """What was named already, so that its id is not repeated.

    Args:
        names: The ids and labels.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._said: set[Node] = set()

    def far(self, term: Term, marks: str) -> str:
        """Return a value, or an entity with its id, or by its label alone where both were said and it is clear."""
        if isinstance(term, Literal):
            return self._names.plain(term) or self._names.literal(term, _MOST_TEXT)
        return self._once(term, self._names.entity(term, marks), self._names.alone(term, marks))

    def relation(self, iri: Iri) -> str:
        """Return a relation in the same manner."""
        return self._once(iri, self._names.relation(iri), self._names.alone(iri, "", "relation"))

    def _once(self, node: Node, whole: str, alone: str) -> str:
        if node in self._said and node in self._names.labels:
            return alone
        self._said.add(node)
        return whole


def lines_of(groups: Sequence[RelationGroup], names: Names) -> Iterator[str]:
    """Yield a line for each group, in the real direction of its facts; ids stand where something is first named."""
    said = _Said(names)
    return (_line(group, said) for group in groups)


def _line(group: RelationGroup, said: _Said) -> str:
    # In the order of the columns, so that an id stands where something is first named.
    if group.inverse:
        return f"{_far_ends(group, said)} | {said.relation(group.relation)} | {said.far(group.near, '')}"
    return f"{said.far(group.near, '')} | {said.relation(group.relation)} | {_far_ends(group, said)}"


def _far_ends(group: RelationGroup, said: _Said) -> str:
    if group.count == 1 and group.whole:
        return said.far(group.far[0], "")
    far = ", ".join(said.far(term, ",") for term in group.far)
    return f"{counted(group)}: {far}{', …' if group.count > len(group.far) or not group.whole else ''}"


def counted(group: RelationGroup) -> str:
    """Return how many far ends a group has, as in `200+` where more may be there."""
    return str(group.count) if group.whole else f"{group.count}+"


def also(groups: Sequence[RelationGroup], names: Names) -> Iterator[str]:
    """Yield a line for each entity that says which groups it has beside those written out, and how large they are."""
    for near in dict.fromkeys(group.near for group in groups):
        out, into = (
            ", ".join(
                f"{names.alone(group.relation, ',:', 'relation')} {counted(group)}"
                for group in groups
                if group.near == near and group.inverse == inverse
            )
            for inverse in (False, True)
        )
        parts = [f"{direction}: {listed}" for direction, listed in (("out", out), ("in", into)) if listed]
        yield " | ".join((f"Also around {names.entity(near)}", *parts))
