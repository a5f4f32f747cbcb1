"""Counts by relation, as the lines that stand above facts which are only a part."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kg_adapters.models import Count, RelationCount
from kg_server.budget import fitting
from kg_server.names import Names

ADJECTIVES: Final = {"out": "outgoing", "in": "incoming", "both": "neighbouring"}
TABLE_LINE_TOKENS: Final = 30


@dataclass(frozen=True, slots=True)
class RelationTable:
    """The relations that an answer counts, and the lines that show them."""

    counts: tuple[RelationCount, ...]
    lines: tuple[str, ...]
    relations: int


def relation_table(names: Names, counts: Sequence[RelationCount], max_tokens: int) -> RelationTable:
    """Return a line a direction that names every relation with its count, the most frequent first.

    What does not fit into the budget is summed up at the end of its line. A single relation needs no table.
    """
    if len(counts) < 2:
        return RelationTable(tuple(counts), (), len(counts))
    directions = dict.fromkeys(each.direction for each in counts)
    share = max_tokens // len(directions)
    lines: list[str] = []
    shown: list[RelationCount] = []
    for direction in directions:
        ordered = sorted(
            (each for each in counts if each.direction == direction),
            key=lambda each: (-each.count.value, each.relation),
        )
        parts = [f"{names.relation(each.relation)} {each.count};" for each in ordered]
        fits = fitting(parts, share - TABLE_LINE_TOKENS)
        lines.append(_table_line(ADJECTIVES[direction], parts[:fits], ordered[fits:]))
        shown.extend(ordered[:fits])
    return RelationTable(tuple(shown), tuple(lines), len(counts))


def by_direction(counts: Sequence[RelationCount]) -> tuple[list[RelationCount], list[RelationCount]]:
    """Return the outgoing and the incoming counts."""
    return [each for each in counts if each.direction == "out"], [each for each in counts if each.direction == "in"]


def _table_line(adjective: str, parts: Sequence[str], rest: Sequence[RelationCount]) -> str:
    line = f"{adjective} relations: {' '.join(parts)}".rstrip(";")
    if not rest:
        return line
    triples = Count(sum(each.count.value for each in rest))
    return f"{line}; and {len(rest)} more with {triples} triples, which Degree lists"
