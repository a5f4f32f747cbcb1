"""What is said of expressions that cannot be read."""

from collections.abc import Collection, Mapping
from typing import Final

from kg_boundary.shown import in_quotes
from kg_server.compose.scanner import CLOSE, OPEN
from kg_server.compose.syntax import FUNCTIONS, Function
from kg_server.resolve import closest

FORMS: Final[Mapping[Function, str]] = {
    "Where": "Where takes a set and conditions, as in Where[Type[town], population > 1000].",
    "Top": "Top takes a set, what it is measured by, and how many, as in Top[Type[town], population, 3].",
    "Bottom": "Bottom takes a set, what it is measured by, and how many, as in Bottom[Type[town], population, 3].",
    "Group": "Group takes a set and a relation, as in Group[Type[town], country].",
    "Table": "Table takes a set and relations, as in Table[Type[town], country, population].",
    **{
        each: f"{each} takes a set and a feature, as in {each}[Type[town], population]."
        for each in ("Sum", "Mean", "Min", "Max")
    },
    "Feature": "Feature takes a node and a feature, as in Feature[Japan, population].",
    **{each: f"{each} takes a node and a relation, as in {each}[Japan, capital]." for each in ("Neighbor", "Degree")},
    "Retrieve": "Retrieve takes a text, as in Retrieve[Japan].",
    "Type": "Type takes a class, as in Type[town].",
    "Count": "Count takes one set, as in Count[Type[town]].",
    **{
        each: f"{each} takes two or more sets, as in {each}[Type[town], Neighbor[Japan, capital]]."
        for each in ("Union", "Intersect", "Minus", "Share")
    },
}
CONDITION: Final = "A condition is a relation, an operator and a value, as in population > 1000."
UNCLOSED_QUOTE: Final = "This quotation mark is never closed, or something else follows its end."
_QUERIES: Final = frozenset(("select", "ask", "construct", "describe", "prefix"))
_SECOND: Final[Mapping[Function, str]] = {"Feature": "a feature", "Where": "a condition"}
_SHOWN: Final = 40
_SHAPES: Final = "Retrieve[text], Feature[node, feature], Neighbor[node, relation] or Degree[node, relation]"


def second(function: Function) -> str:
    """Return what a function takes behind its first argument."""
    return _SECOND.get(function, "a relation")


def unclosed(function: Function) -> str:
    """Return what is said of a call without its closing bracket."""
    return f"This bracket of {function} is never closed. Expected {CLOSE} after its last argument."


def no_call(name: str, following: str) -> str:
    """Return what is said where a call is expected and a name stands that opens none."""
    function = FUNCTIONS.get(name.lower())
    if function is not None and following == "(":
        return f"The arguments of {function} go in square brackets. Expected {OPEN} after the name."
    if function is not None:
        return f"Expected {OPEN} and the arguments after {function}."
    if name.lower() in _QUERIES:
        return f"This is not an expression: the tool Sparql takes queries. Expected a call here, such as {_SHAPES}."
    return f"Expected a call here, such as {_SHAPES}."


def no_function(name: str, functions: Collection[Function]) -> str:
    """Return what is said of a function that there is not."""
    known_names = [short for short, function in FUNCTIONS.items() if function in functions]
    close = closest(name[:_SHOWN].lower(), known_names, limit=1)
    meant = f" Did you mean {FUNCTIONS[close[0]]}?" if close else ""
    known = ", ".join(dict.fromkeys(FUNCTIONS[short] for short in known_names))
    return f"There is no function {in_quotes(name, _SHOWN)}.{meant} The functions are {known}."
