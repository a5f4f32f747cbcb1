"""The path that the name of a relation stands for in a query: subproperties and inverses too, each fact once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri
from kg_server.names import names_of
from kg_server.naming.subproperties import inclusion_note, subproperties
from kg_server.sparql.syntax import Edits, Outline, Span, either

_SHOWN: Final = 3
_PLAIN: Final = frozenset({"variable", "iri", "prefixed", "name"})


@dataclass(frozen=True, slots=True)
class NamedWays:
    """Over what else the facts of the relations of a name are stored.

    Args:
        below: Subproperties of the relations.
        inverses: The inverses of these and of the relations, where facts are stored over them alone, and what else says
            the same backwards.
        repeats: Whether a fact may be found by several of them.
    """

    below: tuple[Iri, ...] = ()
    inverses: tuple[Iri, ...] = ()
    repeats: bool = False

    def path(self, relations: Sequence[Iri]) -> str:
        """Return the path over some relations and all of these."""
        steps = [f"<{each.value}>" for each in (*relations, *self.below)]
        steps += [f"^<{each.value}>" for each in self.inverses]
        return either(steps)

    async def note(self, graph: KGAdapter, relations: Sequence[Iri]) -> str:
        """Return a sentence on what the name of some relations includes; empty where that is nothing."""
        if not (self.below or self.inverses):
            return ""
        names = await names_of(graph, (*relations[:1], *self.below, *self.inverses))
        return inclusion_note(relations[0], self.below, self.inverses, names)


async def ways_of(graph: KGAdapter, relations: Sequence[Iri]) -> NamedWays:
    """Return over what else the facts of some relations of one name are stored."""
    profile = await graph.profile()
    below, behind = subproperties(profile, relations)
    pairs = [(each, profile.inverse_alone(each)) for each in (*relations, *below)]
    inverses = tuple(dict.fromkeys((*(inverse for _, inverse in pairs if inverse is not None), *behind)))
    known = (profile.inverses_of(each) for each, inverse in pairs if inverse is not None)
    # A part of its own, joined with the rest of a query, costs a large remote graph too much.
    repeats = not profile.sampled and (bool(below or behind) or any(pair is not None and pair.both for pair in known))
    return NamedWays(below, inverses, repeats)


async def narrower_note(graph: KGAdapter, relations: Sequence[Iri]) -> str:
    """Return which relations, walked by their ids, have subproperties that hold more; empty where none has."""
    profile = await graph.profile()
    found = {each: below[:_SHOWN] for each in relations if (below := subproperties(profile, [each])[0])}
    names = await names_of(graph, found)
    notes: list[str] = []
    for each, below in found.items():
        path = "|".join(graph.prefixes.shorten(one) for one in (each, *below))
        notes.append(f"{names.relation(each)} has subproperties, which its id does not mean: ({path}) walks them too.")
    return " ".join(notes)


def state_once(outline: Outline, ways: Mapping[int, NamedWays], edits: Edits) -> None:
    """Put statements over names by which a fact may be found several times into parts that have each fact once."""
    for each in outline.statements:
        found = ways.get(each.verb[0])
        if found is not None and found.repeats and _stands_alone(outline, each.subject, each.verb, each.tail):
            edits.parts.append((each.subject[0], each.tail[0]))


def _stands_alone(outline: Outline, subject: Span, verb: Span, tail: Span) -> bool:
    """Say whether a statement is three tokens, none of which belongs to another one, and no condition holds it."""
    first, end = subject[0], tail[1]
    if (subject[1], verb[1], end) != (verb[0], tail[0], first + 3) or end >= len(outline.tokens):
        return False
    kinds = {outline.tokens[at].kind for at in (first, tail[0])}
    is_list = outline.tokens[end].text in {";", ","}
    return kinds <= _PLAIN and not is_list and not outline.in_condition(first)
