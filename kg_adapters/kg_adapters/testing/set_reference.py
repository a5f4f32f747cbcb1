"""Sets over a list of facts, worked out in the plainest way: what every adapter that computes sets must agree with."""

from collections.abc import Callable, Collection, Iterator
from itertools import chain

from kg_adapters.algebra import (
    Best,
    Compares,
    Condition,
    Has,
    Hop,
    HopPath,
    Instances,
    Intersect,
    Kept,
    Linked,
    Measure,
    Meets,
    Members,
    Minus,
    Numbers,
    Reached,
    SetExpression,
    Step,
    Union,
    ValueOf,
    Values,
    counts_values,
)
from kg_adapters.labels import Vocabulary
from kg_adapters.models import Count
from kg_adapters.set_requests import (
    Aggregated,
    Cell,
    Column,
    Computed,
    Ends,
    Group,
    Grouped,
    Listed,
    Row,
    SetRequest,
    SharedBy,
    SharedTerm,
    Tabled,
    term_key,
)
from kg_adapters.terms import Fact, Literal, Node, Term, literal_key
from kg_adapters.values import compares, holds, order_of_kind


class SetReference:
    """Answers questions about sets from a list of facts.

    Args:
        facts: All that the graph says.
        vocabulary: Which relations say of what class a node is, which classes are subclasses, and which name.
    """

    def __init__(self, facts: Collection[Fact], vocabulary: Vocabulary) -> None:
        self._facts = frozenset(facts)
        self._vocabulary = vocabulary

    def compute(self, request: SetRequest) -> Computed:
        """Return the answer to a question, without witnesses."""
        match request.question:
            case Listed(of):
                members = self._ordered(of)
                return Computed(Count(len(members)), members=members[: request.limit], without=self._unmeasured(of))
            case Tabled(of, columns):
                members = self._ordered(of)
                rows = tuple(
                    Row(node, tuple(self._cell(node, column, request.cell_limit) for column in columns))
                    for node in members[: request.limit]
                    if not isinstance(node, Literal)
                )
                return Computed(Count(len(members)), rows=rows, without=self._unmeasured(of))
            case Grouped(of, by):
                return self._grouped(of, by, request.limit)
            case SharedBy():
                shared = sorted(
                    self._shared(request.question), key=lambda each: (_step_key(each.step), term_key(each.term))
                )
                return Computed(Count(len(shared)), shared=tuple(shared[: request.limit]))
            case Aggregated():
                return self._aggregated(request.question)

    def members(self, expression: SetExpression) -> frozenset[Term]:
        """Return what is in a set."""
        found: frozenset[Term]
        match expression:
            case Members(nodes):
                found = frozenset(nodes)
            case Instances(owner, subclasses):
                found = self._instances(owner, subclasses=subclasses)
            case Reached(of, path):
                found = frozenset(term for term in self._reached(of, path) if not isinstance(term, Literal))
            case Values(of, path):
                found = frozenset(term for term in self._reached(of, path) if isinstance(term, Literal))
            case Union(sets):
                found = frozenset(chain.from_iterable(map(self.members, sets)))
            case Intersect(sets):
                found = self.members(sets[0]).intersection(*map(self.members, sets[1:]))
            case Minus(sets):
                found = self.members(sets[0]).difference(*map(self.members, sets[1:]))
            case Kept(of, condition):
                true = self._true(condition)
                found = frozenset(node for node in self.nodes(of) if true(node))
            case Best():
                found = frozenset(self._best(expression))
        return found

    def nodes(self, expression: SetExpression) -> Iterator[Node]:
        """Yield the nodes of a set."""
        yield from (term for term in self.members(expression) if not isinstance(term, Literal))

    def ends(self, node: Node, path: HopPath) -> frozenset[Term]:
        """Return what a path reaches from a node."""
        reached: frozenset[Term] = frozenset([node])
        for hop in path.hops:
            reached = frozenset(chain.from_iterable(self._over(each, hop) for each in reached))
        return reached

    def _reached(self, of: SetExpression, path: HopPath) -> Iterator[Term]:
        return chain.from_iterable(self.ends(node, path) for node in self.nodes(of))

    def _over(self, term: Term, hop: Hop) -> frozenset[Term]:
        found = self._one_step(term, hop)
        ahead = set(found) if hop.repeated else set[Term]()
        while ahead:
            fresh = self._one_step(ahead.pop(), hop) - found
            found |= fresh
            ahead |= fresh
        return found

    def _one_step(self, term: Term, hop: Hop) -> frozenset[Term]:
        forward = (fact.tail for fact in self._facts if fact.head == term and self._walks(hop, fact, "out"))
        back = (fact.head for fact in self._facts if fact.tail == term and self._walks(hop, fact, "in"))
        return frozenset(chain(forward, () if isinstance(term, Literal) else back))

    def _walks(self, hop: Hop, fact: Fact, direction: str) -> bool:
        if hop.steps is None:
            return not isinstance(fact.tail, Literal) or fact.relation not in self._vocabulary.texts
        return any(step.relation == fact.relation and step.direction == direction for step in hop.steps)

    def _instances(self, owner: Node, *, subclasses: bool) -> frozenset[Term]:
        types, wider = self._vocabulary.types, self._vocabulary.subclasses
        classes: frozenset[Term] = frozenset([owner])
        if subclasses and wider:
            classes |= self._over(owner, Hop(tuple(Step(iri, "in") for iri in wider), repeated=True))
        return frozenset(fact.head for fact in self._facts if fact.relation in types and fact.tail in classes)

    def _true(self, condition: Condition) -> Callable[[Node], bool]:
        match condition:
            case Has(path):
                return lambda node: bool(self.ends(node, path))
            case Linked(path, to):
                members = self.members(to)
                return lambda node: not members.isdisjoint(self.ends(node, path))
            case Meets(path, other):
                return lambda node: not self.ends(node, path).isdisjoint(self.ends(node, other))
            case Compares(path, operator, value):
                return lambda node: any(
                    compares(end, operator, value) for end in self.ends(node, path) if isinstance(end, Literal)
                )
            case Numbers(path, operator, number):
                return lambda node: holds(self._number(node, path), operator, number)

    def _measures(self, node: Node, by: Measure) -> dict[Literal | None, float]:
        """Return what a node measures, by the value that says so; a number of ends has none."""
        if not isinstance(by, ValueOf):
            number = self._number(node, by.path)
            return {None: float(number)} if number else {}
        ends = self.ends(node, by.path)
        values = ((end, order_of_kind(end, by.kind, by.unit)) for end in ends if isinstance(end, Literal))
        return {value: order for value, order in values if order is not None}

    def _number(self, node: Node, path: HopPath) -> int:
        """Return how many ends of a path count."""
        return sum(counts_values(path) or not isinstance(end, Literal) for end in self.ends(node, path))

    def _best(self, best: Best) -> tuple[Node, ...]:
        sign = 1 if best.lowest else -1
        measured = {node: self._measures(node, best.by) for node in self.nodes(best.of)}
        places = {node: min(sign * each for each in found.values()) for node, found in measured.items() if found}
        last = sorted(places.values())[: best.n]
        kept = [node for node, place in places.items() if place <= last[-1]]
        return tuple(sorted(kept, key=lambda node: (places[node], term_key(node))))

    def _ordered(self, of: SetExpression) -> tuple[Term, ...]:
        return self._best(of) if isinstance(of, Best) else tuple(sorted(self.members(of), key=term_key))

    def _unmeasured(self, of: SetExpression) -> Count:
        if not isinstance(of, Best):
            return Count(0)
        return Count(sum(not self._measures(node, of.by) for node in self.nodes(of.of)))

    def _cell(self, node: Node, column: Column, limit: int) -> Cell:
        if not isinstance(column, Ends):
            return Cell((), Count(self._number(node, column.path)))
        ends = sorted(self.ends(node, column.path), key=term_key)
        return Cell(tuple(ends[:limit]), Count(len(ends)))

    def _grouped(self, of: SetExpression, by: HopPath, limit: int) -> Computed:
        ends = {node: self.ends(node, by) for node in self.nodes(of)}
        terms = frozenset[Term]().union(*ends.values())
        sizes = {term: sum(term in reached for reached in ends.values()) for term in terms}
        order = sorted(sizes, key=lambda term: (-sizes[term], term_key(term)))
        groups = tuple(Group(term, Count(sizes[term])) for term in order[:limit])
        return Computed(Count(len(order)), groups=groups, without=Count(sum(not reached for reached in ends.values())))

    def _shared(self, asked: SharedBy) -> Iterator[SharedTerm]:
        members = [frozenset(self.nodes(each)) for each in asked.sets]
        relations = {fact.relation for fact in self._facts} - self._vocabulary.texts
        back = (Step(relation, "in") for relation in relations if relation not in asked.opposites)
        for step in chain(map(Step, relations), back):
            path = HopPath((Hop(asked.steps_of(step)),))
            reached = [frozenset(chain.from_iterable(self.ends(node, path) for node in each)) for each in members]
            yield from (SharedTerm(step, term) for term in reached[0].intersection(*reached[1:]))

    def _aggregated(self, question: Aggregated) -> Computed:
        measured = [self._measures(node, question.by) for node in self.nodes(question.of)]
        pairs = [pair for found in measured for pair in found.items()]
        having = sum(map(bool, measured))
        without = Count(len(measured) - having)
        return Computed(Count(len(pairs)), value=_value(question, pairs), without=without, measured=Count(having))


def _value(question: Aggregated, pairs: list[tuple[Literal | None, float]]) -> float | Literal | None:
    if not pairs:
        return None
    orders = [order for _, order in pairs]
    match question.function:
        case "sum":
            return sum(orders)
        case "mean":
            return sum(orders) / len(orders)
        case "min" | "max":
            end = min(orders) if question.function == "min" else max(orders)
            values = [value for value, order in pairs if order == end and value is not None]
            return min(values, key=literal_key) if values else end


def _step_key(step: Step) -> tuple[bool, str]:
    return step.direction == "in", step.relation.value
