"""Whatever is written: a tree in any legal spelling is read back, and any text gives a tree or an error."""

import random
import string
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from expression_trees import NOWHERE, parse
from kg_server.compose.syntax import Call, EntityRef, Function, Leg, Mark, Operand, Route, Words
from kg_server.naming.refusals import MisreadExpression

NEIGHBOR = ("Neighbor", "Neighbour", "GetNeighbor", "GetNeighbour")
PLAIN = string.ascii_letters + string.digits + "_.-:()'\u6771 "
texts = st.text(st.sampled_from(PLAIN + '[],"\\\n<>'), min_size=1, max_size=12).filter(lambda text: text.strip() != "")
plain_ids = st.text(st.sampled_from(string.ascii_letters + string.digits + ":_.()"), min_size=1, max_size=8)


@dataclass(frozen=True)
class Spelling:
    """Chooses, call by call, one of the legal ways to write a tree."""

    # There are hundreds of choices for each tree: drawn one by one, they would take most of the time.
    chosen: random.Random

    def expression(self, calls: list[Call]) -> str:
        return self._blanks() + ",".join(self._operand(call) + self._blanks() for call in calls)

    def _operand(self, operand: Operand) -> str:
        if isinstance(operand, EntityRef):
            return self._id(operand.text)
        arguments = [self._words(operand.words.text)] if operand.function == "Retrieve" else []
        arguments += [self._operand(each) for each in operand.operands] + [self._route(each) for each in operand.routes]
        inner = f"{self._blanks()},{self._blanks()}".join(arguments)
        return f"{self._name(operand.function)}[{self._blanks()}{inner}{self._blanks()}]"

    def _route(self, route: Route) -> str:
        legs = ("".join((leg.mark, self._blanks(), self._leg(leg), "+" * leg.repeated)) for leg in route.legs)
        return f"{self._blanks()}/{self._blanks()}".join(legs)

    def _leg(self, leg: Leg) -> str:
        plain = leg.name.text[:1] not in {"-", "~"} and not set("/+") & set(leg.name.text)
        return self._words(leg.name.text) if plain else self._quoted(leg.name.text)

    def _name(self, function: Function) -> str:
        name = self.chosen.choice(NEIGHBOR if function == "Neighbor" else (function,))
        return self.chosen.choice([name, name.lower(), name.upper()]) + self._blanks()

    def _words(self, text: str) -> str:
        plain = set(text) <= set(PLAIN) and text == text.strip() and text[0] not in "'-"
        return text + self._blanks() if plain and self.chosen.random() < 0.5 else self._quoted(text)

    def _id(self, text: str) -> str:
        plain = set(text) <= set(PLAIN) - set("' ")
        return text if plain and self.chosen.random() < 0.5 else self._quoted(text)

    def _quoted(self, text: str) -> str:
        mark = self.chosen.choice("\"'")
        escaped = text.replace("\\", "\\\\").replace(mark, f"\\{mark}")
        if self.chosen.random() < 0.5:
            escaped = escaped.replace("\n", "\\n")
        return f"{mark}{escaped}{mark}{self._blanks()}"

    def _blanks(self) -> str:
        return self.chosen.choice(["", "", " ", "\n", "\t "])


no_place = st.just(NOWHERE)
some_words = st.builds(Words, texts, no_place)
marks: st.SearchStrategy[Mark] = st.sampled_from(("", "-", "~"))
legs = st.builds(Leg, some_words, marks, st.booleans())
routes = st.tuples(st.builds(Route, st.lists(legs, min_size=1, max_size=3).map(tuple), no_place))
retrieving: st.SearchStrategy[Function] = st.just("Retrieve")
starts = st.builds(EntityRef, plain_ids | texts, no_place) | st.builds(Call, retrieving, no_place, words=some_words)


def of(
    functions: tuple[Function, ...], operands: st.SearchStrategy[Operand], by: st.SearchStrategy[tuple[Route, ...]]
) -> st.SearchStrategy[Operand]:
    return st.builds(Call, st.sampled_from(functions), no_place, st.tuples(operands), by)


def around(nodes: st.SearchStrategy[Operand]) -> st.SearchStrategy[Operand]:
    sets = st.lists(nodes, min_size=2, max_size=3).map(tuple)
    functions: st.SearchStrategy[Function] = st.sampled_from(("Union", "Intersect", "Minus"))
    return of(("Neighbor",), nodes, routes) | st.builds(Call, functions, no_place, sets)


node_sets: st.SearchStrategy[Operand] = st.recursive(starts, around, max_leaves=6)
measured = of(("Feature", "Degree"), node_sets, routes)
counts = of(("Count",), node_sets | measured, st.just(()))
calls = st.one_of(node_sets, measured, of(("Degree",), node_sets, st.just(())), counts)


@st.composite
def trees_and_spellings(draw: st.DrawFn) -> tuple[list[Call], str]:
    drawn = draw(st.lists(calls, min_size=1, max_size=3))
    chosen = [Call("Count", NOWHERE, (each,)) if isinstance(each, EntityRef) else each for each in drawn]
    return chosen, Spelling(draw(st.randoms(use_true_random=True))).expression(chosen)


@settings(max_examples=150, derandomize=True, deadline=None, database=None)
@given(trees_and_spellings())
def test_a_tree_in_any_legal_spelling_is_read_back(pair: tuple[list[Call], str]) -> None:
    chosen, text = pair
    assert parse(text, max_depth=20, max_calls=500) == tuple(chosen)


fragments = st.sampled_from(
    (
        *("Retrieve", "Feature[", "neighbor [", "Degree[", "Count[", "Union[", "Minus", "[", "]", ",", " ", "-", "'"),
        *('"', "\\", "<", ">", "\n", "Q1", "wd:Q2", "x", "\u6771", "\ud800", "\x00"),
    )
)


@settings(max_examples=150, derandomize=True, deadline=None, database=None)
@given(st.text() | st.lists(fragments, max_size=30).map("".join))
def test_any_text_gives_a_tree_or_an_error_with_a_place_in_it(text: str) -> None:
    try:
        assert parse(text)
    except MisreadExpression as error:
        place, message = error.position, str(error)
    else:
        place, message = 0, "^"
    assert 0 <= place <= len(text)
    assert message.endswith("^")
