"""Relations and features by id or by name: the same rules in every tool.

A text is first an id; then a label, else an alias or the local part of an IRI, the same but for case, accents, blanks
and punctuation. Of several of that name the one is taken that the entities in question have, if it is only one.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from typing import Literal as Choice

from kg_adapters.errors import InvalidRequest, KGError, UnknownRelation
from kg_adapters.models import Direction, RelationCandidate
from kg_adapters.name_index import RelationIndex, RelationName, own_name
from kg_adapters.protocol import KGAdapter, known_profile
from kg_adapters.requests import FeatureRequest
from kg_adapters.terms import Iri, Node
from kg_boundary.shown import in_quotes, listed
from kg_server.answers.results import Verdict
from kg_server.names import MAX_LABEL, Names, names_of
from kg_server.naming.misspelling import slips_between, words_of
from kg_server.naming.refusals import id_of

Sort: TypeAlias = Choice["relation", "feature"]

MAX_SAMPLED: Final = 20
"""Of how many entities the relations and features are looked at, to tell candidates apart and to suggest some."""

_FOUND: Final = 50
_IN_BRACKETS: Final = re.compile(r"\s*\([^()]*\)\s*\Z")
_LISTED: Final = 8
_SUGGESTED: Final = 3


class NoSuchRelation(InvalidRequest):
    """No relation or feature of the graph is called so."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a text was taken for, which of its names that was (None for its id), and what else is called the same."""

    relation: Iri
    name: str | None = None
    others: tuple[Iri, ...] = ()

    @property
    def terms(self) -> tuple[Iri, ...]:
        """All that `said` names."""
        return (self.relation, *self.others)

    def said(self, names: Names) -> str:
        """Return a sentence on how the text was read, with a blank behind it; nothing where it was an id or label."""
        if self.name is None or (self.name == names.labels.get(self.relation) and not self.others):
            return ""
        others = f", which alone occurs here; others of that name: {_listed(self.others, names)}" if self.others else ""
        return f"{in_quotes(self.name, MAX_LABEL)} is read as {names.relation(self.relation)}{others}. "


async def relation_of(
    graph: KGAdapter,
    text: str,
    sort: Sort = "relation",
    *,
    around: Sequence[Node] = (),
    direction: Direction = "both",
    trusting: bool = False,
) -> Chosen:
    """Return the relation or feature that a text stands for.

    Args:
        graph: Where it occurs.
        text: Its id or a name of it.
        sort: Which of the two is wanted; either can be returned where the text can mean nothing else.
        around: The entities in question.
        direction: Which way the relation is walked: what leads there comes before what leads elsewhere.
        trusting: Take an id unseen, where what is asked for next tells whether the graph has it.

    Raises:
        InvalidRequest: Several relations are called so.
        NoSuchRelation: None is: those are named that may have been meant, and those that the entities have.
        UnknownRelation: It is an id that no statement has.
    """
    sample = around[:MAX_SAMPLED]
    relation = _as_id(graph, text)
    if relation is not None and (trusting or await _occurs(graph, relation)):
        return Chosen(relation)
    called = _same(graph, text, await graph.find_relations(text, limit=_FOUND))
    there: Sequence[Iri] = ()
    if not called:
        there = await _had_by(graph, sample, sort)
        called = _same(graph, text, (await _named(graph, there)).find(text, _FOUND))
    if len(called) == 1:
        return Chosen(called[0].relation, called[0].matched_text)
    if called:
        return await _among(graph, text, called, sort, sample, direction)
    raise await _refusal(graph, text, relation, sort, there, sample)


async def relations_named(graph: KGAdapter, text: str) -> tuple[Verdict, Sequence[RelationCandidate]]:
    """Return all relations and features that an id or name stands for, and whether it is exactly their name.

    Where nothing is called so, the only one is taken that is called so but for a slip, or for the unit behind its name.

    Raises:
        NoSuchRelation: None is, or several are nearly called so: those are named that may have been meant.
        UnknownRelation: It is an id that no statement has.
    """
    relation = _as_id(graph, text)
    if relation is not None and await _occurs(graph, relation):
        return "exact", [RelationCandidate(relation, 1.0, "id", text)]
    found = await graph.find_relations(text, limit=_FOUND)
    if called := _same(graph, text, found):
        return "exact", called
    if len(nearly := _nearly(text, found)) == 1:
        return "close", nearly
    raise await _refusal(graph, text, relation, "relation", [each.relation for each in nearly])


async def no_such_relation(graph: KGAdapter, entity: Node, error: NoSuchRelation) -> str:
    """Return what to say of an entity that is known where nothing is called as the relation that was asked for."""
    names = await names_of(graph, [entity])
    shown = names.entity(entity)
    return f"{shown} is known here. {str(error).replace(f' {shown} has ', ' It has ', 1)}"


_HINTS: Final[dict[Sort, str]] = {
    "relation": "Degree lists the relations of an entity, Schema all.",
    "feature": "Feature without a feature lists all values.",
}


def _as_id(graph: KGAdapter, text: str) -> Iri | None:
    node = id_of(graph, text, "relation")
    return node if isinstance(node, Iri) else None


async def _occurs(graph: KGAdapter, relation: Iri) -> bool:
    described = (await graph.describe([relation])).get(relation)
    return described is not None and "relation" in described.roles


def _same(graph: KGAdapter, text: str, found: Sequence[RelationCandidate]) -> Sequence[RelationCandidate]:
    """Return those that bear exactly the name: by label, or else by alias, or by the short id in another case."""
    for match in ("label", "alias"):
        if same := [each for each in found if each.matched_by == match]:
            return same
    return [each for each in found if graph.prefixes.shorten(each.relation, "relation").lower() == text.lower()]


def _nearly(text: str, found: Sequence[RelationCandidate]) -> Sequence[RelationCandidate]:
    """Return those whose name a text misspells, or gives without what stands behind it in brackets."""
    words = words_of(text)
    names = {each.relation: _IN_BRACKETS.sub("", each.matched_text) for each in found}
    slips = {each: slip.count for each, name in names.items() if (slip := slips_between(words, words_of(name)))}
    fewest = min(slips.values(), default=0)
    return [each for each in found if slips.get(each.relation) == fewest]


async def _had_by(graph: KGAdapter, nodes: Sequence[Node], sort: Sort) -> Sequence[Iri]:
    """Return the relations or features that nodes have, the most frequent first."""
    counts = Counter[Iri]()
    if sort == "relation" and nodes:
        for degree in (await graph.degrees(nodes)).values():
            for each in degree.relations:
                counts[each.relation] += each.count.value
    if sort == "feature":
        for page in (await graph.features(FeatureRequest(tuple(nodes)))).values():
            counts.update(feature.relation for feature in page.features)
    return sorted(counts, key=lambda iri: (-counts[iri], iri))


async def _named(graph: KGAdapter, relations: Sequence[Iri]) -> RelationIndex:
    if not relations:
        return RelationIndex(())
    labels = await graph.labels(relations)
    names = [RelationName(relation, labels[relation], alias=False) for relation in relations if relation in labels]
    return RelationIndex([*names, *map(own_name, relations)])


async def _among(
    graph: KGAdapter,
    text: str,
    called: Sequence[RelationCandidate],
    sort: Sort,
    nodes: Sequence[Node],
    direction: Direction,
) -> Chosen:
    """Choose between several of the same name by what the entities have, or else by the sort that is wanted."""
    candidates = [each.relation for each in called]
    there = await _there(graph, candidates, sort, nodes, direction)
    suitable = there or await _of_sort(graph, candidates, sort)
    if len(suitable) == 1:
        (taken,) = suitable
        name = next(each.matched_text for each in called if each.relation == taken)
        return Chosen(taken, name, tuple(each for each in candidates if each != taken))
    left = [each for each in candidates if each in suitable] or candidates
    names = await names_of(graph, left)
    where = f", and the nodes have {'more than one' if there else 'none'} of them" if nodes else ""
    raise InvalidRequest(
        f"{len(left)} {sort}s are called {in_quotes(text, MAX_LABEL)}: {_listed(left, names)}{where}. "
        "Name one by its id."
    )


async def _there(
    graph: KGAdapter, candidates: Collection[Iri], sort: Sort, nodes: Sequence[Node], direction: Direction
) -> frozenset[Iri]:
    """Return which candidates the nodes have; of relations those that lead the right way, if any does."""
    if sort == "feature" or not nodes:
        return frozenset(candidates).intersection(await _had_by(graph, nodes, sort))
    degrees = await graph.degrees(nodes, relations=candidates)
    found = [each for degree in degrees.values() for each in degree.relations]
    ahead = frozenset(each.relation for each in found if each.direction == direction)
    return ahead or frozenset(each.relation for each in found)


async def _of_sort(graph: KGAdapter, candidates: Collection[Iri], sort: Sort) -> frozenset[Iri]:
    schema = await graph.schema()
    known = schema.relations if sort == "relation" else schema.features
    return frozenset(candidates) & {each.iri for each in known}


async def _refusal(
    graph: KGAdapter, text: str, relation: Iri | None, sort: Sort, there: Sequence[Iri], nodes: Sequence[Node] = ()
) -> KGError:
    """Return why a text stands for no relation, with what may have been meant and what the nodes have.

    Args:
        graph: The graph.
        text: The text.
        relation: What it is the id of, if it is one.
        sort: What was wanted.
        there: Those that come first among what may have been meant: what the nodes have.
        nodes: The entities in question.
    """
    meant = text if relation is None else relation.local_part
    near = (await _named(graph, there)).find(meant, _SUGGESTED) or await graph.find_relations(meant, limit=_SUGGESTED)
    suggested = [each.relation for each in near]
    inverse_of = (await known_profile(graph)).inverse_of
    inverses = [inverse_of(each) for each in suggested]
    names = await names_of(graph, [*suggested, *filter(None, inverses), *nodes[:1], *there[:_LISTED]])
    shown = [_with_inverse(each, inverse, names) for each, inverse in zip(suggested, inverses, strict=True)]
    if relation is not None:
        return UnknownRelation(text, suggestions=shown, hint=_HINTS[sort])
    parts = [f"No {sort} of this graph is called {in_quotes(text, MAX_LABEL)}."]
    if shown:
        parts.append(f"Did you mean {' or '.join(shown)}?")
    if nodes:
        whose = names.entity(nodes[0]) if len(nodes) == 1 else f"The first {len(nodes)} entities that it is asked of"
        has = "has" if len(nodes) == 1 else "have"
        parts.append(f"{whose} {has} {_listed(there, names, by_label=True) if there else f'no {sort}s'}.")
    return NoSuchRelation(" ".join(parts))


def _with_inverse(relation: Iri, inverse: Iri | None, names: Names) -> str:
    name = names.relation(relation)
    return name if inverse is None or inverse == relation else f"{name} (the inverse of {names.relation(inverse)})"


def _listed(relations: Sequence[Iri], names: Names, *, by_label: bool = False) -> str:
    """Return relations with their ids, or by label alone, which serves as an id where no two of them bear it."""
    shown = (names.alone(each, ",", "relation") if by_label else names.relation(each, ",") for each in relations)
    return listed(shown, ", ", _LISTED)
