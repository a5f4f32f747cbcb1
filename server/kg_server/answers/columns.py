"""Texts that relations hold where links to an entity were looked for, as in a column of a table that was not linked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from kg_adapters.models import Count
from kg_adapters.profile import ClassProfile, PropertyProfile
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest
from kg_adapters.terms import Iri, Literal, Node
from kg_adapters.values import value_kind
from kg_boundary.shown import in_quotes
from kg_server.concurrency import load
from kg_server.names import MAX_LABEL

if TYPE_CHECKING:
    from kg_adapters.algebra import SetExpression

_NONE: Final = Count(0)
_MOST_TEXTS: Final = 20
_MOST_CLASSES: Final = 20
_LONGEST_TEXT: Final = 100


@dataclass(frozen=True, slots=True)
class TextsInstead:
    """What relations hold where links to an entity were looked for: texts, of which one may stand for the entity.

    Args:
        example: One of the texts.
        text: An id or value of the entity that is among them, if any is.
        having: How many have that one.
    """

    example: str
    text: str = ""
    having: Count = _NONE

    def clause(self, entity: str) -> str:
        """Return half a sentence about the relations, which names the entity as given."""
        held = f"it holds texts such as {in_quotes(self.example, MAX_LABEL)}, not links"
        if not self.text:
            return held
        have = "has" if self.having == Count(1) else "have"
        return f"{held}; {self.having} {have} {in_quotes(self.text, MAX_LABEL)}, the id or a value of {entity}"


async def texts_instead(
    graph: KGAdapter, entity: Node, relations: Sequence[Iri], among: "SetExpression | None" = None
) -> TextsInstead | None:
    """Return what relations that hold nothing but texts hold in place of links to an entity; None for other ones.

    A remote graph is not asked for it.

    Args:
        graph: The graph.
        entity: The entity.
        relations: The relations.
        among: Whose texts count; None for those of all classes.
    """
    if graph.remote or not graph.vocabulary.texts.isdisjoint(relations):
        return None
    profile = await graph.profile()
    if not all(_holds_texts(profile.everything.property(each, "out")) for each in relations):
        return None
    await load("kg_adapters.set_walking")
    from kg_adapters.algebra import Compares, Hop, HopPath, Instances, Kept, Step, Union, Values
    from kg_adapters.set_requests import Listed, SetRequest
    from kg_adapters.set_walking import compute_sets

    if among is None:
        owners = [each.iri for each in profile.classes if each.iri is not None and _has_any(each, relations)]
        if not owners:
            return None
        among = Union(tuple(map(Instances, owners[:_MOST_CLASSES])))
    path = HopPath((Hop(tuple(map(Step, relations))),))
    held = (await compute_sets(graph, SetRequest(Listed(Values(among, path)), limit=1, witnesses=0))).members
    if not held or not isinstance(held[0], Literal):
        return None
    for text in await _texts_of(graph, entity):
        having = Kept(among, Compares(path, "=", Literal(text)))
        count = (await compute_sets(graph, SetRequest(Listed(having), limit=0, witnesses=0))).count
        if count.value:
            return TextsInstead(held[0].value, text, count)
    return TextsInstead(held[0].value)


def _holds_texts(known: PropertyProfile | None) -> bool:
    return known is not None and not known.targets and known.values is not None and known.values.kinds == ("text",)


def _has_any(known: ClassProfile, relations: Sequence[Iri]) -> bool:
    return any(known.property(each, "out") is not None for each in relations)


async def _texts_of(graph: KGAdapter, entity: Node) -> Sequence[str]:
    """Return what may stand for an entity in a column of texts: its id, its names and its short texts."""
    page = (await graph.features(FeatureRequest((entity,), limit=_MOST_TEXTS))).get(entity)
    values = [] if page is None else [each.value for each in page.features]
    texts = [each.value for each in values if value_kind(each) == "text" and len(each.value) <= _LONGEST_TEXT]
    return list(dict.fromkeys((unquote(entity.local_part), *texts)))
