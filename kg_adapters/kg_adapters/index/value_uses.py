"""Which entities of an index have a text as their value."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

import numpy as np

from kg_adapters.folding import fold
from kg_adapters.index.graph_index import Bytes, Dictionary, GraphIndex, Longs, parts
from kg_adapters.models import Count, ValueUse
from kg_adapters.terms import node_key

MAX_VALUE: Final = 200
"""How many characters a value has at most that is looked for as a whole."""
_ASCII: Final = 128
_LOWER: Final = np.frombuffer(bytes(range(256)).lower(), dtype=np.uint8)
# How letters and signs begin in UTF-8 that fold to letters, digits and signs of ASCII.
_FOLDED: Final = np.isin(np.arange(256), [*range(0xC2, 0xCA), 0xCC, 0xCD, 0xE1, 0xE2, 0xEF])


def uses_in_index(
    index: GraphIndex, dictionary: Dictionary, text: str, limit: int, left_out: frozenset[int]
) -> list[ValueUse]:
    """Return which relations have a text as their value, those that most entities have first.

    Args:
        index: The graph.
        dictionary: The same.
        text: The text, as a whole but for case; also but for accents where nothing has it so.
        limit: The most entities that are named for each relation.
        left_out: The relations, by id, whose values do not count.
    """
    found = _rows_by_text(index, text)
    same = found.get(text.strip().lower())
    return sorted(
        (
            use
            for rows in (found.values() if same is None else (same,))
            for use in _uses(index, dictionary, np.sort(np.array(rows, dtype=np.int64)), limit, left_out)
        ),
        key=lambda use: (-use.count.value, use.relation, use.value.value),
    )


def _uses(
    index: GraphIndex, dictionary: Dictionary, rows: Longs, limit: int, left_out: frozenset[int]
) -> Iterator[ValueUse]:
    relations = index.features.relations[rows]
    owners = np.searchsorted(index.features.starts, rows, side="right") - 1
    for relation in np.unique(relations).tolist():
        if relation not in left_out:
            of = np.flatnonzero(relations == relation)
            bearers = np.unique(owners[of])
            nodes = sorted(map(dictionary.node, bearers[:limit].tolist()), key=node_key)
            value = dictionary.literal(int(rows[of[0]]))
            yield ValueUse(dictionary.relation(relation), value, tuple(nodes), Count(len(bearers)))


def _rows_by_text(index: GraphIndex, text: str) -> dict[str, list[int]]:
    """Return the rows whose values fold to the same as a text, by these values in lower case."""
    folded, values = fold(text), index.features.values
    found: defaultdict[str, list[int]] = defaultdict(list)
    if not folded or len(text) > MAX_VALUE:
        return found
    wanted = np.frombuffer(folded.encode(), dtype=np.uint8)
    for part in parts(len(values)):
        offsets = np.asarray(values.offsets[part.start : part.stop + 1])
        # A slice of the text is verified once, where single places would be each time.
        text_of_part = values.text[int(offsets[0]) : int(offsets[-1])]
        same, likely = _compared(wanted, text_of_part, offsets - offsets[0])
        if len(same):
            found[folded] += (same + part.start).tolist()
        for row in (likely + part.start).tolist():
            value = values[row]
            if fold(value) == folded:
                found[value.strip().lower()].append(row)
    return found


def _compared(wanted: Bytes, text: Bytes, offsets: Longs) -> tuple[Longs, Longs]:
    """Return which values are a folded text but for the case of letters in ASCII, and which only folding can tell."""
    starts, sizes = offsets[:-1], np.diff(offsets)
    # Letters with accents have more bytes than those without.
    places = np.flatnonzero((sizes >= len(wanted)) & (sizes <= len(wanted) + len(wanted) // 2 + 1))
    open_ones = list[Longs]()
    for place, byte in enumerate(wanted.tolist()):
        found = text[starts[places] + place]
        if byte >= _ASCII:
            open_ones.append(places[found >= _ASCII])
            places = places[:0]
            break
        open_ones.append(places[_FOLDED[found]])
        places = places[_LOWER[found] == byte]
    return places[sizes[places] == len(wanted)], np.concatenate(open_ones).astype(np.int64)
