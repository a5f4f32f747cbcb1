"""Classes by name: which one a text means, and what to do where it means none."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kg_adapters.federated import FederatedGraph
from kg_adapters.folding import fold
from kg_adapters.models import Candidate
from kg_adapters.protocol import KGAdapter, known_profile
from kg_adapters.terms import Node
from kg_boundary.shown import in_quotes, shown_within
from kg_server.names import MAX_LABEL, names_of, plural
from kg_server.naming.entities import Identity, decided, identify, ids_among, naming_refusal
from kg_server.naming.refusals import id_of, require_entity
from kg_server.ontology import CLASS_KINDS


async def class_named(graph: KGAdapter, text: str) -> Identity:
    """Return the one class that an id or name stands for, and how it was read; over several graphs, all of that name.

    What names nothing may be a class in the plural.

    Raises:
        InvalidRequest: It names several things, or is no id and no name.
        UnknownEntity: The graph does not mention it.
    """
    if text in await ids_among(graph, [text]):
        return _by_id(await require_entity(graph, text), text)
    (identity,) = await identify(graph, [text])
    if len(identity.widened.named) == 1:
        return identity
    found = await as_class(graph, identity)
    if len(found.named) == 1 or (found.named and isinstance(graph, FederatedGraph)):
        return found
    if not found.named and id_of(graph, text) is not None:
        return _by_id(await require_entity(graph, text), text)
    raise await naming_refusal(graph, found)


async def as_class(graph: KGAdapter, identity: Identity) -> Identity:
    """Return a text as the name of a class: of several namesakes those that have instances, of these the largest.

    Over several graphs all of them stay. What names nothing is read in the plural and in the singular.
    """
    classes = {each.iri: each for each in (await graph.schema()).classes}
    if not identity.named:
        called = in_other_number(identity.text, {node: each.label for node, each in classes.items()})
        found = tuple(Candidate(node, 1.0, "label", classes[node].label or identity.text) for node in called)
        identity = replace(identity, match="close", named=found) if found else identity
    elif not classes.keys().isdisjoint(identity.widened.nodes):
        identity = replace(decided(identity, classes), passed=())
    if len(identity.named) < 2 or isinstance(graph, FederatedGraph):
        return identity
    profile = await known_profile(graph)

    def size(each: Candidate) -> int:
        known = profile.profile_of(each.entity)
        summary = classes.get(each.entity)
        return known.instances if known is not None else 0 if summary is None else summary.instances.value

    first, second, *others = sorted(identity.named, key=size, reverse=True)
    if size(first) == size(second):
        return identity
    return replace(identity, named=(first,), passed=(second, *others))


CLASSES: Final = "Schema lists the classes."


async def without_instances(graph: KGAdapter, text: str, node: Node) -> str:
    """Return what to do with what has no instances: whether it is a class of a tree, and how that is walked."""
    quoted, relations = in_quotes(text, MAX_LABEL), graph.vocabulary.subclasses
    described = (await graph.describe([node])).get(node)
    # Without relations to superclasses, all would count.
    below = (await graph.degrees([node], direction="in", relations=relations)).get(node) if relations else None
    is_lowest = below is None or below.is_none
    if is_lowest and (described is None or CLASS_KINDS.isdisjoint(described.types)):
        return f"{quoted} is not a class here: it has no instances. {CLASSES}"
    problem = f"{quoted} is a class without instances here. Schema(about={quoted}) shows it"
    if is_lowest:
        return f"{problem}; it has no subclasses."
    names = await names_of(graph, relations[:1])
    walked = f"Neighbor[{shown_within(text, MAX_LABEL)}, -{names.relation_id(relations[0])}+]"
    return f"{problem}, and {walked} gives its subclasses."


def in_other_number(text: str, classes: Mapping[Node, str | None]) -> list[Node]:
    """Return the classes, of some with their labels, that a text names in another number: `films` or `film`."""
    wanted, several = fold(text), fold(plural(text))
    labels = {node: label for node, label in classes.items() if label is not None}
    return [node for node, label in labels.items() if fold(plural(label)) == wanted or fold(label) == several]


def _by_id(node: Node, text: str) -> Identity:
    return Identity(text, "exact", (Candidate(node, 1.0, "id", text),))
