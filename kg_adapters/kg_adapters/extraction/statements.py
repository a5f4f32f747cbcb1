"""What a graph says of the terms that a walk met: their literals, labels and descriptions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from kg_adapters.extraction.asking import Asker
from kg_adapters.extraction.journal import Journal
from kg_adapters.extraction.records import Text, Texts, Value, ValueChoice, Values
from kg_adapters.extraction.seeds import batches
from kg_adapters.extraction.walking import Walked
from kg_adapters.models import NO_FEATURES, Feature
from kg_adapters.progress import ExtractionProgress, ExtractionStage, OnExtraction
from kg_adapters.terms import Node


@dataclass(frozen=True, slots=True)
class Stated:
    """The names in the journal of the answers about literals, and about labels and descriptions."""

    values: tuple[str, ...]
    texts: tuple[str, ...]


class StatementReader:
    """Asks what the graph says of terms, batch by batch; what the journal holds is not asked for again.

    Args:
        asker: What asks the graph.
        journal: Where every answer is kept.
        batch: How many terms one request is about.
        tell: Told how far it has come.
    """

    def __init__(self, asker: Asker, journal: Journal, batch: int, tell: OnExtraction) -> None:
        self._asker = asker
        self._journal = journal
        self._batch = batch
        self._tell = tell

    async def read(self, walked: Walked, choice: ValueChoice) -> Stated:
        """Return what is said of all nodes and relations that were met.

        Literals are read of those terms that `choice` names.

        Raises:
            BackendError: The graph failed.
            InvalidSource: The journal cannot be written.
        """
        terms = walked.nodes | walked.relations
        whose = {"all": terms, "inner": walked.inner, "none": frozenset[str]()}[choice]
        values: list[str] = []
        spoken = set(terms)
        for name, batch in self._batches(f"values-{choice}", "valuing", self._asker.askable(whose), walked):
            found = await self._journal.once(name, Values, _keys(batch), partial(self._values, batch))
            spoken.update(value.relation for value in found.values)
            values.append(name)
        texts: list[str] = []
        for name, batch in self._batches(f"texts-{choice}", "describing", self._asker.askable(spoken), walked):
            await self._journal.once(name, Texts, _keys(batch), partial(self._texts, batch))
            texts.append(name)
        return Stated(tuple(values), tuple(texts))

    def _batches(
        self, kind: str, stage: ExtractionStage, terms: Sequence[Node], walked: Walked
    ) -> Iterator[tuple[str, Sequence[Node]]]:
        done = 0
        for number, batch in enumerate(batches(terms, self._batch)):
            self._tell(ExtractionProgress(stage, 0, done, len(terms), walked.triples))
            yield f"{kind}-{number:06}", batch
            done += len(batch)

    async def _values(self, batch: Sequence[Node]) -> Values:
        pages = await self._asker.values(batch)
        return Values(
            asked=_keys(batch),
            values=tuple(_value(node, feature) for node in batch for feature in pages.get(node, NO_FEATURES).features),
            left_out=sum(page.total.value - len(page.features) for page in pages.values()),
            exact=all(page.total.exact for page in pages.values()),
        )

    async def _texts(self, batch: Sequence[Node]) -> Texts:
        described = await self._asker.descriptions(batch)
        texts = (
            Text(term=str(node), label=_sound(found.label), description=_sound(found.description))
            for node in batch
            if (found := described.get(node)) is not None
        )
        return Texts(asked=_keys(batch), texts=tuple(text for text in texts if text.label or text.description))


def _value(node: Node, feature: Feature) -> Value:
    return Value(
        term=str(node),
        relation=feature.relation.value,
        value=_sound(feature.value.value) or "",
        datatype=feature.value.datatype.value,
        language=_sound(feature.value.language),
    )


def _keys(batch: Sequence[Node]) -> tuple[str, ...]:
    return tuple(map(str, batch))


def _sound(text: str | None) -> str | None:
    """Return a text without halves of surrogate pairs, which no file can hold."""
    return None if text is None else text.encode("utf-8", "replace").decode()
