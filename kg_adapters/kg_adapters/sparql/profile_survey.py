"""The profile of a large graph behind an endpoint, surveyed by queries that look at a bounded part of it each."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

import anyio

from kg_adapters.models import EdgeDirection
from kg_adapters.profile import ClassProfile, GraphProfile, unknown_profile
from kg_adapters.sparql.asking import Asker
from kg_adapters.sparql.bounded_asking import BoundedAsker, Enough, ProfileLimits
from kg_adapters.sparql.class_survey import SurveyedClass, SurveyedClasses, survey_classes
from kg_adapters.sparql.inverse_survey import SurveyedInverses, survey_inverses
from kg_adapters.sparql.profile_rows import Place, ProfileRows
from kg_adapters.sparql.queries.profiles import Looked, Looks, ProfileQueries
from kg_adapters.sparql.schema import Labels
from kg_adapters.terms import Node

_SMALLER: Final = 20
"""How many times fewer instances are looked at where all are too many."""


class ProfileSurvey:
    """Surveys one graph, once.

    Args:
        asker: What asks the endpoint.
        queries: What writes the queries.
        labels: What tells the labels of classes and relations.
        limits: How much is asked for.
    """

    def __init__(self, asker: Asker, queries: ProfileQueries, labels: Labels, limits: ProfileLimits) -> None:
        self._asker = BoundedAsker(asker, limits)
        self._queries = queries
        self._labels = labels
        self._found = ProfileRows()
        self._classes = SurveyedClasses()
        self._inverses = SurveyedInverses()
        self._entities: int | None = None
        self._looked: dict[Place, int | None] = {}
        self._cut: set[Place] = set()

    @property
    def refused(self) -> bool:
        """Whether it ended since the endpoint answered nothing more."""
        return self._asker.refused

    async def profile(self) -> GraphProfile:
        """Return what could be learned.

        Raises:
            BackendUnavailable: The endpoint cannot be reached.
        """
        with anyio.move_on_after(self._asker.limits.total_s), suppress(Enough):
            await self._survey()
        if not self._classes.classes and self._entities is None:
            return unknown_profile()
        named = [*(each.iri for each in self._classes.classes), *self._found.relations()]
        return self._profile(await self._labels(named))

    async def _survey(self) -> None:
        queries, limits = self._queries, self._asker.limits
        self._classes = await survey_classes(self._asker, queries)
        for batch in _batches(self._classes.classes, limits):
            await self._look_at(batch)
        if limits.whole:
            await self._look_at_everything()
        unwanted = queries.unwanted(list(self._found.relations()))
        if unwanted and (found := await self._asker.ask(unwanted)) is not None:
            self._found.drop(iri for row in found.rows if (iri := row.iri("p")) is not None)
        self._inverses = await survey_inverses(self._asker, queries, self._found.edges())

    async def _look_at(self, batch: Sequence[Looked]) -> None:
        """Count what the instances of some classes have; where these are too many, over some of them."""
        fewer = [replace(each, most=max(1, self._asker.limits.instances // _SMALLER)) for each in batch]
        for looked in (batch, fewer):
            if await self._count(self._queries.instances(looked), [each.place for each in looked]):
                self._looked.update((each.place, each.most) for each in looked)
                return

    async def _look_at_everything(self) -> None:
        relations = list(self._found.relations())
        among = await self._asker.ask(self._queries.entities_among(relations))
        counted = await self._asker.ask(self._queries.survey.entities())
        if among is None or counted is None:
            return
        joined = {row.iri("r") for row in among.rows}
        everyone = self._queries.everyone([each for each in relations if each not in joined])
        if await self._count(everyone, [None]):
            self._entities = sum(row.number("n") or 0 for row in counted.rows)

    async def _count(self, looks: Looks, places: Collection[Place]) -> bool:
        """Count over some entities, and say whether all was answered that is said of them."""
        found, whole = ProfileRows(), self._asker.limits.whole
        if not await self._count_edges(found, looks, "out"):
            return False
        values = await self._asker.ask(self._queries.values(looks))
        if values is None:
            return False
        found.take_values(values.rows)
        whole = whole and await self._count_edges(found, looks, "in") and found.whole and values.whole
        self._found.take(found)
        self._cut.update(() if whole else places)
        return True

    async def _count_edges(self, found: ProfileRows, looks: Looks, direction: EdgeDirection) -> bool:
        facts = await self._asker.ask(self._queries.facts(looks, direction))
        targets = None if facts is None else await self._asker.ask(self._queries.targets(looks, direction))
        if facts is None or targets is None:
            return False
        found.whole = found.whole and facts.whole and targets.whole
        found.take_facts(facts.rows, direction)
        found.take_targets(targets.rows, direction)
        return True

    def _profile(self, labels: Mapping[Node, str]) -> GraphProfile:
        everything, entities = unknown_profile().everything, self._entities
        if entities is not None:
            told = self._found.properties(None, labels)
            everything = ClassProfile(None, None, entities, 0, (), told, complete=None not in self._cut)
        classes = [self._class(place, each, labels) for place, each in enumerate(self._classes.classes)]
        return GraphProfile(
            everything,
            tuple(classes),
            self._inverses.pairs,
            self._found.values(self._queries.vocabulary.texts),
            complete=self._classes.complete,
            sampled=entities is None or not self._inverses.complete,
        )

    def _class(self, place: int, known: SurveyedClass, labels: Mapping[Node, str]) -> ClassProfile:
        most = self._looked.get(place, 0)
        part = None if most is None or (most > known.instances and not known.at_least) else min(most, known.instances)
        return ClassProfile(
            known.iri,
            labels.get(known.iri),
            known.instances,
            known.direct,
            known.broader,
            self._found.properties(place, labels),
            complete=place in self._looked and place not in self._cut,
            looked_at=part,
            at_least=known.at_least,
        )


def _batches(classes: Sequence[SurveyedClass], limits: ProfileLimits) -> Iterator[list[Looked]]:
    """Yield what one query after the other looks at."""
    batch, size = list[Looked](), 0
    for place, each in enumerate(classes):
        expected = min(each.instances, limits.instances)
        if batch and size + expected > limits.together:
            yield batch
            batch, size = [], 0
        batch.append(each.looked_at(place, limits.instances))
        size += expected
    if batch:
        yield batch
