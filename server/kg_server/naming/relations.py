"""Relations and features by id or by name: the same rules in every tool.

A text is first an id, alone or behind a label (`kg_server.naming.labelled`); then a name that the notes of the graph's
owner give a relation; then a label, else an alias or the local part of an IRI, the same but for case, accents, blanks
and punctuation. An id means one relation, a name all that are called so.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, TypeAlias
from typing import Literal as Choice

from kg_adapters.errors import KGError, UnknownRelation
from kg_adapters.federated import FederatedGraph
from kg_adapters.folding import fold
from kg_adapters.models import Count, Direction, RelationCandidate
from kg_adapters.name_index import RelationIndex, RelationName, own_name
from kg_adapters.prefixes import read_differently
from kg_adapters.profile import GraphProfile, unit_in
from kg_adapters.protocol import KGAdapter, known_profile
from kg_adapters.requests import FeatureRequest
from kg_adapters.terms import Iri, Node
from kg_boundary.shown import in_quotes, listed, set_apart, shown_within
from kg_server.answers.results import Verdict
from kg_server.names import MAX_LABEL, Names, names_of, plural
from kg_server.naming.dated import of_kind
from kg_server.naming.declared import declared_only
from kg_server.naming.labelled import Labelled, labelled, with_ids
from kg_server.naming.misspelling import slips_between, words_of
from kg_server.naming.refusals import NoSuchRelation, id_of
from kg_server.naming.subproperties import inclusion_note, subproperties
from kg_server.notes import Notes, preferred_ids

Sort: TypeAlias = Choice["relation", "feature"]

MAX_SAMPLED: Final = 20
"""Of how many entities the relations and features are looked at, to tell candidates apart and to suggest some."""

_FOUND: Final = 50
_IN_BRACKETS: Final = re.compile(r"\s*\([^()]*\)\s*\Z")
_LISTED: Final = 8
_NAMED_TOGETHER: Final = 3
_MOST_UNSTATED: Final = 200
"""Among how many relations without facts a name is looked for."""
_ABOUT: Final = 40
_SUGGESTED: Final = 3
_NAME_COLUMNS: Final = frozenset({"name", "label", "title"})


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a text was taken for: the relation of an id, or all of one name together, the most used first.

    Args:
        relations: The relations.
        name: Their name; None where the text is an id.
        why: What the text means them by, where it is not one of their names; begins with a comma.
        wider: Those of that name, where others are taken as well since they are subproperties of these.
        behind: Relations that hold backwards only where these do, without an inverse among them.
    """

    relations: tuple[Iri, ...]
    name: str | None = None
    why: str = ""
    wider: tuple[Iri, ...] = ()
    behind: tuple[Iri, ...] = ()

    @property
    def relation(self) -> Iri:
        """The first of them."""
        return self.relations[0]

    @property
    def terms(self) -> tuple[Iri, ...]:
        """All that `said` and `shown` name."""
        return tuple(dict.fromkeys((*self.wider, *self.relations, *self.behind)))

    def said(self, names: Names) -> str:
        """Return a sentence on how the text was read, with a blank behind it; nothing where it was an id or label.

        Of a relation without a label it is enough that the shown id ends in it.
        """
        if self.wider:
            below = [each for each in self.relations if each not in self.wider]
            said = inclusion_note(self.wider[0], below, self.behind, names)
            return f"{said} " if said else ""
        known = names.labels.get(self.relation) or own_name(self.relation).text
        if self.name is None or self.name == known or len(self.relations) > 1:
            return ""
        return f"{in_quotes(self.name, MAX_LABEL)} is read as {names.relation(self.relation)}{self.why}. "

    def shown(self, names: Names) -> str:
        """Return the relation as people read it; of several their name, and how many there are."""
        called = self.wider or self.relations
        if len(called) == 1 or self.name is None:
            return names.relation(called[0])
        return f"{in_quotes(self.name, MAX_LABEL)} ({len(called)} relations of that name)"


def without_dash(relation: str, direction: Direction) -> tuple[str, Direction]:
    """Return a relation without the `-` by which answers and expressions walk it backwards, which means `in`.

    So it does whatever the direction: hosts fill in defaults, and answers about `in` print the `-` themselves.
    """
    text = relation.strip()
    return (text[1:].lstrip(), "in") if text.startswith("-") else (relation, direction)


async def said_of_union(
    graph: KGAdapter, relations: Sequence[Iri], name: str, *, taken: bool = True, passed: int = 0
) -> str:
    """Return a sentence on a name that several relations have, with what distinguishes the first of them."""
    shown = await told_apart(graph, relations[:_NAMED_TOGETHER])
    return namesakes(name, "relations", shown, len(relations), most=_FOUND, taken=taken, passed=passed)


def namesakes(
    name: str, what: str, shown: Sequence[str], number: int, *, most: int, taken: bool = True, passed: int = 0
) -> str:
    """Return a sentence on how many things a name means, of which some are shown, and whether they are taken.

    Args:
        name: The name.
        what: What it names, in the plural.
        shown: The first of them.
        number: How many there are, without those that are passed over.
        most: How many are looked for: where these are found, there may be more.
        taken: Whether they are taken together.
        passed: How many more of that name are not taken.
    """
    more = f"; and {number - len(shown)} more" if number > len(shown) else ""
    every = Count(number + passed, exact=number + passed < most)
    how = "" if not taken else f", {number} taken" if passed or not every.exact else ", all taken"
    return f"{in_quotes(name, MAX_LABEL)} names {every} {what}{how}: {'; '.join(shown)}{more}."


async def told_apart(graph: KGAdapter, relations: Sequence[Iri]) -> list[str]:
    """Return relations of one name by their ids, with a description, whose they mostly are, or else how many facts."""
    described = await graph.describe(relations)
    profile = await known_profile(graph)
    owners = {relation: _mostly_of(profile, relation) for relation in relations}
    differ = len(set(owners.values())) > 1
    shown: list[str] = []
    for relation in relations:
        about = described[relation].description if relation in described else None
        if about is None and differ and (owner := owners[relation]) is not None:
            about = f"of {plural(owner)}"
        if about is None and (every := profile.everything.property(relation)) is not None:
            about = f"{every.facts:,} fact{'' if every.facts == 1 else 's'}"
        short = graph.prefixes.shorten(relation, "relation")
        shown.append(short if about is None else f"{short}, {set_apart(shown_within(about, _ABOUT), ',;:')}")
    return shown


def _mostly_of(profile: GraphProfile, relation: Iri) -> str | None:
    """Return the label of the class of which most instances have a relation."""
    most, owner, wanted = 0, None, relation.value
    for each in profile.classes:
        if each.instances <= most:
            # The largest classes come first.
            break
        # Texts compare faster than IRIs, and there are thousands.
        out = (
            known.instances for known in each.properties if known.relation.value == wanted and known.direction == "out"
        )
        if (having := next(out, 0)) > most:
            most, owner = having, each.label
    return owner


async def relation_of(
    graph: KGAdapter,
    text: str,
    sort: Sort = "relation",
    *,
    around: Sequence[Node] = (),
    trusting: bool = False,
) -> Chosen:
    """Return the relations or features that a text names.

    Args:
        graph: Where it occurs.
        text: Its id or a name of it.
        sort: Which of the two is wanted, for error messages; either is returned.
        around: The entities in question.
        trusting: Take an id unseen, where what is asked for next tells whether the graph has it.

    Raises:
        NoSuchRelation: None is: those are named that may have been meant, and those that the entities have.
        UnknownRelation: It is an id that no statement has.
    """
    sample = around[:MAX_SAMPLED]
    relation = await _as_id(graph, text)
    if relation is not None and (trusting or await _occurs(graph, relation)):
        return Chosen((relation,))
    behind = await relation_behind_label(graph, text)
    if behind is not None and behind.is_printed:
        return Chosen(behind.relations)
    if preferred := await preferred_relations(graph, text):
        return await _with_subproperties(graph, Chosen(preferred, text, ", by the notes of this graph"))
    found = await graph.find_relations(text, limit=_FOUND)
    called = _same(graph, text, found)
    there: Sequence[Iri] = ()
    if not called:
        there = await _had_by(graph, sample, sort)
        called = _same(graph, text, (await _named(graph, there)).find(text, _FOUND))
    if called := called or await _stored_otherwise(graph, text):
        own = tuple(each.relation for each in called)
        return await _with_subproperties(graph, Chosen(own, called[0].matched_text))
    if behind is not None:
        is_misnamed = not (behind.is_called_so or await _is_alias(graph, behind))
        return (
            Chosen(behind.relations, text, ", by its id, not by its label") if is_misnamed else Chosen(behind.relations)
        )
    if (chosen := await _called_in_part(graph, text, found, sample)) is not None:
        return chosen
    raise await _refusal(graph, text, relation, sort, there, sample)


async def _called_in_part(
    graph: KGAdapter, text: str, found: Sequence[RelationCandidate], sample: Sequence[Node]
) -> Chosen | None:
    """Return the relation whose label a text is without its unit, or that to names; see `_without_unit`, `_names`."""
    if (measured := await _without_unit(graph, text, found, sample)) is not None:
        return Chosen((measured,))
    label = await _names(graph, text)
    return None if label is None else Chosen((label,), text)


async def preferred_relations(graph: KGAdapter, text: str) -> tuple[Iri, ...]:
    """Return the relations that a name means by the notes of the graph's owner; none where they do not say so.

    Of several graphs as one, those whose notes do not say so add the relations that they call so.
    """
    if not isinstance(graph, FederatedGraph):
        preferred = (await preferred_ids(graph)).get(fold(text))
        return () if preferred is None or (relation := await used_relation(graph, preferred)) is None else (relation,)
    found = [await preferred_relations(member, text) for member in graph.members]
    if not any(found):
        return ()
    for place, member in enumerate(graph.members):
        if not found[place]:
            called = _same(member, text, await member.find_relations(text, limit=_FOUND))
            found[place] = tuple(each.relation for each in called)
    return tuple(dict.fromkeys(chain.from_iterable(found)))


async def _as_noted(graph: KGAdapter, text: str, found: Sequence[RelationCandidate]) -> Sequence[RelationCandidate]:
    """Return what a text may name, where a name that it misspells means what notes prefer and nothing else."""
    words, meant, taken = words_of(text), dict[Iri, str](), set[str]()
    for member in graph.members if isinstance(graph, FederatedGraph) else (graph,):
        for name in await preferred_ids(member):
            if slips_between(words, words_of(name)) and (preferred := await preferred_relations(graph, name)):
                taken.add(name)
                meant |= dict.fromkeys(preferred, name)
    noted = [RelationCandidate(each, 1.0, "text", name) for each, name in meant.items()]
    return [*noted, *(each for each in found if each.relation not in meant and fold(each.matched_text) not in taken)]


async def without_unused(graph: KGAdapter, notes: Notes) -> Notes:
    """Return notes without the preferred ids that no fact has. A remote graph is not asked for it."""
    if graph.remote:
        return notes
    used = [each for each in notes.preferred if await used_relation(graph, each.relation) is not None]
    return replace(notes, preferred=tuple(used))


async def _names(graph: KGAdapter, text: str) -> Iri | None:
    """Return the relation that holds the names of entities where a text asks for these: tables call it `name`."""
    if fold(text) not in _NAME_COLUMNS:
        return None
    described = await graph.describe(graph.vocabulary.labels)
    used = (each for each in graph.vocabulary.labels if each in described and "relation" in described[each].roles)
    return next(used, None)


async def _without_unit(
    graph: KGAdapter, text: str, near: Sequence[RelationCandidate], nodes: Sequence[Node]
) -> Iri | None:
    """Return the relation whose label is a text with a unit behind it: `length` means `length (m)`.

    Of several the one is taken that the nodes have, if it is only one.
    """
    labels = await graph.labels([each.relation for each in near])
    wanted = fold(text)
    same = [
        each.relation
        for each in near
        if (unit := unit_in(label := labels.get(each.relation))) is not None
        and label is not None
        and fold(label.removesuffix(f"({unit})").strip()) == wanted
    ]
    if len(same) > 1 and nodes:
        pages = await graph.features(FeatureRequest(tuple(nodes), frozenset(same)))
        same = list({feature.relation for page in pages.values() for feature in page.features})
    return same[0] if len(same) == 1 else None


async def _with_subproperties(graph: KGAdapter, chosen: Chosen) -> Chosen:
    below, behind = subproperties(await graph.profile(), chosen.relations)
    if not (below or behind):
        return chosen
    return replace(chosen, relations=(*chosen.relations, *below), wider=chosen.relations, behind=behind)


async def _stored_otherwise(graph: KGAdapter, text: str) -> Sequence[RelationCandidate]:
    """Return the relations without facts that bear a name, and whose subproperties or inverses have some."""
    unstated = (await graph.profile()).unstated[:_MOST_UNSTATED]
    return _same(graph, text, (await _named(graph, unstated)).find(text, _FOUND))


async def relations_named(
    graph: KGAdapter, text: str, *, shown: bool = False
) -> tuple[Verdict, Sequence[RelationCandidate]]:
    """Return all relations and features that an id or name stands for, and whether it is exactly their name.

    Where nothing is called so, the only one is taken that is called so but for a slip, or for the unit behind its name.

    Args:
        graph: Where it occurs.
        text: Its id or a name of it.
        shown: Whether the text may be copied from an answer, which shows labels, whatever notes prefer.

    Raises:
        NoSuchRelation: None is, or several are nearly called so: those are named that may have been meant.
        UnknownRelation: It is an id that no statement has.
    """
    relation = await _as_id(graph, text)
    is_id = relation is not None and await _occurs(graph, relation)
    behind = None if is_id else await relation_behind_label(graph, text)
    of_id = (relation,) if is_id and relation is not None else () if behind is None else behind.relations
    by_id = [RelationCandidate(each, 1.0, "id", text) for each in of_id]
    if is_id or (behind is not None and behind.is_printed):
        return "exact", by_id
    if preferred := await preferred_relations(graph, text):
        labelled = _same(graph, text, await graph.find_relations(text, limit=_FOUND)) if shown else ()
        others = [each for each in labelled if each.relation not in preferred]
        return "exact", [*(RelationCandidate(each, 1.0, "alias", text) for each in preferred), *others]
    found = await _as_noted(graph, text, await graph.find_relations(text, limit=_FOUND))
    if called := _same(graph, text, found) or await _stored_otherwise(graph, text):
        return "exact", called
    if behind is not None:
        return "exact" if behind.is_called_so or await _is_alias(graph, behind) else "close", by_id
    if (label := await _names(graph, text)) is not None:
        return "close", [RelationCandidate(label, 1.0, "alias", text)]
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


async def _as_id(graph: KGAdapter, text: str) -> Iri | None:
    """Return the relation that a text is the id of, whether it occurs or not; of several graphs the only one that does.

    Raises:
        InvalidRequest: Several graphs have different relations of this id.
    """
    known = (await graph.known([text], "relation")).get(text, ()) if isinstance(graph, FederatedGraph) else ()
    if len(known) > 1:
        raise read_differently(text, known)
    node = known[0] if known else id_of(graph, text, "relation")
    return node if isinstance(node, Iri) else None


async def used_relation(graph: KGAdapter, text: str) -> Iri | None:
    """Return the relation that a text is the id of, if a fact has it."""
    relation = await _as_id(graph, text)
    return relation if relation is not None and await _occurs(graph, relation) else None


async def relation_behind_label(graph: KGAdapter, text: str) -> Labelled | None:
    """Return the relation whose id a text has behind a label; None where a fact has none of its ids."""
    written = with_ids(text)
    found = {each.id: await used_relation(graph, each.id) for each in written}
    known = {id_: (relation,) for id_, relation in found.items() if relation is not None}
    behind = (await labelled(graph, {text: written}, known)).get(text)
    return None if behind is None or (not behind.is_called_so and behind.written.holds_more(graph)) else behind


async def _is_alias(graph: KGAdapter, behind: Labelled) -> bool:
    """Return whether a relation has the label that its id was written behind as one of its other names."""
    label = behind.written.label
    called = _same(graph, label, await graph.find_relations(label, limit=_FOUND))
    return any(each.relation in behind.nodes for each in called)


async def _occurs(graph: KGAdapter, relation: Iri) -> bool:
    """Return whether a fact has a relation, or its inverse."""
    described = (await graph.describe([relation])).get(relation)
    is_used = described is not None and "relation" in described.roles
    return is_used or (await graph.profile()).inverse_of(relation) is not None


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


async def _have_none(graph: KGAdapter, nodes: Sequence[Node], sort: Sort) -> bool:
    """Return whether nodes of which none are known have certainly no relations or features."""
    return sort == "feature" or all(each.is_none for each in (await graph.degrees(nodes)).values())


async def _named(graph: KGAdapter, relations: Sequence[Iri]) -> RelationIndex:
    if not relations:
        return RelationIndex(())
    labels = await graph.labels(relations)
    names = [RelationName(relation, labels[relation], alias=False) for relation in relations if relation in labels]
    return RelationIndex([*names, *map(own_name, relations)])


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
    if relation is not None and (found := [*chain(*subproperties(await graph.profile(), [relation]))]):
        names = await names_of(graph, found[:_SUGGESTED])
        return UnknownRelation(text, suggestions=list(map(names.relation, found[:_SUGGESTED])), hint=_HINTS[sort])
    if declared := await declared_only(graph, text, relation):
        return NoSuchRelation(declared)
    meant = text if relation is None else relation.local_part
    near = (await _named(graph, there)).find(meant, _SUGGESTED) or await graph.find_relations(meant, limit=_SUGGESTED)
    profile = await known_profile(graph)
    suggested, dateless = of_kind(profile, meant, [each.relation for each in await _as_noted(graph, meant, near)])
    inverse_of = profile.inverse_of
    inverses = [inverse_of(each) for each in suggested]
    names = await names_of(graph, [*suggested, *filter(None, inverses), *nodes[:1], *there[:_LISTED]])
    shown = [_with_inverse(each, inverse, names) for each, inverse in zip(suggested, inverses, strict=True)]
    if relation is not None:
        return UnknownRelation(text, suggestions=shown, hint=_HINTS[sort])
    parts = [f"No {sort} of this graph is called {in_quotes(text, MAX_LABEL)}.{dateless}"]
    if shown:
        parts.append(f"Did you mean {' or '.join(shown)}?")
    if there or (nodes and await _have_none(graph, nodes, sort)):
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
