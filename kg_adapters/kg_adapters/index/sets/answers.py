"""Answers to questions about sets, over an index."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Final

import numpy as np

from kg_adapters.algebra import (
    Function,
    Hop,
    HopPath,
    Measure,
    Members,
    NumberOf,
    Reached,
    SetExpression,
    Step,
    TotalOf,
    ValueOf,
    Values,
    holds_values,
)
from kg_adapters.index.builder import index_of
from kg_adapters.index.columns import Floats, spread
from kg_adapters.index.graph_index import Dictionary, EdgeTable, GraphIndex, Longs, relation_ids
from kg_adapters.index.sets.groups import Memberships, memberships, totals_of
from kg_adapters.index.sets.members import SetMembers
from kg_adapters.index.sets.values import IndexValues
from kg_adapters.index.sets.walks import MOST_PAIRS, SetLimits, Tables, Walks, distinct, within
from kg_adapters.index.sets.witnesses import Witnesses
from kg_adapters.labels import Vocabulary
from kg_adapters.models import Count, EdgeDirection
from kg_adapters.set_requests import (
    Aggregated,
    Cell,
    Column,
    Computed,
    Group,
    Grouped,
    Listed,
    Row,
    SetRequest,
    SharedBy,
    SharedTerm,
    Tabled,
    Witness,
)
from kg_adapters.terms import Fact, Literal, Term, literal_key
from kg_adapters.values import extreme_of

_DIRECTIONS: Final[tuple[EdgeDirection, ...]] = ("out", "in")


@dataclass(frozen=True, slots=True)
class _Shared:
    """Terms that are shared, each by a number that tells its direction, relation and term, in this order.

    Args:
        sets: What worked out the sets.
        codes: The numbers, sorted.
        rows: Rows of values, in their order; their numbers come behind those of all nodes.
    """

    sets: SetMembers
    codes: Longs
    rows: Longs

    def __len__(self) -> int:
        return len(self.codes)

    def terms(self, limit: int) -> Iterator[SharedTerm]:
        """Yield the first of them."""
        index, dictionary = self.sets.walks.index, self.sets.dictionary
        nodes, relations = len(index.nodes), len(index.relations)
        codes: list[int] = self.codes[:limit].tolist()
        for code in codes:
            step, end = divmod(code, nodes + len(self.rows))
            direction, relation = divmod(step, relations)
            term = dictionary.node(end) if end < nodes else self.sets.values.literal(int(self.rows[end - nodes]))
            yield SharedTerm(Step(dictionary.relation(relation), _DIRECTIONS[direction]), term)


def _shared_terms(sets: SetMembers, asked: SharedBy, vocabulary: Vocabulary) -> _Shared:
    """Return what the members of each of some sets are linked to over the same step."""
    index = sets.walks.index
    members = [_known(sets.nodes(each), len(index.nodes)) for each in asked.sets]
    turned = _turned(sets, asked)
    rows_of = [spread(index.features.starts[nodes], index.features.starts[nodes + 1])[0] for nodes in members]
    ranked = sets.values.ranked(np.concatenate(rows_of))
    width = len(index.nodes) + len(ranked.rows)
    ranks = np.split(ranked.ranks, np.cumsum([len(rows) for rows in rows_of])[:-1])
    found: list[Longs] = []
    for nodes, rows, of_rows in zip(members, rows_of, ranks, strict=True):
        relation, tails = _edges(index.out, nodes)
        backwards, heads = _edges(index.into, nodes)
        values = index.features.relations[rows].astype(np.int64) * width + len(index.nodes) + of_rows
        incoming = turned[backwards] * width + heads
        found.append(distinct(np.concatenate((relation * width + tails, incoming, values))))
    codes = found[0]
    for each in found[1:]:
        codes = codes[within(codes, each)]
    told = ~np.isin(codes // width % max(len(index.relations), 1), relation_ids(index, vocabulary.texts))
    return _Shared(sets, codes[told], ranked.rows)


def _turned(sets: SetMembers, asked: SharedBy) -> Longs:
    """Return the step that each relation is backwards: one over its inverse, or one behind all outgoing ones."""
    relations = len(sets.walks.index.relations)
    turned = np.arange(relations, 2 * relations)
    for relation, inverse in asked.opposites.items():
        mine, other = sets.walks.relation_id(relation), sets.walks.relation_id(inverse)
        if mine is not None and other is not None:
            turned[mine] = other
    return turned


def _known(nodes: Longs, size: int) -> Longs:
    return nodes[nodes < size]


def _edges(table: EdgeTable, nodes: Longs) -> tuple[Longs, Longs]:
    """Return the relation and the other end of every edge of some nodes."""
    groups, _ = spread(table.groups[nodes], table.groups[nodes + 1])
    positions, group_of = spread(table.starts[groups], table.starts[groups + 1])
    return table.relations[groups][group_of].astype(np.int64), table.neighbors[positions].astype(np.int64)


class IndexSets:
    """Answers questions about sets from one index.

    Args:
        index: The graph.
        dictionary: Its terms.
        vocabulary: Its relations that name and type.
        most_pairs: How many pairs of a node and an end a path may lead to (`SetLimits`).
    """

    def __init__(
        self, index: GraphIndex, dictionary: Dictionary, vocabulary: Vocabulary, most_pairs: int = MOST_PAIRS
    ) -> None:
        self._tables = Tables(index, vocabulary)
        self._values = IndexValues(index, dictionary)
        self._dictionary = dictionary
        self._vocabulary = vocabulary
        self._most_pairs = most_pairs

    def compute(self, request: SetRequest) -> Computed:
        """Return the answer to a question, as `SupportsSets.compute` promises."""
        limits = SetLimits(request.timeout_s, self._most_pairs)
        walks = Walks(self._tables, limits)
        sets = SetMembers(walks, self._values, self._dictionary, self._vocabulary, limits)
        return _Answering(sets, request, self._vocabulary).computed()


class _Answering:
    """Answers one request."""

    def __init__(self, sets: SetMembers, request: SetRequest, vocabulary: Vocabulary) -> None:
        self._sets = sets
        self._values = sets.values
        self._walks = sets.walks
        self._request = request
        self._vocabulary = vocabulary
        self._witnesses = Witnesses(sets, vocabulary)

    def computed(self) -> Computed:
        match self._request.question:
            case Listed(of) if holds_values(of):
                return self._listed_values(of)
            case Listed(of):
                return self._listed(of)
            case Tabled(of, columns):
                return self._tabled(of, columns)
            case Grouped() as question:
                return self._grouped(question)
            case SharedBy():
                return self._shared(self._request.question)
            case Aggregated():
                return self._aggregated(self._request.question)

    def _listed_values(self, of: SetExpression) -> Computed:
        literals = sorted(self._sets.literals(of), key=literal_key)
        shown = literals[: self._request.witnesses]
        return Computed(
            Count(len(literals)),
            members=tuple(literals[: self._request.limit]),
            witnesses=tuple(Witness(value, tuple(self._witnesses.of_value(of, value))) for value in shown),
        )

    def _listed(self, of: SetExpression) -> Computed:
        numbers = self._sets.ordered(of)
        ranked = self._sets.ranked(of)
        return Computed(
            Count(len(numbers)),
            members=tuple(map(self._sets.term, numbers[: self._request.limit].tolist())),
            without=Count(ranked.without),
            unfit=Count(ranked.unfit),
            partly=Count(ranked.partly),
            measured=Count(ranked.members),
            values=Count(ranked.values),
            witnesses=self._shown(of, numbers),
        )

    def _tabled(self, of: SetExpression, columns: Sequence[Column]) -> Computed:
        numbers = self._sets.ordered(of)
        ranked = self._sets.ranked(of)
        shown = numbers[: self._request.limit]
        cells = [self._cells(shown, column) for column in columns]
        return Computed(
            Count(len(numbers)),
            rows=tuple(
                Row(self._sets.term(number), tuple(column[place] for column in cells))
                for place, number in enumerate(shown.tolist())
            ),
            without=Count(ranked.without),
            unfit=Count(ranked.unfit),
            partly=Count(ranked.partly),
            measured=Count(ranked.members),
            values=Count(ranked.values),
            witnesses=self._shown(of, numbers),
        )

    def _grouped(self, question: Grouped) -> Computed:
        inside = memberships(self._sets, question)
        if question.total is not None:
            return self._with_totals(question, question.total, inside)
        codes, sizes = np.unique(inside.codes, return_counts=True)
        order = np.lexsort((codes, sizes if question.lowest else -sizes))[: self._request.limit]
        return replace(
            self._groups_of(question, inside, codes[order]),
            count=Count(len(codes)),
            groups=tuple(
                Group(self._group(inside.values, code), Count(size))
                for code, size in zip(codes[order].tolist(), sizes[order].tolist(), strict=True)
            ),
        )

    def _groups_of(self, question: Grouped, inside: Memberships, codes: Longs) -> Computed:
        """Return what is in no group, and what shows the first ones."""
        grouped = len(distinct(inside.places))
        with_ends = len(distinct(np.append(inside.ends.places, inside.ends.value_places)))
        shown = [self._group(inside.examples, code) for code in codes[: self._request.witnesses].tolist()]
        ends = [self._group(inside.values, code) for code in codes[: self._request.witnesses].tolist()]
        found = [self._in_group(question, example) for example in shown]
        return Computed(
            Count(0),
            without=Count(inside.size - grouped),
            unfit=Count(with_ends - grouped),
            witnesses=tuple(replace(each, result=end) for each, end in zip(found, ends, strict=True)),
        )

    def _with_totals(self, question: Grouped, total: NumberOf | TotalOf, inside: Memberships) -> Computed:
        found = totals_of(self._sets, question, total, inside)
        limit = self._request.limit
        groups: list[Group] = []
        for place, code in enumerate(found.codes[:limit].tolist()):
            start, size = int(found.starts[place]), int(found.sizes[place])
            of_group = slice(start, start + size)
            amount = (
                self._amount(total.by, total.function, found.orders[of_group], found.rows[of_group])
                if isinstance(total, TotalOf)
                else None
            )
            groups.append(Group(self._group(inside.values, code), Count(size), amount))
        return replace(
            self._groups_of(question, inside, found.codes[:limit]),
            count=Count(len(found.codes)),
            groups=tuple(groups),
            partly=Count(found.partly),
            measured=Count(found.members),
            values=Count(int(found.sizes.sum()) if isinstance(total, TotalOf) else 0),
            left_out=found.left_out,
        )

    def _group(self, values: Sequence[Literal], code: int) -> Term:
        width = len(self._walks.index.nodes)
        return self._sets.term(code) if code < width else values[code - width]

    def _in_group(self, asked: Grouped, end: Term) -> Witness:
        """Return why some member is in a group."""
        if isinstance(end, Literal):
            return Witness(end, tuple(self._witnesses.of_value(Values(asked.of, asked.by), end)))
        (number,) = self._sets.nodes(Members((end,))).tolist()
        return Witness(end, tuple(self._witnesses.of_node(Reached(asked.of, asked.by), number)))

    def _shared(self, asked: SharedBy) -> Computed:
        found = _shared_terms(self._sets, asked, self._vocabulary)
        shown = tuple(found.terms(self._request.limit))
        return Computed(
            Count(len(found)),
            shared=shown,
            witnesses=tuple(self._shared_by(asked, each) for each in shown[: self._request.witnesses]),
        )

    def _shared_by(self, asked: SharedBy, shared: SharedTerm) -> Witness:
        path, term, sets = HopPath((Hop(asked.steps_of(shared.step)),)), shared.term, asked.sets
        if isinstance(term, Literal):
            facts = [fact for each in sets for fact in self._witnesses.of_value(Values(each, path), term)]
        else:
            (number,) = self._sets.nodes(Members((term,))).tolist()
            facts = [fact for each in sets for fact in self._witnesses.of_node(Reached(each, path), number)]
        return Witness(term, tuple(dict.fromkeys(facts)))

    def _aggregated(self, question: Aggregated) -> Computed:
        nodes, by = self._sets.nodes(question.of), question.by
        if isinstance(by, ValueOf) and question.function in {"sum", "mean"}:
            places, orders, rows = self._sets.added_up(nodes, TotalOf(by, question.function))
        else:
            places, orders, rows = self._sets.measured(nodes, by)
        value, shown = self._amount(by, question.function, orders, rows), np.arange(len(places))
        if question.function in {"min", "max"} and len(orders):
            shown = np.flatnonzero(orders == (orders.min() if question.function == "min" else orders.max()))
        chosen = [(int(nodes[places[place]]), int(rows[place])) for place in shown[: self._request.witnesses].tolist()]
        having = distinct(places)
        unfit, partly = self._sets.unfit(nodes, by, having)
        return Computed(
            Count(len(places)),
            value=value,
            without=Count(len(nodes) - len(having)),
            unfit=Count(unfit),
            partly=Count(partly),
            measured=Count(len(having)),
            witnesses=tuple(self._measured(question, node, row) for node, row in chosen),
        )

    def _extreme(self, by: Measure, function: Function, orders: Floats, rows: Longs) -> float | Literal:
        """Return the least or greatest of some values as the graph holds it."""
        end = orders.min() if function == "min" else orders.max()
        values = [self._values.literal(row) for row in rows[orders == end].tolist() if row >= 0]
        exact = isinstance(by, ValueOf) and by.kind == "number" and by.unit is None
        return extreme_of(values, lowest=function == "min", exact=exact) if values else float(end)

    def _measured(self, question: Aggregated, node: int, row: int) -> Witness:
        facts = self._witnesses.of_node(question.of, node)
        if row >= 0:
            facts += self._witnesses.to_row(node, question.by.path, row)
        return Witness(self._sets.term(node), tuple(dict.fromkeys(facts)))

    def _cells(self, nodes: Longs, column: Column) -> list[Cell]:
        """Return what nodes have in a column."""
        ends = self._walks.ends(nodes, column.path)
        if isinstance(column, NumberOf):
            return [Cell((), Count(size)) for size in self._values.sizes(ends, column.path, len(nodes)).tolist()]
        if isinstance(column, TotalOf):
            return self._totals(nodes, column)
        ways = self._values.each(self._walks.ways(nodes, column.path))
        by_place = np.argsort(ways.places, kind="stable")
        places, rows = ways.places[by_place], ways.rows[by_place]
        cells: list[Cell] = []
        for place in range(len(nodes)):
            first, last = np.searchsorted(ends.places, [place, place + 1]).tolist()
            of_values, behind = np.searchsorted(places, [place, place + 1]).tolist()
            values = sorted(map(self._values.literal, rows[of_values:behind].tolist()), key=literal_key)
            shown = islice(
                chain(map(self._sets.term, ends.nodes[first:last].tolist()), values), self._request.cell_limit
            )
            cells.append(Cell(tuple(shown), Count(last - first + len(values))))
        return cells

    def _totals(self, nodes: Longs, column: TotalOf) -> list[Cell]:
        """Return what the values of each node come to."""
        places, orders, rows = self._sets.added_up(nodes, column)
        by_place = np.argsort(places, kind="stable")
        places, orders, rows = places[by_place], orders[by_place], rows[by_place]
        cells: list[Cell] = []
        for place in range(len(nodes)):
            of_node = slice(*np.searchsorted(places, [place, place + 1]).tolist())
            amount = self._amount(column.by, column.function, orders[of_node], rows[of_node])
            cells.append(Cell((), Count(len(orders[of_node])), amount))
        return cells

    def _amount(self, by: Measure, function: Function, orders: Floats, rows: Longs) -> float | Literal | None:
        """Return what some values come to; None where they are only counted, or there are none."""
        if function == "count" or not len(orders):
            return None
        if function in {"min", "max"}:
            return self._extreme(by, function, orders, rows)
        with np.errstate(over="ignore", invalid="ignore"):
            return float(orders.sum() if function == "sum" else orders.mean())

    def _shown(self, of: SetExpression, numbers: Longs) -> tuple[Witness, ...]:
        return tuple(
            Witness(self._sets.term(number), tuple(self._witnesses.of_node(of, number)))
            for number in numbers[: self._request.witnesses].tolist()
        )


def sets_of(facts: Iterable[Fact], vocabulary: Vocabulary) -> IndexSets:
    """Return what answers questions about sets from these facts alone."""
    index = index_of(facts, vocabulary)
    return IndexSets(index, Dictionary(index), vocabulary)
