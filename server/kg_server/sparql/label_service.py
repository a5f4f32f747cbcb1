"""Wikidata's ways to ask for labels, which other engines do not know: the label service and `?xLabel`."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from kg_adapters.labels import Vocabulary
from kg_server.sparql.syntax import Edits, Outline, Select, Span

_SUFFIX: Final = "Label"

_SERVICES: Final = frozenset({"wikibase:label", "<http://wikiba.se/ontology#label>"})

_PARAMETERS: Final = frozenset({"bd:serviceParam", "<http://www.bigdata.com/rdf#serviceParam>"})


def asks_for_labels(outline: Outline) -> bool:
    """Say whether a query uses the label service or one of its variables."""
    return any(True for _ in _services(outline)) or bool(_unbound_labels(outline))


def put_labels(outline: Outline, vocabulary: Vocabulary, edits: Edits) -> str:
    """Do without the label service and its variables; return what was left out, in full sentences."""
    notes: list[str] = []
    for service in _services(outline):
        edits.drop(service)
        edits.instead[service[0]] = " ".join(_named_in(outline, service, vocabulary))
        notes.append("The label service is not needed: ids come with their labels.")
    for variable in _unbound_labels(outline):
        of = variable.removesuffix(_SUFFIX)
        uses = [at for at, each in enumerate(outline.tokens) if each.kind == "variable" and each.text[1:] == variable]
        listed = {at for select in outline.selects for at in _inserted_values(outline, select)}
        if listed.issuperset(uses):
            notes.append(_without(outline, uses, of, edits))
            continue
        pattern = _label(vocabulary, f"?{of}", f"?{variable}")
        for group in {_group_around(outline, at) for at in uses}:
            if group is not None and not _comes_from_within(outline, group, variable):
                edits.instead[group[1]] = f"{pattern} {edits.instead.get(group[1], '}')}"
    return " ".join(dict.fromkeys(notes))


def _unbound_labels(outline: Outline) -> list[str]:
    """Return the variables that are called like the label of another one, and get no value from the query."""
    bound = _bound(outline)
    used = dict.fromkeys(outline.variables((0, len(outline.tokens))))
    return [each for each in used if each not in bound and each.removesuffix(_SUFFIX) in bound]


def _group_around(outline: Outline, at: int) -> Span | None:
    """Return the brackets of the group in which the value of a variable has to be known."""
    for select in outline.selects:
        if select.where is not None and any(part[0] <= at < part[1] for part in (select.projection, select.modifiers)):
            return select.where.span[0], select.where.span[1] - 1
    return outline.brackets_around(at)


def _comes_from_within(outline: Outline, group: Span, variable: str) -> bool:
    """Say whether a subquery in a group gives a variable to it."""
    inside = (each.projection for each in outline.selects if group[0] < each.projection[0] < group[1])
    return any(variable in outline.variables(projection) for projection in inside)


def _services(outline: Outline) -> Iterator[Span]:
    """Yield where the label service is called."""
    for first, token in enumerate(outline.tokens):
        if token.keyword != "SERVICE" or first + 2 >= len(outline.tokens):
            continue
        opening = first + 2
        if outline.tokens[first + 1].text not in _SERVICES or outline.tokens[opening].text != "{":
            continue
        depth = 0
        for at in range(opening, len(outline.tokens)):
            depth += {"{": 1, "}": -1}.get(outline.tokens[at].text, 0)
            if depth == 0:
                yield (first, at + 1)
                break


def _named_in(outline: Outline, service: Span, vocabulary: Vocabulary) -> Iterator[str]:
    """Yield patterns for the labels that the service gives to variables of the query's choice."""
    for each in outline.statements:
        subject, tail = outline.text(each.subject), outline.text(each.tail)
        inside = service[0] < each.subject[0] < service[1]
        if inside and subject not in _PARAMETERS and subject.startswith("?") and tail.startswith("?"):
            yield _label(vocabulary, subject, tail)


def _bound(outline: Outline) -> set[str]:
    """Return the variables that get a value from the query itself."""
    found = {
        variable
        for each in outline.statements
        for span in (each.subject, each.verb, each.tail)
        for variable in outline.variables(span)
    }
    tokens = outline.tokens
    for before, token in pairwise(tokens):
        if token.kind == "variable" and before.keyword in {"AS", "VALUES"}:
            found.add(token.text[1:])
    return found


def _inserted_values(outline: Outline, select: Select) -> Iterator[int]:
    """Yield the variables that are only listed: for SELECT and for GROUP BY, without brackets."""
    yield from _outside_brackets(outline, select.projection)
    first, last = select.modifiers
    for at in range(first, last - 1):
        if outline.tokens[at].keyword == "GROUP" and outline.tokens[at + 1].keyword == "BY":
            ends = (end for end in range(at + 2, last) if outline.tokens[end].keyword)
            yield from _outside_brackets(outline, (at + 2, next(ends, last)))


def _outside_brackets(outline: Outline, span: Span) -> Iterator[int]:
    depth = 0
    for at in range(*span):
        depth += {"(": 1, ")": -1}.get(outline.tokens[at].text, 0)
        if depth == 0 and outline.tokens[at].kind == "variable":
            yield at


def _without(outline: Outline, uses: list[int], of: str, edits: Edits) -> str:
    """List an entity in place of its label, once."""
    for select in outline.selects:
        listed = list(_inserted_values(outline, select))
        for part in (select.projection, select.modifiers):
            here = [at for at in listed if part[0] <= at < part[1]]
            there = any(outline.tokens[at].text[1:] == of for at in here)
            for at in set(here).intersection(uses):
                edits.instead[at] = "" if there else f"?{of}"
                there = True
    return f"?{of}{_SUFFIX} is shown beside the id in ?{of}."


def _label(vocabulary: Vocabulary, subject: str, variable: str) -> str:
    """Return patterns for a label: the first that there is gives the value, and the others leave it as it is."""
    return " ".join(
        f'OPTIONAL {{ {subject} <{relation}> {variable} FILTER(LANG({variable}) = "{language}") }}'
        for relation in vocabulary.labels
        for language in (*vocabulary.languages, "")
    )
