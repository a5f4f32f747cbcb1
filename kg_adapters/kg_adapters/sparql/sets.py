"""Questions about sets, each asked in one request, and the same as SPARQL for people."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import anyio

from kg_adapters.algebra import (
    Best,
    Hop,
    HopPath,
    Intersect,
    Members,
    Reached,
    SetExpression,
    Step,
    TotalOf,
    Values,
)
from kg_adapters.calls import note_partial, time_left_s
from kg_adapters.errors import BackendError, BackendTimeout, BackendUnavailable, InvalidRequest, KGError, Unsupported
from kg_adapters.labels import Vocabulary
from kg_adapters.models import Count
from kg_adapters.prefixes import Prefixes
from kg_adapters.set_requests import (
    Aggregated,
    Cell,
    Column,
    Computed,
    Ends,
    Group,
    Grouped,
    Listed,
    SetQuestion,
    SetRequest,
    SharedBy,
    SharedTerm,
    Tabled,
    Untotalled,
    Witness,
    grows,
    term_key,
)
from kg_adapters.set_requests import Row as Tuple
from kg_adapters.sparql.asking import QueryAsker, part_of_an_answer
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.queries.set_patterns import Walked
from kg_adapters.sparql.queries.sets import MOST_CELLS, SetQueries, ways
from kg_adapters.sparql.rows import Bindings, rows
from kg_adapters.terms import Attribute, Fact, Literal, Term, Triple
from kg_adapters.values import date_up_to, extreme_of

_EVIDENCE_SHARE: Final = 0.8
"""Of the time that is left: so the answer itself still arrives in time where the evidence does not."""


class SetReader:
    """Reads answers about sets.

    Args:
        asker: What asks the endpoint.
        graph: What is walked.
    """

    def __init__(self, asker: QueryAsker, graph: Walked) -> None:
        self._asker = asker
        self._graph = graph
        self._queries = SetQueries(graph)

    async def compute(self, request: SetRequest) -> Computed:
        """Return what is asked, as `SupportsSets.compute` does: by one request, and another for the evidence.

        What is late or fails of the evidence is left out with the reason; all has one deadline.

        Raises:
            Unsupported: The engine cannot answer it, or would answer wrongly.
        """
        try:
            return await self._computed(request)
        except (BackendTimeout, BackendUnavailable):
            raise
        except (BackendError, InvalidRequest) as error:
            raise Unsupported(f"The endpoint cannot work out these sets: {error}") from error

    async def _computed(self, request: SetRequest) -> Computed:
        # What is shown is found first, whether it is listed or not.
        end = anyio.current_time() + request.timeout_s
        wanted = replace(request, limit=max(request.limit, request.witnesses))
        answer = await self._asker.ask(self._queries.answer(wanted), timeout_s=request.timeout_s)
        if answer.truncated and not grows(request.question):
            raise part_of_an_answer()
        computed = _Read(wanted, list(rows(answer)), exact=not answer.truncated).computed()
        if request.witnesses:
            left_s = _EVIDENCE_SHARE * time_left_s(max(0.0, end - anyio.current_time()))
            computed = await self._with_evidence(wanted, computed, left_s)
        return _cut(computed, request.limit)

    async def _with_evidence(self, request: SetRequest, computed: Computed, timeout_s: float) -> Computed:
        try:
            with anyio.fail_after(timeout_s):
                return replace(computed, witnesses=await self._witnesses(request, computed))
        except TimeoutError:
            problem = f"The endpoint did not send it within {timeout_s:.2g} s."
        except KGError as error:
            problem = str(error)
        note_partial()
        return replace(computed, without_witnesses=problem)

    async def _witnesses(self, request: SetRequest, computed: Computed) -> tuple[Witness, ...]:
        """Return the facts that lead to the first results; nothing for those that need no fact."""
        found = await self._claims(request.question, computed, request.witnesses)
        claims = {
            result: of
            for result, of in found.items()
            if not isinstance(of, Members) and (isinstance(result, Literal) or self._asker.can_name(result))
        }
        if not claims:
            return ()
        query, results, shown = ways(self._graph, claims), list(claims), dict[int, Witness]()
        for row in rows(await self._asker.ask(query.text)):
            place = row.number("w") or 0
            shown[place] = Witness(results[place], tuple(dict.fromkeys(_facts(row, query.steps))))
        return tuple(witness for _, witness in sorted(shown.items()) if witness.facts)

    async def _claims(self, question: SetQuestion, computed: Computed, most: int) -> Mapping[Term, SetExpression]:
        """Return the first results, each with what it is in."""
        match question:
            case Listed(of) | Tabled(of):
                members = computed.members or tuple(row.node for row in computed.rows)
                return dict.fromkeys(members[:most], of)
            case Grouped(of, by, part=part):
                # What is made of dates leads to no fact.
                shown = computed.groups[:most] if part is None else ()
                return {group.by: _led(of, by, group.by) for group in shown}
            case SharedBy(sets):
                claims: dict[Term, SetExpression] = {}
                for each in computed.shared[:most]:
                    path = HopPath((Hop(question.steps_of(each.step)),))
                    claims.setdefault(each.term, Intersect(tuple(_led(of, path, each.term) for of in sets)))
                return claims
            case Aggregated(of, by, function):
                if isinstance(computed.value, Literal):
                    return {computed.value: _led(of, by.path, computed.value)}
                # Those with the least or greatest number, or any that are measured.
                best = Best(of, by, 1 if function in {"min", "max"} else most, lowest=function == "min")
                answer = await self._asker.ask(self._queries.members(best, most))
                return {member: best for row in rows(answer) if (member := row.term("x")) is not None}


def _led(of: SetExpression, path: HopPath, end: Term) -> SetExpression:
    return Values(of, path) if isinstance(end, Literal) else Reached(of, path)


def _facts(row: Bindings, steps: int) -> Iterator[Fact]:
    for step in range(steps):
        head, relation, tail = row.term(f"h{step}"), row.iri(f"p{step}"), row.term(f"t{step}")
        if not (head is None or isinstance(head, Literal) or relation is None or tail is None):
            yield Attribute(head, relation, tail) if isinstance(tail, Literal) else Triple(head, relation, tail)


class _Read:
    """Reads the rows of one answer.

    Args:
        request: What was asked.
        answered: The rows.
        exact: Whether they are all that there are.
    """

    def __init__(self, request: SetRequest, answered: Sequence[Bindings], *, exact: bool) -> None:
        self._request = request
        self._exact = exact
        self._rows = defaultdict[str, list[Bindings]](list)
        for row in answered:
            self._rows[row.text("d") or ""].append(row)

    def computed(self) -> Computed:
        """Return the answer.

        Raises:
            BackendTimeout: Even the count is missing.
        """
        question = self._request.question
        members = self._members()
        return Computed(
            self._count("count"),
            members=() if isinstance(question, Tabled) else members,
            groups=self._groups(question) if isinstance(question, Grouped) else (),
            rows=tuple(self._table(members, question.columns)) if isinstance(question, Tabled) else (),
            shared=self._shared(),
            value=self._value(question) if isinstance(question, Aggregated) else None,
            without=self._less("of", "with"),
            unfit=self._less("any", "with"),
            partly=self._partly(question),
            measured=self._measured(question),
            values=self._count("values") if self._rows["values"] else Count(0),
            left_out=Untotalled(
                self._less("groups", "count"), self._less("with", "measured"), self._less("fitting", "measured")
            )
            if isinstance(question, Grouped) and question.total is not None
            else Untotalled(),
        )

    def _partly(self, question: SetQuestion) -> Count:
        """Return how many members have what is no measure beside one: all that have it but those without one."""
        if not self._rows["unfit"]:
            return Count(0)
        without = ("fitting", "measured") if isinstance(question, Grouped) else ("any", "with")
        return Count(max(0, self._count("unfit").value - self._less(*without).value), self._exact)

    def _measured(self, question: SetQuestion) -> Count:
        if isinstance(question, Grouped):
            return Count(0) if question.total is None else self._count("measured")
        return self._count("with") if self._rows["with"] else Count(0)

    def _count(self, about: str) -> Count:
        numbers = [row.number("n") for row in self._rows[about]]
        if not numbers:
            raise part_of_an_answer()
        return Count(numbers[0] or 0, self._exact)

    def _less(self, more: str, fewer: str) -> Count:
        """Return how much more one number is than another; 0 where it was not asked for."""
        if not self._rows[more]:
            return Count(0)
        if not self._exact:
            return Count(0, exact=False)
        return Count(max(0, self._count(more).value - self._count(fewer).value))

    def _members(self) -> tuple[Term, ...]:
        found = {member: row for row in self._rows["member"] if (member := row.term("x")) is not None}
        ordered = sorted(found, key=term_key)
        if any(row.term("m") is not None for row in found.values()):
            sign = 1 if _is_lowest(self._request) else -1
            ordered.sort(key=lambda member: sign * _size(found[member]))
        return tuple(ordered)

    def _groups(self, question: Grouped) -> tuple[Group, ...]:
        """Return the groups in their order."""
        sign, total = 1 if question.lowest else -1, question.total
        groups: list[tuple[float, Group]] = []
        for by, found in self._by_subject("group").items():
            size = Count(found[0].number("n") or 0, self._exact)
            shown = by if question.part is None else date_up_to(str(by), question.part) or by
            if isinstance(total, TotalOf):
                groups.append((_size(found[0]), Group(shown, size, _total(found, total))))
            else:
                groups.append((size.value, Group(shown, size)))
        return tuple(group for _, group in sorted(groups, key=lambda each: (sign * each[0], term_key(each[1].by))))

    def _by_subject(self, about: str) -> Mapping[Term, list[Bindings]]:
        found = defaultdict[Term, list[Bindings]](list)
        for row in self._rows[about]:
            if (term := row.term("x")) is not None:
                found[term].append(row)
        return found

    def _table(self, members: Sequence[Term], columns: Sequence[Column]) -> Iterator[Tuple]:
        read: list[dict[Term, Cell]] = []
        empty: list[Cell] = []
        for place, column in enumerate(columns):
            rows_of = self._rows[f"cell{place}"]
            exact = self._exact and len(rows_of) < MOST_CELLS
            if isinstance(column, TotalOf):
                read.append(self._totals(f"cell{place}", column, exact=exact))
            else:
                read.append(self._cells(rows_of, column, exact=exact))
            empty.append(Cell((), Count(0, exact)))
        for member in members:
            if not isinstance(member, Literal):
                yield Tuple(member, tuple(cells.get(member, none) for cells, none in zip(read, empty, strict=True)))

    def _cells(self, found: Sequence[Bindings], column: Column, *, exact: bool) -> dict[Term, Cell]:
        if not isinstance(column, Ends):
            numbers = ((row.term("x"), row.number("n")) for row in found)
            return {member: Cell((), Count(number or 0, exact)) for member, number in numbers if member is not None}
        ends, nodes = defaultdict[Term, list[Term]](list), set[tuple[Term, Term]]()
        for row in found:
            member, end = row.term("x"), row.term("y")
            # A node counts once, however many ways lead to it; each way has its value.
            if member is None or end is None or (member, end) in nodes:
                continue
            ends[member].append(end)
            if not isinstance(end, Literal):
                nodes.add((member, end))
        most = self._request.cell_limit
        return {
            member: Cell(tuple(sorted(reached, key=term_key)[:most]), Count(len(reached), exact))
            for member, reached in ends.items()
        }

    def _totals(self, about: str, column: TotalOf, *, exact: bool) -> dict[Term, Cell]:
        return {
            member: Cell((), Count(found[0].number("n") or 0, exact), _total(found, column))
            for member, found in self._by_subject(about).items()
        }

    def _shared(self) -> tuple[SharedTerm, ...]:
        found = list[SharedTerm]()
        for direction in ("out", "in"):
            for row in self._rows[direction]:
                relation, term = row.iri("p"), row.term("x")
                if relation is not None and term is not None:
                    found.append(SharedTerm(Step(relation, direction), term))
        return tuple(sorted(found, key=_place))

    def _value(self, question: Aggregated) -> float | Literal | None:
        if not self._count("count").value:
            return None
        about = question.function if question.function in {"sum", "mean"} else "end"
        row = next(iter(self._rows[about]), None)
        if row is None:
            raise part_of_an_answer()
        return row.literal("x") or _size(row)


def _total(found: Sequence[Bindings], total: TotalOf) -> float | Literal | None:
    """Return what the rows of one subject say that its values come to; None where they are only counted."""
    if total.function == "count":
        return None
    ends = [value for row in found if (value := row.literal("y")) is not None]
    exact = total.by.kind == "number" and total.by.unit is None
    return extreme_of(ends, lowest=total.function == "min", exact=exact) if ends else _size(found[0])


def _cut(computed: Computed, limit: int) -> Computed:
    return replace(
        computed,
        members=computed.members[:limit],
        groups=computed.groups[:limit],
        rows=computed.rows[:limit],
        shared=computed.shared[:limit],
    )


def _place(shared: SharedTerm) -> tuple[bool, str, tuple[bool, str, str, str]]:
    return shared.step.direction == "in", shared.step.relation.value, term_key(shared.term)


def _is_lowest(request: SetRequest) -> bool:
    question = request.question
    ranked = question.of if isinstance(question, Listed | Tabled) else None
    return isinstance(ranked, Best) and ranked.lowest


def _size(row: Bindings) -> float:
    said = row.text("m")
    try:
        return float(said or "")
    except ValueError as error:
        raise BackendError(f"The endpoint answered {said!r} for a number.") from error


_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|<([^>]*)>')

_LOCAL: Final = re.compile(r"[A-Za-z0-9_]+")

_BLANKS: Final = re.compile(r" {2,}")


def as_sparql(question: SetQuestion, vocabulary: Vocabulary, prefixes: Prefixes, *, only_count: bool = False) -> str:
    """Return the query that asks the same, in which a number is what the engine takes for one; it may be a long line.

    Args:
        question: What is asked.
        vocabulary: The relations that type; those without a prefix are left out where others have one.
        prefixes: The short forms of the graph's IRIs.
        only_count: Whether only the number of members or groups is asked for.
    """
    namespaces = prefixes.namespaces
    kept = vocabulary.written_with(prefixes)
    text = SetQueries(Walked(replace(DIALECTS["standard"], holds_numbers=True), kept)).explained(
        question, only_count=only_count
    )
    used: dict[str, str] = {}

    def shortened(found: re.Match[str]) -> str:
        value = found[1]
        for prefix, namespace in namespaces.items():
            if value is not None and value.startswith(namespace) and _LOCAL.fullmatch(value.removeprefix(namespace)):
                used[prefix] = namespace
                return f"{prefix}:{value.removeprefix(namespace)}"
        return found[0]

    short = _BLANKS.sub(" ", _TOKEN.sub(shortened, text))
    return " ".join((*(f"PREFIX {prefix}: <{namespace}>" for prefix, namespace in used.items()), short))
