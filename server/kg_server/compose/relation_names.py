"""Relations and features by id, by label or by the local part of their IRI."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias
from typing import Literal as Choice

from rapidfuzz import fuzz, process

from kg_adapters.errors import InvalidRequest
from kg_adapters.models import EdgeDirection, GraphSchema
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri, Node
from kg_boundary.shown import in_quotes
from kg_server.compose.concurrency import all_of
from kg_server.names import MAX_LABEL, Names, names_of, shown_label

Sort: TypeAlias = Choice["relation", "feature"]

MAX_SAMPLED: Final = 20
"""Of how many nodes the relations and features are looked at, to tell candidates apart and to suggest some."""

_LISTED: Final = 8
_CLOSE: Final = 3
_LEAST_LIKENESS: Final = 75
_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a text was taken for, and what else is called the same."""

    relation: Iri
    others: tuple[Iri, ...] = ()


@dataclass(frozen=True, slots=True)
class _Name:
    """A relation or feature with its label and short id."""

    relation: Iri
    label: str | None
    short: str

    def tiers(self) -> Iterator[str]:
        """Yield the names it goes by, the more telling first."""
        yield _folded(self.short)
        yield _folded(self.label) if self.label is not None else ""
        yield _folded(self.relation.local_part)


class RelationNames:
    """Finds the relations and features of one graph.

    A text is first an id; then, in spite of case, blanks and underscores, an id, a label or the local part of an IRI.
    Of several with the same name the one is taken that the nodes have, if it is only one.

    Args:
        graph: The graph; its definition is read once, unless it changes.
    """

    def __init__(self, graph: KGAdapter) -> None:
        self._graph = graph
        self._schema: GraphSchema | None = None
        self._names: dict[Sort, tuple[_Name, ...]] = {"relation": (), "feature": ()}

    async def relation(self, text: str, nodes: Sequence[Node], *, backwards: bool) -> Chosen:
        """Return the relation that a text stands for at some nodes.

        Raises:
            InvalidRequest: Several relations are called so, or none is: those are named that may have been meant, and
                those that the nodes have.
        """
        return await self._find(text, "relation", nodes, backwards=backwards)

    async def feature(self, text: str, nodes: Sequence[Node]) -> Chosen:
        """Return the feature that a text stands for at some nodes.

        Raises:
            InvalidRequest: Several features are called so, or none is: those are named that may have been meant, and
                those that the nodes have.
        """
        return await self._find(text, "feature", nodes, backwards=False)

    async def _find(self, text: str, sort: Sort, nodes: Sequence[Node], *, backwards: bool) -> Chosen:
        await self._learn()
        sample = nodes[:MAX_SAMPLED]
        called = await self._by_id(text) or _called(text, self._names[sort])
        if called and self._only_other_sort(called, sort):
            raise InvalidRequest(self._wrong_sort(called[0], sort))
        if not called:
            called = _called(text, await self._at_nodes(sort, sample))
        if len(called) == 1:
            return Chosen(called[0].relation)
        if called:
            return await self._among(text, called, sort, sample, backwards=backwards)
        other: Sort = "feature" if sort == "relation" else "relation"
        if elsewhere := _called(text, self._names[other]):
            raise InvalidRequest(self._wrong_sort(elsewhere[0], sort))
        raise InvalidRequest(await self._unknown(text, sort, sample))

    async def _learn(self) -> None:
        schema = await self._graph.schema()
        if schema is not self._schema:
            self._names = {
                "relation": tuple(self._named((each.iri, each.label) for each in schema.relations)),
                "feature": tuple(self._named((each.iri, each.label) for each in schema.features)),
            }
            self._schema = schema

    def _named(self, labelled: Iterable[tuple[Iri, str | None]]) -> Iterator[_Name]:
        for iri, label in labelled:
            yield _Name(iri, label, self._graph.prefixes.shorten(iri, "relation"))

    async def _by_id(self, text: str) -> tuple[_Name, ...]:
        try:
            node = self._graph.prefixes.expand(text, "relation")
        except InvalidRequest:
            return ()
        if not isinstance(node, Iri):
            return ()
        described = (await self._graph.describe([node])).get(node)
        if described is None or "relation" not in described.roles:
            return ()
        return tuple(self._named([(node, described.label)]))

    def _only_other_sort(self, called: Sequence[_Name], sort: Sort) -> bool:
        other: Sort = "feature" if sort == "relation" else "relation"
        relation = called[0].relation
        known = (any(each.relation == relation for each in self._names[of]) for of in (sort, other))
        return tuple(known) == (False, True)

    def _wrong_sort(self, name: _Name, sort: Sort) -> str:
        shown = _shown(name)
        if sort == "relation":
            return f"{shown} has values, not nodes: use Feature[node, {name.short}]."
        return f"{shown} leads to nodes, not values: use Neighbor[node, {name.short}]."

    async def _at_nodes(self, sort: Sort, nodes: Sequence[Node]) -> tuple[_Name, ...]:
        """Return the relations or features that nodes have, the most frequent first."""
        if not nodes:
            return ()
        counts: Counter[Iri] = Counter()
        if sort == "relation":
            for degree in (await self._graph.degrees(nodes)).values():
                for each in degree.relations:
                    counts[each.relation] += each.count.value
        else:
            pages = await all_of([partial(self._graph.features, node) for node in nodes], at_once=_AT_ONCE)
            for page in pages:
                counts.update(feature.relation for feature in page.features)
        ordered = sorted(counts, key=lambda iri: (-counts[iri], iri))
        names = await names_of(self._graph, ordered)
        return tuple(self._named((iri, names.labels.get(iri)) for iri in ordered))

    async def _among(
        self, text: str, called: Sequence[_Name], sort: Sort, nodes: Sequence[Node], *, backwards: bool
    ) -> Chosen:
        """Choose between several of the same name by what the nodes have."""
        there = await self._there(called, sort, nodes, backwards=backwards)
        if len(there) == 1:
            (taken,) = there
            return Chosen(taken, tuple(each.relation for each in called if each.relation != taken))
        candidates = [each for each in called if each.relation in there] or called
        listed = ", ".join(_shown(each) for each in candidates[:_LISTED])
        where = ", and the nodes have more than one of them" if there else ", and the nodes have none of them"
        raise InvalidRequest(
            f"{len(candidates)} {sort}s are called {in_quotes(text, MAX_LABEL)}: {listed}{where if nodes else ''}. "
            "Name one by its id."
        )

    async def _there(
        self, called: Sequence[_Name], sort: Sort, nodes: Sequence[Node], *, backwards: bool
    ) -> frozenset[Iri]:
        """Return which candidates the nodes have; of relations those that lead the right way, if any does."""
        candidates = frozenset(each.relation for each in called)
        if sort == "feature" or not nodes:
            return candidates & {each.relation for each in await self._at_nodes(sort, nodes)}
        degrees = await self._graph.degrees(nodes, relations=candidates)
        wanted: EdgeDirection = "in" if backwards else "out"
        found = [each for degree in degrees.values() for each in degree.relations]
        ahead = frozenset(each.relation for each in found if each.direction == wanted)
        return ahead or frozenset(each.relation for each in found)

    async def _unknown(self, text: str, sort: Sort, nodes: Sequence[Node]) -> str:
        there = await self._at_nodes(sort, nodes)
        close = _close(text, there) or _close(text, self._names[sort])
        parts = [f"No {sort} of this graph is called {in_quotes(text, MAX_LABEL)}."]
        if close:
            parts.append(f"Did you mean {' or '.join(_shown(each) for each in close)}?")
        if nodes:
            parts.append(_owned(sort, there, nodes, await names_of(self._graph, nodes[:1])))
        if "," in text:
            parts.append(f"One call takes one {sort}: write several calls, side by side or inside Union[…, …].")
        return " ".join(parts)


def _owned(sort: Sort, there: Sequence[_Name], nodes: Sequence[Node], names: Names) -> str:
    whose = f"{names.entity(nodes[0])} has" if len(nodes) == 1 else f"The first {len(nodes)} nodes have"
    if not there:
        return f"{whose} no {sort}s."
    more = f" and {len(there) - _LISTED} more" if len(there) > _LISTED else ""
    return f"{whose} {', '.join(_shown(each) for each in there[:_LISTED])}{more}."


def _called(text: str, names: Sequence[_Name]) -> tuple[_Name, ...]:
    """Return those that a text names: by id, else by label, else by local part."""
    wanted = _folded(text)
    for tier in zip(*(each.tiers() for each in names), strict=True):
        found = tuple(name for name, known in zip(names, tier, strict=True) if known == wanted)
        if found and wanted:
            return found
    return ()


def _close(text: str, names: Sequence[_Name]) -> list[_Name]:
    spoken = {each: _folded(each.label or each.relation.local_part) for each in names}
    found = process.extract(
        _folded(text), spoken, scorer=fuzz.WRatio, processor=None, limit=_CLOSE, score_cutoff=_LEAST_LIKENESS
    )
    return [name for _, _, name in found]


def _shown(name: _Name) -> str:
    return f"{shown_label(name.label)} ({name.short})" if name.label is not None else name.short


def _folded(text: str) -> str:
    return " ".join(text.replace("_", " ").casefold().split())
