"""Remarks on the parts of a question by what they leave over: which leaves nothing, who is left out, what is cut."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from kg_adapters.models import SparqlAnswer
from kg_adapters.profile import ClassProfile
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri, Node
from kg_boundary.shown import shown_within
from kg_server.answers.results import Note, Over
from kg_server.names import MAX_LABEL, names_of, plural

_NOTHING: Final[Note] = ()


async def first_without(parts: int, has_match: Callable[[int], Awaitable[bool]]) -> int | None:
    """Return the index of the first part that leaves nothing; None where all of them together have a match.

    Args:
        parts: How many parts there are.
        has_match: Returns whether the first so many of them have a match together. It is asked by halves.
    """
    if not parts or await has_match(parts):
        return None
    with_match, without = 0, parts
    while without - with_match > 1:
        middle = (with_match + without) // 2
        if await has_match(middle):
            with_match = middle
        else:
            without = middle
    return without - 1


def lacking(begin: str, more: str, none: int, unfit: int, name: Note, kind: str, end: str, examples: Note = ()) -> Note:
    """Return how many members are left out since they have nothing to compare, or nothing that compares.

    Args:
        begin: How the sentence begins.
        more: What stands behind the first number.
        none: How many have nothing.
        unfit: How many have something that is not of the kind that is compared.
        name: What they lack; empty where that has no name.
        kind: As what values are compared.
        end: What happens to them.
        examples: Some of those that have something else, with it.
    """
    no: Note = ("none of it",) if not name else ("no ", *name)
    if not unfit:
        return f"{begin}{none:,}{more} {_has(none)} ", *no, f" and {_is(none)} {end}."
    value = f"that is not a {kind}"
    if not none:
        return (
            f"{begin}{unfit:,}{more} {_has(unfit)} a value of ",
            *(name or ("it",)),
            f" {value} and {_is(unfit)} {end}",
            *_in_brackets(examples),
            ".",
        )
    return (
        f"{begin}{none:,}{more} {_has(none)} ",
        *no,
        f", and {unfit:,} {_has(unfit)} a value {value}",
        *_in_brackets(examples),
        f"; they are {end}.",
    )


def _in_brackets(note: Note) -> Note:
    return (" (", *note, ")") if note else ()


def _has(number: int) -> str:
    return "has" if number == 1 else "have"


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


async def left_out(
    graph: KGAdapter,
    every: int,
    none: int,
    unfit: int,
    over: Over | str,
    owner: Node | None,
    more: str,
    kind: str = "",
    examples: Note = (),
) -> Note:
    """Return how many of a set a condition leaves out since they have nothing to compare; empty where it is none.

    Args:
        graph: The graph.
        every: How many there are.
        none: How many of them have nothing over the relation.
        unfit: How many have something that is not of the kind that is compared.
        over: The relation.
        owner: Their class, where they have one.
        more: What else they have in common, behind their name.
        kind: As what values are compared.
        examples: Some of those that have something of another kind, with it.
    """
    if not none and not unfit:
        return _NOTHING
    label = None if owner is None else (await graph.labels([owner])).get(owner)
    name = "node" if label is None else shown_within(label, MAX_LABEL)
    of_all = f"{every:,} {name if every == 1 else plural(name)}{more}"
    return lacking(f"Of {of_all}, ", "", none, unfit, (over,), kind, "left out", examples)


async def led_elsewhere(graph: KGAdapter, relation: Iri, node: Node, owner: Node | None) -> Note:
    """Return half a sentence on where a relation leads that is compared with a node of another class; empty if it fits.

    Args:
        graph: The graph.
        relation: The relation.
        node: What it was expected to lead to.
        owner: The class of what it leads from, where that is known.
    """
    profile = await graph.profile()
    known = profile.everything if owner is None else profile.profile_of(owner) or profile.everything
    described = (await graph.describe([node])).get(node)
    types = () if described is None else described.types
    wider = [each for owner in types if (its := profile.profile_of(owner)) is not None for each in its.broader]
    wanted = [*types, *wider]
    property_ = known.property(relation, "out")
    targets = [] if property_ is None else [target for target, _ in property_.targets]
    if not targets or not wanted or set(targets).intersection(wanted):
        return _NOTHING
    instead = _leading(known, wanted)
    end: Note = (".",) if instead is None else (": try ", Over(instead), ".")
    return (", which leads to ", targets[0], "; ", node, " is of the class ", wanted[0], *end)


def _leading(known: ClassProfile, wanted: list[Node]) -> Iri | None:
    """Return the relation over which instances of a class lead to those of others, the most frequent."""
    found = [each for each in known.properties if each.direction == "out" and each.targets[:1]]
    fitting = [each for each in found if each.targets[0][0] in wanted]
    return max(fitting, key=lambda each: each.facts).relation if fitting else None


def evidence_cut(shown: int, every: int, more: str) -> str:
    """Return for how many of the results evidence is shown, and how more is asked for; empty where it is for all."""
    return f"Evidence for {shown:,} of {every:,}{f'; {more}' if more else ''}." if shown < every else ""


_MOST_ROUNDED: Final = 5


async def rounded_values(graph: KGAdapter, relations: Sequence[Iri]) -> str:
    """Return a remark on relations whose numbers are rounded in computations; empty where there are none."""
    if not relations:
        return ""
    names = await names_of(graph, relations[:_MOST_ROUNDED])
    named = ", ".join(names.relation(each, ",") for each in relations[:_MOST_ROUNDED])
    return (
        f"Some values of {named} have too many digits for SPARQL and are doubles here; Feature shows them as written."
    )


_ADDED: Final = re.compile(r"\b(?:SUM|AVG)\s*\([^{}]{0,300}?\bAS\s+[?$](\w+)", re.IGNORECASE)


def blank_sums(answer: SparqlAnswer, query: str) -> str:
    """Return a remark on sums and means without a value, since not all that they add are numbers; empty for none."""
    added = frozenset(_ADDED.findall(query))
    columns = [place for place, variable in enumerate(answer.variables) if variable in added]
    blank = [f"?{answer.variables[place]}" for place in columns if any(row[place] is None for row in answer.rows)]
    if not blank:
        return ""
    return f"Blank in {', '.join(blank)}: not all values are numbers. FILTER(isNumeric(?value)) leaves others out."
