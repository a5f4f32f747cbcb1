"""Queries with ids in place of names."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from kg_adapters.terms import Iri
from kg_server.sparql.naming import Meant
from kg_server.sparql.syntax import Outline, Place, Span


@dataclass
class Edits:
    """What changes in a query: texts in place of tokens, and behind them.

    Attributes:
        instead: What stands in place of a token.
        behind: What is put behind a token.
        added: The variables that are not the query's own.
    """

    instead: dict[int, str] = field(default_factory=dict[int, str])
    behind: defaultdict[int, list[str]] = field(default_factory=lambda: defaultdict[int, list[str]](list))
    added: list[str] = field(default_factory=list[str])

    def drop(self, span: Span) -> None:
        """Leave tokens out."""
        self.instead.update(dict.fromkeys(range(*span), ""))

    def applied(self, query: str, outline: Outline) -> str:
        """Return the query with all changes, each of its lines where it was."""
        pieces: list[str] = []
        end = 0
        for number, token in enumerate(outline.tokens):
            pieces += [query[end : token.at], self.instead.get(number, token.text), *self.behind.get(number, ())]
            end = token.end
        return "".join((*pieces, query[end:]))

    def texts(self, outline: Outline) -> Mapping[int, str]:
        """Return what stands in place of each token that changes, with what is put behind it."""
        changed = {*self.instead, *self.behind}
        return {
            number: "".join((self.instead.get(number, outline.tokens[number].text), *self.behind.get(number, ())))
            for number in changed
        }


def put_ids(query: str, outline: Outline, meant: Mapping[int, Meant], edits: Edits) -> None:
    """Put ids in place of names: of namesakes all, by a variable, a path or a list."""
    variables: dict[Meant, str] = {}
    bound: set[tuple[int, str]] = set()
    for place in outline.places:
        each = meant[place.token]
        iris = each.iris
        if len(iris) == 1 or place.role == "verb" or place.form != "pattern":
            _write(outline, place, iris, edits)
            continue
        if each not in variables:
            variables[each] = _unused(query, variables.values())
        name = edits.instead[place.token] = variables[each]
        # A pattern always stands in a group.
        if place.group is not None and (place.group, name) not in bound:
            bound.add((place.group, name))
            edits.behind[place.group].append(f" VALUES {name} {{ {_listed(iris, ' ')} }}")
    edits.added.extend(name.removeprefix("?") for name in variables.values())


def _write(outline: Outline, place: Place, iris: Sequence[Iri], edits: Edits) -> None:
    before = place.token - 1
    text = _listed(iris, {"list": " ", "commas": ", ", "equal": ", ", "unequal": ", "}.get(place.form, "|"))
    if len(iris) > 1 and place.form in {"equal", "unequal"}:
        edits.instead[before] = " IN " if place.form == "equal" else " NOT IN "
    in_list = place.form in {"list", "commas"} or (place.form == "negated" and outline.tokens[before].text != "!")
    edits.instead[place.token] = text if len(iris) == 1 or in_list else f"({text})"


def _listed(iris: Sequence[Iri], between: str) -> str:
    # What an Iri may hold cannot end it.
    return between.join(f"<{iri.value}>" for iri in iris)


def _unused(query: str, taken: Collection[str]) -> str:
    return next(name for number in count(1) if (name := f"?named{number}") not in query and name not in taken)
