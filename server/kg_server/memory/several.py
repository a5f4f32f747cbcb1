"""Memories over several graphs: each triple is checked in its own, and terms are named by graphs that have them."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import anyio

from kg_adapters.calls import note_partial, time_left_s
from kg_adapters.errors import KGError
from kg_adapters.federated import FederatedGraph
from kg_adapters.links import same_things
from kg_adapters.prefixes import JoinedPrefixes, Prefixes
from kg_adapters.terms import Iri, Node
from kg_server.elsewhere import opened_all, with_links
from kg_server.graphs import GraphSet, OpenedGraph
from kg_server.memory.checking import Checked, Judged, judge, judge_stated, with_no_graph, without_mark
from kg_server.memory.lines import Written
from kg_server.memory.statements import NodeMention, Stated, StatedTriples, read_statements
from kg_server.memory.store import KeptFact, MemoryLimits
from kg_server.names import Names, names_of
from kg_server.naming.labelled import with_ids

_SHARE: Final = 0.7
"""What part of the time that is left a step may take that others follow."""
_TO_OPEN: Final = 0.3
"""What part of it graphs that were not needed yet may take to open."""
_ELSEWHERE_S: Final = 1.0
"""How many seconds labels may take in graphs that no fact is of."""
_ABSENT: Final = "the graph does not have it."


class CheckEach:
    """Checks each triple in the graph that its relation names, else in that of the call, else in all.

    Graphs are asked side by side; one that fails leaves the triples of the others alone.

    Args:
        graphs: The graphs.
        limits: How long a fact may be.
        written: The triples as a model writes them.
        graph: The graph of triples that name none.
    """

    def __init__(self, graphs: GraphSet, limits: MemoryLimits, written: Sequence[Written], graph: str | None) -> None:
        self._graphs = graphs
        self._limits = limits
        self._written = written
        self._plain = list[Written]()
        self._marks = list[str]()
        for each in written:
            plain, mark = without_mark(each, graphs.names)
            self._plain.append(plain)
            self._marks.append(mark)
        self._graph = graph
        self._asked = {
            name: [number for number, mark in enumerate(self._marks) if (mark or graph or name) == name]
            for name in graphs.names
        }

    async def checked(self, *, allow_unverified: bool) -> Checked:
        """Return the triples, judged one by one.

        Args:
            allow_unverified: Keep what no graph holds, marked, as of the graph that knows most of it.
        """
        found = await self._judged(self._asked, allow_unverified=True)
        judged = {name: each for name, each in found.items() if isinstance(each, Judged)}
        judged |= await self._with_whole_names(judged)
        kept = _first(judged.values(), verified=True)
        refused = {name: each.refused for name, each in judged.items()}
        if marked := [number for number, mark in enumerate(self._marks) if mark in judged and number not in kept]:
            with anyio.move_on_after(time_left_s(math.inf) * _SHARE):
                for name, linked in (await self._linked(marked, allow_unverified=allow_unverified)).items():
                    kept |= linked.facts
                    judged[name] = judged[name].joined(linked)
                    refused[name] = {**refused[name], **linked.refused}
        if allow_unverified:
            kept = {**_first(judged.values(), verified=False), **kept}
        else:
            left = {name: sorted(each.facts.keys() - kept.keys()) for name, each in judged.items()}
            with anyio.move_on_after(time_left_s(math.inf) * _SHARE):
                for name, each in (await self._judged(left, allow_unverified=False)).items():
                    refused[name] = {**(each.refused if isinstance(each, Judged) else {}), **refused[name]}
        failed = {name: each for name, each in found.items() if isinstance(each, KGError)}
        reasons = {
            number: self._reason(number, refused, failed) for number in range(len(self._written)) if number not in kept
        }
        of = {number: judged[fact.graph] for number, fact in kept.items() if fact.graph in judged}
        shown = dict[str, str]()
        with anyio.move_on_after(time_left_s(math.inf) * _SHARE):
            named, shown = await self._as_shown(
                {number: fact for number, fact in kept.items() if self._marks[number]}, of
            )
            kept |= named
        notes = {
            number: [f"{kept[number].graph}: {note}" for note in of[number].notes.get(number, ())] for number in of
        }
        read = {name: id_ for each in reversed(of.values()) for name, id_ in each.read.items()} | shown
        return Judged(kept, reasons, notes, read).checked(self._written)

    async def _judged(
        self, asked: Mapping[str, Sequence[int]], *, allow_unverified: bool
    ) -> Mapping[str, Judged | KGError]:
        """Return what each graph makes of the triples that it is asked about, or why it fails."""

        async def ask(here: OpenedGraph) -> Judged:
            numbers = asked[here.name]
            written = [self._plain[number] for number in numbers]
            judged = await judge(here.adapter, written, limits=self._limits, allow_unverified=allow_unverified)
            return judged.numbered(numbers, here.name)

        return await self._graphs.ask_each(ask, [each for each in self._graphs.all if asked.get(each.name)])

    async def _with_whole_names(self, judged: Mapping[str, Judged]) -> dict[str, Judged]:
        """Return what graphs make of triples whose mark belongs to the name of their relation, besides the others."""
        unread = [
            number
            for number, mark in enumerate(self._marks)
            # Behind an id it is a mark for sure.
            if mark in judged and number in judged[mark].refused and not self._plain[number][1].endswith(")")
        ]
        for number in unread:
            self._plain[number] = self._written[number]
        asked = {name: unread for name in judged if self._graph in {None, name}}
        read = {
            name: judged[name].joined(each)
            for name, each in (await self._judged(asked, allow_unverified=True)).items()
            if isinstance(each, Judged)
        }
        for number in unread:
            names = [name for name, each in read.items() if number in each.facts]
            if names:
                self._marks[number] = ""
                self._asked = {
                    name: [*numbers, number] if name in names and number not in numbers else numbers
                    for name, numbers in self._asked.items()
                }
            else:
                self._plain[number], _ = without_mark(self._written[number], self._graphs.names)
        return read

    async def _as_shown(
        self, kept: Mapping[int, KeptFact], judged: Mapping[int, Judged]
    ) -> tuple[dict[int, KeptFact], dict[str, str]]:
        """Return facts whose ends were named by the nodes that joint answers show, and the ids of these names."""
        named = {
            (number, place): (self._plain[number][place].strip(), end)
            for number, fact in kept.items()
            for place, end in ((0, fact.head), (2, fact.tail))
            if isinstance(end, Iri) and self._plain[number][place].strip() in judged[number].read
        }
        if not named:
            return {}, {}
        opened = await self._opened()
        try:
            things = await same_things(*with_links(opened), {end for _, end in named.values()})
        except KGError:
            # Without what links them, names mean what the graph of their fact calls so.
            return {}, {}
        found, ids = dict[int, KeptFact](), dict[str, str]()
        for (number, place), (text, end) in named.items():
            first, terms = next(iter(things[end].terms.items()), ("", ()))
            if terms and terms[0] != end:
                fact = found.get(number, kept[number])
                found[number] = replace(fact, head=terms[0]) if place == 0 else replace(fact, tail=terms[0])
                ids[text] = opened[first].adapter.prefixes.shorten(terms[0])
        return found, ids

    async def _opened(self) -> dict[str, OpenedGraph]:
        """Return the graphs that are open, after the others had some time to open."""
        with anyio.move_on_after(time_left_s(math.inf) * _TO_OPEN):
            return await opened_all(self._graphs)
        return {here.name: here for each in self._graphs.all if (here := each.known) is not None}

    async def _linked(self, numbers: Sequence[int], *, allow_unverified: bool) -> dict[str, Judged]:
        """Return what graphs make of triples of the same things under their different terms."""
        opened = await self._opened()
        found = dict[str, Judged]()
        try:
            for name in opened:
                if own := [number for number in numbers if self._marks[number] == name]:
                    # What is written means first what it means in its graph.
                    first = {name: opened[name], **opened}
                    found[name] = await self._linked_in(name, first, own, allow_unverified=allow_unverified)
        except KGError:
            # Without what links its terms, a triple counts as what its graph says of it by itself.
            return found
        return found

    async def _linked_in(
        self, name: str, opened: Mapping[str, OpenedGraph], numbers: Sequence[int], *, allow_unverified: bool
    ) -> Judged:
        graphs, rules = with_links(opened)
        written = [self._plain[number] for number in numbers]
        together = FederatedGraph(graphs, rules)
        # An id that several graphs read differently means what is there.
        parts = [part for each in written if not isinstance(each, str) for part in each]
        await together.known([text for part in parts for text in _ids_in(part)])
        stated = (await read_statements(together, written)).stated
        ends = {node for each in stated.values() for node in (each.head.node, each.tail and each.tail.node)}
        things = await same_things(graphs, rules, {end for end in ends if isinstance(end, Iri)})
        terms = {term: thing.terms.get(name, ()) for term, thing in things.items()}
        own = {place: linked for place, each in stated.items() if (linked := _by(terms, each)) != each}
        described = await graphs[name].describe([mention.node for each in own.values() for mention in each.mentions])
        known = StatedTriples(own, {}, {}, described)
        judged = await judge_stated(graphs[name], known, limits=self._limits, allow_unverified=allow_unverified)
        facts = dict[int, KeptFact]()
        for place, fact in judged.facts.items():
            head, tail = stated[place].head, stated[place].tail
            facts[place] = replace(fact, head=head.node, tail=fact.tail if tail is None else tail.node)
        return replace(judged, facts=facts, notes={}).numbered(numbers, name)

    def _reason(self, number: int, refused: Mapping[str, Mapping[int, str]], failed: Mapping[str, KGError]) -> str:
        """Return why a triple is refused, by each graph that was asked about it."""
        names: dict[str, list[str]] = {}
        for name, asked in self._asked.items():
            if number in asked:
                error = failed.get(name)
                reason = refused.get(name, {}).get(number, _ABSENT) if error is None else f"{error} Call again."
                names.setdefault(reason, []).append(name)
        reasons = " ".join(f"{', '.join(of)}: {reason}" for reason, of in names.items())
        return with_no_graph(reasons, self._written[number], self._graphs.names)


def _first(judged: Iterable[Judged], *, verified: bool) -> dict[int, KeptFact]:
    """Return each triple as the first graph has it that holds it, or else that knows most of its parts."""
    chosen, best = dict[int, KeptFact](), dict[int, int]()
    for each in judged:
        for number, fact in each.facts.items():
            known = 0 if verified else each.known[number]
            if (fact.verified or not verified) and known > best.get(number, -1):
                chosen[number], best[number] = fact, known
    return chosen


def _ids_in(part: str) -> tuple[str, ...]:
    """Return what may be an id in a part of a triple: all of it, or what stands behind a label."""
    return (part, *(each.id for each in with_ids(part)))


def _by(terms: Mapping[Iri, Sequence[Iri]], stated: Stated) -> Stated:
    """Return a triple by the terms that a graph has for its ends."""

    def own(mention: NodeMention) -> NodeMention:
        found = terms.get(mention.node, ()) if isinstance(mention.node, Iri) else ()
        return replace(mention, node=found[0]) if found else mention

    return replace(stated, head=own(stated.head), tail=None if stated.tail is None else own(stated.tail))


async def names_over(
    graphs: GraphSet, names: Collection[str], terms: Collection[Node], max_tokens: int
) -> dict[str, Names]:
    """Return how each of some graphs shows terms, with the labels and short ids of others for those that it lacks."""
    asked = [each for each in graphs.all if each.name in names]
    found = await graphs.ask_each(lambda here: names_of(here.adapter, terms, max_tokens=max_tokens), asked)
    for name, each in found.items():
        if isinstance(each, KGError):
            note_partial(f"Labels of {name} are missing: {each}")
    given = {name: each for name, each in found.items() if isinstance(each, Names)}
    left = [term for term in terms if not any(term in each.labels for each in given.values())]
    others = [each for each in graphs.all if each.known is not None and each not in asked]
    if left and others:
        with anyio.move_on_after(min(_ELSEWHERE_S, time_left_s(math.inf) * _SHARE)):
            more = await graphs.ask_each(lambda here: names_of(here.adapter, left, max_tokens=max_tokens), others)
            given |= {name: each for name, each in more.items() if isinstance(each, Names)}
    return {each.name: _shown_in(each.name, given) for each in asked}


def _shown_in(name: str, given: Mapping[str, Names]) -> Names:
    """Return how a graph shows terms, and after it the others."""
    parts = [given[each] for each in dict.fromkeys((name, *given)) if each in given]
    own = given.get(name, Names(Prefixes(), {}))
    return replace(
        own,
        labels={term: label for each in reversed(parts) for term, label in each.labels.items()},
        prefixes=JoinedPrefixes(
            own.prefixes.namespaces,
            parts=tuple(each.prefixes for each in parts),
            owner=lambda node, _: next((place for place, each in enumerate(parts) if node in each.labels), None),
        ),
    )
