"""Queries for what a graph holds about facts: qualifiers, references and ranks, annotations, and named graphs."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, TypeAlias

from kg_adapters.sparql.queries import writing
from kg_adapters.terms import Iri, Literal

RANK: Final = Iri("http://wikiba.se/ontology#rank")
REIFIES: Final = Iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies")
_DERIVED: Final = Iri("http://www.w3.org/ns/prov#wasDerivedFrom")
_DIRECT: Final = re.compile(r"(.+/prop/)direct/([A-Z][0-9]+)")
_TOGETHER: Final = 50
_LONGEST: Final = 16_000
_LONGEST_TERMS: Final = 12_000
"""How many characters the terms of one block may have; a fact with a longer value has no details."""
_COLUMNS: Final = "?kind ?n ?o ?about ?ref ?key ?value"
Far: TypeAlias = Iri | Literal


@dataclass(frozen=True, slots=True)
class FactsOver:
    """Facts around one entity over one relation in one direction.

    Args:
        entity: The near end of all.
        relation: Their relation.
        outgoing: Whether the entity is their head.
        far: Their far ends.
    """

    entity: Iri
    relation: Iri
    outgoing: bool
    far: tuple[Far, ...]

    @property
    def claim(self) -> tuple[str, str] | None:
        """Where Wikibase keeps the statements behind such facts: a namespace and the property's id; None elsewhere."""
        found = _DIRECT.fullmatch(self.relation.value)
        return None if found is None else (found[1], found[2])


def statement_queries(groups: Sequence[FactsOver]) -> Iterator[str]:
    """Yield queries for the statements behind facts, the graphs that these are in, and whether there are reifiers.

    Rows are `?kind` and `?n`, the place of a group, with `?o` a far end; then `?about` a statement, its `?ref` or not,
    and its `?value` for `?key`; or `?about` a named graph; or `?about` any reifier.

    Args:
        groups: Facts around one entity.
    """
    reifier = f'{{ SELECT ?about {{ ?about {writing.iri(REIFIES)} ?any }} LIMIT 1 }} BIND("reifies" AS ?kind)'
    return _queries([reifier, *_statements(groups), *_in_graphs(groups)])


def annotation_queries(groups: Sequence[FactsOver]) -> Iterator[str]:
    """Yield SPARQL 1.2 queries for the statements of reifiers of facts, `?about` being the reifier.

    Rows are like those of `statement_queries`.
    """
    said = f"?about {writing.iri(REIFIES)} <<( {{}} ?r {{}} )>> ; ?key ?value FILTER(?key != {writing.iri(REIFIES)})"
    return _queries(f"{block} {_kind('annotation')}" for block in _joined(_facts(groups), said))


def _statements(groups: Sequence[FactsOver]) -> Iterator[str]:
    claims = [(number, group, claim) for number, group in enumerate(groups) if (claim := group.claim) is not None]
    if not claims:
        return
    spaces = {space for _, _, (space, _) in claims}
    source = f"?about {writing.iri(_DERIVED)} ?ref . ?ref ?key ?value FILTER({_starts('reference', spaces)})"
    said = f"?about ?key ?value FILTER({_starts('qualifier', spaces)} || ?key = {writing.iri(RANK)})"
    for outgoing in (True, False):
        rows: list[_Bound] = []
        for number, group, (space, name) in claims:
            path = str(number), writing.iri(Iri(space + name)), writing.iri(Iri(f"{space}statement/{name}"))
            if group.outgoing and outgoing:
                # Values are shown in another form than they are stored: all are read, and compared later.
                rows.append(_Bound(group, ("?n", "?p", "?ps"), path))
            elif not (group.outgoing or outgoing):
                rows += [_Bound(group, ("?n", "?p", "?ps", "?o"), (*path, _term(far))) for far in group.far]
        for more in (said, source):
            joined = _joined(rows, f"{{}} ?p ?about . ?about ?ps {{}} . {more}")
            yield from (f"{block} {_kind('statement')}" for block in joined)


def _in_graphs(groups: Sequence[FactsOver]) -> Iterator[str]:
    # Not every engine of Wikibase has named graphs, and none puts these facts into some.
    facts = (each for each in _facts(groups) if each.group.claim is None)
    return (f"{block} {_kind('graph')}" for block in _joined(facts, "GRAPH ?about {{ {} ?r {} }}"))


@dataclass(frozen=True, slots=True)
class _Bound:
    """Terms for some variables of a pattern about facts of a group."""

    group: FactsOver
    variables: tuple[str, ...]
    terms: tuple[str, ...]


def _facts(groups: Sequence[FactsOver]) -> Iterator[_Bound]:
    for number, group in enumerate(groups):
        relation = writing.iri(group.relation)
        yield from (_Bound(group, ("?n", "?r", "?o"), (str(number), relation, _term(far))) for far in group.far)


def _joined(rows: Iterable[_Bound], pattern: str) -> Iterator[str]:
    """Yield a pattern, with braces in place of head and tail, with the terms of many rows for its variables."""
    together = sorted(rows, key=lambda row: not row.group.outgoing)
    for outgoing, same in groupby(together, key=lambda row: row.group.outgoing):
        kept = list(same)
        entity = writing.iri(kept[0].group.entity)
        filled = pattern.format(*((entity, "?o") if outgoing else ("?o", entity)))
        terms = (text for row in kept if len(text := f"({' '.join(row.terms)})") <= _LONGEST_TERMS)
        for part in _packed(terms, _LONGEST_TERMS):
            yield f"VALUES ({' '.join(kept[0].variables)}) {{ {' '.join(part)} }} {filled}"


def _term(far: Far) -> str:
    return writing.literal(far) if isinstance(far, Literal) else writing.iri(far)


def _starts(kind: str, spaces: Iterable[str]) -> str:
    # Below are the same values again, as nodes.
    return " || ".join(f"STRSTARTS(STR(?key), {writing.text(f'{space}{kind}/P')})" for space in sorted(spaces))


def _kind(kind: str) -> str:
    return f"BIND({writing.text(kind)} AS ?kind)"


def _queries(blocks: Iterable[str]) -> Iterator[str]:
    """Yield queries for all blocks, as few as their length allows."""
    for part in _packed(blocks, _LONGEST):
        yield f"SELECT {_COLUMNS} {{ {writing.union(part)} }}"


def _packed(texts: Iterable[str], longest: int) -> Iterator[list[str]]:
    """Yield texts together: at most `_TOGETHER`, and of several at most so many characters."""
    together: list[str] = []
    for text in texts:
        if together and (len(together) == _TOGETHER or sum(map(len, together)) + len(text) > longest):
            yield together
            together = []
        together.append(text)
    if together:
        yield together
