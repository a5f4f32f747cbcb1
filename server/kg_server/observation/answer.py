"""observe: the facts most like a question around its entities, as an answer."""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

import anyio

from kg_adapters.errors import InvalidRequest, ModelBusy, ModelUnavailable, UnknownEntity
from kg_adapters.models import Count, Description
from kg_adapters.profile import unknown_profile
from kg_adapters.protocol import KGAdapter, known_profile
from kg_adapters.terms import BlankNode, Fact, Iri, Literal, Node, Term
from kg_boundary.shown import listed
from kg_server.answers.coverage import InverseOf, no_inverse, one_way
from kg_server.answers.intermediates import CLOSED, said_of_held
from kg_server.answers.results import (
    Answer,
    AnswerRows,
    Line,
    ObserveResult,
    Over,
    Status,
    affordable,
    fitted,
    token_count,
)
from kg_server.concurrency import off_loop
from kg_server.names import MAX_LABEL, Names
from kg_server.naming.meaning import Meaning
from kg_server.naming.refusals import entity_of, one_error, unknown_entity
from kg_server.observation.groups import Key, Known, Lacking, RelationGroup, also, counted, lacking, lines_of
from kg_server.observation.scoring import AWAY, BUSY, Scorer, SpellingScorer, inquiry, spoken
from kg_server.observation.search import Observation, OnHop, Reach, Seed, search

EXPLAINED: Final = 3
"""For how many unknown ids the error suggests what may have been meant."""


async def seeds_of(graph: KGAdapter, ids: Sequence[str]) -> dict[Node, Description]:
    """Return the entities that ids stand for, each once, with what they are.

    Raises:
        InvalidRequest: A text is no id, or the graph mentions several of the entities not.
        UnknownEntity: The graph does not mention one of them.
    """
    nodes = {text: await entity_of(graph, text) for text in dict.fromkeys(ids)}
    described = await graph.describe(list(nodes.values()))
    unknown = [(node, text) for text, node in nodes.items() if node not in described]
    if unknown:
        explained = [await unknown_entity(graph, *each) for each in unknown[:EXPLAINED]]
        raise one_error([*explained, *(UnknownEntity(text) for _, text in unknown[EXPLAINED:])])
    return {node: described[node] for node in nodes.values()}


SHARE: Final = 0.6
"""From what part of the best score on groups count as like the question: further down scores are flat."""
FAR_GROUPS: Final = 10
"""How many groups that are no seed's are written out at most."""
NAMED: Final = (10, 4, 2)
"""How many far ends of a seed's group are named: of the first lines, of others like the question, and of all others."""
NAMED_AWAY: Final = (4, 2)
"""How many of other groups: of the first lines, and of all others."""
FIRST: Final = 3


def written_out(
    found: Sequence[RelationGroup],
    inverse_of: InverseOf = no_inverse,
    unwalked: Collection[Iri] = (),
    *,
    whole: bool = False,
) -> tuple[list[RelationGroup], list[RelationGroup]]:
    """Return the groups to write out, with the far ends to name, each fact once; and those to leave out.

    All groups of the seeds are among the first; of the others those that are like the question, and what led to them,
    which comes before them. What classes further away have comes last.

    Args:
        found: All groups, the best first.
        inverse_of: Gives the relation that says the same backwards, or None.
        unwalked: The relations that lead to classes.
        whole: Whether to leave nothing out.
    """
    groups = _once(found, inverse_of)
    if not groups:
        return [], []
    least = groups[0].score * SHARE
    away = [group for group in groups if group.hop > 1 and (whole or group.score >= least)]
    away.sort(key=lambda group: group.relation in unwalked)
    leading = _leading(groups, unwalked)
    rank = {group.key: group.score for group in groups if group.hop == 1}
    late = set[Key]()
    for group in sorted(away if whole else away[:FAR_GROUPS], key=lambda each: -each.hop):
        below: RelationGroup | None = group
        score, led = group.score, list[Key]()
        while below is not None:
            led.append(below.key)
            if below.hop > 1 and below.relation in unwalked:
                late.update(led)
            rank[below.key] = score = max(score, rank.get(below.key, below.score))
            below = leading.get(below.near) if below.hop > 1 else None
    ordered = sorted(
        (group for group in groups if group.key in rank),
        key=lambda each: (each.key in late, -rank[each.key], each.hop),
    )
    left_out = [group for group in groups if group.key not in rank]
    return _named(ordered, least, inverse_of, whole=whole), left_out


def _once(groups: Sequence[RelationGroup], inverse_of: InverseOf) -> list[RelationGroup]:
    """Return groups of which none repeats over the inverse relation what one before it says of the same entity.

    Args:
        groups: The groups, the best first.
        inverse_of: Gives the relation that says the same backwards, or None.
    """
    kept: dict[Key, RelationGroup] = {}
    for group in groups:
        inverse = inverse_of(group.relation)
        other = None if inverse is None else kept.get((group.near, inverse, not group.inverse))
        if other is None:
            kept[group.key] = group
            continue
        more = tuple(far for far in group.far if far not in other.far)
        # Of large groups only the best far ends are known: those of one may all be among the others of the other.
        seen_whole = other.count == len(other.far)
        if more and (seen_whole or len(more) == len(group.far) or group.count > other.count):
            kept[group.key] = replace(group, far=more, count=group.count - len(group.far) + len(more))
    return list(kept.values())


def _leading(groups: Iterable[RelationGroup], unwalked: Collection[Iri]) -> dict[Node, RelationGroup]:
    """Return for each far end the group that led there first, if possible over no relation that leads to classes."""
    leading: dict[Node, RelationGroup] = {}
    for group in sorted(groups, key=lambda each: (each.hop, each.relation in unwalked)):
        for far in group.far:
            if not isinstance(far, Literal):
                leading.setdefault(far, group)
    return leading


def _named(
    ordered: Sequence[RelationGroup], least: float, inverse_of: InverseOf, *, whole: bool
) -> list[RelationGroup]:
    """Return groups with the far ends to name: first those that lead on, and none whose facts all stand already."""
    nears = {group.near for group in ordered}
    said: set[Fact] = set()
    named: list[RelationGroup] = []
    for group in ordered:
        most = len(group.far) if whole else _most(group, len(named) < FIRST, group.score >= least)
        on = [far for far in group.far if far in nears]
        far = tuple(dict.fromkeys((*on, *group.far)))[: max(most, len(on))]
        short = replace(group, far=far)
        facts = {one_way(fact, inverse_of) for fact in short.facts()}
        if group.count > len(far) or not facts <= said:
            named.append(short)
            said |= facts
    return _without_repeats(named, inverse_of) if whole else named


def _without_repeats(named: Sequence[RelationGroup], inverse_of: InverseOf) -> list[RelationGroup]:
    """Return groups without those of which every fact stands in another one too, the smallest of them first."""
    facts = [{one_way(fact, inverse_of) for fact in group.facts()} for group in named]
    often = Counter(fact for each in facts for fact in each)
    kept = set(range(len(named)))
    for place in sorted(kept, key=lambda each: len(facts[each])):
        if named[place].count == len(named[place].far) and all(often[fact] > 1 for fact in facts[place]):
            often.subtract(facts[place])
            kept.remove(place)
    return [group for place, group in enumerate(named) if place in kept]


def _most(group: RelationGroup, first: bool, alike: bool) -> int:
    """Return how many far ends of a group are named, if no more of them lead on."""
    if group.hop > 1:
        return NAMED_AWAY[0 if first else 1]
    return NAMED[0 if first else 1 if alike else 2]


_log = logging.getLogger(__name__)

SHOWN_SEEDS: Final = 5
SHOWN_HUBS: Final = 3
LISTED_HUBS: Final = 20
LEFT_OUT: Final = 3
"""How many of the relations that are left out are named."""


@dataclass(frozen=True, slots=True)
class _Report:
    """One observation on its way to an answer: its groups, each with its line."""

    seeds: Sequence[Node]
    reach: Reach
    seen: Observation
    groups: Sequence[RelationGroup]
    others: Sequence[RelationGroup]
    names: Names
    scorer: str

    def answer(self, max_tokens: int) -> Answer:
        """Return what fits into a budget in either form: every relation of a seed by name, then the best lines."""
        most = len(self.groups)
        written = list(affordable(lines_of(self.groups, self.names), max_tokens))
        lines = written or list(islice(lines_of(self.groups, self.names), 1))
        rows = [_row(group, self.names) for group in self.groups[: len(lines)]]

        def answer(shown: int, others: int) -> Answer:
            return self._answer(lines[:shown], rows[:shown], others)

        found = fitted(lambda shown: answer(shown, most), len(lines), max_tokens)
        return found if found.tokens <= max_tokens else fitted(lambda others: answer(1, others), most, max_tokens)

    def _answer(self, lines: Sequence[str], described: Sequence[Line], most: int) -> Answer:
        """Return the answer that shows the first groups by their lines, and so many others of the seeds by number."""
        names, shown = self.names, len(lines)
        left = [group for group in self.groups[shown:] if group.hop == 1][:most]
        rows = AnswerRows([*described, *(_counted_row(group) for group in left)], names)
        result = ObserveResult(
            status=self._status(shown),
            # It is for the reader to find whether a fact answers the question.
            knowledge="unknown",
            summary=" ".join((self._extent(shown), *self._left_out(shown))),
            groups=rows.cells(),
            found=len(self.seen.found),
            sampled=[names.entity_id(hub) for hub in self.seen.sampled[:LISTED_HUBS]],
            scorer=self.scorer,
            **rows.fields(),
        )
        return Answer(result, (*lines, *also(left, names)))

    def _status(self, shown: int) -> Status:
        if self.seen.stopped:
            return "timeout"
        if not self.seen.found:
            return "empty"
        return "truncated" if shown < len(self.groups) else "ok"

    def _extent(self, shown: int) -> str:
        named = self._listed(self.seeds, SHOWN_SEEDS)
        if not self.seen.found and not self.seen.stopped:
            return f"{named}: known, but nothing is stated about it."
        return (
            f"{Count(shown).of('relation')} within {Count(self.reach.hops).of('hop')} of {named}, from "
            f"{self.seen.edges:,} facts examined; those most like the question first, by {self.scorer}."
        )

    def _left_out(self, shown: int) -> Iterator[str]:
        if self.seen.stopped:
            yield f"Time ran out after {self.seen.hops} of {self.reach.hops} hops: ask for fewer hops or entities."
        if shown < len(self.groups):
            yield f"{len(self.groups) - shown} more were found, which a larger max_tokens shows."
        if not self.reach.to_the_letter and self.reach.hops > 1 and (self.others or self.seen.narrowed):
            yield self._less_alike()
        far = (term for group in self.groups[:shown] for term in group.far)
        closed = (isinstance(term, BlankNode) and term not in self.seen.held for term in far)
        if not self.names.prefixes.blank_nodes and any(closed):
            yield CLOSED
        # For what lies further away, the lines have `200+`.
        if sampled := [seed for seed in self.seeds if seed in self.seen.sampled]:
            yield f"Only sampled, relation by relation: {self._listed(sampled, SHOWN_HUBS)}; GetNeighbor lists all."

    def _less_alike(self) -> str:
        """Return a sentence on what was found or not followed further away because it is less like the question."""
        if not self.others:
            return "Beyond the first hop only facts most like the question were followed; GetNeighbor shows others."
        near = {group.relation for group in self.groups}
        far = dict.fromkeys(group.relation for group in self.others)
        shown = sorted(far, key=lambda relation: relation in near)
        named = listed((self.names.alone(each, ",", "relation") for each in shown), ", ", LEFT_OUT)
        count = Count(len(self.others), exact=not self.seen.narrowed).of("relation")
        return f"Left out as less like the question, beyond the first hop: {count} ({named}); GetNeighbor shows them."

    def _listed(self, nodes: Sequence[Node], most: int) -> str:
        return listed((self.names.entity(node, ",") for node in nodes), ", ", most)


def _row(group: RelationGroup, names: Names) -> Line:
    """Return a group as `ObserveResult.groups` has it; its facts have the labels of the ids in it."""
    far = (names.literal(term) if isinstance(term, Literal) else names.entity_id(term) for term in group.far)
    way = "in" if group.inverse else "out"
    first = (names.entity_id(group.near), names.relation_id(group.relation), way, counted(group))
    return Line((), (*first, f"{group.score:.3f}", str(group.hop), *far), tuple(group.facts()))


def _counted_row(group: RelationGroup) -> Line:
    return Line((), (group.near, Over(group.relation), "in" if group.inverse else "out", counted(group)))


async def observation(
    graph: KGAdapter,
    scorer: Scorer,
    *,
    question: str,
    entities: Sequence[str],
    reach: Reach,
    max_tokens: int,
    on_hop: OnHop,
    meaning: Meaning | None = None,
) -> Answer:
    """Answer observe; with a meaning, it says what is asked for and missing.

    Raises:
        InvalidRequest: The question is blank, or some of several ids are none of this graph.
        UnknownEntity: The graph does not mention the entity.
    """
    asked = " ".join(question.split())
    if not asked:
        raise InvalidRequest("The question is blank. Say in words what you want to know about the entities.")
    described = await seeds_of(graph, entities)
    seeds = [
        Seed(node, inquiry(asked, spoken(node, each.label)), each.label is not None) for node, each in described.items()
    ]
    profile = unknown_profile() if reach.to_the_letter else await known_profile(graph)
    wide = reach.over(profile.everything.instances)
    seen, ranked_by = await _searched(graph, scorer, seeds, wide, on_hop, profile.inverse_of)
    labels: Mapping[Node, str] = {
        **{node: each.label for node, each in described.items() if each.label is not None},
        **seen.labels,
    }
    missing: Lacking | None = None
    if meaning is not None and seen.hops and not reach.to_the_letter:
        whole = {node: each for node, each in described.items() if not (graph.remote and node in seen.sampled)}
        known = Known(profile, graph.vocabulary, whole, seen.stated, Names(graph.prefixes, labels))
        missing = await lacking(meaning, known, asked)
    room = max_tokens if missing is None else max(max_tokens // 2, max_tokens - 3 * token_count(missing.said))
    # A small budget shortens labels, so that a fact fits into it.

    def written() -> Answer:
        names = with_notes(Names(graph.prefixes, labels, min(MAX_LABEL, room // 8)), seen)
        groups: Sequence[RelationGroup] = seen.groups
        others: Sequence[RelationGroup] = ()
        if not reach.to_the_letter:
            unwalked = graph.vocabulary.unwalked
            groups, others = written_out(seen.groups, profile.inverse_of, unwalked, whole=wide != reach)
            groups = [group for group in groups if not _is_held(group, seen)]
        return _Report(tuple(described), reach, seen, groups, others, names, ranked_by).answer(room)

    answer = await off_loop(written, len(seen.found))
    if missing is None:
        return answer
    told = {"summary": f"{answer.result.summary}{missing.said}", "knowledge": missing.knowledge}
    return replace(answer, result=answer.result.model_copy(update=told))


def _is_held(group: RelationGroup, seen: Observation) -> bool:
    """Return whether what a group says stands behind a node that only holds facts together."""
    held = seen.held.get(group.near, ())
    return group.hop > 1 and group.count == len(group.far) and all(fact in held for fact in group.facts())


def with_notes(names: Names, seen: Observation) -> Names:
    """Return names in which a node that only holds facts together is followed by what it holds.

    What leads to it is left out where nothing else does.
    """
    leading: dict[Term, set[Node]] = {}
    for group in seen.groups:
        for far in group.far:
            leading.setdefault(far, set()).add(group.near)
    notes: dict[Node, str] = {}
    for node, facts in seen.held.items():
        near = leading.get(node, set())
        left_out = near if len(near) == 1 else ()
        told = [fact for fact in facts if fact.head not in left_out and fact.tail not in left_out]
        notes[node] = "; ".join(said_of_held(node, fact, names) for fact in told)
    shown = [term for term in leading if not isinstance(term, Literal)]
    return replace(names, notes={node: note for node, note in notes.items() if note}, terms=shown, held=seen.held)


async def _searched(
    graph: KGAdapter, scorer: Scorer, seeds: Sequence[Seed], reach: Reach, on_hop: OnHop, inverse_of: InverseOf
) -> tuple[Observation, str]:
    """Return what was seen, and what ranked it: letters, from the first hop on, where the model is away or busy."""
    end = anyio.current_time() + reach.timeout_s
    told = 0

    async def on_new_hop(hop: int) -> None:
        nonlocal told
        if hop > told:
            told = hop
            await on_hop(hop)

    try:
        return await search(graph, scorer, seeds, reach, on_new_hop, inverse_of), scorer.name
    except ModelBusy:
        reason = BUSY
    except ModelUnavailable as error:
        _log.warning("%s", error)
        reason = AWAY
    left = replace(reach, timeout_s=max(0.0, end - anyio.current_time()))
    letters = SpellingScorer(reason)
    return await search(graph, letters, seeds, left, on_new_hop, inverse_of), letters.name
