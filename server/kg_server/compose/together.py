"""Which conditions of `Where` are about one and the same thing: those whose routes begin with the same step."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kg_adapters.algebra import Compares, Condition, HopPath, Intersect, Kept, Linked, SetExpression
from kg_adapters.folding import fold
from kg_server.compose.syntax import Clause, Leg, Route, Span, Words


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions whose routes begin with the same step; `of_one` where one thing there must meet them all."""

    clauses: tuple[Clause, ...]
    of_one: bool = False

    @property
    def shown(self) -> str:
        """The first step, as in `-visit_id`."""
        leg = self.clauses[0].route.legs[0]
        return f"{leg.mark}{leg.name.text}{'+' if leg.repeated else ''}"

    def said(self) -> str:
        """Return how conditions were read that are more than one."""
        if self.of_one:
            apart = "Intersect[Where[…], Where[…]] asks for each apart."
            return f"The {len(self.clauses)} conditions on {self.shown} are about one and the same thing there. {apart}"
        one = f"Where[…, {self.shown} = Where[…]] asks for one."
        return f"Each of the {len(self.clauses)} conditions on {self.shown} may be about another thing there. {one}"


def about_one(clauses: Sequence[Clause]) -> Iterator[Conditions]:
    """Yield conditions, together where they are about one thing that their routes lead to with the same first step.

    So `readings/analyte = lead, readings/value > 5` asks for one reading that meets both. Conditions that only deny
    something are about all such things, as each is alone. Where a route is to lead to two things at once they may be
    about different ones, and so all conditions of that step are.
    """
    left = list(clauses)
    while left:
        first = left.pop(0)
        joined = (first, *(each for each in left if _joins(first, each)))
        if all(map(_denies, joined)) or all(len(each.route.legs) == 1 for each in joined):
            yield Conditions((first,))
        else:
            left = [each for each in left if each not in joined]
            yield Conditions(joined, of_one=len(joined) > 1 and not _differ(joined))


def _joins(one: Clause, other: Clause) -> bool:
    return not (one.counted or other.counted) and _step(one.route.legs[0]) == _step(other.route.legs[0])


def _differ(clauses: Sequence[Clause]) -> bool:
    """Return whether one route is to lead to different things."""
    equal = [tuple(map(_step, each.route.legs)) for each in clauses if each.operator == "=" and not _denies(each)]
    return len(set(equal)) < len(equal)


def _denies(clause: Clause) -> bool:
    is_none = isinstance(clause.value, Words) and not clause.value.quoted and clause.value.text.casefold() == "none"
    return clause.operator == ("=" if is_none else "!=")


def _step(leg: Leg) -> tuple[str, str, bool]:
    return fold(leg.name.text) or leg.name.text, leg.mark, leg.repeated


def first_step(clause: Clause) -> Route:
    """Return the first step of a condition's route."""
    leg = clause.route.legs[0]
    return Route((leg,), Span(clause.route.span.start, leg.name.span.end))


def behind_it(clause: Clause) -> Clause:
    """Return a condition without the first step of its route."""
    legs = clause.route.legs[1:]
    return replace(clause, route=Route(legs, Span(legs[0].name.span.start, clause.route.span.end)))


def on_what_is_there(condition: Condition, path: HopPath, there: SetExpression) -> SetExpression | None:
    """Return which of the things that a path leads to meet a condition on it; None where it is none of them."""
    hops = len(path.hops)
    match condition:
        case Linked(path=led, to=to) if led == path:
            return Intersect((there, to))
        case Compares(path=led, operator=operator, value=value) if led.hops[:hops] == path.hops and led != path:
            return Kept(there, Compares(HopPath(led.hops[hops:]), operator, value))
        case _:
            return None
