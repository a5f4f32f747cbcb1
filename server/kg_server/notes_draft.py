"""A draft of the notes of a graph, from what is known of it, for a person to edit."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kg_adapters.folding import fold
from kg_adapters.models import GraphSchema
from kg_adapters.profile import COMPARED, ClassProfile, GraphProfile, PropertyProfile, unit_in
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri, Node
from kg_boundary.shown import counted, listed, shown_within
from kg_server.schema import facts_of, kinds_of_facts, label_of, stated_classes

_CLASSES: Final = 8
"""About how many classes, the largest ones, a draft says anything."""
_RELATIONS: Final = 4
_TRAPS: Final = 12
"""How many traps of one kind are drafted."""
_RARE: Final = 0.05
"""Below which part of a class's instances a relation is rare."""
_LABEL: Final = 60


@dataclass(frozen=True, slots=True)
class Proposal:
    """A question, and the expression of Compose that should answer it."""

    question: str
    expression: str


@dataclass(frozen=True, slots=True)
class Draft:
    """What is proposed before any call was tried.

    Args:
        about: Lines on what the graph holds.
        traps: Lines on what may mislead.
        preferred: Names of several relations, each with the id of the one that has the most facts.
        proposals: Questions to try.
    """

    about: Sequence[str]
    traps: Sequence[str]
    preferred: Sequence[str]
    proposals: Sequence[Proposal]

    @classmethod
    async def of(cls, graph: KGAdapter) -> "Draft":
        """Return the draft for a graph.

        Raises:
            KGError: The graph cannot be asked.
        """
        schema, profile = await graph.schema(), await graph.profile()
        drafting = _Drafting(
            graph, schema, profile, await graph.labels([each.example for each in schema.classes if each.example])
        )
        return cls(
            tuple(drafting.about()),
            tuple(drafting.traps()),
            tuple(drafting.preferred()),
            tuple(drafting.proposals()),
        )


@dataclass(frozen=True, slots=True)
class _Drafting:
    graph: KGAdapter
    schema: GraphSchema
    profile: GraphProfile
    labels: Mapping[Node, str]

    @property
    def classes(self) -> Sequence[ClassProfile]:
        """The largest classes."""
        return stated_classes(self.profile)[:_CLASSES]

    def about(self) -> Iterator[str]:
        """Yield what the graph holds: its size, its largest classes and kinds of values."""
        sizes = listed([f"{each.instances:,} {label_of(each)}" for each in self.classes], ", ")
        entities = self.schema.entities.of("entity", "entities")
        yield f"Graph {shown_within(self.graph.name, _LABEL)}: {entities}{', such as ' if sizes else ''}{sizes}."
        if kinds := kinds_of_facts(self.profile):
            yield kinds

    def traps(self) -> Iterator[str]:
        """Yield what may mislead: names of several relations, inverses, rare relations, units, missing labels."""
        for name, relations in list(self._same_names().items())[:_TRAPS]:
            shown = listed([f"{self._id(each.relation)} ({counted(each.facts, 'fact')})" for each in relations], ", ")
            yield f"`{name}` is the name of {len(relations)} relations: {shown}."
        for pair in self.profile.inverses[:_TRAPS]:
            if pair.relation != pair.inverse and pair.one_used is None and pair.partial:
                yield (
                    f"The relations {self._named(pair.relation)} and {self._named(pair.inverse)} say the same in "
                    f"opposite directions: {pair.both:,} facts are stored both ways, {pair.only_relation:,} only as "
                    f"the first, {pair.only_inverse:,} only as the second."
                )
        for known in self.classes:
            lines = [*self._rare(known), *self._units(known)]
            if known.label is None and isinstance(known.iri, Iri):
                lines.append(f"The class {self._id(known.iri, 'entity')} has no label.")
            if lines:
                yield f"### {label_of(known)}"
                yield from lines

    def preferred(self) -> Iterator[str]:
        """Yield for each name of several relations the one with the most facts, to be chosen by a person."""
        for name, relations in list(self._same_names().items())[:_TRAPS]:
            yield f"{name}: {self._id(max(relations, key=lambda each: each.facts).relation)}"

    def proposals(self) -> Iterator[Proposal]:
        """Yield questions: of each class an entity with its most frequent facts, a superlative, and a count."""
        examples = {each.iri: each.example for each in self.schema.classes}
        for known in self.classes:
            if not isinstance(known.iri, Iri):
                continue
            name, owner = label_of(known), self._id(known.iri, "entity")
            out = [each for each in facts_of(known, self.graph.vocabulary) if each.direction == "out"]
            example = examples.get(known.iri)
            if isinstance(example, Iri) and out:
                shown = [each.relation for each in out[:_RELATIONS]]
                asked = listed([self._name(each) for each in out[:_RELATIONS]], ", ")
                entity = self._id(example, "entity")
                called = shown_within(self.labels.get(example, entity), _LABEL)
                yield Proposal(
                    f"What are {asked} of the {name} {called}?", f"Table[{', '.join((entity, *map(self._id, shown)))}]"
                )
            number = next((each for each in out if each.values and set(COMPARED) & set(each.values.kinds)), None)
            if number is not None:
                relation = self._id(number.relation)
                yield Proposal(
                    f"Which {name} has the greatest {self._name(number)}?", f"Top[Type[{owner}], {relation}, 1]"
                )
            yield Proposal(f"How many instances of {name} are there?", f"Count[Type[{owner}]]")

    def _rare(self, known: ClassProfile) -> Iterator[str]:
        rare = [
            each
            for each in facts_of(known, self.graph.vocabulary)
            if each.direction == "out" and each.instances < _RARE * known.looked_at_for(each)
        ]
        if rare:
            every = max(map(known.looked_at_for, rare))
            names = listed([f"{self._name(each)} ({each.instances:,})" for each in rare], ", ", _TRAPS)
            yield f"Few of {every:,} have: {names}."

    def _units(self, known: ClassProfile) -> Iterator[str]:
        for each in facts_of(known, self.graph.vocabulary)[:_TRAPS]:
            if each.values is not None and (unit := unit_in(each.label)) is not None:
                yield f"Values of `{self._name(each)}` are in {shown_within(unit, _LABEL)}."

    def _same_names(self) -> dict[str, list[PropertyProfile]]:
        """Return relations that share a name, by this name."""
        by_name: dict[str, list[PropertyProfile]] = {}
        for each in self.profile.everything.properties:
            if each.direction == "out" and each.label is not None:
                by_name.setdefault(fold(each.label), []).append(each)
        return {self._name(many[0]): many for many in by_name.values() if len(many) > 1}

    def _name(self, each: PropertyProfile) -> str:
        return shown_within(each.label or each.relation.local_part, _LABEL)

    def _named(self, relation: Iri) -> str:
        known = self.profile.everything.property(relation)
        return self._id(relation) if known is None else f"{self._name(known)} ({self._id(relation)})"

    def _id(self, node: Node, position: str = "relation") -> str:
        return self.graph.prefixes.shorten(node, "entity" if position == "entity" else "relation")
