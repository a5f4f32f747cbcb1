"""The facts that show why something is in a set, found step by step from the few results that are shown."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from kg_adapters.algebra import (
    Best,
    Condition,
    Hop,
    HopPath,
    Instances,
    Intersect,
    Kept,
    Linked,
    Members,
    Minus,
    Reached,
    SetExpression,
    Union,
    Values,
)
from kg_adapters.set_requests import (
    Aggregated,
    Computed,
    Grouped,
    Listed,
    SetRequest,
    SharedBy,
    Tabled,
    Witness,
)
from kg_adapters.sparql.asking import Asker
from kg_adapters.sparql.queries.set_patterns import Walked
from kg_adapters.sparql.queries.sets import EvidenceQueries, SetQueries, Ways
from kg_adapters.sparql.rows import Bindings, rows
from kg_adapters.terms import Attribute, Fact, Literal, Term, Triple

Facts: TypeAlias = tuple[Fact, ...]


class Way(NamedTuple):
    """The facts between a result and what is at the other end."""

    end: Term
    facts: Facts


class EvidenceReader:
    """Finds evidence, by a request for each set and condition that the results are shown to be in.

    Args:
        asker: What asks the endpoint.
        graph: What is walked.
    """

    def __init__(self, asker: Asker, graph: Walked) -> None:
        self._asker = asker
        self._members = SetQueries(graph).members
        self._queries = EvidenceQueries(graph)

    async def witnesses(self, request: SetRequest, computed: Computed) -> tuple[Witness, ...]:
        """Return the facts that show the first results; nothing for those that need no fact.

        Raises:
            KGError: The endpoint does not answer.
        """
        question, most = request.question, request.witnesses
        match question:
            case Listed(of) | Tabled(of):
                members = computed.members or tuple(row.node for row in computed.rows)
                found = await self._why(of, members[:most])
            case Grouped(of, by):
                found = await self._led(of, {group.by: by for group in computed.groups[:most]})
            case SharedBy(sets):
                paths: dict[Term, HopPath] = {}
                for each in computed.shared[:most]:
                    paths.setdefault(each.term, HopPath((Hop(question.steps_of(each.step)),)))
                found = _joined([await self._led(of, paths) for of in sets])
            case Aggregated(of, by):
                if isinstance(computed.value, Literal):
                    found = await self._led(of, {computed.value: by.path})
                else:
                    found = await self._of_measured(question, most)
        return tuple(Witness(result, tuple(dict.fromkeys(facts))) for result, facts in found.items() if facts)

    async def _of_measured(self, question: Aggregated, most: int) -> dict[Term, Facts]:
        """Return evidence of some members that are measured: those with the least or greatest number, or any."""
        only = question.function in {"min", "max"}
        best = Best(question.of, question.by, 1 if only else most, lowest=question.function == "min")
        answer = await self._asker.ask(self._members(best, most))
        return await self._why(best, [member for row in rows(answer) if (member := row.term("x")) is not None])

    async def _why(self, of: SetExpression, results: Sequence[Term]) -> dict[Term, Facts]:
        """Return, in their order, those of some members of a set that can be shown to be in it, with the facts."""
        found: dict[Term, Facts]
        match of:
            case Members(nodes):
                found = {result: () for result in results if result in nodes}
            case Instances():
                found = _facts(await self._ask(results, partial(self._queries.typed, of)))
            case Reached(starts, path) | Values(starts, path):
                found = await self._led(starts, dict.fromkeys(results, path))
            case Minus(sets):
                found = await self._why(sets[0], results)
            case Intersect(sets):
                found = _joined([await self._why(each, results) for each in sets])
            case Union(sets):
                found = await self._in_any(sets, results)
            case Kept(starts, condition):
                found = _joined([await self._why(starts, results), await self._true(condition, results)])
            case Best(starts):
                measured = await self._ask(results, partial(self._queries.measured, of))
                found = _joined([await self._why(starts, results), _facts(measured)])
        return found

    async def _led(self, starts: SetExpression, paths: Mapping[Term, HopPath]) -> dict[Term, Facts]:
        """Return evidence of results that are reached from a set, each over its path."""
        while isinstance(starts, Reached):
            paths = {result: HopPath((*starts.path.hops, *path.hops)) for result, path in paths.items()}
            starts = starts.of
        ways = await self._ask(paths, partial(self._queries.led, starts, paths))
        before = await self._why(starts, _ends(ways))
        return {result: (*before.get(way.end, ()), *way.facts) for result, way in ways.items()}

    async def _in_any(self, sets: Iterable[SetExpression], results: Sequence[Term]) -> dict[Term, Facts]:
        found: dict[Term, Facts] = {}
        for each in sets:
            left = [result for result in results if result not in found]
            inside = await self._ask(left, partial(self._queries.inside, each))
            found |= await self._why(each, list(inside))
        return {result: found[result] for result in results if result in found}

    async def _true(self, condition: Condition, results: Sequence[Term]) -> dict[Term, Facts]:
        ways = await self._ask(results, partial(self._queries.true, condition))
        if not isinstance(condition, Linked):
            return _facts(ways)
        after = await self._why(condition.to, _ends(ways))
        return {result: (*way.facts, *after.get(way.end, ())) for result, way in ways.items()}

    async def _ask(self, results: Iterable[Term], written: Callable[[Sequence[Term]], Ways]) -> dict[Term, Way]:
        """Return one way from each result for which there is one, by one request."""
        asked = [each for each in results if isinstance(each, Literal) or self._asker.can_name(each)]
        if not asked:
            return {}
        query, found = written(asked), dict[Term, Way]()
        for row in sorted(rows(await self._asker.ask(query.text)), key=lambda row: row.number("w") or 0):
            end, result = row.term("y"), asked[row.number("w") or 0]
            if end is not None:
                before = found[result].facts if result in found else ()
                found[result] = Way(end, (*before, *_steps(row, query.steps)))
        return found


def _steps(row: Bindings, steps: int) -> Iterator[Fact]:
    for step in range(steps):
        head, relation, tail = row.term(f"h{step}"), row.iri(f"p{step}"), row.term(f"t{step}")
        if not (head is None or isinstance(head, Literal) or relation is None or tail is None):
            yield Attribute(head, relation, tail) if isinstance(tail, Literal) else Triple(head, relation, tail)


def _facts(ways: Mapping[Term, Way]) -> dict[Term, Facts]:
    return {result: way.facts for result, way in ways.items()}


def _ends(ways: Mapping[Term, Way]) -> Sequence[Term]:
    return list(dict.fromkeys(way.end for way in ways.values()))


def _joined(parts: Sequence[Mapping[Term, Facts]]) -> dict[Term, Facts]:
    """Return the facts of all parts for each result that every part shows."""
    shown = (result for result in parts[0] if all(result in part for part in parts))
    return {result: tuple(fact for part in parts for fact in part[result]) for result in shown}
